"""BOME: gradients alone; the multiplier follows from a barrier."""

from dataclasses import dataclass

import torch

from idarts.errors import InputError
from idarts.hypergrad.isolation import Randomness
from idarts.hypergrad.method import Method, Result, State, require_at_least, require_step
from idarts.hypergrad.problem import Problem
from idarts.hypergrad.rules import Rule, rate
from idarts.hypergrad.solvers import SOLVERS
from idarts.hypergrad.vectors import Layout, PerParameter


@dataclass(frozen=True)
class BOME(Method):
    """∂L2(y)/∂α + λ ∂q/∂α, y ← y − γ[∂L2(y)/∂w + λ ∂q/∂w], where q(α, y) = L1(α, y) − L1(α, w); y is kept.

    BOME (Liu, Ye, Wright, Stone, Liu 2022, "BOME! Bilevel optimization made easy"): λ = max(η − ⟨∇L2, ∇q⟩/‖∇q‖², 0)
    with ∇ by α and y, the smallest λ with which the step decreases q by η‖∇q‖² (a dynamic barrier). The paper's θ^(T),
    the inner minimiser after T steps, is the w that you train. The first call starts at y = w.

    The steps of α and y as a whole lead to a solution. One estimate, at an α that is held fixed, does not become the
    hypergradient: λ keeps y where L2 and q balance. `outer_loss` is that at y.

    >>> from idarts.hypergrad import hypergradient
    >>> inner, outer = (lambda w, a: (w[0] - a[0]) ** 2), (lambda w, a: (w[0] - 1) ** 2)  # the solution is α = 1
    >>> a = (torch.tensor(3.0, requires_grad=True),)
    >>> state = None
    >>> for call in range(200):
    ...     w = (a[0].detach().clone().requires_grad_(),)  # at its minimum
    ...     estimate = hypergradient(inner, outer, w, a, BOME(step=0.1), state=state)
    ...     state, a = estimate.state, ((a[0] - 0.1 * estimate.grads[0]).detach().requires_grad_(),)
    >>> abs(a[0].item() - 1) < 0.05
    True
    """

    step: PerParameter | Rule
    eta: float = 0.5

    def __post_init__(self) -> None:
        require_step(self.step)
        require_at_least(0, eta=self.eta)

    @property
    def derivatives(self) -> int:
        return 1

    def estimate(self, problem: Problem, state: State) -> Result:
        if state is not None and not (isinstance(state, dict) and state.keys() == {"y"}):
            raise InputError("this is not a state of BOME; pass the state of its last estimate, or state=None")
        layout, averaging, of_a = problem.layout, problem.averaging, Layout.of(problem.a)
        step, random = rate(self.step, layout), Randomness.now(problem.devices)
        y = layout.flatten(problem.w) if state is None else layout.load(state["y"])
        inner_loss, gradient, at_w = problem.inner_gradient(problem.w)
        random.restore()  # the same dropout mask at y and at w
        _, q_y, at_y = problem.inner_gradient(layout.leaves(y))
        outer_loss, g, direct = problem.outer_gradient(layout.leaves(y))
        q_a = averaging.mean(of_a.flatten(at_y) - of_a.flatten(at_w))
        q_y, g, f_a = averaging.number(q_y), averaging.number(g), averaging.mean(of_a.flatten(direct))
        square = (q_y @ q_y + q_a @ q_a).clamp_min(torch.finfo(q_y.dtype).tiny)
        multiplier = (self.eta - (g @ q_y + f_a @ q_a) / square).clamp_min(0)
        return Result(
            outer_loss,
            of_a.unflatten(f_a),
            of_a.unflatten(multiplier * q_a),
            3.0,
            inner_loss=inner_loss,
            inner_gradient=gradient,
            state={"y": y - step * (g + multiplier * q_y)},
            measures={"multiplier": multiplier},
            terms=1,
            step=step,
        )


SOLVERS.add("bome", BOME)
