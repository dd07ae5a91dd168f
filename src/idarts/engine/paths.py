"""Absolute paths in settings: a run folder then finds its data from any directory."""

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from idarts.data import absolute
from idarts.engine.folder import is_run, read_config

Record = TypeVar("Record")


def with_absolute_paths(settings: Record, out: Path, resume: bool = False) -> tuple[Record, dict[str, str]]:
    """Settings whose data have absolute paths, and what was typed instead. A resumed run keeps what its folder has.

    >>> from idarts.searching import RunConfig
    >>> settings, typed = with_absolute_paths(RunConfig(data="folder:pets"), Path("run"))
    >>> settings.data == f"folder:{Path.cwd() / 'pets'}", typed
    (True, {'data': 'folder:pets'})
    """
    record: Any = settings
    before = read_config(out) if resume and is_run(out) else {}
    root = record.data_root
    placed = {"data": absolute(record.data), "data_root": root and str(Path(root).expanduser().absolute())}
    tables = getattr(record, "tables", None)
    if tables is not None and Path(tables).exists():  # else a user's own, package.module:name
        placed["tables"] = str(Path(tables).absolute())
    changes = {name: value for name, value in placed.items() if getattr(record, name) not in (value, before.get(name))}
    return replace(record, **changes), {name: getattr(record, name) for name in changes}
