"""Seeded mutations of valid files, and the parser of each: every outcome must be a success or an error of one line.

A seed makes the same file again: `python tests/security/fuzz.py TARGET SEED` runs one try with its traceback.
"""

import bz2
import gzip
import json
import pickle
import random
import shutil
import struct
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image

from idarts.arch import SPACES, as_text, convert, parse, registry
from idarts.cli import settings as cli_settings
from idarts.cli.search import SETTINGS
from idarts.cli.settings import read_settings  # noqa: F401 (settings files are read through `load` and `_checked`)
from idarts.data.sources import cifar, fashion_mnist, folder, npz
from idarts.engine import checkpoint
from idarts.engine.folder import is_run, read_run
from idarts.errors import IdartsError
from idarts.experiments.comparison import compare
from idarts.experiments.facts import facts
from idarts.experiments.store import Store
from idarts.experiments.sweep import EXAMPLE, read_plan
from idarts.files import crc32c
from idarts.pages.report import page
from idarts.spaces import measure_latency, networks
from idarts.spaces.prices import prices
from idarts.tables import import_table, table
from idarts.tables.nas_bench_201 import official
from idarts.tables.nas_bench_201.pickles import read_pickle
from idarts.tables.nas_bench_301 import surrogate
from idarts.tables.nas_bench_301.boosting import Trees
from idarts.tables.storage.columns import Columns, write_columns
from idarts.training import load as load_model
from idarts.training.card import Card
from idarts.training.model_folder import save

FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_1_0"
WORDS = [b"\x00", b"\xff" * 4, b"\xff" * 8, b"\x00" * 8, b"-1", b"1e999", b"NaN", b"null", b"{}", b"[]", b'""', b"true"]
WORDS += [b"9" * 400, b"9" * 5000, b"[" * 300, b"{" * 70, b'{"a":' * 200, b"&a [*a]", b"!!python/name:os.system", b"\n"]
WORDS += [
    b"\x1b[2J",
    b"..",
    b"/",
    b":",
    b"os:system",
    b"~",
    b"|",
    b"(",
    b"0" * 30,
    b"\xf0\x9f\x92\xa9",
    b"\xed\xa0\x80",
]
WORDS += [b"r\xff\xff\xff\xff", b"\x85" * 3000, b"2\x86" * 60, b"\x96" + b"\xff" * 6 + b"\x00\x00", b"c", b"R", b"b"]


@dataclass(frozen=True)
class Target:
    """What is damaged: the files of a folder, one of which is mutated; and what reads it."""

    make: Callable[[Path], list[str]]  # writes valid files, and names those to be damaged
    read: Callable[[Path], object]
    weight: int = 1  # tries, relative to the others: slow ones get fewer


def mutate(content: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """A few changes: flips, cuts, repeats, words that are known to hurt, and parts of other files."""
    data = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 8])):
        place = draw.randrange(len(data) + 1)
        end = min(len(data), place + draw.choice([1, 1, 2, 4, 16, 200]))
        kind = draw.randrange(8)
        if kind == 0 and data:
            data[min(place, len(data) - 1)] = draw.randrange(256)
        elif kind == 1:
            del data[place:]
        elif kind == 2:
            del data[place:end]
        elif kind == 3:
            data[place:place] = data[place:end] * draw.choice([1, 2, 50])
        elif kind == 4:
            data[place:place] = draw.choice(WORDS)
        elif kind == 5:
            data[place:end] = draw.choice(WORDS)
        elif kind == 6:
            other = draw.choice(others)
            start = draw.randrange(len(other) + 1)
            data[place:end] = other[start : start + draw.choice([4, 50, 1000])]
        else:
            _change_token(data, place, draw)
    return bytes(data)


def _change_token(data: bytearray, place: int, draw: random.Random) -> None:
    """Replace a number or a word of a text by another."""
    end = place
    while end < len(data) and chr(data[end]).isalnum():
        end += 1
    data[place:end] = draw.choice(
        [b"0", b"-1", b"1e308", b"1e-3", b"null", b"[]", b"{}", b"x", b"18446744073709551616"]
    )


# --- architectures -----------------------------------------------------------------------------------------------


def _texts(place: Path) -> list[str]:
    names = ["DARTS_V2", "nas-bench-201:77", *list(registry.names())[:2]]
    forms = {name: ["json", SPACES[parse(name).space].text_form] for name in names}
    texts = [convert(name, form) for name in names for form in dict.fromkeys(forms[name])]
    texts += [json.dumps({"schema": 1, "space": "choice", "choices": {"block1": "conv3"}})]
    for number, text in enumerate(texts):
        (place / f"{number}.txt").write_text(text)
    return [f"{number}.txt" for number in range(len(texts))]


def _read_texts(place: Path) -> None:
    for file in place.iterdir():
        try:
            architecture = parse(file.read_bytes().decode("utf-8", "replace"))
        except IdartsError:
            parse(file)  # as a file, too
        else:
            as_text(architecture), hash(architecture)


# --- settings, sweeps, runs --------------------------------------------------------------------------------------


def _settings(place: Path) -> list[str]:
    shutil.copy(FIXTURES / "search-finished" / "config.json", place / "a.json")
    (place / "a.yaml").write_text("preset: cpu\nmethod: darts\nrounds: 3\nalpha: {rate: 1e-3, betas: [0.5, 0.9]}\n")
    return ["a.json", "a.yaml"]


def _read_settings(place: Path) -> None:
    for file in sorted(place.iterdir()):
        layer = cli_settings._checked(file, cli_settings.load(file), SETTINGS)
        cli_settings.resolve(SETTINGS.default, [layer], SETTINGS.presets, SETTINGS.methods)


def _sweep(place: Path) -> list[str]:
    (place / "sweep.yaml").write_text(EXAMPLE.replace("seeds: 3", "seeds: 1"))
    return ["sweep.yaml"]


def _run(name: str) -> Callable[[Path], list[str]]:
    def make(place: Path) -> list[str]:
        for file in ("config.json", "metrics.jsonl", "result.json"):
            shutil.copy(FIXTURES / name / file, place / file)
        return ["config.json", "metrics.jsonl", "result.json"]

    return make


def _read_run(place: Path) -> None:
    is_run(place)
    page(read_run(place))


def _compared(place: Path) -> list[str]:
    for name in ("nas-bench-201-darts-first-order-1", "nas-bench-201-random-nas-1"):
        shutil.copytree(FIXTURES / "sweep" / name, place / name)
    shutil.copy(FIXTURES / "sweep" / "sweep.json", place / "sweep.json")
    shutil.copy(FIXTURES / "sweep" / "results.csv", place / "results.csv")
    files = ("config.json", "metrics.jsonl", "result.json")
    return ["sweep.json", "results.csv", *(f"nas-bench-201-random-nas-1/{file}" for file in files)]


def _read_compared(place: Path) -> None:
    Store(place / "results.csv")
    facts(compare([place]))


def _checkpoint(place: Path) -> list[str]:
    checkpoint.save(place, 3, {"w": torch.arange(4.0), "round": 3, "rates": [0.1, (1, 2)]})
    return ["00000003.pt"]


# --- models ------------------------------------------------------------------------------------------------------


def _model(place: Path) -> list[str]:
    architecture = parse("nas-bench-201:77")
    skeleton = SPACES["nas-bench-201"].resolve(depth=1, channels=2)
    card = Card(architecture, skeleton, 1, (8, 8), (0.5,), (0.2,), tuple("0123456789"))
    save(place / "model", networks.network(architecture, skeleton, in_channels=1), card)
    return ["model/config.json", "model/model.safetensors"]


def _latencies(place: Path) -> list[str]:
    skeleton = SPACES["nas-bench-201"].resolve(depth=1, channels=2, image=8)
    (place / "latency.json").write_text(json.dumps(measure_latency("nas-bench-201", skeleton, seconds=0)))
    return ["latency.json"]


def _read_latencies(place: Path) -> None:
    here = SPACES["nas-bench-201"]
    prices(here.supernet(here.skeleton.changed(depth=1, channels=2)), "latency", table=str(place / "latency.json"))


# --- data --------------------------------------------------------------------------------------------------------


def _npz(place: Path) -> list[str]:
    x, y = np.arange(320, dtype=np.uint8).reshape(5, 8, 8), np.arange(5)
    np.savez(place / "a.npz", x_train=x, y_train=y, names=np.array(["a", "b"]))
    np.savez_compressed(place / "b.npz", x=x.astype(np.float32), y=y)
    return ["a.npz", "b.npz"]


def _idx(place: Path) -> list[str]:
    content = struct.pack(">BBBBIII", 0, 0, 8, 3, 2, 4, 4) + bytes(32)
    (place / "a").write_bytes(content)
    (place / "b.gz").write_bytes(gzip.compress(content))
    return ["a", "b.gz"]


def _cifar(place: Path) -> list[str]:
    batch = {b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 0], b"batch_label": b"one"}
    (place / "batch").write_bytes(pickle.dumps(batch, protocol=2))
    (place / "meta").write_bytes(pickle.dumps({"label_names": ["a", "b"]}, protocol=4))
    (place / "batch.bin").write_bytes(bytes(3073 * 2))
    return ["batch", "meta", "batch.bin"]


def _read_cifar(place: Path) -> None:
    cifar._python_batch(place / "batch", "labels")
    cifar._python_names(place / "meta", "label_names")
    cifar._binary_batch(place / "batch.bin", 1)


def _pictures(place: Path) -> list[str]:
    names = ["a.png", "b.jpg", "c.gif", "d.webp", "e.tif", "f.bmp", "g.ppm"]
    for name in names:
        Image.linear_gradient("L").resize((20, 12)).convert("RGB").save(place / name)
    return names


def _read_pictures(place: Path) -> None:
    files = folder.PictureFiles(sorted(place.iterdir()), 8)
    for index in range(len(files)):
        files[index]


# --- tables ------------------------------------------------------------------------------------------------------


def _columns(place: Path) -> list[str]:
    write_columns(place / "a.npz", {"test": np.arange(3, dtype=np.float32), "ops": np.arange(3, dtype=np.uint8)})
    return ["a.npz"]


def _read_columns(place: Path) -> None:
    columns = Columns(place / "a.npz")
    columns.check()
    len(columns), "test" in columns and columns["test"]


def _surrogate(place: Path) -> list[str]:
    trees = Trees(90.0, np.array([[0, 1], [1, 0]], np.int16), np.ones((2, 4), np.float32))
    feature, threshold = np.array([0, 3], np.int16), np.array([1, 1], np.uint8)
    surrogate.Surrogate(feature, threshold, (trees, trees), 0.5, 7).save(place / "surrogate.npz")
    return ["surrogate.npz"]


def _pickles(place: Path) -> list[str]:
    content = {"meta_archs": ["|none~0|"], "arch2infos": {0: {("cifar10", 777): np.float64(3.5)}, 1: {"x": {1, 2}}}}
    (place / "a.pickle.pbz2").write_bytes(bz2.compress(pickle.dumps(content, protocol=4)))
    torch.save({"meta_archs": ["|none~0|"], "weights": torch.zeros(3)}, place / "b.pth")
    torch.save({"epochs": 3}, place / "c.pth", _use_new_zipfile_serialization=False)
    (place / "d.pbz2").write_bytes(bz2.compress(pickle.dumps(list(range(9)), protocol=2)))
    return ["a.pickle.pbz2", "b.pth", "c.pth", "d.pbz2"]


def _read_pickles(place: Path) -> None:
    for file in sorted(place.iterdir()):
        read_pickle(file)


def _inner_pickle(place: Path) -> list[str]:
    """The pickle inside: mutations of a compressed file are caught by its checksum."""
    sets = ("cifar10-valid", "cifar10", "cifar100", "ImageNet16-120")
    trial = {"params": 0.3, "flop": 1.5, "latency": [0.1], "train_times": {0: 2.0}, "epochs": 1}
    trial["eval_acc1es"] = {f"{name}@0": np.float64(50.0) for name in ("x-valid", "x-test", "ori-test")}
    results = {"dataset_seed": {name: [777] for name in sets}, "all_results": {(name, 777): trial for name in sets}}
    (place / "a").write_bytes(pickle.dumps({"12": results, "200": results}, protocol=2))
    return ["a"]


def _read_inner_pickle(place: Path) -> None:
    (place / "a.pbz2").write_bytes(bz2.compress((place / "a").read_bytes()))
    official._columns([(0, read_pickle(place / "a.pbz2"), place / "a.pbz2")], place)


def _masked(content: bytes) -> bytes:
    crc = int(crc32c([content])[0])
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _record(place: Path) -> list[str]:
    """One record of NAS-Bench-101; the frame with its checksums is made anew for each try."""
    from base64 import b64encode

    def field(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    doubles = b"".join(bytes([number << 3 | 1]) + struct.pack("<d", 0.5) for number in (1, 2, 3, 4, 5))
    message = field(1, doubles) * 3 + bytes([2 << 3, 7])
    record = [
        "b49ac8c578b4561d79ac7087988f1c61",
        108,
        "010001000",
        "input,conv3x3-bn-relu,output",
        b64encode(message).decode(),
    ]
    (place / "record").write_text(json.dumps(record))
    return ["record"]


def _read_record(place: Path) -> None:
    content = (place / "record").read_bytes()
    head = struct.pack("<Q", len(content))
    file = place / "a.tfrecord"
    file.write_bytes(head + _masked(head) + content + _masked(content))
    import_table(file, place)


def _parquet(place: Path) -> list[str]:
    columns = {
        "hash": [bytes(16), bytes(range(16))],
        "n_vertices": [3, 3],
        "adj_bits": [5, 7],
        "ops": ["0", "1"],
        "params": [9, 9],
        "test_acc_108ep_mean": [0.5, None],
        **{f"in_1shot1_ss{number}": [True, False] for number in (1, 2, 3)},
    }
    pq.write_table(pa.table(columns), place / "nasbench101_108ep_test.parquet", compression="none")
    return ["nasbench101_108ep_test.parquet"]


def _read_parquet(place: Path) -> None:
    import_table(place / "nasbench101_108ep_test.parquet", place)
    table("nas-bench-101", place).check()


TARGETS = {
    "architectures": Target(_texts, _read_texts, 8),
    "settings": Target(_settings, _read_settings, 4),
    "sweep": Target(_sweep, lambda place: read_plan(place / "sweep.yaml"), 2),
    "search": Target(_run("search-finished"), _read_run, 2),
    "training": Target(_run("train-finished"), _read_run, 2),
    "comparison": Target(_compared, _read_compared, 2),
    "checkpoint": Target(_checkpoint, checkpoint.latest, 3),
    "model": Target(_model, lambda place: load_model(place / "model"), 3),
    "latencies": Target(_latencies, _read_latencies, 1),
    "npz": Target(_npz, lambda place: [npz.from_npz(file) for file in sorted(place.iterdir())], 6),
    "idx": Target(_idx, lambda place: [fashion_mnist.read_idx(file) for file in sorted(place.iterdir())], 6),
    "cifar": Target(_cifar, _read_cifar, 6),
    "pictures": Target(_pictures, _read_pictures, 4),
    "columns": Target(_columns, _read_columns, 6),
    "surrogate": Target(_surrogate, lambda place: surrogate.load(place / "surrogate.npz"), 3),
    "pickles": Target(_pickles, _read_pickles, 4),
    "inner pickle": Target(_inner_pickle, _read_inner_pickle, 6),
    "record": Target(_record, _read_record, 6),
    "parquet": Target(_parquet, _read_parquet, 2),
}


class Fuzz:
    """A target's valid files in a folder, and tries with one of them damaged."""

    def __init__(self, name: str, place: Path) -> None:
        self.name, self.target, self.place = name, TARGETS[name], place
        place.mkdir(parents=True)
        self.files = self.target.make(place)
        self.valid = {file: (place / file).read_bytes() for file in self.files}
        self._read()  # without damage it must be a success
        self.left = set(place.rglob("*"))

    def attempt(self, seed: int) -> None:
        """One try, which raises what the parser raises; files that the parser wrote are removed."""
        draw = random.Random(f"{self.name} {seed}")
        damaged = draw.choice(self.files)
        for file, content in self.valid.items():
            (self.place / file).write_bytes(content)
        (self.place / damaged).write_bytes(mutate(self.valid[damaged], draw, list(self.valid.values())))
        try:
            self._read()
        finally:
            for path in set(self.place.rglob("*")) - self.left:
                path.unlink(missing_ok=True)

    def _read(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a part of a benchmark is a warning
            self.target.read(self.place)

    def problem(self, seed: int) -> str | None:
        """What is wrong with the outcome of a try, or None."""
        try:
            self.attempt(seed)
        except IdartsError as error:
            return None if "\n" not in str(error) and str(error) else f"seed {seed}: not one line: {str(error)!r}"
        except Exception as error:
            trace = error.__traceback__
            while trace and trace.tb_next:
                trace = trace.tb_next
            where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
            return f"seed {seed}: {type(error).__name__}: {str(error)[:200]} ({where})"
        return None


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        Fuzz(sys.argv[1], Path(scratch, "files")).attempt(int(sys.argv[2]))
