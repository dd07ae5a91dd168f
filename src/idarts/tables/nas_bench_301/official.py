"""NAS-Bench-301's own files: a folder of JSON files, one for each training (its public data set, version 1.3).

Read from its documentation: `optimized_hyperparamater_config` names the operation of every edge that a cell has
(`NetworkSelectorDatasetInfo:darts:edge_normal_3`), `info` holds the validation accuracy, `test_accuracy` stands beside.
The same cell may have been trained several times; the table has the means.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.errors import InputError
from idarts.spaces import darts
from idarts.tables.nas_bench_301.codes import CELLS, EDGES, OPS, code_of
from idarts.tables.nas_bench_301.parquet import columns_of
from idarts.tables.registry import Progress

_CONFIG = "optimized_hyperparamater_config"  # spelt so in the files
_EDGE = re.compile(r"NetworkSelectorDatasetInfo:darts:edge_(normal|reduce)_(\d+)")
_LAYERS, _CHANNELS = (f"NetworkSelectorDatasetInfo:darts:{name}" for name in ("layers", "init_channels"))
_FULL = (8, 32)  # cells and channels of the full trainings; the data set also has smaller ones
_LARGEST = 1 << 24  # bytes of a JSON file


def read(folder: Path, progress: Progress | None = None) -> dict[str, NDArray[Any]] | None:
    """The columns of a folder of results; None if it holds none.

    >>> read(Path("notes.txt")) is None
    True
    """
    files = sorted(folder.rglob("results*.json")) if folder.is_dir() else []
    if not files:
        return None
    trained: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for number, file in enumerate(files):
        result = _read(file)
        if result is not None:
            cells, accuracies = result
            trained.setdefault(cells, []).append(accuracies)
        if progress and number % 100 == 0:
            progress(number, len(files))
    if not trained:
        raise InputError(f"{folder} holds no full training (8 cells, 32 channels) of NAS-Bench-301")
    means = np.array([np.mean(runs, axis=0) for runs in trained.values()], np.float32)
    return columns_of([list(cells) for cells in trained], {"valid": means[:, 0], "test": means[:, 1]}, folder)


def _read(file: Path) -> tuple[tuple[int, int], tuple[float, float]] | None:
    """The codes of a training's cells and its accuracies in percent; None for a smaller network."""
    try:
        if file.stat().st_size > _LARGEST:
            raise ValueError("too large")
        data = json.loads(file.read_bytes())
        config, valid, test = data[_CONFIG], float(data["info"][0]["val_accuracy"]), float(data["test_accuracy"])
        if (config[_LAYERS], config[_CHANNELS]) != _FULL:
            return None
        normal, reduce = (_cell(config, cell) for cell in CELLS)
        if not (0 <= valid <= 100 and 0 <= test <= 100):
            raise ValueError(f"accuracies {valid} and {test}")
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise InputError(f"{file} is not a result of NAS-Bench-301 ({' '.join(str(error).split())})") from None
    return (normal, reduce), (valid, test)


def _cell(config: dict[str, Any], cell: str) -> int:
    matches = (_EDGE.fullmatch(name) for name in config)
    edges = sorted(int(match[2]) for match in matches if match and match[1] == cell)
    pairs = [(*darts.EDGES[edge], config[f"NetworkSelectorDatasetInfo:darts:edge_{cell}_{edge}"]) for edge in edges]
    if [target for _, target, _ in pairs] != [darts.INPUTS + place // 2 for place in range(EDGES)]:
        raise ValueError(f"the {cell} cell has the edges {edges}, expected two into each node")
    return code_of([source for source, _, _ in pairs], [OPS.index(op) for _, _, op in pairs])
