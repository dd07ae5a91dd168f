"""F2SA: gradients alone; a penalty takes the place of second derivatives."""

from dataclasses import dataclass

from idarts.errors import InputError
from idarts.hypergrad.isolation import Randomness
from idarts.hypergrad.method import Method, Result, State, require, require_at_least, require_count, require_step
from idarts.hypergrad.problem import Problem
from idarts.hypergrad.rules import Rule, rate
from idarts.hypergrad.solvers import SOLVERS
from idarts.hypergrad.vectors import PerParameter, relative
from idarts.hypergrad.warm import along


@dataclass(frozen=True)
class F2SA(Method):
    """∂L2(y)/∂α + λ[∂L1(y)/∂α − ∂L1(w)/∂α], y ← y − γ[∂L1(y)/∂w + ∂L2(y)/∂w / λ], at the same α; y is kept.

    F2SA (Kwon, Kwon, Wright, Nowak 2023, "A fully first-order method for stochastic bilevel optimization"): y follows
    the minimum of L2 + λL1, w that of L1, and their difference is −v/λ + O(1/λ²) with H v = ∂L2/∂w. λ = `multiplier`
    grows by `growth` in every call; the bias is O(1/λ).
    The state holds v = λ(w − y), not y: your own training of w then moves y, too. The paper's step of w on the same
    batch counts in the difference, so an L1 that is not at its minimum yet does no harm. `damping` adds damping·v to
    the direction of v; weight decay that is set in the inner optimiser belongs there. The first call starts at
    v = γ ∂L2/∂w. `outer_loss` is that at y.

    >>> import torch
    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: w[0] ** 2)  # w* = α, H = 2, g = 6
    >>> w, a = (torch.tensor(3.0, requires_grad=True),), (torch.tensor(3.0, requires_grad=True),)
    >>> state = None
    >>> for call in range(50):
    ...     estimate = hypergradient(inner, outer, w, a, F2SA(step=0.2, multiplier=100.0), state=state)
    ...     state = estimate.state
    >>> estimate.grads[0].round(decimals=3)  # 6 · λ/(λ + 1)
    tensor(5.9410)
    """

    step: PerParameter | Rule
    multiplier: float = 100.0
    growth: float = 0.0
    steps: int = 1
    damping: float = 0.0

    def __post_init__(self) -> None:
        require_step(self.step)
        require_count(1, steps=self.steps)
        require_at_least(0, growth=self.growth, damping=self.damping, multiplier=self.multiplier)
        require(self.multiplier > 0, f"multiplier={self.multiplier}", "positive")

    @property
    def derivatives(self) -> int:
        return 1

    def estimate(self, problem: Problem, state: State) -> Result:
        if state is not None and not (isinstance(state, dict) and state.keys() == {"v", "calls"}):
            raise InputError("this is not a state of F2SA; pass the state of its last estimate, or state=None")
        layout, averaging = problem.layout, problem.averaging
        step, w, random = rate(self.step, layout), layout.flatten(problem.w), Randomness.now(problem.devices)
        evaluations = 1.0 + 2 * self.steps
        if state is None:
            v, calls, evaluations = step * averaging.number(problem.outer_gradient(problem.w)[1]), 0, evaluations + 1
        else:
            v, calls = layout.load(state["v"]), state["calls"]
        multiplier = self.multiplier + self.growth * calls
        random.restore()
        inner_loss, gradient, at_w = problem.inner_gradient(problem.w)
        for _ in range(self.steps):
            y, at = layout.leaves(w - v / multiplier), v
            outer_loss, g, direct = problem.outer_gradient(y)
            random.restore()  # the same dropout mask at y and at w
            _, moved, at_y = problem.inner_gradient(y)
            g = averaging.number(g)
            residual = averaging.number(multiplier * (gradient - moved)) - g + self.damping * v
            v = v - step * residual
        return Result(
            outer_loss,
            direct,
            tuple(multiplier * (there - here) for there, here in zip(at_y, at_w, strict=True)),
            evaluations,
            inner_loss=inner_loss,
            inner_gradient=gradient,
            solution=at,
            state={"v": v, "calls": calls + 1},
            measures={"residual": relative(residual, g), **along(at, residual + g, g)},
            terms=self.steps,
            step=step,
        )


SOLVERS.add("f2sa", F2SA)
