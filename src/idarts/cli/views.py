"""What the progress display shows of a round: one view for searches, one for trainings."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from idarts.arch import Architecture, space_of
from idarts.pages.numbers import with_interval

CELL_LINES = 4  # of the live view, at most

# A round is any record with a `number`; everything else in it is optional, and is shown where it is there.
Round = Any
Work = Any  # has `total` and `used()`: the number of rounds, and the share of the budget that is used


class View(NamedTuple):
    """How one kind of work is shown: the middle of a plain line, and the rows of the live view for its width."""

    line: Callable[[Round, Work], str]
    rows: Callable[[Round, Work, int], Iterator[tuple[str, RenderableType]]]


def cell_text(architecture: Architecture) -> str:
    """An architecture in few words; an operation stands before the node that it comes from, as in NAS-Bench-201.

    >>> cell_text(Architecture("choice", choices={"block1": "conv3", "block2": "skip"}))
    'block1=conv3 block2=skip'
    >>> from idarts.arch import parse
    >>> cell_text(parse("DARTS_V2"))[:57]
    'normal |sep_conv_3x3~0|sep_conv_3x3~1| + |sep_conv_3x3~0|'
    """
    space = space_of(architecture)
    if space.text_form == "string":
        return space.forms["string"](architecture)
    if architecture.choices:
        return " ".join(f"{name}={branch}" for name, branch in architecture.choices.items())
    texts = []
    for name, cell in architecture.cells.items():
        targets: dict[int, list[str]] = {}
        for source, target, op in cell.edges:
            targets.setdefault(target, []).append(f"{op or ''}~{source}")
        ops = dict(enumerate(cell.ops, start=1))  # where operations are on the nodes
        nodes = [f"{ops.get(node, '')}|{'|'.join(inputs)}|" for node, inputs in targets.items()]
        texts.append(f"{name} {' + '.join(nodes)}" if len(architecture.cells) > 1 else " + ".join(nodes))
    return "\n".join(texts)


def _search_line(latest: Round, _work: Work) -> str:
    return _joined(
        _shown("train loss {:6.3f}", latest, "train_loss"),
        _shown("valid loss {:6.3f}", latest, "valid_loss"),
        _shown("valid {:5.1f} %", latest, "valid_accuracy", 100),
        _shown("α entropy {:.3f}", latest, "entropy"),
        *_others(latest),
    )


def _search_rows(latest: Round, work: Work, width: int) -> Iterator[tuple[str, RenderableType]]:
    for name, row in (
        ("loss", _losses(latest)),
        ("α", _alpha(latest)),
        ("series", _series(latest)),
        ("other", Text(_joined(*_others(latest)))),
    ):
        if row:
            yield name, row
    architecture = work.current() if hasattr(work, "current") else None
    if architecture is None:
        return
    cell = Text(cell_text(architecture), overflow="fold")
    cell.truncate(CELL_LINES * max(8, width - 8), overflow="ellipsis")
    yield "cell", cell
    table = work.task.table if hasattr(work, "task") else None
    if table:
        yield "table", f"{table.accuracy(architecture):.2f} % {table.split} accuracy of this cell, by {table.benchmark}"


def _losses(latest: Round) -> Text:
    losses = _joined(_shown("train {:.3f}", latest, "train_loss"), _shown("valid {:.3f}", latest, "valid_loss"))
    if not losses:
        return Text()
    train, valid = (_percent(_value(latest, name)) for name in ("train_accuracy", "valid_accuracy"))
    return Text(f"{losses}  accuracy  train {train}  valid {valid}")


def _alpha(latest: Round) -> Text:
    spread = ", ".join(filter(None, (_shown(f"{name} {{:.3f}}", latest, name) for name in ("entropy", "margin"))))
    if math.isnan(_value(latest, "valid_loss") or 0.0):
        return Text.assemble(f"{spread}  ", ("round skipped: a number was not finite", "bold yellow"))
    norm = _value(latest, "norm")
    if norm is None:  # a method without hypergradients
        return Text(spread)
    return Text(f"{spread}  hypergradient {norm:.2e}{_shown(', implicit {:.1f} %', latest, 'implicit_share', 100)}")


def _series(latest: Round) -> Text:
    contraction = _value(latest, "contraction")
    step = _shown("γ {:.3g}", latest, "step")
    if contraction is None:
        return Text(step)
    diverges = contraction > 1
    text = f"contraction {contraction:.3g}" + (", over 1: it diverges" if diverges else "")
    return Text.assemble(f"{step or 'γ –'}  ", (text, "bold red" if diverges else ""))


def _others(latest: Round) -> Iterator[str]:
    """The numbers of a round that this view does not know, such as those of a user's own strategy."""
    for name, value in {**vars(latest), **getattr(latest, "measures", {})}.items():
        if name not in _KNOWN and isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{name.replace('_', ' ')} {value:.4g}"


_KNOWN = {"number", "rate", "gradient_evaluations", "train_loss", "valid_loss", "train_accuracy", "valid_accuracy"}
_KNOWN |= {"entropy", "margin", "norm", "implicit_share", "contraction", "step", "expected_cost", "cost"}


def _training_line(latest: Round, _work: Work) -> str:
    held = "" if latest.valid_accuracy is None else f"  held out {_held_out(latest):>6}"
    return f"epoch {latest.epoch:6.2f}  {_trained(latest)}{held}"


def _training_rows(latest: Round, work: Work, _width: int) -> Iterator[tuple[str, RenderableType]]:
    yield "epoch", f"{latest.epoch:.2f} of {work.settings.epochs}"
    yield "train", _trained(latest)
    if latest.valid_accuracy is not None:
        yield "held out", f"loss {latest.valid_loss:6.3f}  accuracy {_held_out(latest)}"
    yield "rate", f"{latest.rate:.3g}" + (f"  drop-path {latest.drop_path:.3f}" if latest.drop_path else "")


def _held_out(latest: Round) -> str:
    return with_interval(latest.valid_accuracy, _value(latest, "valid_images"))


def _trained(latest: Round) -> str:
    loss = "     –" if latest.train_loss is None else f"{latest.train_loss:6.3f}"
    skipped = f"  {latest.skipped} steps skipped" if latest.skipped else ""
    return f"train loss {loss}  accuracy {_percent(latest.train_accuracy):>6}{skipped}"


def _value(latest: Round, name: str) -> float | None:
    value: float | None = getattr(latest, name, getattr(latest, "measures", {}).get(name))
    return value


def _shown(form: str, latest: Round, name: str, factor: float = 1.0) -> str:
    value = _value(latest, name)
    return "" if value is None else form.format(factor * value)


def _joined(*parts: str) -> str:
    return "  ".join(filter(None, parts))


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


SEARCH = View(_search_line, _search_rows)
TRAINING = View(_training_line, _training_rows)
