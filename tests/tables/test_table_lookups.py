"""The real tables: every cell of NAS-Bench-201, samples of the others, ranks, folders, a cold process."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from idarts.arch import from_json, parse, to_json
from idarts.errors import InputError
from idarts.spaces import nas_bench_1shot1, nas_bench_101, nas_bench_201
from idarts.tables import find, table
from idarts.tables.nas_bench_101.official import spaces_of

DATASETS = ("cifar10", "cifar100", "imagenet16")
SPLITS = [(dataset, split) for dataset in DATASETS for split in ("valid", "test")]
ALL_SKIP = "|skip_connect~0|+|skip_connect~0|skip_connect~1|+|skip_connect~0|skip_connect~1|skip_connect~2|"


def single(value):
    """To compare what went through single precision and seven digits."""
    return pytest.approx(value, rel=1e-6)


def test_every_cell_of_201_by_index_and_by_string(real):
    opened = real.table("nas-bench-201")
    columns = real.columns(201, "arch_str", *(f"{dataset}_{split}_200ep_mean" for dataset, split in SPLITS))
    answers = [opened.query(index) for index in range(15625)]
    assert [answer["index"] for answer in answers] == list(range(15625))
    assert [answer["architecture"] for answer in answers] == columns["arch_str"]
    assert [opened.row(text) for text in columns["arch_str"]] == list(range(15625))
    for dataset, split in SPLITS:
        values = np.array([answer[dataset][split] for answer in answers])
        assert np.abs(values - columns[f"{dataset}_{split}_200ep_mean"]).max() < 1e-5


def test_known_values_of_201(real):
    opened = real.table("nas-bench-201")
    best = [round(opened.best(dataset, split)[dataset][split], 3) for dataset, split in SPLITS]
    assert best == [91.607, 94.373, 73.493, 73.513, 46.733, 47.311]
    skip = opened.query(ALL_SKIP)
    values = [round(skip[dataset][split], 3) for dataset, split in SPLITS]
    assert values == [39.769, 54.297, 15.033, 15.607, 16.433, 16.322]


def test_details_of_201(real):
    opened, index = real.table("nas-bench-201"), 4321
    names = {"valid_12": "valid_12ep", "test_12": "test_12ep", "params": "params", "flops": "flops"}
    names |= {"latency": "latency_s", "train_time": "train_time_200ep_s"}
    details = opened.details(index)
    for dataset in DATASETS:
        stored = real.columns(201, *(f"{dataset}_{name}" for name in names.values()))
        expected = {name: single(stored[f"{dataset}_{column}"][index]) for name, column in names.items()}
        assert details[dataset] == opened.query(index)[dataset] | expected
    assert details["runs"] == real.columns(201, "n_runs_200ep")["n_runs_200ep"][index]


def test_every_form_finds_the_same_row(real, tmp_path):
    opened, text = real.table("nas-bench-201"), nas_bench_201.to_string(nas_bench_201.from_index(1462))
    file = tmp_path / "cell.json"
    file.write_text(to_json(parse(text)))
    indices = [1462, np.int64(1462), "1462", "nas-bench-201:1462"]
    forms = [*indices, text, "NB201_all_conv3x3", parse(text), file, str(file), json.loads(file.read_text())]
    assert {opened.row(form) for form in forms} == {1462}


@pytest.mark.parametrize("wrong", [15625, "15625", -1, True, "DARTS_V2", "no such cell", 1.5, None])
def test_other_inputs_than_cells_of_201_are_refused_in_one_line(real, wrong):
    with pytest.raises(InputError) as caught:
        real.table("nas-bench-201").query(wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("dataset", "split"), SPLITS)
def test_rank_and_top_of_201_against_a_sort(real, dataset, split):
    opened = real.table("nas-bench-201")
    name = f"{dataset}_{split}_200ep_mean"
    values = np.array(real.columns(201, name)[name], np.float32)
    for index in (0, 77, 15624, int(values.argmax()), int(values.argmin())):
        assert opened.rank(index, dataset, split) == (1 + int((values > values[index]).sum()), len(values))
    best = [answer["index"] for answer in opened.top(20, dataset, split)]
    assert values[best].tolist() == np.sort(values)[::-1][:20].tolist()


def test_sampled_cells_of_101_by_hash_and_by_matrix(real):
    opened = real.table("nas-bench-101")
    columns = real.columns(101, "hash", "params", "test_acc_108ep_mean")
    for row in random.Random(0).sample(range(len(columns["hash"])), 400):
        expected = columns["hash"][row].hex()
        answer = opened.query(expected)
        assert nas_bench_101.fingerprint(parse(answer["architecture"])) == expected
        assert opened.query(answer["architecture"]) == answer
        assert answer["hash"] == expected
        assert answer["test"] == single(100 * columns["test_acc_108ep_mean"][row])
        assert (answer["params"], answer["valid"]) == (columns["params"][row], None)


def test_known_values_of_101(real):
    opened = real.table("nas-bench-101")
    best = opened.best()
    assert round(best["test"], 4) == 94.3176
    assert opened.rank(best["architecture"]) == (1, 423624)
    assert opened.accuracy(best["hash"]) == best["test"]
    with pytest.raises(InputError, match="no split 'valid' of cifar10, expected test"):
        opened.best(split="valid")


def test_1shot1_spaces_by_shape_are_the_stored_ones_in_all_rows(real):
    columns = real.columns(101, "n_vertices", "adj_bits", "in_1shot1_ss1", "in_1shot1_ss2", "in_1shot1_ss3")
    shapes = list(zip(columns["n_vertices"], columns["adj_bits"], strict=True))
    for bit, name in enumerate(("in_1shot1_ss1", "in_1shot1_ss2", "in_1shot1_ss3")):
        assert [bool(spaces_of(*shape) >> bit & 1) for shape in shapes] == columns[name]


@pytest.mark.parametrize("variant", ["S1", "S2", "S3"])
def test_1shot1_cells_are_found_and_ranked_in_their_space(real, variant):
    number = variant[1]
    columns = real.columns(101, "hash", "test_acc_108ep_mean", f"in_1shot1_ss{number}")
    inside = np.array(columns[f"in_1shot1_ss{number}"])
    values = np.array(columns["test_acc_108ep_mean"], np.float32)
    rows = {key.hex(): row for row, key in enumerate(columns["hash"])}
    opened = real.table(f"nas-bench-1shot1-{variant.lower()}")
    for seed in range(10):
        architecture = _cell(variant, seed)
        answer = opened.query(architecture)
        assert variant in answer["in_1shot1"]
        row = rows[nas_bench_101.fingerprint(nas_bench_1shot1.to_nas_bench_101(architecture))]
        assert answer["test"] == single(100 * float(values[row]))
        assert opened.rank(architecture) == (1 + int((values[inside] > values[row]).sum()), int(inside.sum()))
        assert real.table("nas-bench-1shot1").query(from_json(to_json(architecture))) == answer
    assert opened.best()["test"] == single(100 * float(values[inside].max()))


def test_a_cell_outside_of_the_view_is_refused(real):
    best = real.table("nas-bench-101").best()
    with pytest.raises(InputError, match=f"{best['hash']} is in nas-bench-101, but not in nas-bench-1shot1-s3"):
        real.table("nas-bench-1shot1-s3").query(best["architecture"])


COLD = """
import re, sys
from idarts.tables import table
table(sys.argv[1]).query(sys.argv[2])
memory = int(re.search("VmHWM: *(\\d+)", open("/proc/self/status").read().replace("\\t", " "))[1]) / 1024
print(memory, bool({"torch", "numpy"} & set(sys.modules)))
"""


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("benchmark", "cell", "megabytes"),
    [("nas-bench-201", ALL_SKIP, 100), ("nas-bench-101", "02e5a0247bbdcf2860b7e96f74961594", 300)],
)
def test_the_first_query_of_a_cold_process_is_small(real, benchmark, cell, megabytes):
    assert real.table(benchmark).query(cell)  # converted by now
    environment = os.environ | {"XDG_CACHE_HOME": str(real.cache), "IDARTS_TABLES": real.folder}
    command = [sys.executable, "-c", COLD, benchmark, cell]
    answer = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()
    assert float(answer[0]) < megabytes
    assert answer[1] == "False"


def test_the_file_is_small_and_needs_no_pickle(real):
    file = real.table("nas-bench-201").columns.file
    assert file.stat().st_size < 3_000_000
    with np.load(file, allow_pickle=False) as archive:
        assert {len(archive[name]) for name in archive.files} == {15625}


def test_parquet_folder_is_never_written_and_a_changed_file_is_converted_again(real, own_cache, tmp_path):
    import pyarrow.parquet as pq

    folder = tmp_path / "given"
    folder.mkdir()
    file = folder / "nasbench201_tss.parquet"
    shutil.copy(Path(real.folder, file.name), file)
    file.chmod(0o644)
    before = table("nas-bench-201", folder)
    assert [entry.name for entry in folder.iterdir()] == [file.name]
    assert table("nas-bench-201", folder).columns.file == before.columns.file
    content = pq.read_table(file)
    place = content.column_names.index("cifar10_test_200ep_mean")
    changed = content["cifar10_test_200ep_mean"].to_numpy() / 2
    pq.write_table(content.set_column(place, "cifar10_test_200ep_mean", [changed]), file)
    after = table("nas-bench-201", folder)
    assert after.accuracy(5) == single(before.accuracy(5) / 2)  # the first is still what it was when it was opened
    assert [entry.name for entry in (own_cache.folder / "converted").iterdir()] == [after.columns.file.name]


def test_several_processes_convert_at_once(real, own_cache):
    environment = os.environ | {"IDARTS_TABLES": real.folder}
    code = "from idarts.tables import table; print(table('nas-bench-201').accuracy(6111))"
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in running] == ["94.37334"] * 2
    assert len(list((own_cache.folder / "converted").iterdir())) == 1


def test_find_gives_none_where_there_is_nothing(real, monkeypatch):
    assert find("mobile", real.folder) is None
    assert find("nas-bench-201") is None
    monkeypatch.setenv("IDARTS_TABLES", real.folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(real.cache))
    assert find("nas-bench-1shot1-s2").benchmark == "nas-bench-1shot1-s2"


def test_find_says_what_is_wrong_with_what_was_named(tmp_path, monkeypatch, own_cache):
    for space in ("nas-bench-201", "nas-bench-1shot1-s1", "mobile"):
        with pytest.raises(InputError, match="the folder of tables /no such folder does not exist"):
            find(space, "/no such folder")
    assert find("mobile", tmp_path) is None
    with pytest.raises(InputError, match=f"there is no table of nas-bench-201 in {tmp_path}; get "):
        find("nas-bench-201", tmp_path)
    monkeypatch.setenv("IDARTS_TABLES", str(tmp_path))
    assert find("nas-bench-201") is None
    monkeypatch.setenv("IDARTS_TABLES", "/no such folder")
    with pytest.raises(InputError, match="does not exist"):
        find("nas-bench-201")
    assert find("mobile") is None
    monkeypatch.delenv("IDARTS_TABLES")
    own_cache.folder.mkdir(parents=True)
    (own_cache.folder / "nas-bench-201.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match="cannot be read as a table"):
        find("nas-bench-201")


def _cell(variant, seed):
    draw = random.Random(seed)
    parents = draw.choice(list(nas_bench_1shot1.parent_choices(variant)))
    ops = draw.choices(nas_bench_101.OPS, k=len(parents) - 1)
    return nas_bench_1shot1.from_choices(variant, ops, parents)
