"""Paths in settings, made whole: a run folder then finds its data from any directory."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from idarts.data import whole_source
from idarts.engine.folder import is_run, read_config

Record = TypeVar("Record")


def with_whole_paths(settings: Record, out: Path, resume: bool = False) -> tuple[Record, dict[str, str]]:
    """Settings whose data have absolute paths, and what was typed instead. A resumed run keeps what its folder has.

    >>> from idarts.searching import RunConfig
    >>> settings, typed = with_whole_paths(RunConfig(data="folder:pets"), Path("run"))
    >>> settings.data == f"folder:{Path.cwd() / 'pets'}", typed
    (True, {'data': 'folder:pets'})
    """
    record: Any = settings
    before = read_config(out) if resume and is_run(out) else {}
    whole = {"data": whole_source(record.data), "data_root": record.data_root and os.path.abspath(record.data_root)}
    tables = getattr(record, "tables", None)
    if tables is not None and Path(tables).exists():  # else a user's own, package.module:name
        whole["tables"] = os.path.abspath(tables)
    changes = {name: value for name, value in whole.items() if getattr(record, name) not in (value, before.get(name))}
    return replace(record, **changes), {name: getattr(record, name) for name in changes}
