"""`idarts table`: look up true accuracies. CELL is anything that `idarts.arch.parse` reads, an index or a hash."""

import json
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from idarts.arch.forms import FORMS
from idarts.cli.parser import Parser, add_action
from idarts.tables import BENCHMARKS, table
from idarts.tables.places import FILES, table_file

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
    "in_1shot1": "in 1Shot1's",
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
    best.add_argument("--split", default="test", help="valid or test")
    best.add_argument("--top", type=int, default=1, metavar="N", help="number of cells")
    best.add_argument("--json", action="store_true", help="print a JSON list")
    rank = add_action(actions, "rank", "Show the rank of a cell among all", _rank)
    _add_benchmark(rank)
    _add_cell(rank)
    rank.add_argument("--json", action="store_true", help="print JSON")
    importing = add_action(actions, "import", "Make a table from a benchmark's official file", _import)
    importing.add_argument("file", metavar="FILE", help=FILES)
    importing.add_argument("--tables", metavar="DIR", help="folder to write to instead of the user's cache")


def run(args: Namespace) -> None:
    """Run the chosen action."""
    args.run_action(args)


def _add_benchmark(parser: Parser) -> None:
    parser.add_argument("benchmark", metavar="BENCHMARK", help=f"one of {', '.join(BENCHMARKS)}")
    parser.add_argument("--tables", metavar="DIR", help="folder of the tables (default: IDARTS_TABLES, then the cache)")


def _add_cell(parser: Parser) -> None:
    extra = "a NAS-Bench-201 index or a NAS-Bench-101 hash"
    parser.add_argument("cell", metavar="CELL", help=f"{FORMS}; also {extra}")


def _query(args: Namespace) -> None:
    benchmark = table(args.benchmark, args.tables)
    answer = benchmark.details(args.cell) if args.details else benchmark.query(args.cell)
    if args.json:
        print(json.dumps(answer))
        return
    console = _console()
    grids: dict[str, Mapping[str, Any]] = {}
    for key, value in answer.items():
        if key == "epochs":
            grids.update({f"{epochs} epochs": measured for epochs, measured in value.items()})
        elif key in benchmark.splits:
            grids[key] = value
        else:
            console.print(f"{_LABELS.get(key, key)}: {value if key == 'index' else _shown(value)}")
    if grids:
        console.print(_grid(grids))


def _best(args: Namespace) -> None:
    benchmark = table(args.benchmark, args.tables)
    answers = benchmark.top(args.top, args.dataset, args.split)
    if args.json:
        print(json.dumps(answers))
        return
    console = _console()
    console.print(f"{args.benchmark}: best by {args.split} accuracy on {args.dataset}", style="bold")
    for place, answer in enumerate(answers, start=1):
        accuracy = answer.get(args.dataset, answer)[args.split]
        console.print(f"{place:>3}  {accuracy:.3f} %  {_name(answer)}")


def _rank(args: Namespace) -> None:
    benchmark = table(args.benchmark, args.tables)
    answer = benchmark.query(args.cell)
    ranks = {
        dataset: {split: benchmark.rank(args.cell, dataset, split)._asdict() for split in splits}
        for dataset, splits in benchmark.splits.items()
    }
    if args.json:
        names = {key: answer[key] for key in ("index", "hash", "architecture") if key in answer}
        print(json.dumps({**names, **ranks}))
        return
    console = _console()
    console.print(_name(answer))
    console.print(_grid({name: {f"by {split}": _of(rank) for split, rank in by.items()} for name, by in ranks.items()}))


def _import(args: Namespace) -> None:
    from rich.progress import Progress  # noqa: PLC0415 (this and the next are slow to import, and only for here)

    from idarts.tables import import_table  # noqa: PLC0415 (see above)

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(f"reading {args.file}", total=None)
        written = import_table(
            args.file, args.tables, lambda done, total: bar.update(task, completed=done, total=total)
        )
    print(written)
    used = table_file(written.stem, args.tables)
    if used != written:
        print(f"but look-ups use {used}, which comes first; name the new one's folder with --tables or IDARTS_TABLES")


def _console() -> Console:
    return Console(soft_wrap=True, markup=False, highlight=False)  # long lines stay whole, to be copied


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
    return f"{answer['index']:>5}  {answer['architecture']}"


def _of(rank: Mapping[str, int]) -> str:
    return f"{rank['place']:,} of {rank['of']:,}"
