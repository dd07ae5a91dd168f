"""Hypergradients of bilevel problems: `hypergradient(inner_loss, outer_loss, w, a, method)`. Knows nothing of NAS."""

from idarts.hypergrad.conjugate_gradient import ConjugateGradient
from idarts.hypergrad.estimate import Diagnostics, Estimate, hypergradient
from idarts.hypergrad.implicit import Exact, FirstOrder, Identity, OneStep
from idarts.hypergrad.lift import from_optimizer, lift
from idarts.hypergrad.neumann import Neumann
from idarts.hypergrad.nystrom import Nystrom
from idarts.hypergrad.problem import ALONE, Averaging, Method
from idarts.hypergrad.spectrum import Spectrum
from idarts.hypergrad.unrolled import ReverseMode, TruncatedReverse
from idarts.layers.lean import lean

__all__ = [
    "ALONE",
    "Averaging",
    "ConjugateGradient",
    "Diagnostics",
    "Estimate",
    "Exact",
    "FirstOrder",
    "Identity",
    "Method",
    "Neumann",
    "Nystrom",
    "OneStep",
    "ReverseMode",
    "Spectrum",
    "TruncatedReverse",
    "from_optimizer",
    "hypergradient",
    "lean",
    "lift",
]
