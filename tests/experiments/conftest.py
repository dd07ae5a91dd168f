"""The real tables where IDARTS_TABLES has them, else one of made-up numbers and a stand-in for NAS-Bench-101."""

import os
from pathlib import Path

import numpy as np
import pytest

from idarts.experiments.paper import along
from idarts.spaces import nas_bench_1shot1, nas_bench_101
from idarts.tables.nas_bench_201.table import ACCURACIES, COUNTS, DATASETS, SECONDS
from idarts.tables.storage.columns import write_columns


def real_folder():
    folder = os.environ.get("IDARTS_TABLES")
    names = ("nasbench201_tss.parquet", "nasbench101_108ep_test.parquet")
    return folder if folder and all(Path(folder, name).is_file() for name in names) else None


def made_up_201(folder):
    """All cells, with accuracies that differ from cell to cell and 2,000 seconds of training each."""
    rng = np.random.default_rng(0)
    columns = {"runs": np.full(15625, 3, np.uint8)}
    for dataset in DATASETS:
        columns |= {f"{dataset}_{name}": rng.uniform(40, 95, 15625).astype(np.float32) for name in ACCURACIES}
        columns |= {f"{dataset}_{name}": np.full(15625, 100, np.int32) for name in COUNTS}
        columns |= {f"{dataset}_{name}": np.full(15625, 2000, np.float32) for name in SECONDS}
    write_columns(Path(folder, "nas-bench-201.npz"), columns)


class AnyCell:
    """Answers for every cell, from its fingerprint."""

    def query(self, architecture):
        found = nas_bench_101.fingerprint(nas_bench_1shot1.to_nas_bench_101(architecture))
        return {"hash": found, "valid": None, "test": 85 + 10 * int(found[:4], 16) / 65536}


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """A folder of tables, converted once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        folder = real_folder()
        if folder is None:
            folder = tmp_path_factory.mktemp("tables")
            made_up_201(folder)
            patch.setattr(along, "table", lambda *_: AnyCell())
        yield Path(folder)
