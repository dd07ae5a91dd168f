"""Named settings, as data: a method says what is searched how, a preset how large; both are layers of the same kind.

A method or preset is one TOML file: `summary` and `paper` for people, `settings` as `idarts search` takes them.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

from idarts.errors import require_known


@dataclass(frozen=True)
class Entry:
    """One file: what it is, where it comes from, and the settings that it stands for."""

    name: str
    summary: str
    paper: str | None
    settings: dict[str, Any]


class Catalogue(Mapping[str, dict[str, Any]]):
    """The settings of every file in a folder of this package, by name; `entries` has the rest of each file.

    >>> METHODS["darts-first-order"]["hypergradient"]
    {'method': 'first-order'}
    >>> METHODS["dart"]
    Traceback (most recent call last):
    idarts.errors.InputError: unknown method 'dart'; did you mean darts?
    """

    def __init__(self, kind: str, folder: str) -> None:
        self.kind, self.folder = kind, folder

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """All files, in the order of their names."""
        folder = files("idarts.searching").joinpath(self.folder)
        paths = sorted(path.name for path in folder.iterdir() if path.name.endswith(".toml"))
        return {path.removesuffix(".toml"): _read(path, folder.joinpath(path).read_text("utf-8")) for path in paths}

    def __getitem__(self, name: str) -> dict[str, Any]:
        require_known(self.kind, name, self.entries)
        return self.entries[name].settings

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def _read(path: str, text: str) -> Entry:
    data = tomllib.loads(text)
    return Entry(path.removesuffix(".toml"), data["summary"], data.get("paper"), data.get("settings", {}))


METHODS = Catalogue("method", "methods")
PRESETS = Catalogue("preset", "presets")
