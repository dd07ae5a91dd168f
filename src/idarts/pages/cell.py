"""An architecture inside a page: its cells or blocks as a graph, and its text."""

import re
from dataclasses import dataclass, field
from html import escape

from idarts.arch import Architecture, as_text, parse, space_of
from idarts.arch.drawing import render
from idarts.errors import InputError

# Attributes that a page has no use for: ids would not be unique, and colours and fonts are the style's.
_NOT_HERE = "id|xmlns|xmlns:xlink|xml:space|fill|stroke|stroke-width|font-family"


@dataclass(frozen=True)
class Shown:
    """What a page shows of an architecture; each part is there only if it can be."""

    text: str | None = None
    svg: str | None = None
    problem: str | None = None  # why it could not be drawn
    choices: dict[str, str] = field(default_factory=dict)


def shown(architecture: Architecture | str | None) -> Shown:
    """The parts of a page about an architecture; text that no space can read stays as it is.

    >>> from idarts.arch import parse
    >>> shown(parse("nas-bench-201:0")).text[:16], shown("a|b"), shown(None).text
    ('|avg_pool_3x3~0|', Shown(text='a|b', svg=None, problem=None, choices={}), None)
    """
    if not isinstance(architecture, Architecture):
        return Shown(architecture)
    text, drawn = as_text(architecture), can_be_drawn(architecture)
    choices = {} if drawn and not architecture.cells else dict(architecture.choices)  # such a drawing shows them
    if not drawn:
        return Shown(text, choices=choices)
    try:
        return Shown(text, draw(architecture), choices=choices)
    except InputError as error:
        return Shown(text, problem=str(error), choices=choices)


def small(text: str, drawn: bool = True) -> Shown:
    """An architecture in a list, which its text names; without a drawing if that cannot be made, or is not wanted.

    >>> small("a|b")
    Shown(text='a|b', svg=None, problem=None, choices={})
    """
    try:
        architecture = parse(text) if drawn else None
        return Shown(text, draw(architecture, text) if architecture and can_be_drawn(architecture) else None)
    except InputError:
        return Shown(text)


def can_be_drawn(architecture: Architecture) -> bool:
    """Whether there are cells, or choices that the space draws like cells.

    >>> can_be_drawn(parse("nas-bench-201:0")), can_be_drawn(parse("mobile:k3e3+k3e3+k3e3+k3e3+k3e3"))
    (True, True)
    """
    return bool(space_of(architecture).style.cells(architecture))


def draw(architecture: Architecture, label: str = "The architecture as a graph") -> str:
    """The architecture as SVG for a page, whose style has colours for day and night; it is read out as one label."""
    svg = render(architecture, "svg").decode()
    bare = re.sub(f' (?:{_NOT_HERE})="[^"]*"|<title>[^<]*</title>\\n?|<!--.*?-->\\n?', "", svg, flags=re.DOTALL)
    short = re.sub(r"(\.\d)\d+", r"\1", bare[bare.index("<svg") :])
    return short.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
