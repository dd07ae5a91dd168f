"""What an experiment leaves for people: `results.md`, charts as `.svg`, and one `index.html` that opens offline."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from idarts.files import write_whole
from idarts.pages.chart import Chart, Dots
from idarts.pages.template import render

PAGE, TEXT = "index.html", "results.md"


@dataclass(frozen=True)
class Section:
    """A heading, an introduction, a table, charts, and notes on how to read them."""

    title: str
    text: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()  # the first cell names the row; one that starts with spaces is a quiet row
    charts: Sequence[Chart | Dots] = ()
    notes: Sequence[str] = ()


def column(rows: Sequence[Mapping[str, object]], name: str) -> list[float]:
    """The numbers of a column; rows without one are left out.

    >>> column([{"test": 1.5}, {"test": ""}], "test")
    [1.5]
    """
    return [float(value) for row in rows if isinstance(value := row[name], int | float)]


def write_page(out: Path, name: str, summary: str, facts: str, sections: Sequence[Section], warning: str = "") -> Path:
    """Write the page, its text and its charts, and return the page. A warning stands above everything else.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_page(Path(folder), "table-1", "A table.", "now", [Section("Accuracy", rows=[["a", "1"]])])
    ...     print(page.name, sorted(path.name for path in Path(folder).iterdir()))
    index.html ['index.html', 'results.md']
    """
    html = render("experiment.html.j2", name=name, summary=summary, facts=facts, sections=sections, warning=warning)
    for section in sections:
        for chart in section.charts:
            write_whole(out / f"{chart.name}.svg", chart.file())
    write_whole(out / TEXT, "".join(_markdown(name, summary, facts, sections, warning)))
    write_whole(out / PAGE, html)
    return out / PAGE


def _markdown(name: str, summary: str, facts: str, sections: Sequence[Section], warning: str) -> Iterator[str]:
    yield f"# {name}\n\n{summary} ({facts})\n"
    yield f"\n**{warning}**\n" if warning else ""
    for section in sections:
        yield f"\n## {section.title}\n"
        yield from (f"\n{paragraph}\n" for paragraph in section.text)
        if section.rows:
            yield f"\n{_line(section.header)}{_line(['---'] * len(section.rows[0]))}"
            yield from (_line(row) for row in section.rows)
        for chart in section.charts:
            yield f"\n![{chart.title}]({chart.name}.svg)\n"
            yield f"\n{chart.reading}\n" if chart.reading else ""
        yield from (f"\n{note}\n" for note in section.notes)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_as_text, cells))} |\n"


def _as_text(cell: str) -> str:
    """A cell of one line, in which no name can start a link, a tag or another cell."""
    return re.sub(r"([\\`*\[\]<>|])", r"\\\1", " ".join(cell.splitlines()))
