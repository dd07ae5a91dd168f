"""Published cells by name, each with where it comes from and what was published about it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from idarts.arch.json_form import from_data
from idarts.arch.record import Architecture
from idarts.errors import InputError


@dataclass(frozen=True)
class Entry:
    """A published cell. `provenance` has `paper`, `source`, and where known `published` values and a `note`."""

    name: str
    architecture: Architecture
    provenance: Mapping[str, Any]


def names() -> list[str]:
    """Names of all published cells, in the order of the registry.

    >>> "DARTS_V2" in names()
    True
    """
    return list(_entries())


def entry(name: str) -> Entry:
    """The published cell of that name, in capitals or not; the error for an unknown name suggests others.

    >>> entry("darts_v2").name
    'DARTS_V2'
    >>> entry("DARTS_V3")
    Traceback (most recent call last):
    idarts.errors.InputError: no published cell is called 'DARTS_V3'; did you mean DARTS_V2, DARTS_V1, SDARTS_ADV?
    """
    published = find(name)
    if published is None:
        raise InputError(f"no published cell is called {name!r}; {suggestion(name)}")
    return published


def find(name: str) -> Entry | None:
    """The published cell of that name, or None.

    >>> find("no such cell") is None
    True
    """
    return _entries().get(_by_lower_case().get(name.lower(), ""))


def entry_of(architecture: Architecture) -> Entry | None:
    """The published cell that is this architecture, or None.

    >>> entry_of(entry("iDARTS").architecture).name
    'iDARTS'
    """
    return _by_architecture().get(architecture)


def suggestion(name: str) -> str:
    """The end of an error message about an unknown name.

    >>> suggestion("snas")
    'did you mean XNAS, ENAS, EN2AS?'
    """
    lower = _by_lower_case()
    close = get_close_matches(name.lower()[:100], lower, n=3, cutoff=0.5)
    return f"did you mean {', '.join(lower[match] for match in close)}?" if close else "`idarts arch list` names all"


@cache
def _entries() -> dict[str, Entry]:
    text = files("idarts.arch").joinpath("data/registry.json").read_text(encoding="utf-8")
    return {
        name: Entry(name, from_data({"schema": 1, **cell["architecture"]}), cell["provenance"])
        for name, cell in json.loads(text).items()
    }


@cache
def _by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in _entries()}


@cache
def _by_architecture() -> dict[Architecture, Entry]:
    return {cell.architecture: cell for cell in _entries().values()}
