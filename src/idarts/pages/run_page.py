"""The page: facts of a run brought into the order in which a person asks for them."""

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from idarts.arch import Architecture, as_text, space_of
from idarts.arch.drawing import drawn_cells, render
from idarts.errors import InputError
from idarts.files import write_whole
from idarts.pages import training
from idarts.pages.chart import value_text
from idarts.pages.curves import curves, diagnostics
from idarts.pages.heat import heat
from idarts.pages.notes import notes
from idarts.pages.run_folder import Run, as_float, read_run

if TYPE_CHECKING:
    from jinja2 import Template

REPORT = "report.html"
_RECENT = 10  # rounds: that of a single batch says little


def write_report(run: Path, output: Path | None = None) -> Path:
    """Write a run's report, as `report.html` into the run's folder or to a file of another name.

    >>> import json, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "config.json").write_text(json.dumps({"space": "nas-bench-201", "method": "idarts"}))
    ...     _ = Path(folder, "metrics.jsonl").write_text(json.dumps({"number": 1, "train_loss": 2.3}))
    ...     write_report(Path(folder)).name
    'report.html'
    """
    content = page(read_run(run)).encode()
    target = output or run / REPORT
    write_whole(target, content)
    return target


def page(run: Run) -> str:
    """The report as one HTML text.

    >>> "in progress" in page(Run(Path("run"), {"space": "darts"}, [{"number": 1, "train_loss": 2.3}]))
    True
    """
    found = run.architecture()
    drawing, undrawn = cell_drawing(found)
    text = cell_text(found)
    facts = run.result or {}
    about = training.about(run) if run.trains else _about_search(run, text, found)
    again = ("Write this page anew", f"idarts report {shlex.quote(str(run.folder))}")
    return template("page.html.j2").render(
        finished=run.result is not None,
        searched=not run.trains,
        cell=text,
        drawing=drawing,
        undrawn=undrawn,
        choices=found.choices if isinstance(found, Architecture) else {},
        heat=heat(run),
        diagnostics=diagnostics(run),
        cost=[*_cost(run), *((name, duration(seconds)) for name, seconds in about["seconds"])],
        settings=_flat(run.config),
        described=_flat(facts.get("data", {})),
        environment=[*_flat(facts.get("versions", {})), *_flat({key: facts[key] for key in facts if key == "device"})],
        **about
        | {"tiles": [*about["tiles"], ("time", duration(_seconds(run)))], "commands": [*about["commands"], again]},
    )


def _about_search(run: Run, text: str | None, found: Architecture | str | None) -> dict[str, Any]:
    finished, facts = run.result is not None, run.result or {}
    method, data = run.config.get("method", "search"), _name(run.config.get("data", "own data"))
    return {
        "state": "Search finished" if finished else "Search in progress",
        "heading": run.config.get("space", "own space"),
        "told": f"searched by {method} on {data}",
        "architecture_title": "The found architecture" if finished else "The architecture as α stands now",
        "across": "rounds",
        "tiles": list(_tiles(run)),
        "notes": notes(run, found),
        "curves": curves(run),
        "commands": list(_commands(run, text, found)),
        "trials": _trials(facts),
        "argmax": facts.get("argmax"),
        "seconds": [],
    }


def cell_text(found: Architecture | str | None) -> str | None:
    """An architecture in the form that its space's users know, which `idarts.arch.parse` reads again.

    >>> from idarts.arch import parse
    >>> cell_text(parse("nas-bench-201:0"))[:16]
    '|avg_pool_3x3~0|'
    """
    return as_text(found) if isinstance(found, Architecture) else found


@cache
def template(name: str) -> "Template":
    """A page to be filled in; all of them share the style and the pieces beside it."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 (an extra)
    except ImportError:
        raise InputError("a report needs jinja2: pip install 'idarts[report]'") from None
    loader = PackageLoader("idarts.pages", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(name)


def cell_drawing(found: Architecture | str | None) -> tuple[str | None, str | None]:
    """The cell as inline SVG, or why it could not be drawn; neither where there is nothing to draw."""
    if not isinstance(found, Architecture) or not drawn_cells(found):
        return None, None
    try:
        svg = render(found, "svg").decode()
    except InputError as error:
        return None, str(error)
    # Inside HTML, a drawing needs neither XML's header and name spaces nor ids; its text is read out as one label.
    bare = re.sub(r' (?:id|xmlns(?::xlink)?)="[^"]*"|<title>[^<]*</title>\n?|<!--.*?-->\n?', "", svg)
    svg = bare[bare.index("<svg") :].replace("<svg", '<svg role="img" aria-label="The found cell as a graph"', 1)
    return svg, None


def _trials(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Candidates and how they did each time that they were tried, those that came furthest first.

    >>> _trials({"trials": [{"architecture": name, "steps": 8, "loss": 2.5} for name in "ab"]})
    [('a', '2.500 after 8 steps'), ('b', '2.500 after 8 steps')]
    """
    found: dict[str, list[str]] = {}
    for tried in facts.get("trials") or []:
        found.setdefault(tried["architecture"], []).append(f"{tried['loss']:.3f} after {tried['steps']} steps")
    furthest = sorted(found.items(), key=lambda one: (-len(one[1]), float(one[1][-1].split()[0])))
    return [(name, ", ".join(losses)) for name, losses in furthest]


def _tiles(run: Run) -> Iterator[tuple[str, str]]:
    done, total = run.rounds[-1]["number"], run.config.get("rounds")
    yield "rounds", f"{done:,} of {total:,}" if isinstance(total, int) else f"{done:,}"
    test = (run.result or {}).get("test")
    if isinstance(test, Mapping) and "accuracy" in test:
        yield "test accuracy", value_text(as_float(test["accuracy"]), percent=True)
    for name, key in (("accuracy", "valid_accuracy"), ("loss", "valid_loss")):
        values = run.series(key)[-_RECENT:]
        finite = values[np.isfinite(values)]
        if finite.size:
            average = value_text(float(finite.mean()), percent=name == "accuracy")
            yield f"validation {name} of the supernet, mean of the last {finite.size} rounds", average
            break
    if isfinite(evaluations := _evaluations(run)):
        yield "gradient evaluations", f"{evaluations:,.0f}"


def _cost(run: Run) -> Iterator[tuple[str, str]]:
    done, total, seconds = run.rounds[-1]["number"], run.config.get("rounds"), _seconds(run)
    yield "time so far" if run.result is None else "time", duration(seconds)
    if seconds > 0:
        yield "rounds per second", value_text(done / seconds)
        if run.result is None and isinstance(total, int) and total > done:
            yield "time left at this pace", duration((total - done) * seconds / done)
    if isfinite(evaluations := _evaluations(run)):
        yield "gradient evaluations", f"{evaluations:,.0f}"
        yield "gradient evaluations per round", value_text(evaluations / done)
        if seconds > 0:
            yield "gradient evaluations per second", value_text(evaluations / seconds)


def duration(seconds: float) -> str:
    """A time as a person says it.

    >>> duration(7.25), duration(125), duration(7325), duration(float("nan"))
    ('7.2 s', '2 min 5 s', '2 h 2 min', 'not recorded')
    """
    if not seconds >= 0:
        return "not recorded"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _seconds(run: Run) -> float:
    return as_float((run.result or {}).get("seconds", run.last("seconds")))


def _evaluations(run: Run) -> float:
    return as_float((run.result or {}).get("gradient_evaluations", run.last("gradient_evaluations")))


def _commands(run: Run, text: str | None, found: Architecture | str | None) -> Iterator[tuple[str, str]]:
    folder = shlex.quote(str(run.folder))
    if run.result is None:
        yield "Go on with the search from its last checkpoint", f"idarts search --resume --out {folder}"
    if isinstance(found, Architecture) and space_of(found).has("network"):
        what = folder if run.result is not None else shlex.quote(text or "")
        yield "Count the cell’s parameters and multiply-adds", f"idarts arch show {what}"
        yield "Draw it for a paper", f"idarts arch draw {what} -o cell.svg"
        yield (
            "Train it from scratch",
            f"idarts train {what} --data {shlex.quote(_name(run.config.get('data', 'DATA')))}",
        )
        yield "Hand it to other programs", f"idarts arch convert {what} --to json"


def _name(data: Any) -> str:
    return str(data.get("name", "own data")) if isinstance(data, Mapping) else str(data)


def _flat(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as rows, named as the command line names them: weights.rate."""
    if isinstance(value, Mapping):
        rows = [_flat(inner, f"{prefix}.{key}" if prefix else str(key)) for key, inner in value.items()]
        return [row for inner in rows for row in inner]
    listed = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return [(prefix or "value", "not set" if value is None else listed)]
