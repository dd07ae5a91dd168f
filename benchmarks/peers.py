"""Other libraries' K-term Neumann hypergradients on our problem: their code, called the way their own drivers call it.

All compute ∂L2/∂α − γ ∂L2/∂w Σ_{k=0..K} (I − γH)^k ∂²L1/∂α∂w; where they write K iterations, the sum has K + 1 terms.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

Loss = Callable[[Tensor], Tensor]
Pure = Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], Tensor]


@dataclass(frozen=True)
class Task:
    """A bilevel problem at one point. `inner` and `outer` run the module itself, so that side effects show."""

    net: nn.Module
    w: tuple[Tensor, ...]
    alpha: Tensor
    inner: Loss
    outer: Loss
    pure_inner: Pure
    pure_outer: Pure
    terms: int
    step: float


@dataclass(frozen=True)
class Peer:
    """`run` computes the hypergradient and puts it into `alpha.grad`; `implicit` returns its implicit part alone."""

    run: Callable[[], object]
    implicit: Callable[[], Tensor]


def betty(task: Task) -> Peer:
    """`get_grads` with the config `neumann`, after the direct gradient, as in `betty.problems.Problem.backward`."""
    get_grads = importlib.import_module("betty.hypergradient").get_grads
    inner = SimpleNamespace(
        config=SimpleNamespace(type="neumann", neumann_iterations=task.terms, neumann_alpha=task.step),
        paths=[],
        cur_batch=None,
        training_step_exec=lambda _: task.inner(task.alpha),
        trainable_parameters=lambda: task.w,
        meta_trainable_parameters=lambda: task.w,
    )
    outer = SimpleNamespace(_strategy="default", trainable_parameters=lambda: [task.alpha])

    def run() -> Tensor:
        loss = task.outer(task.alpha)
        (direct,) = torch.autograd.grad(loss, [task.alpha], retain_graph=True)
        implicit: Tensor = get_grads(loss, [outer, inner, outer], False, False)[0]
        task.alpha.grad = direct + implicit
        return implicit

    return Peer(run, run)


def torchopt(task: Task) -> Peer:
    """`custom_root` with the Neumann solver. It needs a pure function: the module with copied buffers."""
    implicit_diff = importlib.import_module("torchopt.diff.implicit")
    solvers = importlib.import_module("torchopt.linear_solve")
    gradient = torch.func.grad(task.pure_inner)

    def optimality(w: tuple[Tensor, ...], alpha: Tensor) -> Any:
        return gradient(w, (alpha,))

    @implicit_diff.custom_root(  # type: ignore[untyped-decorator]
        optimality, argnums=1, solve=solvers.solve_inv(ns=True, maxiter=task.terms, alpha=task.step)
    )
    def solver(w: tuple[Tensor, ...], alpha: Tensor) -> tuple[Tensor, ...]:
        return w

    def run() -> Tensor:
        followed, seen = (task.alpha.detach().requires_grad_() for _ in range(2))
        loss = task.pure_outer(solver(task.w, followed), (seen,))
        implicit, direct = torch.autograd.grad(loss, [followed, seen])
        task.alpha.grad = direct + implicit
        return implicit

    return Peer(run, run)


def boat(task: Task) -> Peer:
    """The operation `NS`, with the weights as they are in place of the copy that its driver has just trained."""
    NS = importlib.import_module("boat_torch.na_ol.ns").NS
    config = {
        "gm_op": [],
        "lower_level_opt": SimpleNamespace(defaults={"lr": task.step}),
        "CG": {"tolerance": 0.0, "k": task.terms},
        "GDA": {"alpha_init": 0.0, "alpha_decay": 0.0},
    }

    def gradient(direct: bool) -> Tensor:
        def inner(*_: Any, **__: Any) -> Tensor:
            return task.inner(task.alpha)

        def outer(*_: Any, **__: Any) -> Tensor:
            return task.outer(task.alpha if direct else task.alpha.detach())

        task.alpha.grad = torch.zeros_like(task.alpha)
        operation = NS(inner, outer, task.net, task.net, list(task.w), [task.alpha], config)
        operation.compute_gradients({}, {}, task.net, lower_model_params=list(task.w), hparams=[task.alpha])
        return task.alpha.grad

    return Peer(lambda: gradient(True), lambda: gradient(False))


def hypertorch(task: Task) -> Peer:
    """`fixed_point` on w − γ∇L1. It starts at zero, so K + 1 iterations (and products) give the sum of K + 1 terms."""
    fixed_point = importlib.import_module("hypergrad.hypergradients").fixed_point

    def step(w: list[Tensor], hyperparameters: list[Tensor]) -> list[Tensor]:
        loss = task.pure_inner(tuple(w), tuple(hyperparameters))
        grads = torch.autograd.grad(loss, w, create_graph=True)
        return [t - task.step * g for t, g in zip(w, grads, strict=True)]

    def gradient(direct: bool) -> Tensor:
        def outer(w: list[Tensor], hyperparameters: list[Tensor]) -> Tensor:
            return task.pure_outer(tuple(w), tuple(h if direct else h.detach() for h in hyperparameters))

        (grad,) = fixed_point(list(task.w), [task.alpha], task.terms + 1, step, outer, tol=0.0, set_grad=False)
        task.alpha.grad = grad
        result: Tensor = grad
        return result

    return Peer(lambda: gradient(True), lambda: gradient(False))


PEERS: dict[str, Callable[[Task], Peer]] = {
    "Betty": betty,
    "TorchOpt": torchopt,
    "BOAT": boat,
    "hypertorch": hypertorch,
}
MODULES = {
    "Betty": "betty.hypergradient",
    "TorchOpt": "torchopt.diff.implicit",
    "BOAT": "boat_torch.na_ol.ns",
    "hypertorch": "hypergrad.hypergradients",
}


def missing(name: str) -> str | None:
    """Why a peer cannot be used here, if it cannot."""
    try:
        importlib.import_module(MODULES[name])
    except Exception as error:  # a peer may fail in any way at all
        return f"{type(error).__name__}: {error}"
    return None
