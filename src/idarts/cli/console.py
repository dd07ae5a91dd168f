"""What reaches a terminal: the one place where names from files lose their power over it.

A class, a file or a cell can have any name, also one that clears the screen, writes another title, or turns the order
of letters round. Everything that the command line prints goes through `say` or a `console`.
"""

import json
import sys
import unicodedata
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def printable(text: str) -> str:
    r"""The text with every character that controls a terminal written as an escape; line ends and tabs stay.

    >>> printable("cat\x1b[2J \u202egod"), printable("two\nlines, é and 猫")
    ('cat\\x1b[2J \\u202egod', 'two\nlines, é and 猫')
    """
    if text.isprintable():
        return text
    return "".join(_escaped(one) for one in text)


def _escaped(one: str) -> str:
    if one in "\n\t" or unicodedata.category(one) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return one
    if one == "\x7f":
        return "\\u007f"  # json.dumps leaves it as it is
    return f"\\x{ord(one):02x}" if one < " " else json.dumps(one)[1:-1]  # JSON stays JSON


def say(text: object = "", file: IO[str] | None = None, end: str = "\n", flush: bool = False) -> None:
    """`print` for text that may hold names from files.

    >>> say("dog\\x07")
    dog\\x07
    """
    print(printable(str(text)), file=file or sys.stdout, end=end, flush=flush)


def console(**options: Any) -> "Console":
    """rich's console without markup, whose texts go through `printable`; `options` are those of rich."""
    from rich.console import Console  # noqa: PLC0415 (an extra, and slow to import)
    from rich.text import Text  # noqa: PLC0415 (an extra, and slow to import)

    class Safe(Console):
        def render_str(self, text: str, **settings: Any) -> Text:
            return super().render_str(printable(text), **settings)

        def render(self, renderable: Any, options: Any = None) -> Any:
            if isinstance(renderable, Text) and not renderable.plain.isprintable():
                renderable = renderable.copy()
                renderable.plain = printable(renderable.plain)
            return super().render(renderable, options)

    return Safe(**{"markup": False, "highlight": False, **options})
