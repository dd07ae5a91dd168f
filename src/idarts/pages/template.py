"""All pages come from here: one environment, which escapes every value, and one style."""

from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from idarts.errors import InputError

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, /, **values: Any) -> str:
    """Fill in a template.

    >>> "<h1>a &lt; b" in render("experiment.html.j2", name="a < b", summary="", facts="", sections=[])
    True
    """
    return _environment().get_template(template).render(**values)


def number_columns(rows: Sequence[Sequence[str]]) -> set[int]:
    """The columns of a table that hold numbers only, which are aligned at the right; the first one names the rows.

    >>> number_columns([["1", "93.5±0.1", "K", "+2 %"], ["2", "–", "3", ""]])
    {1, 3}
    """
    columns = enumerate(zip_longest(*rows, fillvalue=""))
    return {place for place, cells in columns if place and all(cell[:1] in "0123456789+-−–" for cell in cells)}


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
    return made
