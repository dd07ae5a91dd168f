"""All published cells on one page that opens offline: drawings, and where each cell comes from."""

from pathlib import Path

from idarts.arch.registry import Entry, entry, names
from idarts.arch.style import FAMILIES
from idarts.errors import InputError
from idarts.files import write_whole
from idarts.pages.cell import draw
from idarts.pages.template import render


def page() -> str:
    """The gallery as one HTML text.

    >>> "<h2>iDARTS</h2>" in page()
    True
    """
    cells = [(name, draw(entry(name).architecture), _facts(entry(name))) for name in names()]
    return render("gallery.html.j2", families=FAMILIES, cells=cells)


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


def _facts(cell: Entry) -> list[str]:
    published = cell.provenance.get("published", {})
    facts = [cell.provenance["paper"], f"Source: {cell.provenance['source']}.", cell.provenance.get("note", "")]
    facts.append("; ".join(f"{name.replace('_', ' ')} {value}" for name, value in published.items()))
    return [fact for fact in facts if fact]
