"""What methods share that keep a solution v of (H + λ + damping) v = ∂L2/∂w from call to call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from idarts.errors import InputError, SingularCurvatureError
from idarts.hypergrad.implicit import Implicit, System
from idarts.hypergrad.isolation import full_precision
from idarts.hypergrad.method import State, require_at_least, require_count, require_step
from idarts.hypergrad.problem import Problem
from idarts.hypergrad.rules import Rule, rate
from idarts.hypergrad.spectrum import Spectrum, update
from idarts.hypergrad.vectors import PerParameter, Tensors, length, relative


@dataclass(frozen=True)
class Warm(Implicit):
    """Keeps v; the state is a dict with `v`, and `spectrum` where `step` is `auto`.

    `step` ρ: a number, one value per inner parameter, or `auto`: 1/λ_max, which a power iteration measures at first and
    then every `refresh` calls. Between two measurements ‖Hv‖/‖v‖ can only raise λ_max.
    `damping` keeps v bounded: along a direction without curvature, v would grow in every call. Along one of negative
    curvature it still grows unless `damping` is larger; `curvature="gauss_newton"` has none.
    """

    step: PerParameter | Rule | Literal["auto"] = "auto"
    damping: float = 0.02
    refresh: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(1, refresh=self.refresh)
        require_at_least(0, damping=self.damping)
        if not isinstance(self.step, str) or self.step != "auto":
            require_step(self.step)

    @property
    def kept(self) -> set[str]:
        """What the state holds, at least."""
        return {"v", "spectrum"}

    def require_state(self, state: State) -> None:
        """Refuse the state of another method, or of this one with other options."""
        if state is not None and not (isinstance(state, dict) and self.kept <= state.keys()):
            name = type(self).__name__
            raise InputError(
                f"this is not a state of {name} with these options; pass the state of its last estimate, or state=None"
            )

    def pace(self, system: System, state: State) -> "Pace":
        """ρ for this call."""
        self.require_state(state)
        if not isinstance(self.step, str):
            return Pace(rate(self.step, system.products.layout))
        known = None if state is None else Spectrum.load(state["spectrum"], system)
        spectrum = update(known, lambda v: system.apply(v, self.damping), system, self.refresh)
        if not spectrum.age and bool(spectrum.eigenvalue == 0):
            raise SingularCurvatureError("the inner loss has no curvature here, so step='auto' has no value")
        return Pace(1 / length(spectrum.eigenvalue), spectrum)

    def first_step(self, system: System, pace: "Pace") -> Tensor:
        """v after a step from zero, which needs no product; the same in all processes."""
        return system.averaging.number(pace.step * system.g)

    def directions(self, problem: Problem, v: Callable[[System], Tensor]) -> "Directions":
        """Everything that the problem's point says about the steps of v and α."""
        outer_loss, g, direct = problem.outer_gradient(problem.w)
        with full_precision(problem.devices):
            split = self.curvature == "gauss_newton"
            products = self.products_at(problem, problem.inner[0], problem.w, split=split)
            system = System(products, split, g, self.decay(problem.layout), problem.averaging)
            at = v(system)
            image, mixed = system.joint(at, self.damping)
            products.release()
        return Directions(outer_loss, direct, image, mixed, at, system)


def along(v: Tensor, image: Tensor, g: Tensor) -> dict[str, Tensor]:
    """Measures that show whether v grows: the curvature along it, vᵀ(H + λ + damping)v/‖v‖², and its length ‖v‖/‖g‖."""
    size = length(v)
    return {"curvature": torch.dot(v / size, image / size), "length": size / length(g)}


@dataclass(frozen=True)
class Pace:
    """ρ, and the eigenvalue that it comes from."""

    step: Tensor
    spectrum: Spectrum | None = None

    def after(self, system: System, v: Tensor, image: Tensor) -> "Pace":
        """With the lower bound of λ_max that a product shows: v cannot grow along a curvature that was missed."""
        if self.spectrum is None:
            return self
        seen = system.averaging.number(relative(image, v))
        eigenvalue = torch.maximum(self.spectrum.eigenvalue.abs(), seen)
        return Pace(1 / length(eigenvalue), Spectrum(self.spectrum.vector, eigenvalue, self.spectrum.age))

    @property
    def state(self) -> State:
        return None if self.spectrum is None else self.spectrum.state()

    @property
    def measures(self) -> dict[str, Tensor]:
        return {} if self.spectrum is None else {"eigenvalue": self.spectrum.eigenvalue}


@dataclass(frozen=True)
class Directions:
    """At one point and one v: L2, ∂L2/∂α, (H + λ + damping) v, v · ∂²L1/∂w∂α, and the system they belong to."""

    outer_loss: Tensor
    direct: Tensors
    image: Tensor
    mixed: Tensors
    v: Tensor
    system: System

    @property
    def residual(self) -> Tensor:
        """(H + λ + damping) v − g: v steps against it."""
        return self.image - self.system.g

    @property
    def gradient_evaluations(self) -> float:
        return 1 + self.system.products.gradient_evaluations
