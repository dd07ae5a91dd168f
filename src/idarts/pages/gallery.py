"""All published cells on one page that opens offline: drawings, and where each cell comes from."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idarts.arch.registry import Entry, entry, names
from idarts.engine.folder import CONFIG
from idarts.errors import InputError
from idarts.files import make_parents, write_whole
from idarts.pages.cell import draw
from idarts.pages.template import render


@dataclass(frozen=True)
class Card:
    """A published cell on the page; numbers that were not published are empty."""

    name: str
    space: str
    drawing: str
    year: str
    error: str
    parameters: str
    facts: list[str]


def page() -> str:
    """The gallery as one HTML text.

    >>> "<h2>iDARTS <span>darts</span></h2>" in page()
    True
    """
    cards = [_card(name, entry(name)) for name in names()]
    return render("gallery.html.j2", cells=cards, spaces=sorted({card.space for card in cards}))


def write_gallery(folder: Path) -> Path:
    """Write `index.html` into a folder, which is made if it does not exist.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_gallery(Path(folder, "cells")).name
    'index.html'
    """
    if (folder / CONFIG).exists():
        raise InputError(f"{folder} holds a run or a model; name another folder with -o")
    content, target = page(), folder / "index.html"
    write_whole(make_parents(target), content)
    return target


def _card(name: str, cell: Entry) -> Card:
    origin, published = cell.provenance, cell.provenance.get("published", {})
    year = re.search(r" (\d{4})(?:,|$)", origin["paper"])
    error, accuracy = (published.get(f"cifar10_test_{one}_percent") for one in ("error", "accuracy"))
    if error is None and accuracy is not None:
        error = round(100 - accuracy, 2)
    return Card(
        name,
        cell.architecture.space,
        draw(cell.architecture, f"The cell {name} as a graph"),
        year[1] if year else "",
        "" if error is None else str(error),
        str(published.get("params_millions", "")),
        list(_facts(origin)),
    )


def _facts(origin: Mapping[str, Any]) -> Iterator[str]:
    yield origin["paper"]
    published = origin.get("published", {})
    if published:
        yield "; ".join(_published(name.replace("_", " "), value) for name, value in published.items())
    yield f"Source: {origin['source']}."
    if "note" in origin:
        yield origin["note"]


def _published(name: str, value: float) -> str:
    """A published number with its unit, which ends its name.

    >>> _published("cifar10 test error percent", 2.5), _published("params millions", 3.3)
    ('cifar10 test error 2.5 %', '3.3 million params')
    """
    if name.endswith(" percent"):
        return f"{name.removesuffix(' percent')} {value} %"
    return f"{value} million {name.removesuffix(' millions')}" if name.endswith(" millions") else f"{name} {value}"
