"""The table of NAS-Bench-101, sorted by the official fingerprint, and its views for NAS-Bench-1Shot1."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from idarts.arch import Architecture, parse
from idarts.errors import InputError
from idarts.spaces import nas_bench_1shot1, nas_bench_101
from idarts.tables.lookup import RowTable, decimal
from idarts.tables.storage.columns import Columns

NAME = nas_bench_101.SPACE
SIZE = 423_624
EPOCHS = (4, 12, 36, 108)  # a table always has columns for 108, and may have some for the others
# Columns: one of these and the epochs. Accuracies are means over seeds, as fractions.
MEASURED = ("valid", "test", "train", "train_time")
# More columns: hash_high and hash_low (the halves of the fingerprint), vertices, edges (bit x + y(y-1)/2 for the edge
# x→y), ops (the operations of the inner vertices as digits in base 3, vertex 1 first), params, spaces (bit v: the cell
# is in the space S(v+1) of 1Shot1).
VARIANTS = tuple(nas_bench_1shot1.PARENTS)
VIEWS = {  # name → the bits of `spaces` of which a row needs one; 0 for all rows
    NAME: 0,
    nas_bench_1shot1.SPACE: (1 << len(VARIANTS)) - 1,
    **{f"{nas_bench_1shot1.SPACE}-{variant.lower()}": 1 << bit for bit, variant in enumerate(VARIANTS)},
}
_HASH = re.compile(r"[0-9a-f]{32}", re.IGNORECASE)


class Table101(RowTable):
    """Accuracies on CIFAR-10 after 108 epochs. `benchmark` names a view: all cells, or those of spaces of 1Shot1."""

    _scale = 100
    measure = "cifar10_test"
    _needed = frozenset(("hash_high", "hash_low", "vertices", "edges", "ops", "params", "spaces", "test_108"))

    def __init__(self, benchmark: str, columns: Columns) -> None:
        super().__init__(benchmark, columns)
        self._mask = VIEWS[benchmark]

    @property
    def splits(self) -> dict[str, tuple[str, ...]]:
        return {"cifar10": tuple(split for split in ("valid", "test") if f"{split}_108" in self.columns)}

    def details(self, architecture: Any) -> dict[str, Any]:
        """`query` plus, for each imported training length (4, 12, 36, 108 epochs), the accuracies `valid`, `test`,
        `train` and the seconds `train_time`, as means over three seeds. A value is None if the file does not have it.
        """
        row = self.row(architecture)
        return {
            **self._answer(row),
            "epochs": {
                str(epochs): {name: self._measured(name, epochs, row) for name in MEASURED}
                for epochs in EPOCHS
                if f"test_{epochs}" in self.columns
            },
        }

    def row(self, architecture: Any) -> int:
        if isinstance(architecture, str) and _HASH.fullmatch(architecture.strip()):
            fingerprint = architecture.strip().lower()
        else:
            fingerprint = nas_bench_101.fingerprint(_as_101(parse(architecture)))
        row = self._row_of(fingerprint)
        if row is None:
            raise InputError(f"the table {self.columns.file} has no cell {fingerprint}")
        if self._mask and not self.columns["spaces"][row] & self._mask:
            raise InputError(f"the cell {fingerprint} is in nas-bench-101, but not in {self.benchmark}")
        return row

    def _row_of(self, fingerprint: str) -> int | None:
        high, low = int(fingerprint[:16], 16), int(fingerprint[16:], 16)
        highs, lows = self.columns["hash_high"], self.columns["hash_low"]
        row = bisect_left(highs, high)
        while row < len(highs) and highs[row] == high:
            if lows[row] == low:
                return row
            row += 1
        return None

    def _answer(self, row: int) -> dict[str, Any]:
        columns = self.columns
        matrix, ops = nas_bench_101.to_matrix(
            nas_bench_101.from_matrix(*unpack(columns["vertices"][row], columns["edges"][row], columns["ops"][row]))
        )
        return {
            "hash": f"{columns['hash_high'][row]:016x}{columns['hash_low'][row]:016x}",
            "architecture": {"matrix": matrix, "ops": ops},
            "valid": self._measured("valid", 108, row),
            "test": self._measured("test", 108, row),
            "params": columns["params"][row],
            "in_1shot1": [variant for bit, variant in enumerate(VARIANTS) if columns["spaces"][row] >> bit & 1],
        }

    def _measured(self, name: str, epochs: int, row: int) -> float | None:
        column = f"{name}_{epochs}"
        if column not in self.columns:
            return None
        value = self.columns[column][row]
        return decimal(value if name == "train_time" else self._scale * value)

    def _rows(self) -> Iterable[int]:
        if not self._mask:
            return range(len(self.columns["test_108"]))
        return (row for row, spaces in enumerate(self.columns["spaces"]) if spaces & self._mask)

    def _column(self, dataset: str, split: str) -> str:
        return f"{split}_108"


def _as_101(architecture: Architecture) -> Architecture:
    is_view = architecture.space == nas_bench_1shot1.SPACE
    return nas_bench_1shot1.to_nas_bench_101(architecture) if is_view else architecture


def unpack(vertices: int, edges: int, ops: int) -> tuple[list[list[int]], list[str]]:
    """The adjacency matrix and the inner operations of a cell, from its columns.

    >>> unpack(3, 0b101, 2)
    ([[0, 1, 0], [0, 0, 1], [0, 0, 0]], ['maxpool3x3'])
    """
    matrix = [
        [int(source < target and edges >> source + target * (target - 1) // 2 & 1) for target in range(vertices)]
        for source in range(vertices)
    ]
    return matrix, [nas_bench_101.OPS[ops // 3**position % 3] for position in range(vertices - 2)]
