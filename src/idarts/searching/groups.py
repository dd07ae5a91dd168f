"""The groups of a search's settings, such as `weights` and `alpha`: one record for each."""

from dataclasses import field
from typing import Annotated, Any, Literal

from idarts.engine.settings import Count, CountOrZero, NonNegative, Pair, PartOf, Positive, Share, validated
from idarts.errors import InputError
from idarts.hypergrad import SOLVERS, Method
from idarts.searching import hypergradients
from idarts.searching.registries import EVALUATORS, OBJECTIVES, PENALTIES, RELAXATIONS, RULES, SELECTIONS

Options = dict[str, Any]
RelaxationName = Annotated[str, PartOf(lambda: RELAXATIONS)]


@validated
class Weights:
    """SGD on the supernet's weights w; the learning rate falls by a cosine over the budget."""

    rate: NonNegative = 0.025
    """learning rate at the start"""
    last_rate: NonNegative = 0.001
    """learning rate at the end"""
    momentum: Share = 0.9
    """momentum"""
    nesterov: bool = True
    """use Nesterov's momentum"""
    decay: NonNegative = 5e-4
    """weight decay"""
    clip: NonNegative = 5.0
    """largest norm of the gradient; 0: no clipping"""
    warmup: CountOrZero = 0
    """weight steps before the first α step"""
    relaxation: RelaxationName | None = None
    """relaxation for the weight steps, where it differs from --relaxation"""
    relaxation_options: Options = field(default_factory=dict)
    """options of that relaxation"""
    objective: Annotated[str, PartOf(lambda: OBJECTIVES)] = "single"
    """loss of a weight step: that of one mixture, or of several together"""
    objective_options: Options = field(default_factory=dict)
    """options of the objective"""

    def __post_init__(self) -> None:
        if self.nesterov and not self.momentum:
            raise InputError("weights.nesterov needs a momentum; use --weights.nesterov false")
        if self.relaxation_options and self.relaxation is None:
            raise InputError(
                f"weights.relaxation_options is {self.relaxation_options}, but weights.relaxation names none; "
                "give it, or use --relaxation-options"
            )


@validated
class Alpha:
    """The steps on the architecture parameters α."""

    rule: Annotated[str, PartOf(lambda: RULES)] = "adam"
    """how a gradient moves α"""
    rate: NonNegative | Literal["auto"] = "auto"
    """learning rate; `auto`: 3 divided by the number of rounds, between 3e-4 and 0.1"""
    betas: Pair = (0.5, 0.999)
    """Adam's decay rates for the running means of the gradient and of its square"""
    decay: NonNegative = 1e-3
    """weight decay"""
    options: Options = field(default_factory=dict)
    """further options of the rule, if it has others than these"""
    rest: Share = 0.0
    """share of each stage, at its start, in which only the weights are trained and α is not"""
    average: Share = 0.0
    """share of the budget, at its end, over whose rounds α is averaged for the selection; 0: the last α counts"""
    penalty: Annotated[str, PartOf(lambda: PENALTIES)] = "none"
    """penalty on α, which is added to the validation loss"""
    penalty_options: Options = field(default_factory=dict)
    """options of the penalty, such as {"weight": 0.01}"""
    curvature_rounds: CountOrZero = 0
    """rounds between two measurements of the largest eigenvalue of ∇²_α L2, which rises when a search collapses; 0:
    none. They are counted in the cost, but use up no budget of gradient evaluations"""


@validated
class Hypergradient:
    """How the gradient of α is estimated. A setting that the method does not have is ignored."""

    method: Annotated[str, PartOf(lambda: SOLVERS)] = "neumann"
    """estimator of the hypergradient; neumann is the paper's"""
    terms: CountOrZero = 2
    """K: terms of the Neumann series beyond the first; steps that truncated-reverse differentiates"""
    steps: Count = 1
    """inner steps of reverse and truncated-reverse; each takes a training batch"""
    step: Positive | Literal["auto", "rate"] = "auto"
    """γ: a number, `rate` for the learning rate of w, or `auto`: 1/λ_max where the method measures the largest
    eigenvalue, else the learning rate"""
    curvature: Literal["hessian", "gauss_newton"] = "gauss_newton"
    """curvature of the training loss; a minibatch's Hessian is indefinite"""
    damping: NonNegative = 0.0
    """added to the diagonal of the curvature"""
    products: Literal["exact", "finite_difference"] = "exact"
    """how products with second derivatives are computed"""
    options: Options = field(default_factory=dict)
    """further options of the method, such as {"iterations": 5} for conjugate-gradient"""

    def build(self, rate: float) -> Method:
        """The estimator of the bilevel core, at the current learning rate of w."""
        return hypergradients.build(self, rate)


@validated
class Controller:
    """An LSTM samples architectures and learns from their reward: `controller` (ENAS) by REINFORCE, `nasnet` by PPO."""

    samples: Count = 10
    """paths for one step of the controller"""
    rate: NonNegative = 1e-3
    """Adam's learning rate"""
    entropy: NonNegative = 1e-4
    """weight of the entropy bonus"""
    baseline: Share = 0.99
    """decay rate of the moving baseline"""
    clip: Positive = 0.2
    """PPO: how far the ratio of new to old probability may differ from 1"""
    passes: Count = 4
    """PPO: steps on the same samples"""


@validated
class Evaluator:
    """How strategies that propose architectures (evolution, random search, NASNet, PNAS) know how good one is.

    `trials` trains its network from scratch for a few steps. `shared-weights` takes its path in a supernet, whose
    weights are trained on random paths meanwhile. `table` reads the benchmark's true accuracy: only for baselines.
    """

    kind: Annotated[str, PartOf(lambda: EVALUATORS)] = "trials"
    """how an architecture is evaluated"""
    steps: Count = 40
    """weight steps of a trial"""
    rate: NonNegative = 0.05
    """learning rate of a trial, which falls by a cosine"""
    batches: Count = 4
    """validation batches of an evaluation"""


@validated
class Population:
    """Strategies that hold several architectures at once: regularised-evolution, pnas, novelty."""

    size: Count = 10
    """members of regularised evolution (P; AmoebaNet: 100), cells that PNAS keeps at each level (K; its paper: 256),
    architectures in the archive of novelty"""
    tournament: Count = 3
    """members from which regularised evolution takes the best as parent (S; AmoebaNet: 25)"""


@validated
class Novelty:
    """The strategy `novelty` (EN²AS): paths that are unlike those in an archive, by an evolution strategy."""

    samples: Count = 10
    """perturbations for one step (n)"""
    deviation: Positive = 1.0
    """standard deviation of a perturbation (σ)"""
    rate: NonNegative = 1.0
    """step of an archive member along the gradient of its novelty (η)"""
    neighbours: Count = 10
    """nearest members of the archive, whose mean distance is the novelty"""


@validated
class Selection:
    """How the final architecture is taken from α and the weights.

    `argmax` takes the largest of α. `best-of` samples architectures by α and takes the best one on validation batches,
    with the shared weights. `perturbation` keeps, for each decision, the option whose removal costs most. `trials`
    trains the argmax and `candidates` near it from scratch for a few steps, keeps the better half, doubles the steps,
    and repeats. Where `minutes` leave too little time for that, trials get fewer steps (at least 10), then there are
    fewer candidates. `evolution` evolves architectures by their score with the shared weights.
    """

    rule: Annotated[str, PartOf(lambda: SELECTIONS)] = "argmax"
    """how the architecture is selected"""
    none: bool = True
    """allow `none` in the selected architecture"""
    samples: Count = 100
    """candidates, at most"""
    candidates: Literal["neighbours", "draws"] = "neighbours"
    """what `trials` compares with the argmax: its `neighbours`, with one decision changed, the nearest by α first; or
    `draws` around it, by noise in α"""
    batches: Count = 4
    """validation batches that candidates are compared on"""
    steps: Count = 40
    """weight steps of the first trials"""
    rate: NonNegative = 0.05
    """learning rate of a trial, which falls by a cosine"""
    judge: Literal["best", "loss"] = "best"
    """how a trial is judged on the validation batches: by the `best` loss of its own curve, because on few images the
    loss rises again, or by the `loss` at its end"""
    options: Options = field(default_factory=dict)
    """further options of the rule, if it has others than these"""


@validated
class Cost:
    """What the final network should cost. The unit is that of the final network, not of the supernet.

    weight · (E[cost]/target − 1)² is added to the validation loss, and the selection stays within `tolerance` of the
    target. A strategy that does not step α considers the cost in the selection only.
    """

    kind: Literal["none", "parameters", "multiply_adds", "latency"] = "none"
    """what is counted or measured"""
    target: Positive | None = None
    """parameters, multiply-adds of convolutions and linear layers, or milliseconds"""
    tolerance: Positive = 0.05
    """allowed deviation, as a share of the target"""
    weight: NonNegative = 0.1
    """weight of the penalty"""
    skeleton: str | None = None
    """published skeleton of the final network; default: the space's first"""
    table: str | None = None
    """JSON file of latencies, written by `idarts.spaces.measure_latency`"""

    def __post_init__(self) -> None:
        unused = {"none": ("target", "tolerance", "weight", "skeleton", "table"), "latency": ("skeleton",)}
        for name in unused.get(self.kind, ("table",)):
            value = getattr(self, name)
            if value != self.__dataclass_fields__[name].default:
                raise InputError(f"cost.{name} is {value!r}, but cost.kind {self.kind} ignores it; change --cost.kind")
