"""AmIGO: several steps, or conjugate gradients, from the last call's solution."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from idarts.hypergrad.implicit import Solution, System
from idarts.hypergrad.method import State, require, require_count
from idarts.hypergrad.solvers import SOLVERS
from idarts.hypergrad.solvers.conjugate_gradient import descend
from idarts.hypergrad.warm import Pace, Warm, along


@dataclass(frozen=True)
class AmIGO(Warm):
    """∂L2/∂α − v · ∂²L1/∂α∂w after `iterations` of v ← v − ρ[(∂²L1/∂w² + damping) v − ∂L2/∂w], with v kept.

    AmIGO (Arbel, Mairal 2022, "Amortized implicit differentiation for stochastic bilevel optimization"): α moves little
    between two calls, so v starts almost at the solution. `solver`: `descent`, as above, or `conjugate-gradient`, for
    batches that are large enough for their noise not to matter. All iterations of a call use one batch.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> method = AmIGO(iterations=2, step=0.25, damping=0.0)
    >>> first = hypergradient(inner, outer, w, a, method)
    >>> first.solution, hypergradient(inner, outer, w, a, method, state=first.state).solution  # on the way to 3
    (tensor([2.2500]), tensor([2.8125]))
    """

    iterations: int = 5
    solver: Literal["descent", "conjugate-gradient"] = "descent"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(1, iterations=self.iterations)
        kinds = "descent", "conjugate-gradient"
        require(self.solver in kinds, f"solver={self.solver!r}", " or ".join(kinds))

    def solve(self, system: System, state: State) -> Solution:
        self.require_state(state)
        by_steps, measures = self.solver == "descent", dict[str, Tensor]()
        pace = self.pace(system, state) if by_steps else Pace(torch.ones_like(system.g[0]))
        v = torch.zeros_like(system.g) if state is None else system.load(state["v"])
        if by_steps:
            used = self.iterations
            for number in range(used):
                image = torch.zeros_like(v) if state is None and not number else system.apply(v, self.damping)
                pace = pace.after(system, v, image)
                measures = along(v, image, system.g)
                v = v - pace.step * (image - system.g)
        else:
            residual = system.g if state is None else system.g - system.apply(v, self.damping)
            v, used = descend(system, v, residual, self.iterations, 0.0, self.damping)
        v = system.averaging.number(v)
        kept = {"v": v, "spectrum": pace.state}
        measures |= pace.measures
        return Solution(v, kept, measures, terms=used, step=pace.step if by_steps else None)


SOLVERS.add("amigo", AmIGO)
