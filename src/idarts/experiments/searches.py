"""Searches as jobs of an experiment: their settings come from the presets, one job for each seed."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from idarts.engine.settings import change, dotted, resolve
from idarts.errors import InputError
from idarts.experiments.experiment import Request
from idarts.experiments.jobs import SearchJob
from idarts.experiments.store import digest
from idarts.searching import METHODS, PRESETS, RunConfig

# Enough to see that everything fits together, and no more.
_TINY: dict[str, Any] = {
    "rounds": 2,
    "batch": 8,
    "channels": 5,
    "checkpoint_rounds": 1,
    "hypergradient": {"step": 0.01},  # γ from the curvature would take longest
    "controller": {"samples": 2},
    "selection": {"samples": 3, "batches": 1},
}

Layer = Mapping[str, Any]


def search_jobs(
    request: Request,
    space: str,
    label: str,
    changes: Layer | None = None,
    *,
    method: str = "idarts",
    base: Layer | None = None,
    like: str | None = None,
    whole: bool = False,
    facts: Layer | None = None,
) -> Iterator[SearchJob]:
    """One search for each seed; `like` names the label whose search of the same seed sets the gradient evaluations.

    They are those of its rounds; if `whole`, also those of its selection. `changes` override the settings of the
    method, `base` only those of the preset.

    >>> from pathlib import Path
    >>> [job.name for job in search_jobs(Request(Path("out")), "nas-bench-201", "idarts")]
    ['idarts-1', 'idarts-2', 'idarts-3']
    """
    named = {"space": space, "method": method}
    made_of = {
        "layers": [*_preset(request, space, base), METHODS[method], named, changes or {}],
        "like": like and f"{'cost' if whole else 'rounds'} of {like}",
    }
    for seed in request.seeds:
        yield SearchJob(
            f"{label}-{seed}",
            digest(made_of),
            stage=1 if like else 0,
            facts={**(facts or {}), "seed": seed},
            words=(label,),
            config=settings(request, space, method, seed, changes or {}, base),
            folder=f"runs/{label}-{seed}",
            like=like and f"runs/{like}-{seed}",
            whole=whole,
        )


def settings(
    request: Request, space: str, method: str, seed: int, changes: Layer, base: Layer | None = None
) -> RunConfig:
    """The settings of a search, at equal epochs: the more training batches a round takes, the fewer rounds.

    >>> from pathlib import Path
    >>> request = Request(Path("out"), preset="paper")
    >>> [settings(request, "nas-bench-201", method, 1, {}).rounds for method in ("idarts", "darts", "gdas")]
    [3900, 9750, 19500]
    """
    layers = {name: value for layer in _preset(request, space, base) for name, value in dotted(layer).items()}
    preset = change(RunConfig(), layers)
    source = {"preset": "chosen", "method": method, "space": space, "seed": seed, **changes}
    config = resolve(RunConfig(), [source], {"chosen": layers}, METHODS)
    rounds = round(preset.rounds * preset.batches_per_round / config.batches_per_round)
    return replace(config, rounds=max(1, rounds))


def _preset(request: Request, space: str, base: Layer | None) -> list[Layer]:
    """The layers of the requested preset, and the base; `paper` is the one that has the space's published settings."""
    more = [base] if base else []
    if request.preset != "paper":
        own = f"{space}-{request.preset}"
        return [PRESETS[own if own in PRESETS else request.preset], _TINY if request.preset == "smoke" else {}, *more]
    published = [preset for name, preset in PRESETS.items() if name.endswith("-paper") and preset.get("space") == space]
    if not published:
        raise InputError(f"no preset has published settings of {space}; use --preset cpu")
    return [published[0], {}, *more]
