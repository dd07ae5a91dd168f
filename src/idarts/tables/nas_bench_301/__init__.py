"""NAS-Bench-301 (Zela et al. 2022): trained cells of the DARTS space, and a surrogate for all others."""

from pathlib import Path

from idarts.spaces import darts
from idarts.tables.nas_bench_301.table import NAME, SURROGATE, Table301, fit_surrogate
from idarts.tables.registry import TABLES, Folder, Progress
from idarts.tables.storage.places import cache_folder, make_folder
from idarts.tables.storage.stored import Importers, Stored


def _importers() -> Importers:
    from idarts.tables.nas_bench_301 import official, parquet  # noqa: PLC0415 (they need numpy)

    return Importers(official.read, parquet.COLUMNS, parquet.read)


class _Benchmark(Stored):
    """A stored table whose unknown cells a surrogate answers."""

    def fit(self, folder: Folder = None, progress: Progress | None = None) -> tuple[Path, dict[str, float]]:
        opened = self.open(NAME, folder)
        assert isinstance(opened, Table301)
        target = make_folder(cache_folder()) / SURROGATE
        return target, fit_surrogate(opened, target, progress)


BENCHMARK = _Benchmark(
    name=NAME,
    open_columns=Table301,
    importers=_importers,
    download=("nasbench301_full_data", "https://github.com/automl/nasbench301"),
    parquet="nasbench301_real.parquet",
    official=("the unpacked folder of NAS-Bench-301's results", "nasbench301_real.parquet"),
)
# A variant of the space with other operations has cells that the benchmark does not describe.
_VIEWS = [name for name, ops in darts.VARIANTS.items() if set(ops) <= set(darts.OPS)]
for _name in (NAME, darts.SPACE, *_VIEWS):
    TABLES.add(_name, BENCHMARK)
