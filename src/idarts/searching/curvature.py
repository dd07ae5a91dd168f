"""How sharply the validation loss bends in α, and how many skip connections α selects: signs that a search collapses.

Zela et al., "Understanding and Robustifying Differentiable Architecture Search" (ICLR 2020, arXiv:1909.09656), find
that an architecture is bad on test data when the largest eigenvalue of ∇²_α L2 has risen during its search.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor

from idarts.arch import Architecture, space_of
from idarts.engine.ranks import all_mean
from idarts.errors import InputError
from idarts.hypergrad import lift
from idarts.hypergrad.isolation import full_precision, isolated
from idarts.hypergrad.products import ExactProducts
from idarts.hypergrad.spectrum import COLD_ITERATIONS, largest_eigenvalue
from idarts.hypergrad.vectors import Tensors, random_normal

if TYPE_CHECKING:
    from idarts.searching.loop import Search
    from idarts.searching.settings import Config


def require_measurable(settings: "Config", strategy: Any) -> None:
    """Refuse `alpha.curvature_rounds` where nothing measures it, or where L2 has no second derivative in α."""
    if not getattr(strategy, "measures_curvature", False):
        raise InputError(f"strategy {settings.strategy} does not measure alpha.curvature_rounds; use 0, or gradient")
    if getattr(settings.build_relaxation(), "derivatives", 2) < 2:
        raise InputError(f"relaxation {settings.relaxation} has no second derivative; use --alpha.curvature_rounds 0")


def measure(search: "Search", batch: Any) -> dict[str, float | None]:
    """`alpha_curvature` and `skips` at the current w and α, on a validation batch; None in rounds that do not measure.

    Without `alpha.curvature_rounds` there are no such measures. A measurement is counted in `search.spent.measuring`,
    and changes nothing else: no tensor, no statistics and no random state.
    """
    every = search.settings.alpha.curvature_rounds
    if not every:
        return {}
    if search.number % every:
        return {"alpha_curvature": None, "skips": None}
    a, w = search.a, tuple(tensor.detach() for tensor in search.w)
    lifted = lift(search.net, search.task.loss, batch, search.w, a)
    devices = {search.device}
    with isolated(devices), full_precision(devices):
        leaves = tuple(tensor.detach().requires_grad_() for tensor in a)
        value, cost = curvature(lambda a: lifted(w, a), leaves, all_mean)
    search.spent.measuring += cost
    return {"alpha_curvature": value if math.isfinite(value) else None, "skips": _skips(search.current())}


def curvature(
    loss: Callable[[Tensors], Tensor], a: Tensors, mean: Callable[[Tensor], Tensor] = lambda product: product
) -> tuple[float, float]:
    """The largest eigenvalue of ∇²loss at `a`, and what it cost in gradient evaluations.

    `mean` averages a product with the Hessian over several processes.

    >>> import torch
    >>> d, a = torch.tensor([-4.0, 1.0, 3.0]), torch.zeros(3, requires_grad=True)
    >>> value, cost = curvature(lambda a: (d * a[0] ** 2).sum() / 2, (a,))
    >>> round(value, 4), cost  # one gradient, and three products
    (3.0, 7.0)
    """
    products = ExactProducts(lambda a, _: loss(a), a, ())
    start = random_normal((products.layout.size,), products.gradient, seed=0)
    value = largest_eigenvalue(lambda v: mean(products.hessian(v)), start, COLD_ITERATIONS)
    products.release()
    return value, products.gradient_evaluations


def _skips(architecture: Architecture) -> float | None:
    """How many edges have a skip connection; None for an architecture without edges."""
    style = space_of(architecture).style
    ops = [edge.op for cell in style.cells(architecture).values() for edge in cell.edges if edge.op]
    return float(sum(style.family(op) == "skip" for op in ops)) if ops else None
