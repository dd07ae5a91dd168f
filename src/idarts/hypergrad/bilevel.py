"""A driver for bilevel problems: weight steps and outer steps in turn, with any of torch's optimisers."""

import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from idarts.errors import InputError
from idarts.hypergrad.estimate import Estimate, hypergradient
from idarts.hypergrad.lift import training
from idarts.hypergrad.method import Method, SecondOrder, State
from idarts.hypergrad.products import Loss
from idarts.hypergrad.rules import Rule
from idarts.hypergrad.vectors import Layout, Tensors

Losses = Loss | Iterator[Loss]  # one loss for all steps, or an iterator with one for each: minibatches
Log = Callable[[int, Estimate], object]


class Bilevel:
    """Minimises `outer(w*(a), a)` in a, where w*(a) minimises `inner(w, a)`.

    A round is `inner_steps` steps on w, then one step on a.

    The losses are functions of (w, a), the tensors of the two optimisers in their order; or iterators that give a new
    one for each use, such as `(lift(net, loss, batch, w, a) for batch in loader)`. `method` may also be a function
    without arguments that returns a method, such as one with `from_optimizer` at the current state of Adam.
    With `one_loop`, w steps along the estimate's own inner gradient instead: w, v and a move at once, as in SOBA, and a
    round costs no gradient beyond those of the estimate. The weight steps of a lifted loss update BatchNorm's
    statistics; `one_loop` does not. `state_dict` holds w, a, and the states of the method and of both optimisers;
    iterators and BatchNorm's statistics are yours.

    >>> from idarts.hypergrad import Running
    >>> w, a = torch.tensor(0.0, requires_grad=True), torch.tensor(0.0, requires_grad=True)
    >>> inner = lambda w, a: (w[0] - 1) ** 2 + a[0].exp() * w[0] ** 2  # ridge regression: w* = 1/(1 + e^a)
    >>> outer = lambda w, a: (w[0] - 0.25) ** 2
    >>> engine = Bilevel(inner, outer, Running(), torch.optim.SGD([w], lr=0.1), torch.optim.Adam([a], lr=0.1))
    >>> _ = engine.run(rounds=200)
    >>> round(w.item(), 2), round(a.exp().item(), 2)
    (0.25, 3.0)
    """

    def __init__(
        self,
        inner: Losses,
        outer: Losses,
        method: Method | Callable[[], Method],
        w_optimizer: Optimizer,
        a_optimizer: Optimizer,
        *,
        inner_steps: int = 1,
        one_loop: bool = False,
    ) -> None:
        if inner_steps < 0 or (one_loop and inner_steps != 1):
            raise InputError(f"Bilevel: inner_steps={inner_steps} is not possible here; with one_loop it must be 1")
        self.inner, self.outer, self.method = inner, outer, method
        _require_kinds(inner, outer, method)
        _warn_of_decay(w_optimizer, method)
        self.w_optimizer, self.a_optimizer = w_optimizer, a_optimizer
        self.w, self.a = _tensors(w_optimizer), _tensors(a_optimizer)
        self._layout = Layout.of(self.w)
        self.inner_steps, self.one_loop = inner_steps, one_loop
        self.state: State = None
        self.rounds = 0

    def run(self, rounds: int, log: Log | None = None) -> Estimate:
        """Run so many further rounds; `log` receives the number of each and its estimate. Returns the last estimate."""
        if rounds < 1:
            raise InputError(f"Bilevel: rounds={rounds} is not possible here; it must be at least 1")
        for _ in range(rounds):
            estimate = self.round()
            if log is not None:
                log(self.rounds, estimate)
        return estimate

    def round(self) -> Estimate:
        """One round. If the hypergradient is refused (not finite), a and the method's state stay as they are."""
        if not self.one_loop:
            for _ in range(self.inner_steps):
                self._weight_step(_next(self.inner))
        method = self.method if isinstance(self.method, Method) else self.method()
        outer = _next(self.outer)
        losses = [_next(self.inner) for _ in range(method.inner_losses)] or [outer]  # first order looks at no L1
        estimate = hypergradient(losses, outer, self.w, self.a, method, state=self.state)
        if self.one_loop:
            self._step_along(estimate.inner_gradient, method)
        estimate.write_grad(self.a)
        self.a_optimizer.step()
        self.state, self.rounds = estimate.state, self.rounds + 1
        return estimate

    def _weight_step(self, loss: Loss) -> None:
        fixed = tuple(tensor.detach() for tensor in self.a)

        def closure() -> Tensor:
            with training():
                value = loss(self.w, fixed)
            grads = torch.autograd.grad(value, self.w, allow_unused=True)
            for tensor, grad in zip(self.w, grads, strict=True):
                tensor.grad = grad
            return value.detach()

        with torch.inference_mode(False), torch.enable_grad():
            self.w_optimizer.step(closure)  # type: ignore[arg-type]  # L-BFGS evaluates it more than once

    def _step_along(self, gradient: Tensor | None, method: Method) -> None:
        if gradient is None:
            name = type(method).__name__
            raise InputError(f"Bilevel: {name} computes no inner gradient, so one_loop is not possible; remove it")
        for tensor, grad in zip(self.w, self._layout.unflatten(gradient.clone()), strict=True):
            tensor.grad = grad
        self.w_optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """All that a round changes, for `torch.save`; `torch.load(weights_only=True)` reads it."""
        return {
            "rounds": self.rounds,
            "w": [tensor.detach().clone() for tensor in self.w],
            "a": [tensor.detach().clone() for tensor in self.a],
            "w_optimizer": deepcopy(self.w_optimizer.state_dict()),
            "a_optimizer": deepcopy(self.a_optimizer.state_dict()),
            "method": self.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from there, in place."""
        for name, tensors in (("w", self.w), ("a", self.a)):
            if [t.shape for t in tensors] != [t.shape for t in state[name]]:
                raise InputError(f"Bilevel: the tensors of {name} in this state have other shapes than those here")
        with torch.no_grad():
            for tensor, value in zip((*self.w, *self.a), (*state["w"], *state["a"]), strict=True):
                tensor.copy_(value)
        self.w_optimizer.load_state_dict(state["w_optimizer"])
        self.a_optimizer.load_state_dict(state["a_optimizer"])
        self.state, self.rounds = state["method"], state["rounds"]


def _require_kinds(inner: object, outer: object, method: object) -> None:
    for name, losses in (("inner", inner), ("outer", outer)):
        if not callable(losses) and not isinstance(losses, Iterator):
            kind = type(losses).__name__
            raise InputError(f"Bilevel: {name} is a {kind}; give a loss, or an iterator with one for each step")
    if not callable(method) and not isinstance(method, Method):
        raise InputError(f"Bilevel: method is {method!r}; give a method such as Neumann(terms=2, step=0.01)")


def _tensors(optimizer: Optimizer) -> Tensors:
    return tuple(tensor for group in optimizer.param_groups for tensor in group["params"] if tensor.requires_grad)


def _warn_of_decay(optimizer: Optimizer, method: Method | Callable[[], Method]) -> None:
    """An optimiser's weight decay is part of the inner problem, so the curvature needs it."""
    if not isinstance(method, SecondOrder) or isinstance(getattr(method, "step", None), Rule):
        return
    decays = any(group.get("weight_decay") for group in optimizer.param_groups)
    if decays and isinstance(method.weight_decay, float | int) and not method.weight_decay:
        name = type(method).__name__
        warnings.warn(
            f"Bilevel: w_optimizer has weight decay, but {name} does not know it; give its weight_decay, or use "
            "from_optimizer",
            UserWarning,
            stacklevel=3,
        )


def _next(losses: Losses) -> Loss:
    if not isinstance(losses, Iterator):
        return losses
    loss = next(losses, None)
    if loss is None:
        raise InputError("Bilevel: an iterator of losses has ended; give one that repeats its batches")
    return loss
