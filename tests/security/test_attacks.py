"""Files made to run code, to overwrite other files, or to cost far more than their size: one line each."""

import bz2
import gzip
import io
import json
import pickle
import resource
import struct
import subprocess
import sys
import time
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from idarts.cli import main
from idarts.data import load
from idarts.data.pictures import MOST_PIXELS, read_picture
from idarts.data.sources.fashion_mnist import read_idx
from idarts.engine import checkpoint, folder
from idarts.engine.lock import LOCK, locked, wait_until_free
from idarts.errors import IdartsError, InputError
from idarts.experiments.sweep import MOST_JOBS, plan, read_plan
from idarts.files import DEEPEST, csv_text, load_json, write_whole
from idarts.pages.experiment import Section, write_page
from idarts.pickles import NUMPY, unpickle
from idarts.tables.nas_bench_201.pickles import read_pickle
from idarts.tables.storage.columns import Columns, write_columns

REPOSITORY = Path(__file__).parents[2]


# --- nothing in a file is imported -----------------------------------------------------------------------------


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A module on the path that leaves a mark when it is imported."""
    mark = tmp_path / "ran"
    (tmp_path / "evilmod.py").write_text(f"open({str(mark)!r}, 'w')\nclass X: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "evilmod", raising=False)
    yield mark
    assert not mark.exists()
    assert "evilmod" not in sys.modules


NAMED = ("evilmod:X", "evilmod.X", {"class_path": "evilmod.X"}, {"class_path": "evilmod.X", "init_args": {}})
PLACES = ("weights", "alpha", "hypergradient", "selection", "cost", "relaxation", "alpha.rule", "stages", "strategy")
PLACES += ("space", "method", "data", "tables", "selection.rule", "hypergradient.method", "weights.relaxation", "log")


@pytest.mark.parametrize("place", PLACES)
def test_no_settings_file_imports_anything(place, trap, tmp_path, capsys):
    for number, value in enumerate(NAMED):
        group, _, name = place.partition(".")
        settings = {group: {name: value} if name else value}
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps({"preset": "smoke", **settings}))
        assert main(["search", "--config", str(file), "--out", str(tmp_path / "run")]) == 2
        file = tmp_path / f"{number}.yaml"
        file.write_text(json.dumps({"preset": "smoke", "settings": settings}))  # JSON is YAML
        assert main(["sweep", str(file), "--engine", "here", "--out", str(tmp_path / "sweep")]) == 2
        run = tmp_path / f"run {number}"
        run.mkdir()
        (run / "config.json").write_text(json.dumps({"checkpoint_rounds": 1, **settings}))
        assert main(["search", "--resume", "--out", str(run)]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", ["data: !!python/name:evilmod.X", "data: !!python/object/apply:evilmod.X []", "!!python/module:evilmod"]
)
def test_yaml_makes_no_objects(content, trap, tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text(content)
    assert main(["search", "--config", str(file)]) == 2
    with pytest.raises(InputError, match="is not YAML"):
        read_plan(file)


def test_jsonargparse_is_gone():
    used = [file for file in (REPOSITORY / "src").rglob("*.py") if "import jsonargparse" in file.read_text()]
    assert used == []
    assert "jsonargparse" not in (REPOSITORY / "pyproject.toml").read_text()


# --- links -----------------------------------------------------------------------------------------------------


def test_a_lock_that_is_a_link_is_refused_and_its_target_kept(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("all of it")
    run = tmp_path / "run"
    run.mkdir()
    (run / LOCK).symlink_to(precious)
    with pytest.raises(InputError, match="cannot be written: Too many levels of symbolic links"), locked(run, "run"):
        pass
    with pytest.raises(InputError):
        wait_until_free(run, 0)
    (run / folder.METRICS).symlink_to(precious)
    with pytest.raises(IdartsError, match="symbolic links"), folder.round_log(run):
        pass
    assert precious.read_text() == "all of it"


def test_files_replace_links_and_not_their_targets(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("all of it")
    for name in ("config.json", "00000001.pt"):
        (tmp_path / name).symlink_to(precious)
    write_whole(tmp_path / "config.json", b"{}")
    checkpoint.save(tmp_path, 1, {"w": 1})
    assert precious.read_text() == "all of it"
    assert not (tmp_path / "config.json").is_symlink()


# --- small files that cost much --------------------------------------------------------------------------------

MEMORY = 1 << 29  # more than any of these may take


@pytest.fixture
def cheap():
    """At most half a gigabyte more than before, and a few seconds."""
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MEMORY
    assert time.process_time() - started < 10


PICKLES = {
    "memo index": b"\x80\x02]r" + struct.pack("<I", 2**32 - 1) + b".",
    "memo text": b"]p99999999999\n.",
    "deep tuple as a key": b"\x80\x02})" + b"\x85" * 10**6 + b"Ns.",
    "doubled tuple as a key": b"\x80\x02})" + b"2\x86" * 100 + b"Ns.",
    "byte array": b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b".",
    "bytes": b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b".",
    "frame": b"\x80\x04\x95" + struct.pack("<Q", 2**40) + b".",
    "doubled names": b"\x80\x02}X\x0b\x00\x00\x00label_names]]" + b"]\x86" * 0 + b"2\x86" * 100 + b"as.",
}


@pytest.mark.parametrize("name", PICKLES)
def test_a_small_pickle_costs_little(name, tmp_path, cheap):
    cifar = tmp_path / "cifar-10-batches-py"
    cifar.mkdir()
    for batch in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        (cifar / batch).write_bytes(PICKLES[name])
    with pytest.raises(InputError, match=r"^[^\n]+$"):
        load("cifar10", tmp_path)
    (tmp_path / "a.pbz2").write_bytes(bz2.compress(PICKLES[name]))
    try:
        read_pickle(tmp_path / "a.pbz2")
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 (a success is as good)


def test_labels_that_are_lists_of_lists_are_refused(tmp_path, cheap):
    doubled = [1]
    for _ in range(40):
        doubled = [doubled, doubled]
    batch = {b"data": np.zeros((2, 3072), np.uint8), b"labels": doubled}
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    with pytest.raises(InputError, match="labels are not whole numbers"):
        load("cifar10", tmp_path)


def test_the_unpickler_agrees_with_pythons_own():
    content = {("cifar10", 777): [1.5, {"a": b"x"}], "set": {1, 2}, "long": 10**30, "none": None, "text": "é" * 300}
    for protocol in range(2, 6):
        stream = io.BytesIO(pickle.dumps(content, protocol))
        assert unpickle(stream, {**NUMPY, "builtins.set": set, "__builtin__.set": set}) == content


def test_archives_that_decompress_to_far_more_are_refused(tmp_path, cheap):
    zeros = bytes(1 << 20)
    with gzip.open(tmp_path / "a.gz", "wb", compresslevel=1) as file:
        file.write(struct.pack(">BBBBI", 0, 0, 8, 1, 1 << 30))
        for _ in range(300):
            file.write(zeros)
    with pytest.raises(InputError, match=r"decompress to more than 268435456"):
        read_idx(tmp_path / "a.gz")
    (tmp_path / "a.pbz2").write_bytes(bz2.compress(b"\x80\x02" + b"]" * (1 << 25)))
    with pytest.raises(InputError, match=r"decompress to more than"):
        read_pickle(tmp_path / "a.pbz2")
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w") as file,
    ):
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (300 << 20,)})
        for _ in range(300):
            file.write(zeros)
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("y.npy", b"")
    with pytest.raises(InputError, match=r"x decompresses to 314,\d+,\d+ bytes; such a file is an attack"):
        load(f"npz:{tmp_path / 'a.npz'}")


@pytest.mark.parametrize("shape", ["(10**12,)", "(1000000000000,)", "(-1,)", "(2, 2)", "(1,) * 100", "()"])
def test_an_array_is_as_large_as_it_says(shape, tmp_path, cheap):
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\x00" * 8
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", member)
        archive.writestr("y.npy", member)
    with pytest.raises(InputError, match="Python objects or damaged arrays"):
        load(f"npz:{tmp_path / 'a.npz'}")


def test_arrays_that_are_not_needed_are_not_read(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 8, 8), np.uint8), y=np.arange(4) % 2, other=np.array([object()]))
    assert len(load(f"npz:{tmp_path / 'a.npz'}", hold_out=0).train) == 4


def test_an_image_of_too_many_pixels_is_refused_and_a_large_one_reduced(tmp_path, cheap):
    side = int(MOST_PIXELS**0.5) + 1
    Image.new("1", (side, side)).save(tmp_path / "a.png")
    with pytest.raises(InputError, match=rf"^it has {side} × {side} pixels, more than 67,108,864; make it smaller$"):
        read_picture(tmp_path / "a.png", 8)
    halves = Image.new("L", (4000, 3000), 40)
    halves.paste(200, (2000, 0, 4000, 3000))
    halves.save(tmp_path / "b.png")
    picture = read_picture(tmp_path / "b.png", 8)
    assert picture[:, :, :3].unique().tolist() == [40]
    assert picture[:, :, 5:].unique().tolist() == [200]
    halves.save(tmp_path / "c.jpg")
    assert (read_picture(tmp_path / "c.jpg", 8).int() - picture.int()).abs().max() < 3


LAUGHS = "a: &a [x, x]\n" + "".join(f"{c}: &{c} [*{b}, *{b}]\n" for b, c in pairwise("abcdefghijklmnopqrstuvwxyz"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LAUGHS, "is not YAML, see line 2"),
        ("settings: " + "[" * 2000 + "]" * 2000, "is nested too deep"),
        ("settings: {a: {b: {c: {d: {e: {f: {g: 1}}}}}}}", "is nested too deep"),
        ("seeds: 1\n#" + "x" * (1 << 20), "has more than 1,048,576 bytes"),
        ("3: 4", "has the name 3, which is not text"),
        ("settings: " + "[" * 400_000, "is nested too deep"),
        ("seeds: 0x" + "f" * 100_000, "has a number that no setting can have"),
    ],
)
def test_a_sweep_is_read_as_safely_as_settings(content, message, tmp_path, cheap):
    (tmp_path / "a.yaml").write_text(content)
    with pytest.raises(InputError, match=f"{message}.*; `idarts sweep --help` shows an example$"):
        read_plan(tmp_path / "a.yaml")


def test_json_is_bounded_in_depth_and_numbers(cheap):
    assert load_json("[" * DEEPEST + "]" * DEEPEST)
    for text in ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), '{"a":' * 70 + "1" + "}" * 70, "[" * 10**6, "9" * 5000):
        with pytest.raises(InputError, match=r"^not JSON[^\n]*$"):
            load_json(text)
    assert np.isnan(folder.as_float(10**400))
    assert np.isnan(folder.as_float(-(10**400)))


# --- sweeps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [MOST_JOBS + 1, 10**15, 2**62])
def test_a_sweep_of_very_many_jobs_is_refused_with_the_option_that_allows_it(seeds, tmp_path, capsys, cheap):
    (tmp_path / "a.yaml").write_text(f"preset: smoke\nseeds: {seeds}\n")
    assert main(["sweep", str(tmp_path / "a.yaml"), "--out", str(tmp_path / "out")]) == 2
    expected = f"it plans {seeds:,} searches, more than 10,000; allow them with --max-jobs {seeds}"
    assert capsys.readouterr().err == f"idarts: {tmp_path / 'a.yaml'}: {expected}\n"
    assert not (tmp_path / "out").exists()


def test_the_limit_of_a_sweep_can_be_moved():
    lines = []
    assert len(plan({"preset": "smoke", "seeds": 1001}, 1001, lines.append).jobs) == 1001
    assert lines == ["planned 1,000 of 1,001 searches"]
    with pytest.raises(InputError, match="it plans 12 searches, more than 11"):
        plan({"preset": "smoke", "seeds": 3, "grid": {"batch": [8, 16], "rounds": [1, 2]}}, most=11)


# --- what others open ------------------------------------------------------------------------------------------


def test_cells_of_csv_run_nothing():
    names = ["=1+1", "+cmd", "-cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1", "plain"]
    lines = csv_text(["name", "value"], [{"name": name, "value": -1.5} for name in names]).splitlines()
    assert [line[:2] for line in lines[1:6]] == ["'=", "'+", "'-", "'@", "'\t"]
    assert csv_text(["a"], [{"a": "-1.5"}, {"a": -2}]) == "a\n-1.5\n-2\n"  # numbers stay numbers


def test_names_in_markdown_stay_text(tmp_path):
    name = "<img src=x onerror=alert(1)>|[a](javascript:b)`c`\n# title"
    write_page(tmp_path, "page", "A page.", "now", [Section("Means", header=["", "x"], rows=[[name, "1"]])])
    row = next(line for line in (tmp_path / "results.md").read_text().splitlines() if "img" in line)
    assert row == r"| \<img src=x onerror=alert(1)\>\|\[a\](javascript:b)\`c\` # title | 1 |"


def test_a_full_disk_is_one_line_for_the_log_too(tmp_path):
    code = (
        "import resource, sys; from pathlib import Path; from idarts.engine.folder import round_log\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "with round_log(Path(sys.argv[1])) as append: append({'number': 1, 'loss': 0.123456789})"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    expected = f"cannot write {tmp_path / folder.METRICS}: File too large"  # the run adds which checkpoint is whole
    assert done.stderr.splitlines()[-1] == f"idarts.errors.WriteError: {expected}"


def test_a_zip_archive_of_the_future_is_one_line(tmp_path):
    write_columns(tmp_path / "a.npz", {"test": np.zeros(3, np.float32)})
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 200  # the version that is needed to extract it
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read as a table \(zip file version 20\.0\); import it again$"):
        Columns(tmp_path / "a.npz")


# --- a full disk -----------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
from idarts.cli import main
if sys.argv[1] != "0":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (20_000, "the checkpoint of round 1 could not be written to {run} (File too large); there is no"),
        (10, "cannot write {run}/config.json: File too large"),
    ],
)
def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(limit, message, tmp_path):
    run = tmp_path / "run"
    arguments = ["search", "--preset", "smoke", "--rounds", "2", "--checkpoint-rounds", "1", "--out", str(run)]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *arguments], capture_output=True, text=True, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"idarts: {message.format(run=run)}")
    assert "enforce fail" not in done.stderr
    assert [file.name for file in run.rglob("*") if ".pt" in file.name or file.name.startswith(".c")] == []
