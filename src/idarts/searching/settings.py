"""The settings of a search. A method is a point on independent axes:

relaxation × hypergradient × rule for α × schedule of stages × selection (× strategy, for methods that are not gradient
descent on α). Each axis takes the name of a registered part. The defaults are the paper's, except γ and the curvature,
and except what is `auto`: that follows from the budget, the data and the machine (`idarts.searching.automatic`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from typing import Annotated, Any, Literal

from pydantic import Field

from idarts.arch import SPACES
from idarts.engine.loggers import LogName
from idarts.engine.settings import (
    Count,
    CountOrZero,
    Joint,
    NonNegative,
    Pair,
    PartOf,
    Positive,
    Precision,
    Seed,
    Share,
    change,
    resolve,
    validated,
)
from idarts.errors import InputError
from idarts.hypergrad import SOLVERS, Method
from idarts.searching import hypergradients
from idarts.searching.catalogue import METHODS, PRESETS
from idarts.searching.registries import (
    EVALUATORS,
    OBJECTIVES,
    PENALTIES,
    RELAXATIONS,
    RULES,
    SCHEDULES,
    SELECTIONS,
    STRATEGIES,
    build_part,
)

Options = dict[str, Any]
Size = Count | Literal["auto", "own"] | None  # None is what earlier versions wrote for `own`
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
    """largest norm of a gradient; 0 clips nothing"""
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
    """options of the rule, for one that takes others than these"""
    rest: Share = 0.0
    """share of each stage in which α rests at first, and only the weights are trained"""
    penalty: Annotated[str, PartOf(lambda: PENALTIES)] = "none"
    """penalty on α, which is added to the validation loss"""
    penalty_options: Options = field(default_factory=dict)
    """options of the penalty, such as {"weight": 0.01}"""


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
        """The estimator of the bilevel core, at the present learning rate of w."""
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
    """PPO: how far the ratio of new to old probability may leave 1"""
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
    trains the argmax and its neighbours (one decision changed) from scratch for a few steps, keeps the better half,
    doubles the steps, and repeats. Where `minutes` leave too little time for that, trials get fewer steps (at least
    10), then there are fewer candidates, the nearest by α first. `evolution` evolves architectures by their score with
    the shared weights.
    """

    rule: Annotated[str, PartOf(lambda: SELECTIONS)] = "argmax"
    """how the architecture is selected"""
    none: bool = True
    """allow `none` in the selected architecture"""
    samples: Count = 100
    """candidates, at most"""
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
    """options of the rule, for one that takes others than these"""


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
    """published skeleton of the final network; the space's first unless given"""
    table: str | None = None
    """JSON file of latencies, written by `idarts.spaces.measure_latency`"""

    def __post_init__(self) -> None:
        unused = {"none": ("target", "tolerance", "weight", "skeleton", "table"), "latency": ("skeleton",)}
        for name in unused.get(self.kind, ("table",)):
            value = getattr(self, name)
            if value != self.__dataclass_fields__[name].default:
                raise InputError(f"cost.{name} is {value!r}, but cost.kind {self.kind} ignores it; change --cost.kind")


@validated
class Config:
    """A search: T = `inner_steps` weight steps, then one α step, until the budget is spent.

    The budget is `rounds` (α steps) or, where `epochs` of the training data are given, as many rounds as these make;
    `minutes` and `gradient_evaluations` end it earlier. The learning rate of w follows whichever is spent first.
    `minutes` are for rounds and selection together; `gradient_evaluations` are those of the rounds.
    """

    rounds: Count = 100
    """α steps"""
    epochs: Positive | None = None
    """epochs of the training data, instead of rounds"""
    minutes: Positive | None = None
    """end the search after so many minutes, at the latest; its selection included"""
    gradient_evaluations: Positive | None = None
    """end the rounds after so many gradient evaluations, at the latest"""
    inner_steps: Count = 4
    """T: weight steps before each α step"""
    batch: Count = 64
    """images in a batch"""
    seed: Seed = 0
    """random seed"""
    strategy: Annotated[str, PartOf(lambda: STRATEGIES)] = "gradient"
    """how architectures are searched: `gradient` steps α by the hypergradient, `fixed` leaves α as it is; see `idarts
    methods`"""
    strategy_options: Options = field(default_factory=dict)
    """options of the strategy"""
    relaxation: RelaxationName = "softmax"
    """how the options of a decision are mixed"""
    relaxation_options: Options = field(default_factory=dict)
    """options of the relaxation, such as {"first": 5, "last": 0.5} for the temperatures of gumbel"""
    none: bool = False
    """let `none` take part in the relaxation, where the space has it"""
    stages: Annotated[str, PartOf(lambda: SCHEDULES)] = "single"
    """schedule of stages, which may prune options and deepen the supernet on the way"""
    stages_options: Options = field(default_factory=dict)
    """options of the schedule of stages"""
    weights: Weights = field(default_factory=Weights)
    alpha: Alpha = field(default_factory=Alpha)
    hypergradient: Hypergradient = field(default_factory=Hypergradient)
    controller: Controller = field(default_factory=Controller)
    evaluator: Evaluator = field(default_factory=Evaluator)
    population: Population = field(default_factory=Population)
    novelty: Novelty = field(default_factory=Novelty)
    selection: Selection = field(default_factory=Selection)
    cost: Cost = field(default_factory=Cost)
    precision: Precision = "float32"
    """precision of the weight steps; hypergradients always use full precision"""
    distributed: Joint = "synchronised"
    """gradient of α on several ranks: of the joined batch, or the mean of each rank's own"""
    batch_norm: Joint = "local"
    """batch statistics on several ranks: of each rank's share, or of all together"""

    def __post_init__(self) -> None:
        if self.strategy == "gradient":
            relaxation = self.build_relaxation()
            method = self.hypergradient.build(self.weights.rate or 1.0)
            hypergradients.require_derivatives(self.relaxation, relaxation, method)

    def build_relaxation(self, changes: Mapping[str, Any] | None = None) -> Any:
        """The relaxation with its options, which a stage may change."""
        return build_part(RELAXATIONS, self.relaxation, {**self.relaxation_options, **(changes or {})})

    @property
    def batches_per_round(self) -> int:
        """Training batches of a round: T and those that the hypergradient takes, or those of an evaluation.

        >>> Config().batches_per_round, change(Config(), {"hypergradient.method": "first-order"}).batches_per_round
        (5, 4)
        >>> config("regularised-evolution").batches_per_round
        40
        """
        return int(STRATEGIES[self.strategy].batches_per_round(self))

    def to_data(self) -> dict[str, Any]:
        """JSON types only, for a run's config.json.

        >>> Config(rounds=3).to_data()["hypergradient"]["step"]
        'auto'
        """
        return asdict(self)


@validated
class RunConfig(Config):
    """All settings of a run: those of the search, and what it searches on and with."""

    space: Annotated[str, PartOf(lambda: SPACES)] = "nas-bench-201"
    """search space"""
    method: str = "idarts"
    """named settings, which other options change: see `idarts methods`"""
    data: str = "digits"
    """data to search on"""
    data_root: str | None = None
    """folder of the data's files; IDARTS_DATA unless given"""
    image: Size = "auto"
    """side to which images are resized; `own`: not at all; `auto`: 16 on a CPU where they are larger, else `own`"""
    depth: Size = "auto"
    """depth of the supernet; `own`: the space's; `auto`: on a CPU the smallest that trains all of α, else `own`"""
    channels: Size = "auto"
    """channels of the supernet's first cells; `own`: the space's; `auto`: on a CPU at most 8, else `own`"""
    valid: Annotated[float, Field(gt=0, lt=1)] | Literal["official"] | None = None
    """share of the training images for α, or `official` for NAS-Bench-201's own halves; unless given, the data's own
    validation images or, where there are none, one half"""
    augment: bool = True
    """crop and flip images that are large enough"""
    device: str = "auto"
    """device, such as cpu or cuda:1"""
    tables: str | None = None
    """folder of benchmark tables; IDARTS_TABLES unless given. The search shows the true accuracy, but never uses it,
    except with --evaluator.kind table"""
    log: LogName = "none"
    """where to log settings, rounds and result besides the run folder"""
    checkpoint_rounds: Count = 100
    """rounds between two checkpoints, at most"""
    checkpoint_minutes: NonNegative = 5.0
    """minutes between two checkpoints, at most"""


def config(method: str = "idarts", **changes: Any) -> Config:
    """The settings of a method by name, with changes; a group's changes come as a dict.

    >>> config("darts-one-step", rounds=10).hypergradient.method
    'one-step'
    >>> config(alpha={"rate": 0.01}).alpha.rate
    0.01
    """
    return change(change(Config(), METHODS[method]), changes)


def resolved(sources: Sequence[Mapping[str, Any]]) -> RunConfig:
    """The settings of a run that some sources describe, by the rule of `idarts.engine.settings.resolve`.

    >>> resolved([{"preset": "cpu"}, {"space": "darts"}])
    Traceback (most recent call last):
    idarts.errors.InputError: preset cpu is made for nas-bench-201, nas-bench-1shot1-s1, nas-bench-1shot1-s2, \
nas-bench-1shot1-s3, not for darts; use darts-paper, or no preset: without a preset all sizes follow from the space \
and the machine
    """
    settings = resolve(RunConfig(), sources, PRESETS, METHODS)
    for source in sources:
        if source.get("preset") is not None:
            PRESETS.require_fitting(source["preset"], settings.space)
    return settings
