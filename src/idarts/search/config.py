"""The settings of a search, as plain data. The defaults are the paper's, but for γ and the curvature it follows."""

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from idarts.errors import InputError
from idarts.hypergrad import FirstOrder, Method, Neumann

Precision = Literal["float32", "bfloat16", "float16"]
Joint = Literal["local", "synchronised"]
Relaxed = Literal["softmax", "gumbel", "dirichlet", "uniform", "partial-channels"]


@dataclass(frozen=True)
class Weights:
    """SGD on the supernet's weights w, its learning rate falling by a cosine over the budget."""

    rate: float = 0.025
    last_rate: float = 0.001
    momentum: float = 0.9
    nesterov: bool = True
    decay: float = 5e-4
    clip: float = 5.0  # largest norm of a gradient; 0 clips nothing
    warmup: int = 0  # weight steps before the first α step
    relaxation: Relaxed | None = None  # where weights are trained otherwise than α


@dataclass(frozen=True)
class Alpha:
    """Adam on the architecture parameters α."""

    rate: float = 3e-4
    betas: tuple[float, float] = (0.5, 0.999)
    decay: float = 1e-3


@dataclass(frozen=True)
class Hypergradient:
    """How α's gradient is taken: K terms of the series with γ a number, the weights' `rate`, or `auto`.

    Where `order` is `none`, α stays as it is; `reinforce` trains a controller that draws paths, as ENAS does.
    """

    order: Literal["none", "first", "implicit", "reinforce"] = "implicit"
    terms: int = 2
    step: float | Literal["auto", "rate"] = "auto"
    curvature: Literal["hessian", "gauss_newton"] = "gauss_newton"  # a minibatch Hessian is indefinite
    damping: float = 0.0
    products: Literal["exact", "finite_difference"] = "exact"
    samples: int = 10  # paths for one step of a controller

    def method(self, rate: float) -> Method:
        """The method of the bilevel core, at the weights' present learning rate."""
        if self.order == "first":
            return FirstOrder()
        step = rate if self.step == "rate" else self.step
        return Neumann(self.terms, step, damping=self.damping, curvature=self.curvature, products=self.products)


@dataclass(frozen=True)
class Selection:
    """How an architecture is taken from α and the weights, at last.

    `argmax` takes α's largest; `best-of` draws `samples` paths by α and takes the one that is best on validation
    batches with the shared weights; `perturbation` keeps of every decision the option without which the supernet loses
    most there; `trials` trains what α stands for and its neighbours, one decision away, for a few steps from scratch in
    the space's own depth, the better half twice as long, and so on, and takes the one that learns most.
    """

    rule: Literal["argmax", "best-of", "perturbation", "trials"] = "argmax"
    none: bool = True  # whether `none` may be taken
    samples: int = 100  # candidates, at most
    batches: int = 4  # of validation data, on which candidates are compared
    steps: int = 40  # of a first trial
    rate: float = 0.05  # of a trial, falling by a cosine


@dataclass(frozen=True)
class Cost:
    """What the found network should cost; the unit is that of the final network, not of the supernet.

    weight · (E[cost]/target − 1)² is added to the validation loss, and what is selected keeps to the target within
    `tolerance`. Where α is not stepped, only the selection minds it.
    """

    kind: Literal["none", "parameters", "multiply_adds", "latency"] = "none"
    target: float | None = None  # parameters, multiply-adds of convolutions and linear layers, or milliseconds
    tolerance: float = 0.05  # as a share of the target
    weight: float = 0.1
    skeleton: str | None = None  # of the final network: a published one of the space, else its first
    table: str | None = None  # JSON file of latencies, of `idarts.search.cost.measure_latency`


@dataclass(frozen=True)
class Config:
    """Algorithm 1: T = `inner_steps` weight steps, then one α step, until the budget ends.

    The budget is `rounds` (α steps) or, where `epochs` of the training data are given, as many rounds as these make;
    `minutes` and `gradient_evaluations` end it earlier. The weights' learning rate falls with what is used up first.
    """

    rounds: int = 100
    epochs: float | None = None
    minutes: float | None = None
    gradient_evaluations: float | None = None
    inner_steps: int = 4
    batch: int = 64
    seed: int = 0
    weights: Weights = field(default_factory=Weights)
    alpha: Alpha = field(default_factory=Alpha)
    hypergradient: Hypergradient = field(default_factory=Hypergradient)
    relaxation: Relaxed = "softmax"
    none: bool = True  # whether `none` takes part in the relaxation, where a space has it
    selection: Selection = field(default_factory=Selection)
    cost: Cost = field(default_factory=Cost)
    precision: Precision = "float32"  # of the weight steps; hypergradients are always taken in full precision
    distributed: Joint = "synchronised"  # on several ranks: of the joined batch, or the mean of each rank's own
    batch_norm: Joint = "local"  # on several ranks: the statistics of each rank's share, or of all together

    def __post_init__(self) -> None:
        for name in ("rounds", "inner_steps", "batch"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} is {value!r}, expected a whole number of at least 1")
        for name, kind in (("precision", Precision), ("distributed", Joint), ("batch_norm", Joint)):
            if getattr(self, name) not in get_args(kind):
                raise InputError(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(get_args(kind))}")
        for name in ("epochs", "minutes", "gradient_evaluations"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} is {value!r}, expected a positive number, or none")

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
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; there are {', '.join(METHODS)}")
    result = Config()
    for layer in (METHODS[method], changes):
        result = changed(result, layer)
    return result


def changed(settings: Any, changes: dict[str, Any]) -> Any:
    """Settings with some of them changed; an unknown name's nearest neighbour is named.

    >>> changed(Config(), {"rounds": 7}).rounds
    7
    """
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in settings.__dataclass_fields__:
            near = difflib.get_close_matches(name, settings.__dataclass_fields__, n=1)
            known = f"did you mean {near[0]}?" if near else f"there are {', '.join(settings.__dataclass_fields__)}"
            raise InputError(f"unknown setting {name!r}; {known}")
        values[name] = changed(getattr(settings, name), value) if isinstance(value, dict) else value
    return replace(settings, **values)


def dotted(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Groups as dotted names.

    >>> dotted({"batch": 8, "weights": {"rate": 0.1}})
    {'batch': 8, 'weights.rate': 0.1}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= dotted(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found
