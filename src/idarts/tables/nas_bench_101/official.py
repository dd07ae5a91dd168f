"""From the trainings in NAS-Bench-101's official file to the columns of its table."""

from array import array
from functools import cache
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idarts.arch import nas_bench_1shot1, nas_bench_101
from idarts.errors import InputError
from idarts.tables.nas_bench_101.table import EPOCHS, OPS, SIZE, VARIANTS, VERTICES, unpack
from idarts.tables.nas_bench_101.tfrecord import METRICS, Record, read_records
from idarts.tables.registry import Progress
from idarts.tables.storage.columns import warn_if_incomplete

_CHECKED = 997  # compute the fingerprint of one cell in so many; the checksums guard the others


def read(file: Path, progress: Progress | None = None) -> dict[str, NDArray[Any]] | None:
    """The columns of nasbench_only108.tfrecord or nasbench_full.tfrecord.

    >>> read(Path("notes.txt")) is None
    True
    """
    if file.suffix != ".tfrecord":
        return None
    rows: dict[bytes, int] = {}
    cells: list[tuple[int, int, int, int]] = []  # vertices, edges, ops, params
    trainings = {epochs: (array("I"), array("d")) for epochs in EPOCHS}  # the row and METRICS of each training
    for record in read_records(file, progress):
        if record.fingerprint not in rows:
            rows[record.fingerprint] = len(rows)
            cells.append(_cell(record, file, check=len(cells) % _CHECKED == 0))
        if record.epochs not in trainings:
            known = ", ".join(map(str, trainings))
            raise InputError(f"{file}: a training of {record.epochs} epochs, expected one of {known}")
        row, metrics = trainings[record.epochs]
        row.append(rows[record.fingerprint])
        metrics.extend(record.metrics)
    if not trainings[108][0]:
        raise InputError(f"{file} holds no training of 108 epochs; get nasbench_only108.tfrecord")
    warn_if_incomplete(len(rows), SIZE, file)
    return _sorted_columns(rows, cells, trainings)


def _sorted_columns(
    rows: dict[bytes, int], cells: list[tuple[int, int, int, int]], trainings: Any
) -> dict[str, NDArray[Any]]:
    halves = np.frombuffer(b"".join(rows), ">u8").reshape(-1, 2)
    vertices, edges, ops, params = np.array(cells, np.int64).T
    columns = {
        "hash_high": halves[:, 0].astype("<u8"),
        "hash_low": halves[:, 1].astype("<u8"),
        "vertices": vertices.astype(np.uint8),
        "edges": edges.astype(np.uint32),
        "ops": ops.astype(np.uint8),
        "params": params.astype(np.int32),
        "spaces": np.array([spaces_of(*cell[:2]) for cell in cells], np.uint8),
    }
    for epochs, (row, metrics) in trainings.items():
        if row:
            places, values = np.array(row), np.array(metrics).reshape(-1, len(METRICS))
            runs = np.bincount(places, minlength=len(rows))
            for name, column in zip(METRICS, values.T, strict=True):
                with np.errstate(invalid="ignore"):  # 0/0 = NaN where a cell has no training of this length
                    means = np.bincount(places, column, len(rows)) / runs
                columns[f"{name}_{epochs}"] = means.astype(np.float32)
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    return {name: column[order] for name, column in columns.items()}


def _cell(record: Record, file: Path, check: bool) -> tuple[int, int, int, int]:
    vertices = isqrt(len(record.adjacency))
    ops = record.ops.split(",")[1:-1]
    where = f"{file}: the cell {record.fingerprint.hex()}"
    fits = vertices**2 == len(record.adjacency) and len(ops) == vertices - 2 and vertices <= VERTICES
    known = set(ops) <= set(OPS) and set(record.adjacency) <= set("01")
    if not fits or not known or len(record.fingerprint) != 16:
        raise InputError(f"{where} is not one of NAS-Bench-101; get the file again")
    edges = sum(
        1 << source + target * (target - 1) // 2
        for target in range(vertices)
        for source in range(target)
        if record.adjacency[source * vertices + target] == "1"
    )
    if check:
        matrix = [[int(bit) for bit in record.adjacency[row * vertices :][:vertices]] for row in range(vertices)]
        fingerprint = nas_bench_101.fingerprint(nas_bench_101.from_matrix(matrix, ops))
        if fingerprint != record.fingerprint.hex():
            raise InputError(f"{where} has the fingerprint {fingerprint}; get the file again")
    digits = (OPS.index(op) * 3**place for place, op in enumerate(ops))
    return vertices, edges, sum(digits), record.params


@cache
def spaces_of(vertices: int, edges: int) -> int:
    """The spaces of 1Shot1 that contain cells of this shape, as in the column `spaces`.

    Operations do not matter: each of those spaces allows every operation on every vertex, so the graph decides.

    >>> spaces_of(3, 0b101)
    0
    """
    matrix, _ = unpack(vertices, edges, 0)
    return _shapes().get(_shape(matrix), 0)


@cache
def _shapes() -> dict[str, int]:
    shapes: dict[str, int] = {}
    for bit, variant in enumerate(VARIANTS):
        for parents in nas_bench_1shot1.parent_choices(variant):
            ops = [OPS[0]] * (len(parents) - 1)
            matrix, _ = nas_bench_1shot1.to_matrix(nas_bench_1shot1.from_choices(variant, ops, parents))
            shape = _shape(matrix)
            shapes[shape] = shapes.get(shape, 0) | 1 << bit
    return shapes


def _shape(matrix: list[list[int]]) -> str:
    """The same for equal graphs, in whatever order their vertices are."""
    ops = [OPS[0]] * (len(matrix) - 2)
    return nas_bench_101.fingerprint(nas_bench_101.from_matrix(matrix, ops))
