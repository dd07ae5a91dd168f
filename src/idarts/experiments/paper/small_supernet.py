"""A supernet small enough for the exact hypergradient: digits, one hidden layer, α mixing three functions per unit."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, cross_entropy

from idarts.errors import InputError

Tensors = tuple[Tensor, ...]
FUNCTIONS: tuple[Callable[[Tensor], Tensor], ...] = (torch.tanh, torch.sin, torch.nn.functional.softplus)
_DECAY = 0.02
_MOVED = 0.2  # distance from the optimum at which the inner steps start, relative to its length


@dataclass(frozen=True)
class SmallSupernet:
    """Training and validation digits; the losses are smooth, and weight decay makes the optimum strict."""

    x: Tensor
    y: Tensor
    hidden: int

    def inner(self, w: Tensors, a: Tensors) -> Tensor:
        """L1: cross-entropy on the training half, and a decay."""
        half = len(self.x) // 2
        return self._loss(w, a, slice(half)) + _DECAY / 2 * sum((t**2).sum() for t in w)

    def outer(self, w: Tensors, a: Tensors) -> Tensor:
        """L2: cross-entropy on the other half."""
        return self._loss(w, a, slice(len(self.x) // 2, None))

    def _loss(self, w: Tensors, a: Tensors, part: slice) -> Tensor:
        inside = self.x[part] @ w[0]
        shares = a[0].softmax(dim=1)
        outputs = torch.stack([function(inside) for function in FUNCTIONS], dim=2)
        return cross_entropy((outputs * shares).sum(dim=2) @ w[1], self.y[part])


def require_digits() -> None:
    """Raise an InputError if the digits are not installed: call it before jobs that need them."""
    if find_spec("sklearn") is None:
        raise InputError("the digits need scikit-learn: pip install 'idarts[experiments]'")


@cache
def small_supernet(images: int, hidden: int) -> tuple[SmallSupernet, Tensors, Tensors, float]:
    """The problem, w* to the last digits, α, and the largest eigenvalue λ_max of ∂²L1/∂w² at w*.

    >>> net, w, a, eigenvalue = small_supernet(60, 3)
    >>> slope = torch.autograd.grad(net.inner(w, a), w)
    >>> max(float(part.abs().max()) for part in slope) < 1e-7 < eigenvalue
    True
    """
    from sklearn.datasets import load_digits  # noqa: PLC0415 (an extra)

    bunch = load_digits()
    pixels = torch.tensor(bunch.images[:images], dtype=torch.float64) / 16
    x = avg_pool2d(pixels[:, None], 2).flatten(1)
    x = (x - x.mean(dim=0)) / x.std()
    net = SmallSupernet(x, torch.tensor(bunch.target[:images]), hidden)
    make = torch.Generator().manual_seed(0)
    shapes = (x.shape[1], hidden), (hidden, 10)
    w = tuple(torch.randn(shape, generator=make, dtype=torch.float64) / 2 for shape in shapes)
    a = (torch.randn(hidden, len(FUNCTIONS), generator=make, dtype=torch.float64) / 2,)
    w = _minimised(net, tuple(t.requires_grad_() for t in w), a)
    flat = torch.cat([t.detach().flatten() for t in w])

    def of_flat(v: Tensor) -> Tensor:
        parts = v.split([t.numel() for t in w])
        return net.inner(tuple(p.view(t.shape) for p, t in zip(parts, w, strict=True)), a)

    hessian = torch.autograd.functional.hessian(of_flat, flat)
    return net, w, tuple(t.requires_grad_() for t in a), float(torch.linalg.eigvalsh(hessian)[-1])


def stepped(net: SmallSupernet, w: Tensors, a: Tensors, step: float, steps: int) -> tuple[Tensors, Tensors]:
    """Weights beside the optimum, and the weights after T inner steps from there."""
    make = torch.Generator().manual_seed(1)
    size = torch.cat([t.detach().flatten() for t in w])
    moved = _MOVED * float(size.norm()) / size.numel() ** 0.5
    start = [(t.detach() + moved * torch.randn(t.shape, generator=make, dtype=t.dtype)).requires_grad_() for t in w]
    here = tuple(start)
    for _ in range(steps):
        slope = torch.autograd.grad(net.inner(here, a), here)
        here = tuple((t - step * s).detach().requires_grad_() for t, s in zip(here, slope, strict=True))
    return tuple(start), here


def _minimised(net: SmallSupernet, w: Tensors, a: Tensors) -> Tensors:
    optimizer = torch.optim.LBFGS(
        w, max_iter=3000, tolerance_grad=1e-9, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        optimizer.zero_grad()
        loss = net.inner(w, a)
        loss.backward()
        return float(loss.detach())

    optimizer.step(closure)
    for tensor in w:
        tensor.grad = None
    return w
