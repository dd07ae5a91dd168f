"""Bilevel problems: a quadratic with a hypergradient in closed form, and a smooth one for everything else."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Tensors = tuple[Tensor, ...]


@dataclass
class Quadratic:
    """L1 = wᵀAw/2 − wᵀ(Bα + c), L2 = ‖w − t‖²/2 + dᵀα + ‖α‖²/2, so w* = A⁻¹(Bα + c) and ∂²L1/∂α∂w = −B."""

    A: Tensor
    B: Tensor
    c: Tensor
    t: Tensor
    d: Tensor
    w: Tensor
    a: Tensor

    def inner(self, w: Tensors, a: Tensors) -> Tensor:
        return w[0] @ self.A @ w[0] / 2 - w[0] @ (self.B @ a[0] + self.c)

    def outer(self, w: Tensors, a: Tensors) -> Tensor:
        return ((w[0] - self.t) ** 2).sum() / 2 + self.d @ a[0] + a[0] @ a[0] / 2

    @property
    def direct(self) -> Tensor:
        return self.d + self.a.detach()

    @property
    def g(self) -> Tensor:
        return self.w.detach() - self.t

    def implicit(self, inverse: Tensor) -> Tensor:
        """−g · inverse · ∂²L1/∂α∂w."""
        return self.g @ inverse @ self.B

    @property
    def exact(self) -> Tensor:
        return self.direct + self.implicit(torch.linalg.inv(self.A))

    def optimum(self) -> Tensor:
        return torch.linalg.solve(self.A, self.B @ self.a.detach() + self.c)


def quadratic(n: int = 6, m: int = 3, condition: float = 10.0, seed: int = 0, converged: bool = True) -> Quadratic:
    """Eigenvalues spread evenly from 1 to `condition` in a random basis; w is the optimum if `converged`."""
    make = torch.Generator().manual_seed(seed)

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=make, dtype=torch.float64)

    basis = torch.linalg.qr(randn(n, n)).Q
    eigenvalues = torch.linspace(1, condition, n, dtype=torch.float64)
    problem = Quadratic((basis * eigenvalues) @ basis.T, randn(n, m), randn(n), randn(n), randn(m), randn(n), randn(m))
    if converged:
        problem.w = problem.optimum()
    problem.w.requires_grad_()
    problem.a.requires_grad_()
    return problem


def smooth(seed: int = 0) -> tuple[Callable[..., Tensor], Callable[..., Tensor], Tensors, Tensors]:
    """A problem that is neither quadratic nor convex, with two tensors of w and two of α."""
    make = torch.Generator().manual_seed(seed)

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=make, dtype=torch.float64)

    x, y, xv, yv = randn(12, 4), randn(12), randn(12, 4), randn(12)

    def predict(x: Tensor, w: Tensors, a: Tensors) -> Tensor:
        hidden = torch.tanh(x @ w[0]) * torch.sigmoid(a[0]) + torch.sin(x @ w[0]) * torch.sigmoid(-a[0])
        return hidden @ w[1]

    def inner(w: Tensors, a: Tensors) -> Tensor:
        decay = (w[0] ** 2 * torch.exp(a[1])).sum() + (w[1] ** 2).sum()
        return ((predict(x, w, a) - y) ** 2).mean() + 0.1 * decay

    def outer(w: Tensors, a: Tensors) -> Tensor:
        return ((predict(xv, w, a) - yv) ** 2).mean() + 0.01 * (a[0] ** 2).sum()

    w = (0.5 * randn(4, 3)).requires_grad_(), (0.5 * randn(3)).requires_grad_()
    a = (0.3 * randn(3)).requires_grad_(), (0.3 * randn(4, 1)).requires_grad_()
    return inner, outer, w, a


def flat(tensors: Tensors) -> Tensor:
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def dense_hessian(loss: Callable[..., Tensor], w: Tensors, a: Tensors) -> Tensor:
    """∂²loss/∂w² as a matrix, by torch.func alone: it shares no code with the package.

    Reverse over reverse: torch.func.hessian uses forward over reverse, which in torch 2.13 gives a wrong, unsymmetric
    block for BatchNorm's weight.
    """
    sizes, shapes = [t.numel() for t in w], [t.shape for t in w]

    def of_flat(v: Tensor) -> Tensor:
        parts = [p.reshape(s) for p, s in zip(v.split(sizes), shapes, strict=True)]
        return loss(tuple(parts), tuple(t.detach() for t in a))

    return torch.func.jacrev(torch.func.grad(of_flat))(flat(w))


def dense_mixed(loss: Callable[..., Tensor], w: Tensors, a: Tensors) -> Tensor:
    """∂²loss/∂w∂α as a matrix of shape (|w|, |α|)."""

    def gradient(v: Tensor, b: Tensor) -> Tensor:
        parts = tuple(p.reshape(t.shape) for p, t in zip(v.split([t.numel() for t in w]), w, strict=True))
        outers = tuple(p.reshape(t.shape) for p, t in zip(b.split([t.numel() for t in a]), a, strict=True))
        return loss(parts, outers)

    return torch.func.jacrev(torch.func.grad(gradient), argnums=1)(flat(w), flat(a))
