"""`idarts.search`: the search from Python, in a space or in any module with Choices."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idarts.arch import space_of
from idarts.engine.run import Options
from idarts.engine.settings import change
from idarts.errors import InputError
from idarts.searching.loop import Search
from idarts.searching.prepare import given_parts, prepare
from idarts.searching.round import Round
from idarts.searching.run import SearchResult, run_search
from idarts.searching.settings import RunConfig, changed
from idarts.searching.task import Task
from idarts.spaces import SPACES, Space, Supernet
from idarts.tables import find

_DATA = ("data", "data_root", "image")  # settings that describe data by name
_SIZES = ("device", "depth", "channels")  # settings that describe a supernet to be built


def search(
    space: "str | Space | nn.Module",
    train: Any,
    valid: Any = None,
    method: str = "idarts",
    *,
    loss: Callable[[Any, Any], Tensor] = cross_entropy,
    out: "str | Path | None" = None,
    resume: bool = False,
    overwrite: bool = False,
    accept_changed_data: bool = False,
    on_round: Callable[[Round, Search], None] | None = None,
    on_message: Callable[[str], None] | None = None,
    table: Any = None,
    watch: Callable[[Round, Search], None] | None = None,
    **settings: Any,
) -> SearchResult:
    """Search a space, or a module with `Choice` in it, and leave a run folder.

    Args:
        space: a space by name, a `Space`, or a module with `Choice` in it.
        train: `(x, y)` tensors, a part of `idarts.data`, a torch `Dataset` or `DataLoader`, or a stream of
            batches.
        valid: the same for α, or the share of `train` to use for α (0.5 unless given).
        method: named settings, such as idarts, darts or gdas; `idarts methods` lists them.
        loss: a function of outputs and targets; any task will do.
        out: the run folder; runs/SPACE-METHOD-SEED unless given.
        resume: continue the run in the folder.
        overwrite: replace the run in the folder.
        accept_changed_data: resume although the data is not the same as when the run was started.
        on_round: called after every round with the round and the search.
        on_message: receives status messages outside rounds, e.g. during warm-up and selection.
        table: an object whose `query(architecture)` gives true accuracies, to be shown; no step reads them.
        watch: deprecated name of `on_round`.
        settings: all settings of `idarts search`, groups as dicts: `rounds=50, alpha={"rate": 0.01}`. A part is a name
            or your own object: `relaxation=my_function`, `hypergradient={"method": MyEstimator}`. Images are cropped
            and flipped only with `augment=True`.

    >>> import tempfile, torch
    >>> from idarts import Choice
    >>> x = torch.randn(64, 4)
    >>> model = Choice({"line": nn.Linear(4, 1), "nothing": nn.Linear(4, 1, bias=False)}, name="layer")
    >>> data, mse = (x, x.sum(1, keepdim=True) + 1), nn.functional.mse_loss
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = search(model, data, loss=mse, batch=16, rounds=2, out=folder)
    >>> sorted(result.architecture.choices)
    ['layer']
    """
    if watch is not None:
        warnings.warn("search(watch=…) is deprecated; use on_round=", DeprecationWarning, stacklevel=2)
        on_round = on_round or watch
    _require_used(settings, isinstance(space, nn.Module))
    if isinstance(valid, int | float | str):
        settings, valid = {**settings, "valid": valid}, None
    base = RunConfig(space=_name(space), data="python", augment=False)
    config = change(changed(base, method, settings), {"method": method})
    folder = Path(out) if out is not None else Path("runs", f"{config.space}-{method}-{config.seed}")
    shown = find(config.space, table if table is not None else config.tables)

    def start(recorded: Mapping[str, Any]) -> tuple[Task, dict[str, Any]]:
        parts = given_parts(space, train, valid, config)
        return prepare(space, parts, config, loss, shown, recorded), parts.description

    options = Options(resume=resume, overwrite=overwrite, accept_changed_data=accept_changed_data)
    options |= Options(on_round=on_round, on_message=on_message)
    return run_search(start, config, folder, **options)


def _name(space: "str | Space | nn.Module") -> str:
    if isinstance(space, str):
        return space
    if isinstance(space, Space):
        return SPACES.own(space, space.name)
    return space_of(space.architecture()).name if isinstance(space, Supernet) else "choice"


def _require_used(settings: dict[str, Any], module: bool) -> None:
    """Refuse settings that would have no effect: your own data and models have their size and place."""
    for name in (*_DATA, *_SIZES) if module else _DATA:
        if name in settings:
            what = "model" if module else "data"
            raise InputError(f"`{name}` has no effect when you pass your own {what}; remove it")
