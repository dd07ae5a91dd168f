"""Hypergradients of bilevel problems: `hypergradient(inner_loss, outer_loss, w, a, method)`. Independent of NAS."""

from idarts.hypergrad.bilevel import Bilevel
from idarts.hypergrad.estimate import Diagnostics, Estimate, hypergradient
from idarts.hypergrad.implicit import Implicit, Solution, System
from idarts.hypergrad.lift import lift
from idarts.hypergrad.method import Method, Result
from idarts.hypergrad.optimizers import from_optimizer
from idarts.hypergrad.problem import ALONE, Averaging, Problem
from idarts.hypergrad.solvers import SOLVERS, make_method
from idarts.hypergrad.solvers.amigo import AmIGO
from idarts.hypergrad.solvers.bome import BOME
from idarts.hypergrad.solvers.conjugate_gradient import ConjugateGradient
from idarts.hypergrad.solvers.exact import Exact
from idarts.hypergrad.solvers.f2sa import F2SA
from idarts.hypergrad.solvers.first_order import FirstOrder
from idarts.hypergrad.solvers.identity import Identity
from idarts.hypergrad.solvers.neumann import Neumann
from idarts.hypergrad.solvers.nystrom import Nystrom
from idarts.hypergrad.solvers.one_step import OneStep
from idarts.hypergrad.solvers.recursive import Recursive
from idarts.hypergrad.solvers.reverse import ReverseMode
from idarts.hypergrad.solvers.running import Running
from idarts.hypergrad.solvers.saba import Part, Saba
from idarts.hypergrad.solvers.truncated_reverse import TruncatedReverse
from idarts.hypergrad.spectrum import Spectrum
from idarts.layers import lean, unlean

__all__ = [
    "ALONE",
    "BOME",
    "F2SA",
    "SOLVERS",
    "AmIGO",
    "Averaging",
    "Bilevel",
    "ConjugateGradient",
    "Diagnostics",
    "Estimate",
    "Exact",
    "FirstOrder",
    "Identity",
    "Implicit",
    "Method",
    "Neumann",
    "Nystrom",
    "OneStep",
    "Part",
    "Problem",
    "Recursive",
    "Result",
    "ReverseMode",
    "Running",
    "Saba",
    "Solution",
    "Spectrum",
    "System",
    "TruncatedReverse",
    "from_optimizer",
    "hypergradient",
    "lean",
    "lift",
    "make_method",
    "unlean",
]
