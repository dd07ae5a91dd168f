"""The settings of a search, as plain data. The defaults are the paper's, but for γ and the curvature it follows.

What stands below a setting is its explanation, in `idarts search --help`, too.
"""

from dataclasses import asdict, field
from typing import Any, Literal

from idarts.engine.settings import (
    Count,
    CountOrZero,
    Joint,
    NonNegative,
    Pair,
    Positive,
    Precision,
    Share,
    change,
    validated,
)
from idarts.errors import InputError, require_known
from idarts.hypergrad import FirstOrder, Method, Neumann

Relaxed = Literal["softmax", "gumbel", "dirichlet", "uniform", "partial-channels"]


@validated
class Weights:
    """SGD on the supernet's weights w, its learning rate falling by a cosine over the budget."""

    rate: NonNegative = 0.025
    """learning rate at the beginning"""
    last_rate: NonNegative = 0.001
    """learning rate at the end"""
    momentum: Share = 0.9
    """momentum"""
    nesterov: bool = True
    """whether the momentum is Nesterov's"""
    decay: NonNegative = 5e-4
    """weight decay"""
    clip: NonNegative = 5.0
    """largest norm of a gradient; 0 clips nothing"""
    warmup: CountOrZero = 0
    """weight steps before the first α step"""
    relaxation: Relaxed | None = None
    """where weights are trained otherwise than α: one of those of --relaxation"""


@validated
class Alpha:
    """Adam on the architecture parameters α."""

    rate: NonNegative = 3e-4
    """learning rate"""
    betas: Pair = (0.5, 0.999)
    """shares of the old in the running means of the gradient and its square"""
    decay: NonNegative = 1e-3
    """weight decay"""


@validated
class Hypergradient:
    """How α's gradient is taken: by K terms of the Neumann series with step γ."""

    order: Literal["none", "first", "implicit", "reinforce"] = "implicit"
    """`first` leaves the implicit part out; `none` leaves α as it is; `reinforce` trains a controller that draws paths,
    as ENAS does"""
    terms: CountOrZero = 2
    """K, beyond the term that is always there"""
    step: Positive | Literal["auto", "rate"] = "auto"
    """γ: a number, `rate` for the weights' learning rate, or `auto` for 1/λ of the largest eigenvalue"""
    curvature: Literal["hessian", "gauss_newton"] = "gauss_newton"
    """curvature of the training loss; a minibatch's Hessian is indefinite"""
    damping: NonNegative = 0.0
    """added to the curvature's diagonal"""
    products: Literal["exact", "finite_difference"] = "exact"
    """how second derivatives are taken"""
    samples: Count = 10
    """paths for one step of a controller"""

    def method(self, rate: float) -> Method:
        """The method of the bilevel core, at the weights' present learning rate."""
        step = rate if self.step == "rate" else self.step
        if self.order == "first" or step == 0:  # a learning rate that has fallen to 0 leaves no implicit part
            return FirstOrder()
        return Neumann(self.terms, step, damping=self.damping, curvature=self.curvature, products=self.products)


@validated
class Selection:
    """How an architecture is taken from α and the weights, at last.

    `argmax` takes α's largest; `best-of` draws `samples` paths by α and takes the one that is best on validation
    batches with the shared weights; `perturbation` keeps of every decision the option without which the supernet loses
    most there; `trials` trains what α stands for and its neighbours, one decision away, for a few steps from scratch in
    the space's own depth, the better half twice as long, and so on, and takes the one that learns most.
    """

    rule: Literal["argmax", "best-of", "perturbation", "trials"] = "argmax"
    """one of these rules"""
    none: bool = True
    """whether `none` may be taken"""
    samples: Count = 100
    """candidates, at most"""
    batches: Count = 4
    """batches of validation data, on which candidates are compared"""
    steps: Count = 40
    """weight steps of a first trial"""
    rate: NonNegative = 0.05
    """learning rate of a trial, falling by a cosine"""


@validated
class Cost:
    """What the found network should cost; the unit is that of the final network, not of the supernet.

    weight · (E[cost]/target − 1)² is added to the validation loss, and what is selected keeps to the target within
    `tolerance`. Where α is not stepped, only the selection minds it.
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
    """skeleton of the final network: a published one of the space, else its first"""
    table: str | None = None
    """JSON file of latencies, of `idarts.spaces.measure_latency`"""

    def __post_init__(self) -> None:
        unused = {"none": ("target", "tolerance", "weight", "skeleton", "table"), "latency": ("skeleton",)}
        for name in unused.get(self.kind, ("table",)):
            value = getattr(self, name)
            if value != self.__dataclass_fields__[name].default:
                raise InputError(
                    f"cost.{name} is {value!r}, which cost.kind {self.kind} does not use; change --cost.kind"
                )


@validated
class Config:
    """Algorithm 1: T = `inner_steps` weight steps, then one α step, until the budget ends.

    The budget is `rounds` (α steps) or, where `epochs` of the training data are given, as many rounds as these make;
    `minutes` and `gradient_evaluations` end it earlier. The weights' learning rate falls with what is used up first.
    """

    rounds: Count = 100
    """α steps"""
    epochs: Positive | None = None
    """epochs of the training data, in place of rounds"""
    minutes: Positive | None = None
    """minutes after which the search ends, at the latest"""
    gradient_evaluations: Positive | None = None
    """gradient evaluations after which the search ends, at the latest"""
    inner_steps: Count = 4
    """T: weight steps before each α step"""
    batch: Count = 64
    """images in a batch"""
    seed: CountOrZero = 0
    """seed of all that is drawn"""
    weights: Weights = field(default_factory=Weights)
    alpha: Alpha = field(default_factory=Alpha)
    hypergradient: Hypergradient = field(default_factory=Hypergradient)
    relaxation: Relaxed = "softmax"
    """how options are mixed while α is searched"""
    none: bool = True
    """whether `none` takes part in the relaxation, where a space has it"""
    selection: Selection = field(default_factory=Selection)
    cost: Cost = field(default_factory=Cost)
    precision: Precision = "float32"
    """precision of the weight steps; hypergradients are always taken in full precision"""
    distributed: Joint = "synchronised"
    """α's gradient on several ranks: of the joined batch, or the mean of each rank's own"""
    batch_norm: Joint = "local"
    """on several ranks: the statistics of each rank's share, or of all together"""

    def __post_init__(self) -> None:
        how = self.hypergradient
        implicit = how.order == "implicit"
        for wrong, told in (
            (
                self.relaxation == "uniform" and how.order in ("first", "implicit"),
                "relaxation uniform gives α no gradient; use --hypergradient.order none",
            ),
            (
                self.relaxation == "dirichlet" and implicit and how.products == "exact",
                "relaxation dirichlet has no second derivative; use --hypergradient.order first",
            ),
            (
                implicit and how.products == "finite_difference" and how.curvature == "gauss_newton",
                "hypergradient.curvature gauss_newton needs exact products; use --hypergradient.curvature hessian",
            ),
            (
                self.weights.nesterov and not self.weights.momentum,
                "weights.nesterov needs a momentum; use --weights.nesterov false",
            ),
        ):
            if wrong:
                raise InputError(told)

    @property
    def batches_a_round(self) -> int:
        """Of the training data: T, and one more where the hypergradient looks at the training loss, too.

        >>> Config().batches_a_round, Config(hypergradient=Hypergradient("first")).batches_a_round
        (5, 4)
        """
        return self.inner_steps + (self.hypergradient.order == "implicit")

    def to_data(self) -> dict[str, Any]:
        """JSON types only, for a run's record.

        >>> Config(rounds=3).to_data()["hypergradient"]["step"]
        'auto'
        """
        return asdict(self)


# A search method is a point on independent axes; its name only stands for settings.
METHODS: dict[str, dict[str, Any]] = {
    "idarts": {},
    "darts": {"inner_steps": 1, "hypergradient": {"terms": 0, "step": "rate"}},
    "darts-first-order": {"inner_steps": 1, "hypergradient": {"order": "first"}},
    "gdas": {"inner_steps": 1, "relaxation": "gumbel", "hypergradient": {"order": "first"}},
    "setn": {
        "inner_steps": 1,
        "weights": {"relaxation": "uniform"},
        "hypergradient": {"order": "first"},
        "selection": {"rule": "best-of"},
    },
    "random-nas": {
        "inner_steps": 1,
        "relaxation": "uniform",
        "hypergradient": {"order": "none"},
        "selection": {"rule": "best-of"},
    },
    "enas": {"inner_steps": 1, "hypergradient": {"order": "reinforce"}, "selection": {"rule": "best-of"}},
}


def config(method: str = "idarts", **changes: Any) -> Config:
    """The settings of a method by name, with changes; a group's changes come as a dict.

    >>> config("darts", rounds=10).hypergradient.terms
    0
    >>> config(alpha={"rate": 0.01}).alpha.rate
    0.01
    """
    require_known("method", method, METHODS)
    result = Config()
    for layer in (METHODS[method], changes):
        result = change(result, layer)
    return result
