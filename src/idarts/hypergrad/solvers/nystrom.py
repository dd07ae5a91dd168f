"""A low-rank inverse of the inner curvature."""

from dataclasses import dataclass

import torch

from idarts.hypergrad.implicit import Implicit, Solution, System
from idarts.hypergrad.method import State, require, require_at_least, require_count
from idarts.hypergrad.solvers import SOLVERS
from idarts.hypergrad.vectors import random_normal


@dataclass(frozen=True)
class Nystrom(Implicit):
    """[H_r + ρI]⁻¹ g with H_r = HΩ(ΩᵀHΩ)⁺ΩᵀH of rank r from r products (Hataya and Yamada 2023), ρ = `damping`.

    Cheap because the r products are independent of each other and the rest is an r×r solve (Woodbury). Ω comes from a
    separate generator with `seed`.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, Nystrom(rank=1, damping=1.0)).grads  # 6 / (2 + 1) · 2
    (tensor(4.0000),)
    """

    rank: int
    damping: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(1, rank=self.rank)
        require_at_least(0, damping=self.damping)
        require(self.damping > 0, f"damping={self.damping}", "positive: a low-rank matrix alone has no inverse")

    def solve(self, system: System, state: State) -> Solution:
        g, rank = system.g, min(self.rank, system.g.numel())
        omega = torch.linalg.qr(random_normal((g.numel(), rank), g, self.seed)).Q
        image = torch.stack([system.curvature(column) for column in omega.T], dim=1)
        core = omega.T @ image
        shift = (system.weight_decay + self.damping).expand_as(g)
        scaled = image / shift[:, None]
        inner = (core + core.T) / 2 + image.T @ scaled
        inner = inner + torch.finfo(g.dtype).eps * inner.trace() * torch.eye(rank, dtype=g.dtype, device=g.device)
        correction = scaled @ torch.linalg.solve_ex(inner, scaled.T @ g).result  # NaN passes through to the final check
        return Solution(g / shift - correction, terms=rank)


SOLVERS.add("nystrom", Nystrom)
