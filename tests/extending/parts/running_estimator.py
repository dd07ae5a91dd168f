"""An estimator of one's own, with a state: one step a call on a running solution v of H v = g."""

from dataclasses import dataclass

import torch

from idarts.hypergrad import Implicit, Solution


@dataclass(frozen=True)
class Running(Implicit):
    step: float = 0.05
    damping: float = 0.1

    def init(self, problem):
        layout = problem.layout
        return {"v": torch.zeros(layout.size, dtype=layout.dtype, device=layout.device)}

    def solve(self, system, state):
        v = state["v"] - self.step * (system.apply(state["v"], self.damping) - system.g)
        return Solution(v, {"v": v})
