"""NAS-Bench-101: the accuracies of all its cells on CIFAR-10. The spaces of NAS-Bench-1Shot1 are views of its rows."""

from idarts.tables.nas_bench_101.table import NAME, VIEWS, Table101
from idarts.tables.registry import TABLES
from idarts.tables.storage.stored import Importers, Stored


def _importers() -> Importers:
    from idarts.tables.nas_bench_101 import official, parquet  # noqa: PLC0415 (they need numpy)

    return Importers(official.read, parquet.COLUMNS, parquet.read)


BENCHMARK = Stored(
    name=NAME,
    open_columns=Table101,
    importers=_importers,
    download=("nasbench_only108.tfrecord", "https://storage.googleapis.com/nasbench/nasbench_only108.tfrecord"),
    parquet="nasbench101_108ep_test.parquet",
    official=("nasbench_only108.tfrecord", "nasbench_full.tfrecord", "nasbench101_108ep_test.parquet"),
)
for _view in VIEWS:
    TABLES.add(_view, BENCHMARK)
