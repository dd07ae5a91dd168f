"""The hypergradient of a bilevel problem by any method, as a record. The call has no side effects."""

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

import torch
from torch import Tensor

from idarts.errors import CurvatureWarning, DivergenceWarning, InputError, NotFiniteError
from idarts.hypergrad.isolation import isolated
from idarts.hypergrad.method import Measure, Method, Result, State, Symmetry
from idarts.hypergrad.problem import ALONE, Averaging, Problem
from idarts.hypergrad.products import Loss
from idarts.hypergrad.spectrum import Spectrum
from idarts.hypergrad.vectors import Tensors, joined, on_host

ROUNDING = 3e2  # times the machine epsilon: what a product of two vectors may be off by, relative to their lengths
WRONG = 1e-3  # an asymmetry beyond rounding that is a mistake
LONG = 50  # times ‖g‖: a kept solution is shorter where the curvature is positive and `damping` is at least 1/50


@dataclass(frozen=True)
class Diagnostics:
    """How far an estimate can be trusted, and what it cost. `None` where it does not apply to a method.

    The fields marked * are measured only with `diagnostics=True`.
    """

    hvps: int  # products with the curvature
    gradient_evaluations: float  # the total cost, in units of one ∇_w L1
    implicit_share: float  # ‖implicit‖ / (‖direct‖ + ‖implicit‖)
    cosine: float  # between the direct and the implicit part
    terms: int | None = None  # terms, iterations or steps that were used
    step: float | None = None  # γ; the mean if it is a diagonal
    contraction: float | None = None  # the largest ‖V_k‖/‖V_{k−1}‖, a lower bound of ‖I − γH‖; over 1: divergence
    eigenvalue: float | None = None  # of largest modulus, where it was measured
    residual: float | None = None  # * ‖g − Hx‖/‖g‖ of the linear system
    alignment: float | None = None  # * cosine of x and g: near 1, the terms only rescale the one-step estimate
    asymmetry: float | None = None  # * |⟨u, Hv⟩ − ⟨v, Hu⟩| of two products, relative; also if an operation is suspect
    product_error: float | None = None  # * of one product against the same by double backward or finite differences
    measures: dict[str, float] = field(default_factory=dict)  # other measurements of the method


@dataclass(frozen=True)
class Estimate:
    """A hypergradient: `grads` = `direct` + `implicit`, each a tuple like the outer parameters."""

    grads: Tensors
    direct: Tensors
    implicit: Tensors
    outer_loss: Tensor
    diagnostics: Diagnostics
    inner_loss: Tensor | None = None  # L1 and ∂L1/∂w (flat) at the point, where the method computed them: a weight step
    inner_gradient: Tensor | None = None  # on the same batch can use them
    solution: Tensor | None = None  # x of H x = g (flat), where the method solves it
    state: State = None  # for the next call, if the method keeps one

    def write_grad(self, a: Iterable[Tensor]) -> "Estimate":
        """Put the hypergradient into `.grad` of the outer parameters, so that any torch optimiser can step."""
        a = tuple(a)
        if [t.shape for t in a] != [g.shape for g in self.grads]:
            raise InputError("write_grad: these tensors have other shapes than the outer parameters of this estimate")
        with torch.inference_mode(False):
            for tensor, grad in zip(a, self.grads, strict=True):
                tensor.grad = grad.clone()
        return self

    @property
    def spectrum(self) -> Spectrum | None:
        """The state under its name in 0.1.0. Deprecated."""
        message = "estimate.spectrum is deprecated; pass estimate.state to the next call as state="
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return None if self.state is None else Spectrum(**self.state)


def hypergradient(
    inner_loss: Loss | Sequence[Loss],
    outer_loss: Loss,
    w: Iterable[Tensor],
    a: Iterable[Tensor],
    method: Method,
    *,
    state: State = None,
    diagnostics: bool = False,
    check_finite: bool = True,
    averaging: Averaging = ALONE,
    spectrum: Spectrum | None = None,
) -> Estimate:
    """The gradient of `outer_loss(w*(a), a)` in `a`, where w*(a) minimises `inner_loss(w, a)`, at the given `w`.

    The losses are pure functions of two tuples of tensors; `lift` makes one from a module. For the unrolled methods
    `inner_loss` may be a sequence, one loss per step. Weights, buffers, `.grad` and the random state do not change, not
    even if a loss raises. `state` is the `state` of the last estimate, for methods that keep one. `averaging` is for
    several processes, each with a share of the batch. `spectrum` is deprecated; use `state`.

    Ridge regression in one dimension, L1 = (w − 1)²/2 + a·w²/2 and L2 = w²/2: w* = 1/(1 + a), so at a = 1 the
    hypergradient is w*·(−w*²) = −1/8.

    >>> w, a = torch.tensor(0.5, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    >>> inner = lambda w, a: (w[0] - 1) ** 2 / 2 + a[0] * w[0] ** 2 / 2
    >>> outer = lambda w, a: w[0] ** 2 / 2
    >>> from idarts.hypergrad import Exact, Neumann
    >>> hypergradient(inner, outer, (w,), (a,), Exact()).grads
    (tensor(-0.1250),)
    >>> hypergradient(inner, outer, (w,), (a,), Neumann(terms=0, step=0.1)).grads
    (tensor(-0.0250),)
    """
    if not isinstance(method, Method):
        raise InputError(f"method is {method!r}; give a method such as Neumann(terms=2, step=0.01)")
    if spectrum is not None:
        warnings.warn("spectrum= is deprecated; pass state=estimate.state", DeprecationWarning, stacklevel=2)
        state = spectrum.state()
    problem = Problem.of(inner_loss, outer_loss, w, a, diagnostics=diagnostics, averaging=averaging)
    _require_losses(method, len(problem.inner))
    versions = [tensor._version for tensor in problem.own]
    with isolated(problem.devices):
        if state is None:
            state = method.init(problem)
        result = method.estimate(problem, state).averaged(averaging)
    if versions != [tensor._version for tensor in problem.own]:
        raise InputError("a loss changed w or a in place, as nn.Embedding with max_norm does; give a pure function")
    grads = tuple([d + i for d, i in zip(result.direct, result.implicit, strict=True)])
    numbers = _read(result)
    if check_finite:
        _require_finite(numbers, torch.finfo(grads[0].dtype).max)
    quality = _diagnostics(result, numbers)
    if quality.contraction is not None and quality.step is not None and quality.contraction > 1:
        diagonal = isinstance(result.step, Tensor) and result.step.dim() > 0
        text = _divergence(quality.step, quality.eigenvalue or 0.0, diagonal)
        warnings.warn(text, DivergenceWarning, stacklevel=2)
    if quality.measures.get("curvature", 0.0) < 0 and quality.measures["length"] > LONG:
        warnings.warn(_NEGATIVE, CurvatureWarning, stacklevel=2)
    if result.warning is not None:
        warnings.warn(result.warning, CurvatureWarning, stacklevel=2)
    if quality.asymmetry is not None and quality.asymmetry > WRONG:
        warnings.warn(_not_symmetric(result.suspects), CurvatureWarning, stacklevel=2)
    return Estimate(
        grads=grads,
        direct=result.direct,
        implicit=result.implicit,
        outer_loss=result.outer_loss,
        diagnostics=quality,
        inner_loss=result.inner_loss,
        inner_gradient=result.inner_gradient,
        solution=result.solution,
        state=result.state,
    )


def _require_losses(method: Method, given: int) -> None:
    if method.needs_inner and given not in (1, method.inner_losses):
        more = f" or one for each of its {method.inner_losses} steps" if method.inner_losses > 1 else ""
        raise InputError(f"{type(method).__name__} uses one inner loss{more}, but {given} were given")


def _read(result: Result) -> dict[str, float]:
    """All numbers that the host needs, in one transfer from the device."""
    device, step = result.outer_loss.device, result.step
    numbers: dict[str, Measure] = {**result.measures, "outer loss": result.outer_loss, **_products(result, device)}
    if result.inner_loss is not None:
        numbers["inner loss"] = result.inner_loss
    if step is not None:
        numbers["step"] = step.mean() if isinstance(step, Tensor) and step.dim() else step
    if result.symmetry is not None:
        numbers |= zip(Symmetry._fields, result.symmetry, strict=True)
    return dict(zip(numbers, on_host(numbers.values(), device), strict=True))


def _products(result: Result, device: torch.device) -> dict[str, Tensor]:
    """⟨d, d⟩, ⟨i, i⟩ and ⟨d, i⟩ of both parts. In double precision: a series that diverges overflows a single one."""
    wide = torch.float32 if device.type == "mps" else torch.float64
    d, i = joined(result.direct).to(device, wide), joined(result.implicit).to(device, wide)
    return {"direct": torch.dot(d, d), "implicit": torch.dot(i, i), "dot": torch.dot(d, i)}


def _require_finite(numbers: dict[str, float], largest: float) -> None:
    """No infinity and no NaN. Both parts may be finite where their sum is beyond the largest number of its dtype."""
    for name in ("outer loss", "inner loss"):
        if name in numbers and not math.isfinite(numbers[name]):
            raise NotFiniteError(f"the {name} is {numbers[name]}; skip this step, or lower the inner learning rate")
    square = numbers["direct"] + 2 * numbers["dot"] + numbers["implicit"]
    # The residual, too: a NaN in a solution that is kept would spoil all later estimates, even if this one is finite.
    if not (square < largest * largest and math.isfinite(numbers.get("residual", 0.0))):
        raise NotFiniteError(
            "the hypergradient is not finite though the losses are; lower step, use step='auto', "
            "curvature='gauss_newton' or damping"
        )


def _diagnostics(result: Result, numbers: dict[str, float]) -> Diagnostics:
    direct, implicit = numbers["direct"] ** 0.5, numbers["implicit"] ** 0.5
    measured = {name: numbers[name] for name in ("step", *result.measures) if name in numbers}
    return Diagnostics(
        hvps=result.hvps,
        gradient_evaluations=result.gradient_evaluations,
        implicit_share=implicit / (direct + implicit) if direct + implicit else 0.0,
        cosine=numbers["dot"] / (direct * implicit) if direct * implicit else 0.0,
        terms=result.terms,
        asymmetry=_asymmetry(numbers, result.symmetry),
        measures={name: value for name, value in measured.items() if name not in _KNOWN},
        **{name: value for name, value in measured.items() if name in _KNOWN},
    )


_KNOWN = {entry.name for entry in fields(Diagnostics)}


def _asymmetry(numbers: dict[str, float], symmetry: Symmetry | None) -> float | None:
    """How far the products are from symmetric, beyond what rounding explains."""
    if symmetry is None:
        return None
    forward, backward, distance, v, image = (numbers[name] for name in Symmetry._fields)
    rounding = ROUNDING * torch.finfo(symmetry.v.dtype).eps * v
    size = distance * image
    return max(0.0, abs(forward - backward) - rounding * image) / size if size else 0.0


_NEGATIVE = (
    "the solution that is kept grows along negative curvature of the inner loss; use curvature='gauss_newton' where "
    "the method has it, or more damping"
)


def _divergence(step: float, eigenvalue: float, diagonal: bool) -> str:
    """Few digits, so that a run that diverges in every step warns once, not every time."""
    if diagonal and eigenvalue * step >= 2:
        factor = 1 / (eigenvalue * step)
        return f"the Neumann series diverges with this diagonal γ; multiply all of γ by at most {factor:.1g}"
    text = f"the Neumann series diverges with γ = {step:.1g}"
    if eigenvalue < 0 or eigenvalue * step < 2:
        return f"{text}: the curvature is not positive; use curvature='gauss_newton', damping, or a tolerance"
    return f"{text}: the largest safe γ is {1 / eigenvalue:.1g} (1/λ_max, which step='auto' uses)"


def _not_symmetric(suspects: Sequence[str]) -> str:
    cause = f" (perhaps {' or '.join(suspects)})" if suspects else ""
    return (
        f"the products with the inner curvature are not symmetric, so an operation{cause} has a wrong second "
        "derivative; replace it, or use products='finite_difference'"
    )
