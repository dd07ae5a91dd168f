"""The table of NAS-Bench-301: trained cells of the DARTS space, and a surrogate for all the others."""

from collections.abc import Iterable
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from idarts.arch import as_text
from idarts.errors import InputError
from idarts.tables.lookup import NoTableError, Rank, RowTable, decimal
from idarts.tables.nas_bench_301.codes import decode, encode, row_of
from idarts.tables.storage.places import cache_folder

if TYPE_CHECKING:
    from idarts.tables.nas_bench_301.surrogate import Surrogate

NAME = "nas-bench-301"
DATASET = "cifar10"
SURROGATE = f"{NAME}-surrogate.npz"


class Table301(RowTable):
    """Accuracies on CIFAR-10 of networks with 8 cells and 32 channels; 10,000 training images are held out for valid.

    `query` says where a value comes from: `"source": "trained"`, or `"surrogate"` with its standard deviation.
    """

    split = "valid"
    measure = "cifar10_valid"
    _needed = frozenset(("normal", "reduce", "valid"))

    @property
    def splits(self) -> dict[str, tuple[str, ...]]:
        return {DATASET: tuple(split for split in ("valid", "test") if split in self.columns)}

    def query(self, architecture: Any) -> dict[str, Any]:
        codes = encode(architecture)
        row = row_of(*codes, self.columns["normal"], self.columns["reduce"])
        return self._predicted(codes) if row is None else self._answer(row)

    def details(self, architecture: Any) -> dict[str, Any]:
        return self.query(architecture)

    def accuracy(self, architecture: Any, dataset: str = DATASET, split: str | None = None) -> float:
        answer = self.query(architecture)
        value = answer[DATASET].get(split or self.split) if dataset == DATASET else None
        if value is None:
            raise InputError(f"{NAME} has no {split or self.split} accuracy on {dataset} for this cell")
        return float(value)

    def rank(self, architecture: Any, dataset: str = DATASET, split: str | None = None) -> Rank:
        """The place of a cell among the trained ones, by its trained or predicted accuracy."""
        value = self.accuracy(architecture, dataset, split)
        others = [known for other in self._values(dataset, split) if (known := decimal(other)) is not None]
        return Rank(1 + sum(map(value.__lt__, others)), len(others))

    def row(self, architecture: Any) -> int:
        row = row_of(*encode(architecture), self.columns["normal"], self.columns["reduce"])
        if row is None:
            raise InputError(f"the table {self.columns.file} has no such cell")
        return row

    def check(self) -> None:
        """The columns and the surrogate: a search needs an answer for every cell."""
        super().check()
        _ = self.surrogate

    @property
    def checksum(self) -> int:
        """Of the trained values: a surrogate belongs to the table that it was fitted to."""
        checksum = 0
        for name in ("normal", "reduce", "valid"):
            checksum = crc32(self.columns[name], checksum)
        return checksum

    @cached_property
    def surrogate(self) -> "Surrogate":
        """From the table's folder or the user's cache."""
        from idarts.tables.nas_bench_301.surrogate import load  # noqa: PLC0415 (needs numpy)

        for file in (self.columns.file.parent / SURROGATE, cache_folder() / SURROGATE):
            if file.is_file():
                surrogate = load(file)
                if surrogate.table == self.checksum:
                    return surrogate
        raise NoTableError(
            f"{NAME} has no surrogate for cells that were not trained; fit it once with: idarts table fit {NAME}"
        )

    def predict(self, architectures: Iterable[Any]) -> tuple[list[float], list[float]]:
        """The surrogate's accuracies and deviations for many cells, trained or not."""
        import numpy as np  # noqa: PLC0415 (look-ups avoid numpy)

        means, deviations = self.surrogate(np.array([encode(one) for one in architectures], np.uint64).reshape(-1, 2))
        return means.tolist(), deviations.tolist()

    def _predicted(self, codes: tuple[int, int]) -> dict[str, Any]:
        architecture = decode(*codes)
        (mean,), (deviation,) = self.predict([architecture])
        return {
            "architecture": as_text(architecture),
            DATASET: {"valid": round(mean, 3)},
            "source": "surrogate",
            "deviation": round(deviation, 3),
        }

    def _answer(self, row: int) -> dict[str, Any]:
        codes = self.columns["normal"][row], self.columns["reduce"][row]
        if isnan(self.columns["valid"][row]):
            return self._predicted(codes)
        values = {split: decimal(self.columns[split][row]) for split in self.splits[DATASET]}
        return {"architecture": as_text(decode(*codes)), DATASET: values, "source": "trained"}

    def _rows(self) -> Iterable[int]:
        return range(len(self.columns))

    def _column(self, dataset: str, split: str) -> str:
        return split


def fit_surrogate(table: Table301, target: Path, progress: Any = None) -> dict[str, float]:
    """Fit the surrogate to a table's trained cells and write it; how well held-out cells are predicted."""
    import numpy as np  # noqa: PLC0415 (look-ups avoid numpy)

    from idarts.tables.nas_bench_301.surrogate import fit  # noqa: PLC0415 (only to fit: a look-up needs none of it)

    columns = table.columns
    codes = np.stack([np.array(columns[name], np.uint64) for name in ("normal", "reduce")], axis=1)
    valid = np.array(columns["valid"], np.float32)
    known = ~np.isnan(valid)
    fitted = fit(codes[known], valid[known], table.checksum, progress=progress)
    fitted.surrogate.save(target)
    return fitted.figures()
