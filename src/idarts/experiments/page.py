"""What an experiment leaves for people: `results.md`, figures as `.svg`, and one `index.html` that opens offline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from idarts.errors import InputError
from idarts.experiments.figure import Figure
from idarts.experiments.store import Row
from idarts.files import write_whole

PAGE, TEXT = "index.html", "results.md"


@dataclass(frozen=True)
class Section:
    """A heading, what it is about, a table, figures, and notes on how to read them."""

    title: str
    text: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()


def mean_std(values: Sequence[float]) -> str:
    """Mean ± standard deviation, as papers print them; one value alone has no deviation.

    >>> mean_std([93.0, 94.0]), mean_std([93.5]), mean_std([])
    ('93.50±0.71', '93.50', '–')
    """
    if not len(values):
        return "–"
    mean = f"{np.mean(values):.2f}"
    return f"{mean}±{np.std(values, ddof=1):.2f}" if len(values) > 1 else mean


def column(rows: Sequence[Row], name: str) -> list[float]:
    """The numbers of a column; rows without one are left out.

    >>> column([{"test": 1.5}, {"test": ""}], "test")
    [1.5]
    """
    return [float(row[name]) for row in rows if isinstance(row[name], int | float)]


def require_jinja() -> None:
    """Better to hear of it before an experiment than after."""
    try:
        import jinja2  # noqa: F401, PLC0415 (an extra)
    except ImportError:
        raise InputError("an experiment's page needs jinja2: pip install 'idarts[report]'") from None


def write_page(out: Path, name: str, summary: str, facts: str, sections: Sequence[Section]) -> Path:
    """Write everything and return the page.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_page(Path(folder), "table-1", "A table.", "now", [Section("Accuracy", rows=[["a", "1"]])])
    ...     print(page.name, sorted(path.name for path in Path(folder).iterdir()))
    index.html ['index.html', 'results.md']
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 (an extra)
    from jinja2.loaders import ChoiceLoader  # noqa: PLC0415

    for section in sections:
        for figure in section.figures:
            write_whole(out / f"{figure.name}.svg", figure.alone())
    write_whole(out / TEXT, "".join(_markdown(name, summary, facts, sections)).encode())
    loader = ChoiceLoader([PackageLoader("idarts.experiments"), PackageLoader("idarts.pages")])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.get_template("experiment.html.j2")
    html = template.render(name=name, summary=summary, facts=facts, sections=sections)
    write_whole(out / PAGE, html.encode())
    return out / PAGE


def _markdown(name: str, summary: str, facts: str, sections: Sequence[Section]) -> Iterator[str]:
    yield f"# {name}\n\n{summary} ({facts})\n"
    for section in sections:
        yield f"\n## {section.title}\n"
        yield from (f"\n{paragraph}\n" for paragraph in section.text)
        if section.rows:
            yield f"\n{_line(section.header)}{_line(['---'] * len(section.rows[0]))}"
            yield from (_line(row) for row in section.rows)
        for figure in section.figures:
            yield f"\n![{figure.title}]({figure.name}.svg)\n"
            yield f"\n{figure.reading}\n" if figure.reading else ""
        yield from (f"\n{note}\n" for note in section.notes)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
