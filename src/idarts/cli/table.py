"""`idarts table`: look up true accuracies. CELL is anything that `idarts.arch.parse` reads, an index or a hash."""

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from idarts.arch.forms import described_forms
from idarts.cli.console import console, say
from idarts.cli.parser import Parser, add_action
from idarts.tables import TABLES, fit_table, import_table, importable_files, load_typed, row_table, table

_LABELS = {
    "valid": "valid accuracy, %",
    "test": "test accuracy, %",
    "train": "train accuracy, %",
    "valid_12": "valid, 12 epochs, %",
    "test_12": "test, 12 epochs, %",
    "params": "parameters",
    "flops": "FLOPs",
    "latency": "latency, s",
    "train_time": "training time, s",
    "runs": "seeds",
    "in_1shot1": "in NAS-Bench-1Shot1",
}


def add_arguments(parser: Parser) -> None:
    """The actions and what each needs."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    query = add_action(actions, "query", "Show a cell's true accuracies", _query)
    _add_benchmark(query)
    _add_cell(query)
    query.add_argument("--details", action="store_true", help="also print shorter trainings and costs")
    query.add_argument("--json", action="store_true", help="print JSON")
    best = add_action(actions, "best", "List the best cells", _best)
    _add_benchmark(best)
    best.add_argument("--dataset", default="cifar10", help="cifar10, cifar100 or imagenet16")
    best.add_argument("--split", help="valid or test (default: the table's own)")
    best.add_argument("--top", type=int, default=1, metavar="N", help="number of cells")
    best.add_argument("--json", action="store_true", help="print a JSON list")
    rank = add_action(actions, "rank", "Show the rank of a cell among all cells", _rank)
    _add_benchmark(rank)
    _add_cell(rank)
    rank.add_argument("--json", action="store_true", help="print JSON")
    fitting = add_action(actions, "fit", "Fit the model that predicts cells without a row", _fit)
    _add_benchmark(fitting)
    fitting.add_argument("--json", action="store_true", help="print JSON")
    importing = add_action(actions, "import", "Make a table from a benchmark's official file", _import)
    importing.add_argument("file", metavar="FILE", help=importable_files())
    importing.add_argument("--tables", metavar="DIR", help="folder to write to instead of the user's cache")


def run(args: Namespace) -> None:
    """Run the chosen action."""
    if hasattr(args, "benchmark"):
        load_typed(args.benchmark)
    args.run_action(args)


def _add_benchmark(parser: Parser) -> None:
    parser.add_argument(
        "benchmark", metavar="BENCHMARK", help=f"one of {', '.join(TABLES)}; or your own package.module:name"
    )
    parser.add_argument("--tables", metavar="DIR", help="folder of the tables (default: IDARTS_TABLES, then the cache)")


def _add_cell(parser: Parser) -> None:
    extra = "a NAS-Bench-201 index or a NAS-Bench-101 hash"
    parser.add_argument("cell", metavar="CELL", help=f"{described_forms()}; also {extra}")


def _query(args: Namespace) -> None:
    if args.details:
        answer = row_table(args.benchmark, args.tables).details(args.cell)
    else:
        answer = table(args.benchmark, args.tables).query(args.cell)
    if args.json:
        say(json.dumps(answer))
        return
    screen = _console()
    grids: dict[str, Mapping[str, Any]] = {}
    for key, value in answer.items():
        if key == "epochs":
            grids.update({f"{epochs} epochs": measured for epochs, measured in value.items()})
        elif isinstance(value, Mapping) and key != "architecture":
            grids[key] = value
        else:
            screen.print(f"{_LABELS.get(key, key)}: {value if key == 'index' else _shown(value)}")
    if grids:
        screen.print(_grid(grids))


def _best(args: Namespace) -> None:
    benchmark = row_table(args.benchmark, args.tables)
    answers = benchmark.top(args.top, args.dataset, args.split)
    if args.json:
        say(json.dumps(answers))
        return
    screen = _console()
    split = args.split or benchmark.split
    screen.print(f"{args.benchmark}: best by {split} accuracy on {args.dataset}", style="bold")
    for place, answer in enumerate(answers, start=1):
        accuracy = answer.get(args.dataset, answer)[split]
        screen.print(f"{place:>3}  {accuracy:.3f} %  {_name(answer)}")


def _rank(args: Namespace) -> None:
    benchmark = row_table(args.benchmark, args.tables)
    answer = benchmark.query(args.cell)
    ranks = {
        dataset: {split: benchmark.rank(args.cell, dataset, split)._asdict() for split in splits}
        for dataset, splits in benchmark.splits.items()
    }
    if args.json:
        names = {key: answer[key] for key in ("index", "hash", "architecture") if key in answer}
        say(json.dumps({**names, **ranks}))
        return
    screen = _console()
    screen.print(_name(answer))
    screen.print(_grid({name: {f"by {split}": _of(rank) for split, rank in by.items()} for name, by in ranks.items()}))


def _fit(args: Namespace) -> None:
    with _progress(f"fitting {args.benchmark}") as progress:
        written, figures = fit_table(args.benchmark, args.tables, progress)
    if args.json:
        say(json.dumps({"file": str(written), **figures}))
        return
    say(written)
    say(
        f"five folds of {figures['cells']:,} cells: Spearman's correlation {figures['spearman']:.3f}, mean error "
        f"{figures['mean_error']:.3f} %, within two deviations {100 * figures['within_two_deviations']:.1f} %"
    )


@contextmanager
def _progress(text: str) -> Iterator[Callable[[int, int], None]]:
    from rich.progress import Progress  # noqa: PLC0415 (slow to import, and only used here)

    screen = console(stderr=True)
    with Progress(console=screen, disable=not screen.is_terminal, transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _import(args: Namespace) -> None:
    with _progress(f"reading {args.file}") as progress:
        written = import_table(args.file, args.tables, progress)
    say(written)
    used = TABLES[written.stem].locate(args.tables)
    if used != written:
        hint = "to use the new table, name its folder with --tables or IDARTS_TABLES"
        say(f"look-ups still use {used}, which comes first; {hint}")


def _console() -> Console:
    return console(soft_wrap=True)  # long lines stay whole, to be copied


def _grid(columns: Mapping[str, Mapping[str, Any]]) -> Grid:
    grid = Grid("", *columns)
    for column in grid.columns[1:]:
        column.justify = "right"
    for row in dict.fromkeys(row for column in columns.values() for row in column):
        grid.add_row(_LABELS.get(row, row), *(_shown(column.get(row)) for column in columns.values()))
    return grid


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if value >= 1 else f"{value:.3g}"
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, dict):
        return json.dumps(value)
    return f"{value:,}" if isinstance(value, int) else value or "unknown"


def _name(answer: Mapping[str, Any]) -> str:
    if "hash" in answer:
        return f"{answer['hash']}  {answer['params']:,} parameters"
    return f"{answer['index']:>5}  {answer['architecture']}" if "index" in answer else str(answer["architecture"])


def _of(rank: Mapping[str, int]) -> str:
    return f"{rank['place']:,} of {rank['of']:,}"
