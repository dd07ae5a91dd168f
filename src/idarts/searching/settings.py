"""The settings of a search. A method is a point on independent axes:

relaxation × hypergradient × rule for α × schedule of stages × selection (× strategy, for methods that are not gradient
descent on α). Each axis takes the name of a registered part. The defaults are the paper's, except γ and the curvature,
and except what is `auto`: that follows from the budget, the data and the machine (`idarts.searching.automatic`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from idarts.arch import SPACES
from idarts.engine.loggers import LogName
from idarts.engine.settings import (
    Count,
    Joint,
    NonNegative,
    PartOf,
    Positive,
    Precision,
    Seed,
    adopt_parts,
    dotted,
    resolve,
    validated,
)
from idarts.errors import InputError
from idarts.searching import hypergradients
from idarts.searching.catalogue import METHODS, PRESETS
from idarts.searching.curvature import require_measurable
from idarts.searching.groups import (
    Alpha,
    Controller,
    Cost,
    Evaluator,
    Hypergradient,
    Novelty,
    Options,
    Population,
    RelaxationName,
    Selection,
    Weights,
)
from idarts.searching.registries import RELAXATIONS, SCHEDULES, STRATEGIES, build_part

Changed = TypeVar("Changed", bound="Config")

__all__ = [
    "Alpha",
    "Config",
    "Controller",
    "Cost",
    "Evaluator",
    "Hypergradient",
    "Novelty",
    "Population",
    "RunConfig",
    "Selection",
    "Size",
    "Weights",
    "changed",
    "config",
    "resolved",
]

Size = Count | Literal["auto", "own"] | None  # None is what earlier versions wrote for `own`


@validated
class Config:
    """A search: T = `inner_steps` weight steps, then one α step, until the budget is spent.

    The budget is `rounds` (α steps) or, where `epochs` of the training data are given, as many rounds as these make;
    `minutes` and `gradient_evaluations` end it earlier. The learning rate of w follows whichever is spent first.
    `minutes` are for rounds and selection together; `gradient_evaluations` are those of the rounds, without those of
    `alpha.curvature_rounds`.
    """

    rounds: Count = 100
    """α steps"""
    epochs: Positive | None = None
    """epochs of the training data, instead of rounds"""
    minutes: Positive | None = None
    """end the search, with its selection, after so many minutes at the latest"""
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
    """schedule of stages, which may prune options and deepen the supernet during the search"""
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
    """gradient of α on several ranks: `synchronised`, that of the joint batch; `local`, the mean over the ranks"""
    batch_norm: Joint = "local"
    """batch statistics on several ranks: `local`, those of each rank's share; `synchronised`, those of all shares"""

    def __post_init__(self) -> None:
        if self.strategy == "gradient":
            relaxation = self.build_relaxation()
            method = self.hypergradient.build(self.weights.rate or 1.0)
            hypergradients.require_derivatives(self.relaxation, relaxation, method)
        if self.alpha.curvature_rounds:
            require_measurable(self, STRATEGIES[self.strategy])

    def build_relaxation(self, changes: Mapping[str, Any] | None = None) -> Any:
        """The relaxation with its options, which a stage may change."""
        return build_part(RELAXATIONS, self.relaxation, {**self.relaxation_options, **(changes or {})})

    @property
    def batches_per_round(self) -> int:
        """Training batches of a round: T and those that the hypergradient takes, or those of an evaluation.

        >>> Config().batches_per_round, config(hypergradient={"method": "first-order"}).batches_per_round
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
    """named settings, which other options override; see `idarts methods`"""
    data: str = "digits"
    """data to search on"""
    data_root: str | None = None
    """folder of the data's files; default: IDARTS_DATA"""
    image: Size = "auto"
    """side to which images are resized; `own`: not at all; `auto`: 16 on a CPU where they are larger, else `own`"""
    depth: Size = "auto"
    """depth of the supernet; `own`: the space's; `auto`: on a CPU the smallest that trains all of α, else `own`"""
    channels: Size = "auto"
    """channels of the supernet's first cells; `own`: the space's; `auto`: on a CPU at most 8, else `own`"""
    valid: Annotated[float, Field(gt=0, lt=1)] | Literal["official"] | None = None
    """share of the training images for α, or `official` for NAS-Bench-201's own halves; default: the data's own
    validation images or, where there are none, one half"""
    augment: bool = True
    """crop and flip images that are large enough"""
    device: str = "auto"
    """device, such as cpu or cuda:1"""
    tables: str | None = None
    """folder of benchmark tables; default: IDARTS_TABLES. The search shows the true accuracy, but never uses it,
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
    return changed(Config(), method, changes)


def changed(settings: Changed, method: str, changes: Mapping[str, Any]) -> Changed:
    """Settings with those of a method, and with changes, by the rule of `idarts.engine.settings.resolve`.

    A part in another's place, which may be a user's object, comes without its options. Single options change those of
    the method; an empty dict removes them.

    >>> config("p-darts", selection={"rule": "trials"}).selection.options
    {}
    >>> config("p-darts", selection={"options": {"most": 3}}).selection.options
    {'fewest': 0, 'most': 3}
    """
    if "preset" in changes:
        raise InputError("unknown setting 'preset': presets are for the command line; give their settings one by one")
    emptied = tuple(f"{name}." for name in _empty(changes))
    own = {name: value for name, value in dotted(METHODS[method]).items() if not name.startswith(emptied)}
    return resolve(settings, [own, adopt_parts(type(settings), changes)], {})


def _empty(changes: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The dotted names of empty dicts."""
    for name, value in changes.items():
        if isinstance(value, Mapping):
            yield from _empty(value, f"{prefix}{name}.") if value else [f"{prefix}{name}"]


def resolved(sources: Sequence[Mapping[str, Any]]) -> RunConfig:
    """The settings of a run that some sources describe, by the rule of `idarts.engine.settings.resolve`.

    >>> resolved([{"preset": "cpu"}, {"space": "darts"}])
    Traceback (most recent call last):
    idarts.errors.InputError: preset cpu is made for nas-bench-201, nas-bench-1shot1-s1, nas-bench-1shot1-s2, \
nas-bench-1shot1-s3, not for darts; use darts-cpu or darts-paper, or no preset: without a preset all sizes follow \
from the space and the machine
    """
    settings = resolve(RunConfig(), sources, PRESETS, METHODS)
    for source in sources:
        if source.get("preset") is not None:
            PRESETS.require_fitting(source["preset"], settings.space)
    return settings
