"""Tables from outside the package: an object, a class, a new file, `package.module:name` on the command line."""

import json
import sys
from pathlib import Path

import pytest

import idarts
from idarts.arch import parse
from idarts.cli import main
from idarts.data import load
from idarts.errors import InputError
from idarts.spaces import nas_bench_201
from idarts.tables import TABLES, Benchmark, NoTableError, RowTable, Table, find, import_table, row_table, table

MODULE = """
from idarts.arch import parse
from idarts.spaces import nas_bench_201

class Skips:
    \"\"\"Counts skip connections.\"\"\"
    def query(self, architecture):
        ops = nas_bench_201.to_ops(parse(architecture))
        return {"ops": list(ops), "cifar10": {"test": 90.0 + ops.count("skip_connect")}}

skips = Skips()
nothing = 5
"""


class Skips:
    """A table by a formula, without rows: the least that a table can be."""

    def query(self, architecture):
        ops = nas_bench_201.to_ops(parse(architecture))
        return {"ops": list(ops), "cifar10": {"test": 90.0 + ops.count("skip_connect")}}


def cell(index):
    return nas_bench_201.to_string(nas_bench_201.from_index(index))


def skips(index):
    return 90.0 + cell(index).count("skip_connect")


@pytest.fixture
def own(monkeypatch):
    """Forgets the tables that a test adds."""
    list(TABLES)  # those of the package are there before
    for known in ("_own", "_parts"):
        monkeypatch.setattr(TABLES, known, dict(getattr(TABLES, known)))


@pytest.fixture
def module(tmp_path, monkeypatch, own):
    (tmp_path / "my_tables.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "my_tables:skips"
    sys.modules.pop("my_tables", None)


def test_an_object_with_query_is_a_table(own):
    opened = find("any space", Skips())
    assert isinstance(opened, Table)
    assert opened.query(cell(7)) == Skips().query(cell(7))
    assert [opened.accuracy(cell(index)) for index in range(50)] == [skips(index) for index in range(50)]
    with pytest.raises(InputError, match="the table any space has no valid accuracy on cifar10"):
        opened.accuracy(cell(7), split="valid")
    with pytest.raises(InputError, match="has no test accuracy on svhn"):
        opened.accuracy(cell(7), "svhn")


def test_its_own_accuracy_is_used():
    class Own(Skips):
        def accuracy(self, architecture, dataset, split):
            return {"valid": 1, "test": 2}[split]

    assert find("any space", Own()).accuracy(7) == 2.0


@pytest.mark.parametrize("part", [Skips, Skips()], ids=["class", "object"])
def test_by_name_in_the_registry(part, own):
    name = TABLES.own(part)
    assert name.endswith(":Skips")
    assert find("any space", name).accuracy(cell(7)) == table(name).accuracy(cell(7)) == skips(7)
    TABLES.own(part, "my-space")
    assert find("my-space").accuracy(cell(7)) == skips(7)
    with pytest.raises(InputError, match="the table my-space has no rows, so it cannot rank architectures"):
        row_table("my-space")


def test_what_is_not_a_table_is_refused(own):
    TABLES.own([1], "my-space")
    with pytest.raises(InputError, match=r"my-space is a list, expected an object with query\(architecture\)"):
        find("my-space")
    with pytest.raises(InputError, match="the table my_tables:skips is not loaded"):
        find("my-space", "my_tables:skips")


class Surrogate(Benchmark):
    """A benchmark in one file: no rows, a file of coefficients, an import."""

    name = "my-surrogate"
    official = ("coefficients.txt",)

    def locate(self, folder=None):
        file = Path(folder or "nowhere", "my-surrogate.txt")
        if not file.is_file():
            raise NoTableError(f"there is no {file}")
        return file

    def open(self, name, folder=None):
        base = float(self.locate(folder).read_text())

        class Opened(Table):
            def query(self, architecture):
                return {"test": base + skips(architecture) - 90}

        return Opened()

    def import_file(self, file, folder, progress):
        if file.name != "coefficients.txt":
            return None
        target = Path(folder, "my-surrogate.txt")
        target.write_text(file.read_text())
        return target


def test_a_benchmark_without_rows_is_one_file(own, tmp_path):
    """As a file in the package would add itself."""
    benchmark = Surrogate()
    for name in ("my-surrogate", "my-space-a", "my-space-b"):
        TABLES.add(name, benchmark)
    assert find("my-space-a") is None
    with pytest.raises(InputError, match="there is no"):
        find("my-space-a", tmp_path)
    with pytest.raises(InputError, match=r"give the path of .*coefficients\.txt"):
        import_table(tmp_path / "none")
    (tmp_path / "coefficients.txt").write_text("50.5")
    assert import_table(tmp_path / "coefficients.txt", tmp_path) == tmp_path / "my-surrogate.txt"
    for name in ("my-surrogate", "my-space-a", "my-space-b"):
        opened = find(name, tmp_path)
        assert not isinstance(opened, RowTable)
        assert opened.accuracy(7) == 50.5 + skips(7) - 90


def test_on_the_command_line(module, capsys):
    assert main(["table", "query", module, cell(7), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cifar10"] == {"test": skips(7)}
    assert main(["table", "query", module, cell(7)]) == 0
    assert f"{skips(7):.3f}" in capsys.readouterr().out
    for arguments, message in (
        (["best", module], "my_tables:skips has no rows"),
        (["rank", module, cell(7)], "my_tables:skips has no rows"),
        (["query", "my_tables:skip", cell(7)], "has no 'skip'; did you mean skips?"),
        (["query", "my_tables:nothing", cell(7)], "is a int, expected an object with query(architecture)"),
        (["query", "no_such_module:a", cell(7)], "no_such_module cannot be imported"),
    ):
        assert main(["table", *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


@pytest.mark.parametrize("how", ["object", "reference"])
def test_a_search_shows_its_answers(how, module, tmp_path):
    images = load("digits").train
    settings = {"rounds": 2, "batch": 8, "channels": 4, "depth": 1, "method": "darts-first-order"}
    tables = Skips() if how == "object" else TABLES.load(module)
    out = tmp_path / "run"
    result = idarts.search("nas-bench-201", images, out=out, table=tables, selection={"rule": "argmax"}, **settings)
    answer = json.loads((out / "result.json").read_text())["table"]
    assert answer == Skips().query(result.architecture)
    assert json.loads((out / "result.json").read_text())["table_accuracy"] == answer["cifar10"]["test"]
    assert result.rounds[-1]["table_accuracy"] == skips(
        nas_bench_201.to_index(parse(result.rounds[-1]["architecture"]))
    )


def test_a_file_of_settings_imports_nothing(module, tmp_path, capsys):
    """What a file names is used only if it was typed as well."""
    (tmp_path / "settings.yaml").write_text(f"tables: {module}\n")
    arguments = ["search", "--config", str(tmp_path / "settings.yaml"), "--out", str(tmp_path / "run")]
    assert main(arguments) == 2
    assert "the table my_tables:skips is not loaded; name it on the command line" in capsys.readouterr().err
    assert "my_tables" not in sys.modules
