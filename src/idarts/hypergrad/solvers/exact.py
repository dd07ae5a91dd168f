"""The exact inverse curvature, for small problems."""

from dataclasses import dataclass

import torch

from idarts.errors import InputError, SingularCurvatureError
from idarts.hypergrad.implicit import Implicit, Solution, System
from idarts.hypergrad.method import State, require_at_least
from idarts.hypergrad.solvers import SOLVERS

DENSE_LIMIT = 20_000  # weights; a larger dense matrix takes several gigabytes


@dataclass(frozen=True)
class Exact(Implicit):
    """The implicit hypergradient: ∂L2/∂α − ∂L2/∂w · [∂²L1/∂w²]⁻¹ · ∂²L1/∂α∂w (Eq. 6 of the paper).

    The inverse, of ∂²L1/∂w² + `damping`·I, comes from a dense solve: for small problems and for tests.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> hypergradient(inner, outer, w, a, Exact()).grads
    (tensor(6.),)
    """

    damping: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(0, damping=self.damping)

    def solve(self, system: System, state: State) -> Solution:
        n = system.g.numel()
        if n > DENSE_LIMIT:
            raise InputError(
                f"Exact builds a dense matrix, too large for {n:,} weights; use ConjugateGradient or Neumann"
            )
        basis = torch.eye(n, dtype=system.g.dtype, device=system.g.device)
        matrix = torch.stack([system.apply(row, self.damping) for row in basis])
        system.compare_all(matrix)
        wide = torch.promote_types(matrix.dtype, torch.float32)  # there is no solver for half precisions
        x, info = torch.linalg.solve_ex(((matrix + matrix.T) / 2).to(wide), system.g.to(wide))
        if bool(info > 0):
            raise SingularCurvatureError("the inner curvature is singular; give damping a positive value")
        return Solution(x.to(system.g))


SOLVERS.add("exact", Exact)
