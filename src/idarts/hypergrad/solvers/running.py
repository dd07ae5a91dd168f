"""SOBA: a running solution of the linear system, one product a call."""

from dataclasses import dataclass, replace

import torch

from idarts.hypergrad.implicit import Solution, System
from idarts.hypergrad.method import Result, State, require
from idarts.hypergrad.problem import Problem
from idarts.hypergrad.solvers import SOLVERS
from idarts.hypergrad.vectors import Tensors, like, relative
from idarts.hypergrad.warm import Warm, along


@dataclass(frozen=True)
class Running(Warm):
    """∂L2/∂α − v · ∂²L1/∂α∂w, then v ← v − ρ[(∂²L1/∂w² + damping) v − ∂L2/∂w], with v kept from call to call.

    SOBA (Dagréou, Ablin, Vaiter, Moreau 2022, "A framework for bilevel optimization that enables stochastic and global
    variance reduction algorithms"): the directions of v and α at the same v, so that one joint product gives both. The
    noise of minibatches averages out in v over about 1/(ρμ) calls, where a series starts at zero in every call. The
    first call starts at v = ρ ∂L2/∂w, which is the first step from zero: it equals `OneStep(ρ)`.

    `momentum` β: v moves by β times its last move as well (heavy ball).
    `smoothing` θ: the hypergradient is θ times the last one plus 1 − θ times the new one (MA-SOBA, Chen, Xiao,
    Balasubramanian 2023). An outer optimiser with momentum does the same.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> method, state = Running(step=0.25, damping=0.0), None
    >>> for call in range(3):
    ...     estimate = hypergradient(inner, outer, w, a, method, state=state)
    ...     state = estimate.state
    ...     print(estimate.solution, estimate.grads)  # on the way to 6 / 2 and 6
    tensor([1.5000]) (tensor(3.),)
    tensor([2.2500]) (tensor(4.5000),)
    tensor([2.6250]) (tensor(5.2500),)
    """

    momentum: float = 0.0
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("momentum", "smoothing"):
            value = getattr(self, name)
            require(isinstance(value, float | int) and 0 <= value < 1, f"{name}={value!r}", "at least 0 and below 1")

    @property
    def kept(self) -> set[str]:
        before = {"before"} if self.momentum else set()
        last = {"direct", "implicit"} if self.smoothing else set()
        return super().kept | before | last

    def solve(self, system: System, state: State) -> Solution:
        pace = self.pace(system, state)
        v = self.first_step(system, pace) if state is None else system.load(state["v"])
        image, mixed = system.joint(v, self.damping)
        pace = pace.after(system, v, image)
        residual = system.averaging.number(image - system.g)
        following = v - pace.step * residual
        kept = {"v": following, "spectrum": pace.state}
        if self.momentum:
            before = torch.zeros_like(v) if state is None else system.load(state["before"])
            kept |= {"v": following + self.momentum * (v - before), "before": v}
        measures = {"residual": relative(residual, system.g), **along(v, image, system.g), **pace.measures}
        return Solution(v, kept, measures, terms=1, step=pace.step, mixed=mixed)

    def estimate(self, problem: Problem, state: State) -> Result:
        result = super().estimate(problem, state)
        return self._smooth(result.averaged(problem.averaging), state) if self.smoothing else result

    def _smooth(self, result: Result, state: State) -> Result:
        direct, implicit = result.direct, result.implicit
        if state is not None:
            direct, implicit = self._lerp(direct, state["direct"]), self._lerp(implicit, state["implicit"])
        kept = {**result.state, "direct": direct, "implicit": implicit}
        return replace(result, direct=direct, implicit=implicit, state=kept)

    def _lerp(self, new: Tensors, old: Tensors) -> Tensors:
        return tuple(torch.lerp(n, o, self.smoothing) for n, o in zip(new, like(old, new), strict=True))


SOLVERS.add("running", Running)
