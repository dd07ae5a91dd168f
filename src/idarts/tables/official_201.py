"""NAS-Bench-201 as its authors publish it: the NATS-Bench folder of pickles, or one file with all cells.

A cell holds for each training length ("12", "200"; in NAS-Bench-201's own file "less", "full") the trials on each data
set by seed, and a trial its accuracies by evaluation set and epoch. An accuracy here is the mean over the seeds.
"""

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError
from idarts.spaces import nas_bench_201
from idarts.tables import table_201
from idarts.tables.pickles import Progress, read_pickle

META = "meta.pickle.pbz2"
# data set → what the benchmark calls it and its evaluation set, for valid and for test: CIFAR-10's test accuracy is
# that of a network trained on all 50,000 images, its valid accuracy that of one trained on half of them.
_SETS = {
    "cifar10": (("cifar10-valid", "x-valid"), ("cifar10", "ori-test")),
    "cifar100": (("cifar100", "x-valid"), ("cifar100", "x-test")),
    "imagenet16": (("ImageNet16-120", "x-valid"), ("ImageNet16-120", "x-test")),
}
_LENGTHS = {"200": "full", "12": "less"}
_MILLION = 1_000_000  # parameters and FLOPs are counted in millions


def from_nats_folder(folder: Path, progress: Progress | None = None) -> dict[str, NDArray[Any]]:
    """The columns of NATS-tss-v1_0-3ffb9-simple: META and one file for each cell.

    >>> from_nats_folder(Path("no such folder"))
    Traceback (most recent call last):
    idarts.errors.InputError: no such folder/meta.pickle.pbz2 is not complete or not official (FileNotFoundError); \
get it again
    """
    _check_order(read_pickle(folder / META), folder / META)
    present = {file.name for file in folder.iterdir()}

    def cells() -> Iterable[tuple[int, Any, Path]]:
        for index in range(nas_bench_201.SIZE):
            name = f"{index:06d}.pickle.pbz2"
            if name in present:
                yield index, read_pickle(folder / name), folder / name
            if progress:
                progress(index + 1, nas_bench_201.SIZE)

    return _columns(cells(), folder)


def from_one_file(file: Path, progress: Progress | None = None) -> dict[str, NDArray[Any]]:
    """The columns of NAS-Bench-201-v1_1-096897.pth or NATS-tss-v1_0-3ffb9.pickle.pbz2. All of it is held in memory.

    >>> from_one_file(Path("nothing.pth"))
    Traceback (most recent call last):
    idarts.errors.InputError: nothing.pth is not complete or not official (FileNotFoundError); get it again
    """
    content = read_pickle(file, progress)
    _check_order(content, file)
    cells = content.get("arch2infos")
    if not isinstance(cells, Mapping):
        raise InputError(f"{file} has no arch2infos, so it is no NAS-Bench-201 file; get the official one")
    return _columns(((index, cell, file) for index, cell in cells.items()), file)


def _check_order(content: Any, file: Path) -> None:
    found = content.get("meta_archs") if isinstance(content, Mapping) else None
    if not isinstance(found, list) or len(found) != nas_bench_201.SIZE:
        raise InputError(
            f"{file} has no list of the {nas_bench_201.SIZE} cells of NAS-Bench-201; get the official file"
        )
    for index, (text, expected) in enumerate(zip(found, table_201.official_strings(), strict=True)):
        if text != expected:
            raise InputError(f"{file} has {short(text)} at index {index}, expected {expected}")


def _columns(cells: Iterable[tuple[int, Any, Path]], origin: Path) -> dict[str, NDArray[Any]]:
    columns = _empty()
    done = 0
    for index, cell, file in cells:
        if not isinstance(index, int) or not 0 <= index < nas_bench_201.SIZE:
            raise InputError(f"{file} has a cell at index {short(index)}, expected 0 to {nas_bench_201.SIZE - 1}")
        try:
            for name, value in _values(cell).items():
                columns[name][index] = value
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise InputError(f"{file}: cell {index} is not as the benchmark writes it ({problem})") from None
        done += 1
    if not done:
        raise InputError(f"{origin} holds no cells; get the official files again")
    if done < nas_bench_201.SIZE:
        warnings.warn(f"{origin} holds {done} of {nas_bench_201.SIZE} cells; the others stay unknown", stacklevel=2)
    return columns


def _empty() -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {table_201.RUNS: np.zeros(nas_bench_201.SIZE, np.uint8)}
    for dataset in table_201.DATASETS:
        for name in (*table_201.ACCURACIES, *table_201.SECONDS):
            columns[f"{dataset}_{name}"] = np.full(nas_bench_201.SIZE, np.nan, np.float32)
        for name in table_201.COUNTS:
            columns[f"{dataset}_{name}"] = np.zeros(nas_bench_201.SIZE, np.int32)
    return columns


def _values(cell: Mapping[str, Any]) -> dict[str, float]:
    """A cell's values by column."""
    trained = {length: cell[length] if length in cell else cell[older] for length, older in _LENGTHS.items()}
    values: dict[str, float] = {table_201.RUNS: len(_trials(trained["200"], "cifar10-valid"))}
    for dataset, sets in _SETS.items():
        for length, ending in (("200", ""), ("12", "_12")):
            for split, (called, evaluated) in zip(table_201.SPLITS, sets, strict=True):
                values[f"{dataset}_{split}{ending}"] = _accuracy(_trials(trained[length], called), evaluated)
        trials = _trials(trained["200"], sets[0][0])
        values[f"{dataset}_params"] = round(_mean([trial["params"] for trial in trials]) * _MILLION)
        values[f"{dataset}_flops"] = round(_mean([trial["flop"] for trial in trials]) * _MILLION)
        values[f"{dataset}_latency"] = _mean([_mean(trial["latency"]) for trial in trials if trial["latency"]])
        times = [list(trial["train_times"].values()) for trial in trials if trial["train_times"]]
        values[f"{dataset}_train_time"] = _mean([sum(epochs) for epochs in times])
    return values


def _trials(results: Mapping[str, Any], dataset: str) -> list[Any]:
    return [results["all_results"][dataset, seed] for seed in results["dataset_seed"][dataset]]


def _accuracy(trials: list[Any], evaluated: str) -> float:
    return _mean([trial["eval_acc1es"][f"{evaluated}@{trial['epochs'] - 1}"] for trial in trials])


def _mean(values: list[Any]) -> float:
    return float(sum(values) / len(values)) if values else float("nan")
