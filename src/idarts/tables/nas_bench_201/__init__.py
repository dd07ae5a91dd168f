"""NAS-Bench-201, which NATS-Bench calls its topology space: the accuracies of all its cells on three data sets."""

from idarts.tables.nas_bench_201.table import NAME, Table201
from idarts.tables.registry import TABLES
from idarts.tables.storage.stored import Importers, Stored


def _importers() -> Importers:
    from idarts.tables.nas_bench_201 import official, parquet  # noqa: PLC0415 (they need numpy)

    return Importers(official.read, parquet.COLUMNS, parquet.read)


BENCHMARK = Stored(
    name=NAME,
    open_columns=Table201,
    importers=_importers,
    download=("NATS-tss-v1_0-3ffb9-simple", "https://github.com/D-X-Y/NATS-Bench"),
    parquet="nasbench201_tss.parquet",
    official=(
        "the unpacked folder NATS-tss-v1_0-3ffb9-simple",
        "NAS-Bench-201-v1_1-096897.pth",
        "NATS-tss-v1_0-3ffb9.pickle.pbz2",
        "nasbench201_tss.parquet",
    ),
)
TABLES.add(NAME, BENCHMARK)
