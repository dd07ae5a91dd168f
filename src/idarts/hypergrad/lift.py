"""A module, a criterion and a batch as a pure function of (w, α)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from idarts.errors import InputError
from idarts.hypergrad.swap import Swap, recomputing_with
from idarts.hypergrad.vectors import Tensors

Criterion = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class LiftedLoss:
    """`loss(w, a)`: the module run with these tensors in place of its parameters, on one batch.

    Buffers are copied for each call, so BatchNorm's statistics do not change. Parameters in neither tuple keep their
    values. `outputs` and `criterion` are separate methods because the Gauss–Newton matrix needs both.
    """

    module: nn.Module
    loss: Criterion
    inputs: Any
    target: Any
    swap: Swap

    def __call__(self, w: Tensors, a: Tensors) -> Tensor:
        return self.criterion(self.outputs(w, a))

    def outputs(self, w: Tensors, a: Tensors) -> Any:
        with self.swap.active((*w, *a)), recomputing_with(self.swap, (*w, *a)):
            return call_module(self.module, self.inputs)

    def criterion(self, outputs: Any) -> Tensor:
        return self.loss(outputs, self.target)


def lift(
    module: nn.Module,
    loss: Criterion,
    batch: tuple[Any, Any] | Mapping[str, Any],
    w: Iterable[Tensor],
    a: Iterable[Tensor] = (),
) -> LiftedLoss:
    """`loss(module(inputs), target)` for one batch `(inputs, target)`, as a pure function of `(w, a)`.

    `w` and `a` are those parameters of the module that are inner and outer. Several inputs form a tuple, or a dict of
    keyword arguments. A batch that is itself a dict is `loss(module(**batch), batch)`.

    >>> net = nn.Linear(3, 1)
    >>> inner = lift(net, nn.functional.mse_loss, (torch.ones(5, 3), torch.zeros(5, 1)), (net.weight,), (net.bias,))
    >>> zero = (torch.zeros(1, 3),), (torch.zeros(1),)
    >>> inner(*zero).item()
    0.0
    >>> keywords = lift(net, nn.functional.mse_loss, ({"input": torch.ones(5, 3)}, torch.zeros(5, 1)), net.parameters())
    >>> keywords((torch.zeros(1, 3), torch.ones(1)), ()).item()
    1.0
    """
    if isinstance(module, torch.jit.ScriptModule):
        raise InputError(
            "lift: a scripted module keeps its parameters where they cannot be replaced; lift the original"
        )
    inner, outer = tuple(w), tuple(a)
    names = {id(parameter) for parameter in module.parameters()}
    for which, tensors in (("w", inner), ("a", outer)):
        for index, tensor in enumerate(tensors):
            if id(tensor) not in names:
                raise InputError(f"lift: tensor {index} of {which} is not a parameter of this {type(module).__name__}")
    inputs, target = (batch, batch) if isinstance(batch, Mapping) else batch
    return LiftedLoss(module, loss, inputs, target, Swap.of(module, (*inner, *outer)))


def call_module(module: nn.Module, inputs: Any, **keywords: Any) -> Any:
    """The module's outputs for the inputs of a batch; several inputs form a tuple, or a dict of keyword arguments.

    >>> call_module(nn.Bilinear(2, 2, 1), (torch.ones(3, 2), torch.ones(3, 2))).shape
    torch.Size([3, 1])
    """
    if isinstance(inputs, Mapping):
        return module(**inputs, **keywords)
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **keywords)
