"""Small files in the official formats, written by the tests' own code, and the real tables where they are at hand."""

import base64
import bz2
import json
import os
import pickle
import struct
import zlib
from collections import OrderedDict
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from idarts.tables.nas_bench_201.table import official_strings

SETS = {"cifar10-valid": ["x-valid", "ori-test"], "cifar10": ["ori-test"]}
SETS |= {name: ["x-valid", "x-test", "ori-test"] for name in ("cifar100", "ImageNet16-120")}
LENGTHS = {"less": 12, "full": 200, "12": 12, "200": 200}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """No test sees the tables of the person who runs it, nor leaves any behind."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    real = os.environ.get("IDARTS_TABLES")
    monkeypatch.delenv("IDARTS_TABLES", raising=False)
    return SimpleNamespace(folder=tmp_path / "cache" / "idarts" / "tables", real=real)


@pytest.fixture(scope="session")
def real(tmp_path_factory):
    """Opens real tables, converted once for the session; columns of their Parquet files beside them."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow (idarts[tables])")
    folder = os.environ.get("IDARTS_TABLES")
    names = ("nasbench201_tss.parquet", "nasbench101_108ep_test.parquet")
    if not folder or not all(Path(folder, name).is_file() for name in names):
        pytest.skip("IDARTS_TABLES names no folder with the real NAS-Bench tables")
    converted = tmp_path_factory.mktemp("cache")

    def opened(benchmark):
        from idarts.tables import table

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(converted))
            return table(benchmark, folder)

    @cache
    def column(number, name):
        file = Path(folder, names[0 if number == 201 else 1])
        return parquet.read_table(file, columns=[name])[name].to_pylist()

    def columns(number, *chosen):
        return {name: column(number, name) for name in chosen}

    return SimpleNamespace(table=opened, columns=columns, folder=folder, cache=converted)


def accuracy(index, hp, dataset, evaluated, seed):
    """Made up, but different for everything that it should depend on."""
    part = f"{index} {hp} {dataset} {evaluated} {seed}"
    return 50 + zlib.crc32(part.encode()) % 4000 / 100


def cell(index, seeds=(777, 888), lengths=("12", "200")):
    """A cell's results as the benchmark's `state_dict`s are: plain containers, numpy's numbers for the costs."""
    return OrderedDict((length, _arch_results(index, seeds, LENGTHS[length])) for length in lengths)


def _arch_results(index, seeds, epochs):
    results = {
        (dataset, seed): _trial(index, dataset, evaluated, seed, epochs)
        for dataset, evaluated in SETS.items()
        for seed in seeds
    }
    return {
        "arch_index": index,
        "arch_str": official_strings()[index],
        "all_results": results,
        "dataset_seed": {dataset: list(seeds) for dataset in SETS},
        "clear_net_done": True,
    }


def _trial(index, dataset, evaluated, seed, epochs):
    last = epochs - 1
    accuracies = {f"{name}@{last}": accuracy(index, epochs, dataset, name, seed) for name in evaluated}
    return {
        "name": dataset,
        "net_state_dict": None,
        "train_acc1es": {last: 99.0},
        "train_acc5es": None,
        "train_losses": {last: 0.1},
        "train_times": OrderedDict((epoch, 2.5 + seed / 1000) for epoch in range(epochs)),
        "arch_config": {"channel": 16, "num_cells": 5, "arch_str": official_strings()[index], "class_num": 10},
        "params": np.float64(0.129306 + index / 100),
        "flop": 15.64737,
        "seed": str(seed),
        "epochs": epochs,
        "latency": [0.01, 0.03],
        "eval_names": list(evaluated),
        "eval_acc1es": {f"{evaluated[0]}@0": 10.0} | accuracies,
        "eval_times": {},
        "eval_losses": dict.fromkeys(accuracies, 0.5),
    }


def meta(cells=None, **others):
    return {
        "meta_archs": list(official_strings()),
        "total_archs": len(official_strings()),
        "arch2infos": cells,
        "evaluated_indexes": set(cells or ()),
        **others,
    }


@cache
def _packed_meta():
    return bz2.compress(pickle.dumps(meta(), protocol=4))


def write_pbz2(file, content):
    file.write_bytes(bz2.compress(pickle.dumps(content, protocol=4)))


def write_nats_folder(folder, indices, **keywords):
    folder.mkdir()
    (folder / "meta.pickle.pbz2").write_bytes(_packed_meta())
    for index in indices:
        write_pbz2(folder / f"{index:06d}.pickle.pbz2", cell(index, **keywords))
    return folder


def write_pth(file, indices, zipped):
    import torch

    cells = {index: dict(cell(index, lengths=("full", "less"))) for index in indices}
    torch.save(meta(cells, basestr="C16-N5"), file, _use_new_zipfile_serialization=zipped)
    return file


def crc32c(content):
    """Bit by bit, as the polynomial says it."""
    state = 0xFFFFFFFF
    for byte in content:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    state ^= 0xFFFFFFFF
    return ((state >> 15 | state << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF


def tfrecord(contents):
    framed = b""
    for content in contents:
        length = struct.pack("<Q", len(content))
        framed += length + struct.pack("<I", crc32c(length)) + content + struct.pack("<I", crc32c(content))
    return framed


def varint(value):
    encoded = b""
    while value > 0x7F:
        encoded, value = encoded + bytes([value & 0x7F | 0x80]), value >> 7
    return encoded + bytes([value])


def training(fingerprint, epochs, matrix, ops, params, final):
    """A record as NAS-Bench-101 has it; `final` is time, train, valid, test at the end."""
    message = b""
    for point, values in enumerate(((0.0, 0.1, 0.1, 0.1), (1.0, 0.5, 0.5, 0.5), final)):
        numbers = (epochs * point / 2, *values)
        inner = b"".join(varint(1 + 8 * field) + struct.pack("<d", value) for field, value in enumerate(numbers, 1))
        inner += varint(6 << 3 | 2) + varint(4) + b"ckpt"
        message += varint(1 << 3 | 2) + varint(len(inner)) + inner
    message += varint(2 << 3) + varint(params) + varint(3 << 3 | 1) + struct.pack("<d", 99.0)
    adjacency = "".join(str(bit) for row in matrix for bit in row)
    encoded = base64.b64encode(message).decode()
    return json.dumps([fingerprint, epochs, adjacency, ",".join(ops), encoded]).encode()


@pytest.fixture(scope="session")
def official():
    """The writers above."""
    return SimpleNamespace(
        accuracy=accuracy,
        cell=cell,
        meta=meta,
        nats_folder=write_nats_folder,
        pbz2=write_pbz2,
        pth=write_pth,
        tfrecord=tfrecord,
        training=training,
    )
