"""All pages come from here: one environment, which escapes every value, one style, one script and one policy.

A page is a template and data. The data of a chart stand in an attribute of its figure, where they are escaped like any
other value; the script is the same on every page, and the policy names its hash: nothing else can run.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from idarts.arch.style import FAMILIES
from idarts.errors import InputError

if TYPE_CHECKING:
    from jinja2 import Environment


SCRIPTS = ("scale.js", "chart.js", "figure.js", "heat.js", "gallery.js")
LIVE = "live.js"  # added to those on pages that `idarts watch` serves
_POLICY = "default-src 'none'; script-src '{}'; style-src 'unsafe-inline'; img-src data:"


def render(template: str, /, **values: Any) -> str:
    """Fill in a template.

    >>> "<h1>a &lt; b" in render("experiment.html.j2", name="a < b", summary="", facts="", sections=[], warning="")
    True
    """
    return _environment().get_template(template).render(**{"live": None, **values})


def part(name: str, /, *values: Any) -> str:
    """One part of a page alone, by the name of its macro.

    >>> part("note_list", ["a < b"]).count("<li>a &lt; b</li>")
    1
    """
    macros: Any = _environment().get_template("parts.html.j2").module
    return str(getattr(macros, name)(*values)).strip()


def number_columns(rows: Sequence[Sequence[str]]) -> set[int]:
    """The columns of a table that hold numbers only, which are aligned at the right; the first one names the rows.

    >>> number_columns([["1", "93.5±0.1", "K", "+2 %"], ["2", "–", "3", ""]])
    {1, 3}
    """
    columns = enumerate(zip_longest(*rows, fillvalue=""))
    return {place for place, cells in columns if place and all(cell[:1] in "0123456789+-−–" for cell in cells)}


@cache
def script(live: bool = False) -> str:
    """The script of all pages, or of all live ones: the files in order, in one scope.

    >>> "class Figure" in script(), "</script" in script()
    (True, False)
    """
    folder = files("idarts.pages").joinpath("templates")
    code = "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in (*SCRIPTS, *([LIVE] if live else [])))
    return f'"use strict";\n{{\n{code}}}\n'


def policy(live: bool = False) -> str:
    """The content policy of all pages: no script but ours, and no network; a live page may ask its own server.

    >>> policy().split("; ")[0], policy(live=True).split("; ")[-1]
    ("default-src 'none'", "connect-src 'self'")
    """
    digest = base64.b64encode(hashlib.sha256(script(live).encode()).digest()).decode()
    return _POLICY.format(f"sha256-{digest}") + ("; connect-src 'self'" if live else "")


def require_jinja() -> None:
    """Raise an InputError if pages cannot be written: call it before work that ends in a page."""
    _environment()


@cache
def _environment() -> "Environment":
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 (an extra)
    except ImportError:
        raise InputError("pages need jinja2: pip install 'idarts[report]'") from None
    loader = PackageLoader("idarts.pages", "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["number_columns"] = number_columns
    made.globals |= {"script": script, "policy": policy, "families": FAMILIES}
    return made
