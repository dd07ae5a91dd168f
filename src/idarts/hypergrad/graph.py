"""Checks of a loss's graph and of what its gradient reaches, and torch's errors in one line."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.autograd.function import BackwardCFunction

from idarts.errors import IdartsError, InputError, NotDifferentiableError

TWICE = (
    "the inner loss cannot be differentiated twice: {}. Replace that operation, use products='finite_difference', "
    "or a method without second derivatives (FirstOrder)"
)
TORCH_IS_WRONG = {"WeightNormInterfaceBackward0": "torch's weight_norm"}  # as of torch 2.13

_TRUSTED: set[type] = set()  # torch's own operations among those that this process has seen


@dataclass
class Graph:
    """The names of those operations of a graph that a second derivative must be careful with.

    >>> import torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> Graph.of((x * 3).exp().sum())
    Graph(once_differentiable=set(), suspects=set())
    """

    once_differentiable: set[str] = field(default_factory=set)
    suspects: set[str] = field(default_factory=set)  # whose second derivative may be wrong

    @classmethod
    def of(cls, loss: Tensor) -> "Graph":
        graph = cls()
        pending: list[Any] = [] if loss.grad_fn is None else [loss.grad_fn]
        visited = {None, *pending}
        for node in pending:  # which grows
            kind = type(node)
            if kind not in _TRUSTED:
                graph._add(node, kind)
            for parent, _ in node.next_functions:
                if parent not in visited:
                    visited.add(parent)
                    pending.append(parent)
        return graph

    def _add(self, node: Any, kind: type) -> None:
        if issubclass(kind, BackwardCFunction):
            self._add_custom(node._forward_cls)
        elif kind.__name__ in TORCH_IS_WRONG:
            self.suspects.add(TORCH_IS_WRONG[kind.__name__])
        else:
            _TRUSTED.add(kind)

    def _add_custom(self, function: Any) -> None:
        if not function.__module__.startswith("idarts.layers"):
            self.suspects.add(function.__name__)
        backward = function.backward
        while hasattr(backward, "__wrapped__"):  # decorated: by torch's once_differentiable, or by something harmless
            if backward.__globals__["__name__"] == "torch.autograd.function":
                self.once_differentiable.add(function.__name__)
            backward = backward.__wrapped__


def require_arguments(grads: tuple[Tensor | None, ...], own: Sequence[Tensor], which: str) -> tuple[Tensor | None, ...]:
    """The gradients without the last ones, by the caller's tensors, which a loss must take from its arguments."""
    count = len(grads) - len(own)
    for tensor, grad in zip(own, grads[count:], strict=True):
        if grad is not None:
            raise InputError(
                f"the {which} loss uses an inner or outer parameter of shape {tuple(tensor.shape)} itself, not the "
                "one in its arguments, so its derivative would be left out; take it from w or a (a criterion for "
                "gauss_newton may be criterion(outputs, a)), or detach it"
            )
    return grads[:count]


def translate(error: RuntimeError, which: str) -> None:
    """Raise those errors of torch that a user of this package meets as one line that says what to do."""
    message = " ".join(str(error).split())
    if isinstance(error, IdartsError):
        return
    if "Inference tensors cannot be saved for backward" in message:
        advice = "uses a tensor that was made in torch.inference_mode(); make a clone of it outside that mode"
        raise InputError(f"the {which} loss {advice}") from error
    if "heckpoint" in message and ".grad()" in message:
        advice = "uses torch.utils.checkpoint with use_reentrant=True; set use_reentrant=False"
        raise InputError(f"the {which} loss {advice}") from error
    if which == "inner" and any(sign in message for sign in _ONCE):
        raise NotDifferentiableError(TWICE.format(message)) from error


_ONCE = "is not implemented", "not twice differentiable", "double backward"
