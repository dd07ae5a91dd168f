"""Data sources from outside the package: a function, a new file, `package.module:name` on the command line."""

import sys

import numpy as np
import official_files as files
import pytest
import torch

from idarts.cli import main
from idarts.data import SOURCES, Raw, Source, load, load_typed, source_names
from idarts.errors import InputError

MODULE = """
import numpy as np
from idarts.data import Raw

def blobs(path, root):
    if path == "broken":
        return 5
    images = (np.arange(40 * 64).reshape(40, 8, 8) * 7 % 251).astype(np.uint8)
    return Raw({"train": (images, np.arange(40) % 2)}, (f"even {path}", "odd"))
"""


def blobs(path, root):
    images = (np.arange(40 * 64).reshape(40, 8, 8) * 7 % 251).astype(np.uint8)
    return Raw({"train": (images, np.arange(40) % 2)}, (f"even {path}", "odd"))


@pytest.fixture(autouse=True)
def own(monkeypatch):
    """Forgets the sources that a test adds."""
    list(SOURCES)  # those of the package are there before
    for known in ("_own", "_parts"):
        monkeypatch.setattr(SOURCES, known, dict(getattr(SOURCES, known)))


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "my_data.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "my_data:blobs"
    sys.modules.pop("my_data", None)


def test_a_function_is_a_source():
    data = load(blobs, hold_out=0)
    assert data.source.endswith(":blobs")
    assert torch.equal(data.train.images[:, 0], torch.from_numpy(blobs("", None).parts["train"][0]))
    assert data.classes == ("even ", "odd")
    again = load(data.source, hold_out=0)  # known by that name from now on
    assert torch.equal(again.train.images, data.train.images)
    assert load(f"{data.source}:a:b").classes[0] == "even a:b"


@pytest.mark.parametrize(
    ("returned", "train", "test"),
    [
        ((files.pixels(6, 8, 8), [0, 1] * 3), 6, None),
        (((files.pixels(6, 8, 8), [0, 1] * 3), (files.pixels(4, 8, 8), [0, 1] * 2)), 6, 4),
        (files.Pictures(10), 10, None),
        ((files.Pictures(10), files.Pictures(4)), 10, 4),
        (Raw({"train": (files.Pictures(10).pixels, [0, 1] * 5)}, statistics=((0.5,) * 3, (0.2,) * 3)), 10, None),
    ],
    ids=["arrays", "two pairs of arrays", "dataset", "two datasets", "published statistics"],
)
def test_a_source_returns_whatever_load_takes(returned, train, test):
    data = load(lambda path, root: returned, hold_out=0)
    assert len(data.train) == train
    assert test is None or len(data.test) == test
    assert (data.statistics, data.mean) == ("published", (0.5,) * 3) or data.statistics == "training images"


def test_a_source_gets_the_root():
    roots = []
    load(lambda path, root: roots.append(root) or ((files.pixels(6, 8, 8), [0, 1] * 3)), "some/folder")
    assert roots == ["some/folder"]


def test_a_new_file_in_the_package_is_listed_and_checked():
    """As a file in `sources/` would add itself."""
    SOURCES.add("blobs", Source(blobs, path="COLOUR"))
    assert "blobs:COLOUR" in source_names()
    assert load("blobs:red").classes == ("even red", "odd")
    for text, message in (
        ("blobs:", "the data source 'blobs:' has no path; write blobs:COLOUR"),
        ("blob", "did you mean blobs:COLOUR?"),
        ("imagenet", "the sources are blobs:COLOUR, cifar10, cifar100, digits"),
    ):
        with pytest.raises(InputError, match=message.replace("?", r"\?")):
            load(text)


def test_typed_names_are_imported_and_names_of_the_package_come_first(module, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="type your own on the command line, or pass it from Python"):
        load(module)  # only a person who types it may import it
    load_typed(f"{module}:blue")
    assert load(f"{module}:blue").classes == ("even blue", "odd")
    with pytest.raises(InputError, match="data of type int cannot be used"):
        load(f"{module}:broken")
    (tmp_path / "npz.py").write_text("raise SystemExit('imported')")
    load_typed("npz:a")
    assert "npz" not in sys.modules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("my_data:blob", "has no 'blob'; did you mean blobs?"),
        ("no_such_module:a", "no_such_module cannot be imported .*; is it on PYTHONPATH. the sources are cifar10, "),
        ("folders:PATH", "did you mean folder:PATH?"),
    ],
)
def test_mistakes_in_typed_names_are_one_line(module, text, message, capsys, tmp_path):
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        load_typed(text)
    for command in (["search"], ["train", "nas-bench-201:0"]):
        assert main([*command, "--data", text, "--out", str(tmp_path / "run")]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_the_command_line_trains_on_it(module, tmp_path, capsys):
    out = tmp_path / "run"
    settings = ["--epochs", "1", "--depth", "1", "--channels", "4", "--batch", "8", "--out", str(out)]
    assert main(["train", "nas-bench-201:0", "--data", module, *settings]) == 0
    assert main(["evaluate", str(out), "--data", module]) == 0
    assert "8 test images of my_data:blobs" in capsys.readouterr().out


def test_a_file_of_settings_imports_nothing(module, tmp_path, capsys):
    (tmp_path / "settings.yaml").write_text(f"data: {module}\n")
    arguments = ["train", "nas-bench-201:0", "--config", str(tmp_path / "settings.yaml"), "--out", str(tmp_path / "r")]
    assert main(arguments) == 2
    assert "unknown data source 'my_data:blobs'; the sources are cifar10" in capsys.readouterr().err
    assert "my_data" not in sys.modules


@pytest.mark.parametrize(("package", "source"), [("sklearn", "digits"), ("PIL", "folder:.")])
def test_a_missing_extra_is_one_line_with_the_command_to_get_it(package, source, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=r"needs [^\n]*: pip install 'idarts\[cli\]'$"):
        load(source)


def test_sources_and_datasets_do_without_the_extras(monkeypatch, tmp_path):
    for package in ("PIL", "sklearn"):
        monkeypatch.setitem(sys.modules, package, None)
    files.cifar10_binary(tmp_path)
    assert len(load("cifar10", tmp_path).train) == 20
    tensors = torch.utils.data.TensorDataset(torch.rand(10, 3, 8, 8), torch.arange(10) % 2)
    assert len(load(tensors, hold_out=0).train) == 10
