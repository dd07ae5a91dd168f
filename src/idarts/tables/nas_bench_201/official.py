"""NAS-Bench-201 as its authors publish it: the NATS-Bench folder of pickles, or one file with all cells.

A cell holds its trials for each training length ("12", "200"; in NAS-Bench-201's own file "less", "full"), data set and
seed. A trial holds accuracies by evaluation set and epoch. An accuracy in our table is the mean over the seeds.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError
from idarts.spaces.nas_bench_201 import SIZE
from idarts.tables.nas_bench_201.pickles import read_pickle
from idarts.tables.nas_bench_201.table import ACCURACIES, COUNTS, DATASETS, RUNS, SECONDS, SPLITS, official_strings
from idarts.tables.registry import Progress
from idarts.tables.storage.columns import warn_if_incomplete

_META = "meta.pickle.pbz2"
# Our data set → (their data set, their evaluation set), for valid and for test. The test accuracy on CIFAR-10 is that
# of a network trained on all 50,000 images, the valid accuracy that of one trained on half of them.
_SETS = {
    "cifar10": (("cifar10-valid", "x-valid"), ("cifar10", "ori-test")),
    "cifar100": (("cifar100", "x-valid"), ("cifar100", "x-test")),
    "imagenet16": (("ImageNet16-120", "x-valid"), ("ImageNet16-120", "x-test")),
}
_LENGTHS = {"200": "full", "12": "less"}
_MILLION = 1_000_000  # they count parameters and FLOPs in millions


def read(file: Path, progress: Progress | None = None) -> dict[str, NDArray[Any]] | None:
    """The columns of NATS-tss-v1_0-3ffb9-simple/, NATS-tss-v1_0-3ffb9.pickle.pbz2 or NAS-Bench-201-v1_1-096897.pth.

    >>> read(Path("notes.txt")) is None
    True
    """
    if file.is_dir():
        return _from_folder(file, progress) if (file / _META).is_file() else None
    return _from_one_file(file, progress) if file.suffix in (".pth", ".pbz2") else None


def _from_folder(folder: Path, progress: Progress | None) -> dict[str, NDArray[Any]]:
    """NATS-Bench's folder: `_META` and one file for each cell."""
    _require_official_order(read_pickle(folder / _META), folder / _META)
    present = {file.name for file in folder.iterdir()}

    def cells() -> Iterable[tuple[int, Any, Path]]:
        for index in range(SIZE):
            name = f"{index:06d}.pickle.pbz2"
            if name in present:
                yield index, read_pickle(folder / name), folder / name
            if progress:
                progress(index + 1, SIZE)

    return _columns(cells(), folder)


def _from_one_file(file: Path, progress: Progress | None) -> dict[str, NDArray[Any]]:
    """One file with all cells, which must fit in memory."""
    content = read_pickle(file, progress)
    _require_official_order(content, file)
    cells = content.get("arch2infos")
    if not isinstance(cells, Mapping):
        raise InputError(f"{file} has no arch2infos, so it is not a NAS-Bench-201 file; get the official one")
    return _columns(((index, cell, file) for index, cell in cells.items()), file)


def _require_official_order(content: Any, file: Path) -> None:
    strings = content.get("meta_archs") if isinstance(content, Mapping) else None
    if not isinstance(strings, list) or len(strings) != SIZE:
        raise InputError(f"{file} has no list of the {SIZE} cells of NAS-Bench-201; get the official file")
    for index, (text, expected) in enumerate(zip(strings, official_strings(), strict=True)):
        if text != expected:
            raise InputError(f"{file} has {short(text)} at index {index}, expected {expected}")


def _columns(cells: Iterable[tuple[int, Any, Path]], origin: Path) -> dict[str, NDArray[Any]]:
    columns = _empty()
    done = 0
    for index, cell, file in cells:
        if not isinstance(index, int) or not 0 <= index < SIZE:
            raise InputError(f"{file} has a cell at index {short(index)}, expected 0 to {SIZE - 1}")
        try:
            for name, value in _values(cell).items():
                columns[name][index] = value
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise InputError(f"{file}: cell {index} does not have the benchmark's form ({problem})") from None
        done += 1
    if not done:
        raise InputError(f"{origin} holds no cells; get the official files again")
    warn_if_incomplete(done, SIZE, origin)
    return columns


def _empty() -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {RUNS: np.zeros(SIZE, np.uint8)}
    for dataset in DATASETS:
        for name in (*ACCURACIES, *SECONDS):
            columns[f"{dataset}_{name}"] = np.full(SIZE, np.nan, np.float32)
        for name in COUNTS:
            columns[f"{dataset}_{name}"] = np.zeros(SIZE, np.int32)
    return columns


def _values(cell: Mapping[str, Any]) -> dict[str, float]:
    """The values of a cell, by column."""
    trained = {length: cell[length] if length in cell else cell[older] for length, older in _LENGTHS.items()}
    values: dict[str, float] = {RUNS: len(_trials(trained["200"], "cifar10-valid"))}
    for dataset, sets in _SETS.items():
        for length, ending in (("200", ""), ("12", "_12")):
            for split, (their_name, evaluation_set) in zip(SPLITS, sets, strict=True):
                trials = _trials(trained[length], their_name)
                values[f"{dataset}_{split}{ending}"] = _accuracy(trials, evaluation_set)
        trials = _trials(trained["200"], sets[0][0])
        values[f"{dataset}_params"] = round(_mean([trial["params"] for trial in trials]) * _MILLION)
        values[f"{dataset}_flops"] = round(_mean([trial["flop"] for trial in trials]) * _MILLION)
        values[f"{dataset}_latency"] = _mean([_mean(trial["latency"]) for trial in trials if trial["latency"]])
        times = [list(trial["train_times"].values()) for trial in trials if trial["train_times"]]
        values[f"{dataset}_train_time"] = _mean([sum(epochs) for epochs in times])
    return values


def _trials(results: Mapping[str, Any], dataset: str) -> list[Any]:
    return [results["all_results"][dataset, seed] for seed in results["dataset_seed"][dataset]]


def _accuracy(trials: list[Any], evaluation_set: str) -> float:
    return _mean([trial["eval_acc1es"][f"{evaluation_set}@{trial['epochs'] - 1}"] for trial in trials])


def _mean(values: list[Any]) -> float:
    return float(sum(values) / len(values)) if values else float("nan")
