"""A sweep's file: methods × spaces × a grid of settings × seeds, as the settings of one search each."""

import re
from argparse import ArgumentError
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from idarts.engine.settings import dotted
from idarts.errors import InputError, require_known
from idarts.searching.presets import PRESETS
from idarts.searching.run import RunConfig
from idarts.searching.settings import METHODS
from idarts.spaces import space

EXAMPLE = """\
preset: smoke                        # named settings of `idarts search`, below all others
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
_APART = {"method": "methods", "space": "spaces", "seed": "seeds"}  # settings that have a key of their own

Layer = dict[str, Any]  # settings by their dotted names
Axis = list[tuple[str, Layer]]


@dataclass(frozen=True)
class Plan:
    """The searches of a sweep by their names, where they go, what Slurm is to be told; and what names are made of."""

    jobs: dict[str, RunConfig]
    out: Path | None = None
    slurm: dict[str, Any] | None = None
    parts: dict[str, list[str]] = field(default_factory=dict)  # of a job's name: space, method, the grid's; no seed


def read_plan(file: Path) -> Plan:
    """The plan in a YAML file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "sweep.yaml").write_text(EXAMPLE)
    ...     jobs = read_plan(Path(folder, "sweep.yaml")).jobs
    >>> len(jobs), min(jobs)
    (24, 'nas-bench-201-darts-alpha.rate=0.003-large-1')
    """
    import yaml  # type: ignore[import-untyped] # noqa: PLC0415 (jsonargparse brings it)

    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the sweep {file} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"{file} is not YAML ({said}); `idarts sweep --help` shows an example") from None
    try:
        return plan(found)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def plan(data: Any) -> Plan:
    """The plan that a file's content describes.

    >>> plan({"preset": "smoke", "methods": ["idarts", "darts"], "grid": {"batch": [16]}}).jobs.keys()
    dict_keys(['nas-bench-201-idarts-batch=16-1', 'nas-bench-201-darts-batch=16-1'])
    """
    if not isinstance(data, Mapping):
        raise InputError("expected keys and values; `idarts sweep --help` shows an example")
    _require_known(data, KEYS, "key")
    preset = data.get("preset")
    if preset is not None:
        _require_known([preset], PRESETS, "preset")
    below = dotted(PRESETS[preset]) if preset else {}
    methods = _listed(data, "methods", ["idarts"])
    spaces = _listed(data, "spaces", [below.get("space", RunConfig.space)])
    _require_known(methods, METHODS, "method")
    for name in spaces:
        space(name)
    common = dotted(_mapping(data, "settings"))
    grid = [_axis(name, values) for name, values in _mapping(data, "grid").items()]
    _require_settings([common, *(layer for axis in grid for _, layer in axis)])
    jobs: dict[str, RunConfig] = {}
    parts: dict[str, list[str]] = {}
    for place, method, point, seed in product(spaces, methods, product(*grid), _seeds(data.get("seeds", 1))):
        words = [place, method, *(label for label, _ in point)]
        name = _name(*words, seed)
        if name in jobs:
            raise InputError(f"{name} is there twice; name every method, space, seed and value once")
        parts[name] = words
        # A method's own words stand above a preset's, or the preset would turn one method into another.
        layers = [below, dotted(METHODS[method]), common, *(layer for _, layer in point)]
        jobs[name] = _settings(name, [*layers, {"space": place, "method": method, "seed": seed}])
    out = data.get("out")
    return Plan(jobs, Path(str(out)) if out is not None else None, _mapping(data, "slurm"), parts)


def _require_known(names: Iterable[Any], known: Iterable[str], what: str) -> None:
    known = list(known)
    for name in names:
        require_known(what, name, known)


def _require_settings(layers: Iterable[Layer]) -> None:
    known = list(dotted(asdict(RunConfig())))
    for layer in layers:
        for name in layer:
            if name in _APART:
                raise InputError(f"{name} is not set here; list it under {_APART[name]}")
        _require_known(layer, known, "setting")


def _mapping(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key) or {}
    if not isinstance(found, Mapping):
        raise InputError(f"{key} is {found!r}, expected names and values")
    return {str(name): value for name, value in found.items()}


def _listed(data: Mapping[str, Any], key: str, default: list[str]) -> list[str]:
    found = data.get(key, default)
    if not isinstance(found, list) or not found or not all(isinstance(name, str) for name in found):
        raise InputError(f"{key} is {found!r}, expected a list of names such as [{', '.join(default)}]")
    return found


def _seeds(found: Any) -> list[int]:
    if type(found) is int and found > 0:
        return list(range(1, found + 1))
    if not isinstance(found, list) or not found or not all(type(seed) is int and seed >= 0 for seed in found):
        raise InputError(f"seeds is {found!r}, expected a number of seeds such as 3, or a list such as [1, 2, 3]")
    return found


def _axis(name: str, values: Any) -> Axis:
    if isinstance(values, list) and values:
        return [(f"{name}={value}", {name: value}) for value in values]
    if isinstance(values, Mapping) and values and all(isinstance(part, Mapping) for part in values.values()):
        return [(str(label), dotted(part)) for label, part in values.items()]
    raise InputError(f"grid.{name} is {values!r}, expected a list of values, or named sets of settings")


def _name(*parts: object) -> str:
    """A folder's name: what no file system likes becomes an underscore."""
    return re.sub(r"[^\w.=+-]+", "_", "-".join(map(str, parts)))


@cache
def _parser() -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(RunConfig, "run")
    return parser


def _settings(name: str, layers: Iterable[Layer]) -> RunConfig:
    """The layers as one record, the later above the earlier, every value of its type."""
    parser = _parser()
    try:
        parsed = parser.parse_object({"run": {key: value for layer in layers for key, value in layer.items()}})
        found: RunConfig = parser.instantiate(parsed).run
    except ArgumentError as error:
        said = " ".join(str(error).split()).replace('Parser key "run.', 'setting "')
        raise InputError(f"{said} (job {name})") from None
    return found
