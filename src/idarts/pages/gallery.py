"""All published cells on one page that needs no network: drawings inline, and where each cell comes from."""

import re
from html import escape
from pathlib import Path

from idarts.arch.drawing import render
from idarts.arch.registry import Entry, entry, names
from idarts.arch.style import FAMILIES
from idarts.errors import InputError
from idarts.files import write_whole

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff }
body { max-width: 1200px; margin: 2rem auto; padding: 0 1rem }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(360px, 1fr)); gap: 1.5rem; align-items: start }
article { border: 1px solid #ddd; border-radius: 6px; padding: 1rem }
h2 { font-size: 1.05rem; margin: 0 0 .6rem }
svg { width: 100%; height: auto }
p { margin: .6rem 0 0; font-size: .85rem; color: #444 }
.key { margin-bottom: 1rem }
.key span { padding: .1rem .5rem; margin-right: .4rem; border: 1px solid }
"""


def page() -> str:
    """The gallery as one HTML text.

    >>> "<h2>iDARTS</h2>" in page()
    True
    """
    key = "".join(
        f'<span style="background:{fill};color:{text};border-color:{border}">{name}</span>'
        for name, (fill, text, border) in FAMILIES.items()
    )
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Published cells</title>',
            f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>',
            f'<h1>Published cells</h1><p class="key">{key}</p><main>',
            *(_article(entry(name)) for name in names()),
            "</main></body></html>",
            "",
        ]
    )


def write_gallery(folder: Path) -> Path:
    """Write `index.html` into a folder, which is made if it does not exist.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_gallery(Path(folder, "cells")).name
    'index.html'
    """
    content = page().encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from None
    write_whole(folder / "index.html", content)
    return folder / "index.html"


def _article(cell: Entry) -> str:
    facts = [cell.provenance["paper"], f"Source: {cell.provenance['source']}.", cell.provenance.get("note", "")]
    published = cell.provenance.get("published", {})
    facts.append("; ".join(f"{name.replace('_', ' ')} {value}" for name, value in published.items()))
    paragraphs = "".join(f"<p>{escape(fact)}</p>" for fact in facts if fact)
    drawing = _inline(render(cell.architecture, "svg").decode())
    return f"<article><h2>{escape(cell.name)}</h2>{drawing}{paragraphs}</article>"


def _inline(svg: str) -> str:
    """Only the drawing: no XML header, and none of Graphviz' ids, which would be the same in every drawing."""
    return re.sub(r' id="[^"]*"|<title>[^<]*</title>\n?', "", svg[svg.index("<svg") :])
