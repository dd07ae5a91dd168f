"""The hypergradient of a bilevel problem by any method, as a record; calling it changes nothing."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from idarts.errors import DivergenceWarning, InputError, NotFiniteError
from idarts.hypergrad.isolation import isolated
from idarts.hypergrad.problem import ALONE, Answer, Averaging, Method, Problem
from idarts.hypergrad.products import Loss
from idarts.hypergrad.spectrum import Spectrum
from idarts.hypergrad.vectors import Tensors


@dataclass(frozen=True)
class Diagnostics:
    """How far an estimate can be trusted, and what it cost. `None` where a method has no such thing.

    The fields marked * are measured only with `diagnostics=True`.
    """

    hvps: int  # products with the curvature
    gradient_evaluations: float  # all that was spent, one ∇_w L1 being one
    implicit_share: float  # ‖implicit‖ / (‖direct‖ + ‖implicit‖)
    cosine: float  # between the direct and the implicit part
    terms: int | None = None  # terms, iterations or steps that were used
    step: float | None = None  # γ; the mean of a diagonal one
    contraction: float | None = None  # the largest ‖V_k‖/‖V_{k−1}‖ seen, a lower bound of ‖I − γH‖; over 1: divergence
    eigenvalue: float | None = None  # of largest modulus, where it was measured
    residual: float | None = None  # * ‖g − Hx‖/‖g‖ of the linear system
    alignment: float | None = None  # * cosine of x and g: near 1, the terms only rescale the one-step estimate
    product_error: float | None = None  # * of a finite-difference product against an exact one


@dataclass(frozen=True)
class Estimate:
    """A hypergradient: `grads` = `direct` + `implicit`, each a tuple like the outer parameters."""

    grads: Tensors
    direct: Tensors
    implicit: Tensors
    outer_loss: Tensor
    diagnostics: Diagnostics
    inner_loss: Tensor | None = None  # L1 and ∂L1/∂w (flat) at the point, where the method needed them: a next
    inner_gradient: Tensor | None = None  # weight step on the same batch need not compute them again
    spectrum: Spectrum | None = None  # to hand to the next call

    def write_grad(self, a: Sequence[Tensor]) -> "Estimate":
        """Put the hypergradient into `.grad` of the outer parameters, so that any torch optimiser can step."""
        if [t.shape for t in a] != [g.shape for g in self.grads]:
            raise InputError("write_grad: these tensors have other shapes than the outer parameters of this estimate")
        for tensor, grad in zip(a, self.grads, strict=True):
            tensor.grad = grad.clone()
        return self


def hypergradient(
    inner_loss: Loss | Sequence[Loss],
    outer_loss: Loss,
    w: Sequence[Tensor],
    a: Sequence[Tensor],
    method: Method,
    *,
    spectrum: Spectrum | None = None,
    diagnostics: bool = False,
    check_finite: bool = True,
    averaging: Averaging = ALONE,
) -> Estimate:
    """The gradient of `outer_loss(w*(a), a)` in `a`, where w*(a) minimises `inner_loss(w, a)`, at the given `w`.

    The losses are pure functions of two tuples of tensors; `lift` makes one of a module. `inner_loss` may be a
    sequence, one loss per step, for the unrolled methods. Weights, buffers, `.grad`, and the random state stay as they
    are, also when a loss raises. `spectrum` is the last estimate's, for methods that follow the curvature. `averaging`
    says how processes with a share of the batch each come to one estimate.

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
    problem = Problem.of(inner_loss, outer_loss, w, a, spectrum=spectrum, diagnostics=diagnostics, averaging=averaging)
    with isolated({tensor.device for tensor in (*problem.w, *problem.a)}):
        answer = averaging.answer(method.answer(problem))
    grads = tuple(d + i for d, i in zip(answer.direct, answer.implicit, strict=True))
    facts = _facts(answer, grads)
    if check_finite:
        _require_finite(facts)
    found = _diagnostics(answer, facts)
    if found.contraction is not None and found.contraction > 1:
        warnings.warn(_divergence(found), DivergenceWarning, stacklevel=2)
    return Estimate(
        grads=grads,
        direct=answer.direct,
        implicit=answer.implicit,
        outer_loss=answer.outer_loss,
        diagnostics=found,
        inner_loss=answer.inner_loss,
        inner_gradient=answer.inner_gradient,
        spectrum=answer.spectrum,
    )


def _facts(answer: Answer, grads: Tensors) -> dict[str, float]:
    """All numbers that are looked at, brought from the device in one transfer."""
    device = answer.outer_loss.device
    wide = torch.float32 if device.type == "mps" else torch.float64  # a diverged series overflows float32

    def flat(parts: Tensors) -> Tensor:
        return torch.cat([part.reshape(-1).to(device, wide) for part in parts])

    direct, implicit = flat(answer.direct), flat(answer.implicit)
    tensors = {
        "outer loss": answer.outer_loss,
        "hypergradient": flat(grads).norm(),
        "direct": direct.norm(),
        "implicit": implicit.norm(),
        "dot": direct @ implicit,
        **answer.measures,
    }
    if answer.inner_loss is not None:
        tensors["inner loss"] = answer.inner_loss
    if answer.step is not None:
        tensors["step"] = answer.step.mean()
    if answer.spectrum is not None:
        tensors.setdefault("eigenvalue", answer.spectrum.eigenvalue)
    values = torch.stack([t.detach().to(device, wide) for t in tensors.values()]).tolist()
    return dict(zip(tensors, values, strict=True))


def _require_finite(facts: dict[str, float]) -> None:
    for name in ("outer loss", "inner loss"):
        if name in facts and not math.isfinite(facts[name]):
            raise NotFiniteError(f"the {name} is {facts[name]}; skip this step, or lower the inner learning rate")
    if not math.isfinite(facts["hypergradient"]):
        raise NotFiniteError(
            "the hypergradient is not finite though the losses are; lower step, use step='auto', "
            "curvature='gauss_newton' or damping"
        )


def _diagnostics(answer: Answer, facts: dict[str, float]) -> Diagnostics:
    direct, implicit = facts["direct"], facts["implicit"]
    measured = ("step", "contraction", "eigenvalue", "residual", "alignment", "product_error")
    return Diagnostics(
        hvps=answer.hvps,
        gradient_evaluations=answer.gradient_evaluations,
        implicit_share=implicit / (direct + implicit) if direct + implicit else 0.0,
        cosine=facts["dot"] / (direct * implicit) if direct * implicit else 0.0,
        terms=answer.terms,
        **{name: facts[name] for name in measured if name in facts},
    )


def _divergence(found: Diagnostics) -> str:
    """Few digits, so that a run which diverges at every step warns once, not every time."""
    text = f"the Neumann series diverges with γ = {found.step:.1g}"
    eigenvalue, step = found.eigenvalue or 0.0, found.step or 0.0
    if eigenvalue < 0 or eigenvalue * step < 2:
        return f"{text}: the curvature is not positive; use curvature='gauss_newton', damping, or a tolerance"
    return f"{text}: the largest safe γ is {1 / eigenvalue:.1g} (1/λ_max, what step='auto' takes)"
