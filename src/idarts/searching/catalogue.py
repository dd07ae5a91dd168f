"""Named settings, as data: a method says what is searched how, a preset how large; both are layers of the same kind.

A method or preset is one TOML file: `summary` and `paper` for people, `settings` as `idarts search` takes them, and
`spaces`, the only ones that it is made for: one cell trains all of α in one space, and half of it in another. A method
also has `cost`, the gradient evaluations of a round, and `needs`, what a space must have.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

from idarts.errors import InputError, require_known


@dataclass(frozen=True)
class Entry:
    """One file: what it is, where it comes from, and its settings."""

    name: str
    summary: str
    paper: str | None
    settings: dict[str, Any]
    spaces: tuple[str, ...] = ()  # that it is made for; any, if empty
    cost: float | None = None  # of a round, in gradient evaluations, with the method's own settings
    needs: tuple[str, ...] = ()  # of a space, where not every one will do


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

    def require_fitting(self, name: str, space: str) -> None:
        """Refuse an entry that is made for other spaces.

        >>> PRESETS.require_fitting("nas-bench-201-paper", "nas-bench-201")
        >>> PRESETS.require_fitting("cpu", "mine")
        Traceback (most recent call last):
        idarts.errors.InputError: preset cpu is made for nas-bench-201, nas-bench-1shot1-s1, nas-bench-1shot1-s2, \
nas-bench-1shot1-s3, not for mine; remove it: without a preset all sizes follow from the space and the machine
        """
        require_known(self.kind, name, self.entries)
        spaces = self.entries[name].spaces
        if spaces and space not in spaces:
            others = [other for other, entry in self.entries.items() if space in entry.spaces]
            hint = f"use {' or '.join(others)}, or no {self.kind}" if others else "remove it"
            raise InputError(
                f"{self.kind} {name} is made for {', '.join(spaces)}, not for {space}; "
                f"{hint}: without a {self.kind} all sizes follow from the space and the machine"
            )

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
    name, spaces = path.removesuffix(".toml"), tuple(data.get("spaces", ()))
    settings, needs = data.get("settings", {}), tuple(data.get("needs", ()))
    return Entry(name, data["summary"], data.get("paper"), settings, spaces, data.get("cost"), needs)


METHODS = Catalogue("method", "methods")
PRESETS = Catalogue("preset", "presets")
