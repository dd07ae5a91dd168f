"""A low-rank inverse of the inner curvature."""

from dataclasses import dataclass

import torch
from torch import Tensor

from idarts.hypergrad.implicit import Implicit, Solution, System
from idarts.hypergrad.method import State, require, require_at_least, require_count
from idarts.hypergrad.solvers import SOLVERS
from idarts.hypergrad.vectors import random_normal


@dataclass(frozen=True)
class Nystrom(Implicit):
    """[H_r + ρI]⁻¹ g with H_r = HΩ(ΩᵀHΩ)⁺ΩᵀH of rank r from r products (Hataya and Yamada 2023), ρ = `damping`.

    Cheap because the r products are independent of each other and the rest is an r×r solve. Ω comes from a separate
    generator with `seed`.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, Nystrom(rank=1, damping=1.0)).grads  # 6 / (2 + 1) · 2
    (tensor(4.),)
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
        """With D = λ + ρ, U an orthonormal basis of D^(−½)HΩ and S = Uᵀ D^(−½)H_r D^(−½) U, (H_r + D)⁻¹ is
        D^(−½)[I + U((S + I)⁻¹ − I)Uᵀ]D^(−½). S comes from a square root of (ΩᵀHΩ)⁺, which loses half as many digits.
        """
        g, rank = system.g, min(self.rank, system.g.numel())
        wide = torch.promote_types(g.dtype, torch.float32)  # there are no decompositions for half precisions
        omega = torch.linalg.qr(random_normal((g.numel(), rank), g.to(wide), self.seed)).Q
        image = torch.stack([system.curvature(column.to(g.dtype)) for column in omega.T], dim=1).to(wide)
        shift = system.shift(self.damping)
        root = torch.as_tensor(shift, dtype=wide).to(g.device, non_blocking=True).sqrt().expand_as(g)
        basis, corner = torch.linalg.qr(image / root[:, None])
        factor, signs = _square_root_of_inverse(omega.T @ image)
        half = corner @ factor
        small = (half * signs) @ half.T
        scaled = g.to(wide) / root
        inside = basis.T @ scaled
        identity = torch.eye(rank, dtype=wide, device=g.device)
        change = (
            torch.linalg.solve_ex(small + identity, inside).result - inside
        )  # NaN passes through to the final check
        return Solution(((scaled + basis @ change) / root).to(g.dtype), terms=rank)


def _square_root_of_inverse(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """F and signs s with F·diag(s)·Fᵀ the pseudo-inverse of a symmetric matrix."""
    finite = torch.nan_to_num((matrix + matrix.T) / 2)  # eigh raises an error for NaN, which must reach the final check
    values, vectors = torch.linalg.eigh(finite)
    sizes = values.abs()
    kept = sizes > len(values) * torch.finfo(values.dtype).eps * sizes.max()
    roots = torch.where(kept, sizes, torch.ones_like(sizes)).rsqrt() * kept
    return vectors * roots, values.sign()


SOLVERS.add("nystrom", Nystrom)
