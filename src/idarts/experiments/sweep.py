"""Sweeps: every combination of spaces, methods, a grid of settings and seeds in a file is one search."""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from idarts.engine.settings import Setting, change, dotted, resolve, settings_of
from idarts.errors import InputError, require_known
from idarts.experiments.comparison import compare
from idarts.experiments.experiment import Experiment, Request
from idarts.experiments.facts import facts
from idarts.experiments.jobs import SearchJob
from idarts.experiments.record import SWEEP
from idarts.experiments.runs import ELSEWHERE
from idarts.experiments.store import Row
from idarts.pages.comparison import sections
from idarts.pages.experiment import Section
from idarts.searching import METHODS, PRESETS, RunConfig, resolved
from idarts.spaces import space

EXAMPLE = """\
preset: smoke                        # named settings of `idarts search`; all others override them
methods: [idarts, darts]             # default: idarts
spaces: [nas-bench-201]              # default: the preset's
seeds: 3                             # 1, 2 and 3; or a list: [4, 7]
settings:                            # any of `idarts search`, for all jobs
  gradient_evaluations: 500
  rounds: 1000
grid:                                # every combination is searched
  alpha.rate: [0.003, 0.01]          # a setting's values,
  images: {small: {image: 8}, large: {image: 16, batch: 32}}  # or named sets of settings
"""
KEYS = ("preset", "methods", "spaces", "seeds", "settings", "grid", "out", "slurm")
_OWN_KEYS = {"method": "methods", "space": "spaces", "seed": "seeds"}  # settings that have their own key
MOST_JOBS = 10_000  # a few words too many in a file multiply
_MESSAGE_EVERY = 1000  # jobs between two messages about the planning, which takes about a millisecond for each
_DEEPEST = 7  # the file, `grid`, an axis, a named set, a group, a list
GROUPS = 12  # that a page compares with each other; tests of every pair take time

Layer = dict[str, Any]  # settings by their dotted names
Tell = Callable[[str], None]


class TooManyJobsError(InputError):
    """A plan has more jobs than were allowed."""


@dataclass(frozen=True)
class Plan:
    """The searches of a sweep by their names, the folder for them, and parameters for Slurm."""

    jobs: dict[str, SearchJob]
    out: Path | None = None
    slurm: dict[str, Any] | None = None

    @property
    def experiment(self) -> Experiment:
        """The sweep as an experiment, for `run_experiment`; every search has a row in `results.csv`.

        >>> import tempfile
        >>> from idarts.experiments import run_experiment
        >>> two = plan({"preset": "smoke", "methods": ["random-nas", "darts-first-order"], "settings": {"rounds": 1}})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = run_experiment(two.experiment, Request(Path(folder)), tell=lambda line: None)
        ...     len(Path(folder, "results.csv").read_text().splitlines())
        3
        """
        show = _show if find_spec("jinja2") and find_spec("scipy") else None  # a sweep can do without a page
        summary = f"{len(self.jobs)} searches are planned; the tables have all finished searches of this folder."
        jobs = self.jobs.values()
        return Experiment(SWEEP, summary, lambda _: jobs, show, fixed=(), kind=SWEEP, from_folders=True)


def _show(rows: list[Row], request: Request) -> list[Section]:
    if len(rows) < 2:
        return []
    comparison = compare([request.out])
    if len(comparison.groups) > GROUPS:
        many = (
            f"{len(comparison.groups)} groups are too many for tests of every pair; `idarts compare --by` makes fewer."
        )
        return [Section("Comparison", [many])]
    return sections(facts(comparison))


def read_plan(file: Path, most: int = MOST_JOBS, tell: Tell = lambda line: None) -> Plan:
    """The plan in a YAML file; one of more than `most` jobs is refused. `tell` receives a line now and then.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "sweep.yaml").write_text(EXAMPLE)
    ...     jobs = read_plan(Path(folder, "sweep.yaml")).jobs
    >>> len(jobs), min(jobs)
    (24, 'nas-bench-201-darts-alpha.rate=0.003-large-1')
    """
    from idarts.engine.settings_file import load  # noqa: PLC0415 (it needs an extra)

    data = load(file, _DEEPEST, "`idarts sweep --help` shows an example")
    try:
        return plan(data, most, tell)
    except TooManyJobsError as error:
        raise TooManyJobsError(f"{file}: {error}") from None
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def plan(data: Any, most: int = MOST_JOBS, tell: Tell = lambda line: None) -> Plan:
    """The plan that the content of a file describes.

    >>> plan({"preset": "smoke", "methods": ["idarts", "darts"], "grid": {"batch": [16]}}).jobs.keys()
    dict_keys(['nas-bench-201-idarts-batch=16-1', 'nas-bench-201-darts-batch=16-1'])
    """
    if not isinstance(data, Mapping):
        raise InputError("expected keys and values; `idarts sweep --help` shows an example")
    for key in data:
        require_known("key", key, KEYS)
    preset = {"preset": data.get("preset")}
    default = resolve(RunConfig(), [preset], PRESETS, METHODS)
    methods, spaces = _listed(data, "methods", ["idarts"]), _listed(data, "spaces", [default.space])
    for name in methods:
        require_known("method", name, METHODS)
    for name in spaces:
        space(name)
    common = _layer(_mapping(data, "settings"))
    grid = [_axis(name, values) for name, values in _mapping(data, "grid").items()]
    seeds = _seeds(data.get("seeds", 1))
    count = prod(map(len, (spaces, methods, seeds, *grid)))
    if count > most:
        raise TooManyJobsError(f"it plans {count:,} searches, more than {most:,}; allow them with --max-jobs {count}")
    jobs: dict[str, SearchJob] = {}
    # All of one seed, then the next: what a sweep that is stopped early has done can be compared in pairs.
    for seed, place, method, point in product(seeds, spaces, methods, product(*grid)):
        words = (place, method, *(label for label, _ in point))
        first = {**preset, "space": place, "method": method, "seed": seed}
        job = _job(words, [first, common, *(layer for _, layer in point)])
        if job.name in jobs:
            raise InputError(f"{job.name} is planned twice; name every method, space, seed and value once")
        jobs[job.name] = job
        if len(jobs) % _MESSAGE_EVERY == 0:
            tell(f"planned {len(jobs):,} of {count:,} searches")
    out = data.get("out")
    return Plan(jobs, Path(str(out)) if out is not None else None, _mapping(data, "slurm"))


def _job(words: tuple[str, ...], sources: Sequence[Layer]) -> SearchJob:
    """A job by its name's parts and its settings, the later above the earlier."""
    name = re.sub(r"[^\w.=+-]+", "_", "-".join([*words, str(sources[0]["seed"])]))  # good for all file systems
    try:
        config = resolved(sources)
    except InputError as error:
        raise InputError(f"{error} (job {name})") from None
    return SearchJob(name, settings_text(config), words=words, config=config, folder=name)


def settings_text(config: RunConfig) -> str:
    """The settings of a search that are neither defaults nor its method's own, as JSON.

    >>> settings_text(RunConfig(method="darts-first-order", batch=8, seed=3))
    '{"batch": 8, "hypergradient.method": "neumann", "inner_steps": 4}'
    >>> settings_text(RunConfig(relaxation="gumbel", relaxation_options={"first": 5.0}))
    '{"relaxation": "gumbel", "relaxation_options.first": 5.0}'
    """
    usual = dotted(asdict(change(RunConfig(), METHODS[config.method])))
    given = dotted(asdict(config))  # options of a part have names that are not among the defaults
    settings = {name: value for name, value in given.items() if name not in usual or usual[name] != value}
    left_out = (*_OWN_KEYS, *ELSEWHERE)
    return json.dumps({name: settings[name] for name in settings if name not in left_out}, sort_keys=True)


@cache
def _known() -> dict[str, Setting]:
    return {setting.name: setting for setting in settings_of(RunConfig)}


def _layer(settings: Mapping[str, Any]) -> Layer:
    """Settings of a file by their dotted names; YAML reads numbers such as 1e-3 as text."""
    layer = dotted(settings)
    for name, value in layer.items():
        if name in _OWN_KEYS:
            raise InputError(f"{name} is not set here; list it under {_OWN_KEYS[name]}")
        if not _is_option(name):
            require_known("setting", name, _known())
        if isinstance(value, str) and name in _known():
            layer[name] = _known()[name].read(value)
    return layer


def _is_option(name: str) -> bool:
    """Whether a dotted name belongs to a setting whose value is a mapping: `relaxation_options.share`."""
    parts = name.split(".")
    above = [_known().get(".".join(parts[:end])) for end in range(1, len(parts))]
    return any(setting is not None and isinstance(setting.default, dict) for setting in above)


def _axis(name: str, values: Any) -> list[tuple[str, Layer]]:
    if isinstance(values, list) and values:
        return [(f"{name}={value}", _layer({name: value})) for value in values]
    if isinstance(values, Mapping) and values and all(isinstance(part, Mapping) for part in values.values()):
        return [(str(label), _layer(part)) for label, part in values.items()]
    raise InputError(f"grid.{name} is {values!r}, expected a list of values, or named sets of settings")


def _mapping(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key) or {}
    if not isinstance(value, Mapping):
        raise InputError(f"{key} is {value!r}, expected names and values")
    return {str(name): part for name, part in value.items()}


def _listed(data: Mapping[str, Any], key: str, default: list[str]) -> list[str]:
    names = data.get(key, default)
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{key} is {names!r}, expected a list of names such as [{', '.join(default)}]")
    return names


def _seeds(seeds: Any) -> Sequence[int]:
    if type(seeds) is int and 0 < seeds <= sys.maxsize - 1:
        return range(1, seeds + 1)
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise InputError(f"seeds is {seeds!r}, expected a number of seeds such as 3, or a list such as [1, 2, 3]")
    return seeds
