"""Every hypergradient of the paper on one small problem: how close to exact, and at what cost.

A network on the digits is trained to its optimum with a weight decay for each layer; log λ of the two layers is the
outer parameter. At the optimum the implicit function theorem gives the exact hypergradient, by a dense solve, and the
estimate of each method is compared with it.
"""

import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn import functional

from idarts.hypergrad import (
    ConjugateGradient,
    Estimate,
    Exact,
    FirstOrder,
    Identity,
    Neumann,
    Nystrom,
    OneStep,
    ReverseMode,
    TruncatedReverse,
    hypergradient,
)

Tensors = tuple[Tensor, ...]
HIDDEN = 6


def load() -> tuple[Tensor, Tensor]:
    """Digits averaged to 4×4 pixels, which keeps the dense solve small; float64, so that rounding does not matter."""
    data = load_digits()
    images = torch.tensor(data.data / 16, dtype=torch.float64).view(-1, 1, 8, 8)
    return functional.avg_pool2d(images, 2).flatten(1), torch.tensor(data.target)


X, Y = load()


def loss(w: Tensors, part: slice) -> Tensor:
    return functional.cross_entropy(torch.tanh(X[part] @ w[0]) @ w[1], Y[part])


def inner(w: Tensors, a: Tensors) -> Tensor:
    return loss(w, slice(400)) + (a[0].exp() * torch.stack([(t**2).sum() for t in w])).sum() / 2


def outer(w: Tensors, a: Tensors) -> Tensor:
    return loss(w, slice(400, 800))


def optimum(a: Tensors) -> Tensors:
    """w*(α), to full precision."""
    make = torch.Generator().manual_seed(0)
    shapes = (16, HIDDEN), (HIDDEN, 10)
    w = tuple((0.3 * torch.randn(s, generator=make, dtype=torch.float64)).requires_grad_() for s in shapes)
    fixed = tuple(t.detach() for t in a)
    optimizer = torch.optim.LBFGS(
        w, max_iter=5000, tolerance_grad=1e-10, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        optimizer.zero_grad()
        value = inner(w, fixed)
        value.backward()
        return value.item()

    optimizer.step(closure)
    return w


def main() -> dict[str, Estimate]:
    torch.set_num_threads(1)  # more threads are slower for matrices this small
    a = (torch.tensor([-6.0, -5.0], dtype=torch.float64, requires_grad=True),)
    w = optimum(a)
    reference = hypergradient(inner, outer, w, a, Exact())
    auto = hypergradient(inner, outer, w, a, Neumann(0)).diagnostics.step
    assert auto is not None
    methods = {
        "exact (dense)": Exact(),
        "first order": FirstOrder(),
        "T1-T2": Identity(),
        "one step (DARTS), γ=0.01": OneStep(0.01),
        "paper: Neumann K=2, γ=0.01": Neumann(2, 0.01),
        "Neumann K=2, γ auto": Neumann(2),
        "Neumann K=100, γ auto": Neumann(100),
        "Neumann K=2000, γ auto": Neumann(2000),
        "truncated reverse K=3": TruncatedReverse(3, 3, auto),
        "reverse mode T=100": ReverseMode(100, auto),
        "conjugate gradient, 20": ConjugateGradient(20),
        "Nyström, rank 40": Nystrom(40, 1e-2),
    }
    estimates = {name: hypergradient(inner, outer, w, a, method, diagnostics=True) for name, method in methods.items()}
    table = Table("method", "cosine", "error", "residual", "products", "cost")
    for name, estimate in estimates.items():
        grads, exact, facts = estimate.grads[0], reference.grads[0], estimate.diagnostics
        table.add_row(
            name,
            f"{functional.cosine_similarity(grads, exact, dim=0).item():.3f}",
            f"{((grads - exact).norm() / exact.norm()).item():.1e}",
            "" if facts.residual is None else f"{facts.residual:.1e}",
            str(facts.hvps),
            f"{facts.gradient_evaluations:.1f}",
        )
    console = Console()
    console.print("Hypergradients of one small problem, at the optimum of its inner loss")
    console.print(table)
    console.print(
        "cosine, error: against the exact hypergradient\n"
        "residual: ‖g − Hx‖/‖g‖ of the linear system, which needs no exact solution\n"
        "products: with the curvature, including that of the residual; cost: in gradient evaluations"
    )
    return estimates


if __name__ == "__main__":
    main()
