"""The NAS-Bench tables, where the person who runs the tests has them."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def table():
    """A function that reads columns of a table as lists; the test is skipped where the table is not at hand."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow (idarts[tables])")
    folder = os.environ.get("IDARTS_TABLES")
    if not folder:
        pytest.skip("IDARTS_TABLES names no folder with NAS-Bench tables")

    def read(name: str, *columns: str) -> dict[str, list]:
        file = Path(folder, name)
        if not file.is_file():
            pytest.skip(f"IDARTS_TABLES names no folder with {name}")
        return parquet.read_table(file, columns=list(columns)).to_pydict()

    return read
