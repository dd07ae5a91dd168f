"""A module, a criterion and a batch as a pure function of (w, α)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from idarts.errors import InputError
from idarts.hypergrad.vectors import Tensors


@dataclass(frozen=True)
class LiftedLoss:
    """`loss(w, a)`: the module run with these tensors in place of its parameters, on one batch.

    Buffers are copied for each call, so BatchNorm's statistics do not change. Parameters in neither tuple keep their
    values. `outputs` and `criterion` are separate methods because the Gauss–Newton matrix needs both.
    """

    module: nn.Module
    loss: Callable[[Any, Any], Tensor]
    inputs: tuple[Any, ...]
    target: Any
    inner_names: tuple[str, ...]
    outer_names: tuple[str, ...]

    def __call__(self, w: Tensors, a: Tensors) -> Tensor:
        return self.criterion(self.outputs(w, a))

    def outputs(self, w: Tensors, a: Tensors) -> Any:
        tensors = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        tensors.update(zip(self.inner_names, w, strict=True))
        tensors.update(zip(self.outer_names, a, strict=True))
        return torch.func.functional_call(self.module, tensors, self.inputs)

    def criterion(self, outputs: Any) -> Tensor:
        return self.loss(outputs, self.target)


def lift(
    module: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    batch: tuple[Any, Any],
    w: Sequence[Tensor],
    a: Sequence[Tensor] = (),
) -> LiftedLoss:
    """`loss(module(inputs), target)` for one batch `(inputs, target)`, as a pure function of `(w, a)`.

    `w` and `a` are those parameters of the module that are inner and outer. Several inputs form a tuple.

    >>> net = nn.Linear(3, 1)
    >>> inner = lift(net, nn.functional.mse_loss, (torch.ones(5, 3), torch.zeros(5, 1)), (net.weight,), (net.bias,))
    >>> zero = (torch.zeros(1, 3),), (torch.zeros(1),)
    >>> inner(*zero).item()
    0.0
    """
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    inputs, target = batch
    return LiftedLoss(
        module,
        loss,
        _as_tuple(inputs),
        target,
        _names(w, names, module, "w"),
        _names(a, names, module, "a"),
    )


def call_module(module: nn.Module, inputs: Any, **keywords: Any) -> Any:
    """The module's outputs for the inputs of a batch; several inputs form a tuple.

    >>> call_module(nn.Bilinear(2, 2, 1), (torch.ones(3, 2), torch.ones(3, 2))).shape
    torch.Size([3, 1])
    """
    return module(*_as_tuple(inputs), **keywords)


def _as_tuple(inputs: Any) -> tuple[Any, ...]:
    return inputs if isinstance(inputs, tuple) else (inputs,)


def _names(tensors: Sequence[Tensor], names: dict[int, str], module: nn.Module, which: str) -> tuple[str, ...]:
    for index, tensor in enumerate(tensors):
        if id(tensor) not in names:
            raise InputError(f"lift: tensor {index} of {which} is not a parameter of this {type(module).__name__}")
    return tuple(names[id(tensor)] for tensor in tensors)


def from_optimizer(optimizer: torch.optim.Optimizer, w: Sequence[Tensor]) -> dict[str, tuple[float, ...]]:
    """The inner optimiser's learning rate and weight decay for each tensor of `w`, as options of a method.

    >>> net = nn.Linear(3, 1)
    >>> groups = [{"params": [net.weight], "weight_decay": 0.1}, {"params": [net.bias], "lr": 0.5}]
    >>> from_optimizer(torch.optim.SGD(groups, lr=0.01), (net.weight, net.bias))
    {'step': (0.01, 0.5), 'weight_decay': (0.1, 0.0)}
    """
    groups = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    for index, tensor in enumerate(w):
        if id(tensor) not in groups:
            raise InputError(f"from_optimizer: tensor {index} of w is not a parameter of the optimiser")
    each = [groups[id(tensor)] for tensor in w]
    return {
        "step": tuple(float(group["lr"]) for group in each),
        "weight_decay": tuple(float(group.get("weight_decay", 0.0)) for group in each),
    }
