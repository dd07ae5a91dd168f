"""An architecture inside a page: its cell as a graph, and its text."""

import re
from dataclasses import dataclass, field

from idarts.arch import Architecture, as_text
from idarts.arch.drawing import render
from idarts.errors import InputError


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
    text, choices = as_text(architecture), dict(architecture.choices)
    if not architecture.cells:
        return Shown(text, choices=choices)
    try:
        return Shown(text, draw(architecture), choices=choices)
    except InputError as error:
        return Shown(text, problem=str(error), choices=choices)


def draw(architecture: Architecture) -> str:
    """The cell as SVG for a page: without XML's header, namespaces and ids, and read out as one label."""
    svg = render(architecture, "svg").decode()
    bare = re.sub(r' (?:id|xmlns(?::xlink)?)="[^"]*"|<title>[^<]*</title>\n?|<!--.*?-->\n?', "", svg, flags=re.DOTALL)
    return bare[bare.index("<svg") :].replace("<svg", '<svg role="img" aria-label="The cell as a graph"', 1)
