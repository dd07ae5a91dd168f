"""A module, a criterion and a batch as a pure function of (w, α)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
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

    Buffers are copied for each call, so BatchNorm's statistics do not change, except within `training`. Parameters in
    neither tuple keep their values. `outputs` and `criterion` are separate methods: the Gauss–Newton matrix needs both.
    """

    module: nn.Module
    loss: Criterion
    inputs: Any
    target: Any
    swap: Swap
    counts: tuple[int, int]  # of w and a; where a has none, a call may have any

    def __call__(self, w: Tensors, a: Tensors) -> Tensor:
        return self.criterion(self.outputs(w, a))

    def outputs(self, w: Tensors, a: Tensors) -> Any:
        given = len(w), len(a)
        if given[0] != self.counts[0] or (self.counts[1] and given[1] != self.counts[1]):
            raise InputError(
                f"this loss was lifted with {self.counts[0]} tensors of w and {self.counts[1]} of a, but it is called "
                f"with {given[0]} and {given[1]}; give lift the same parameters"
            )
        with self.swap.active((*w, *a), copy_buffers=not _training.get()), recomputing_with(self.swap, (*w, *a)):
            return call_module(self.module, self.inputs)

    def criterion(self, outputs: Any) -> Tensor:
        return self.loss(outputs, self.target)


@contextmanager
def training() -> Iterator[None]:
    """Within the block, lifted losses change the buffers of their modules: BatchNorm's statistics follow a weight step.

    >>> net = nn.BatchNorm1d(1)
    >>> loss = lift(net, nn.functional.mse_loss, (torch.ones(4, 1), torch.ones(4, 1)), net.parameters())
    >>> _ = loss(tuple(net.parameters()), ())
    >>> before = net.num_batches_tracked.item()
    >>> with training():
    ...     _ = loss(tuple(net.parameters()), ())
    >>> before, net.num_batches_tracked.item()
    (0, 1)
    """
    token = _training.set(True)
    try:
        yield
    finally:
        _training.reset(token)


_training: ContextVar[bool] = ContextVar("training", default=False)


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
    if not isinstance(batch, Mapping) and len(batch) != 2:
        raise InputError(f"lift: the batch has {len(batch)} parts; give (inputs, target), or a dict")
    inputs, target = (batch, batch) if isinstance(batch, Mapping) else batch
    return LiftedLoss(module, loss, inputs, target, Swap.of(module, (*inner, *outer)), (len(inner), len(outer)))


def call_module(module: nn.Module, inputs: Any, **keywords: Any) -> Any:
    """The module's outputs for the inputs of a batch; several inputs form a tuple, or a dict of keyword arguments.

    >>> call_module(nn.Bilinear(2, 2, 1), (torch.ones(3, 2), torch.ones(3, 2))).shape
    torch.Size([3, 1])
    """
    if isinstance(inputs, Mapping):
        return module(**inputs, **keywords)
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **keywords)
