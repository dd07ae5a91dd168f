"""Imports of small files in the official formats. Malicious, cut-off and damaged files leave no table."""

import bz2
import pickle
import random
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from attacks import NAMES, attacks

from idarts.arch import nas_bench_1shot1, nas_bench_101, parse
from idarts.errors import InputError
from idarts.tables import find, import_table, table
from idarts.tables.nas_bench_201.parquet import NAMES as PARQUET
from idarts.tables.nas_bench_201.table import DATASETS, official_strings
from idarts.tables.storage.columns import write_columns

INDICES = (0, 9, 15624)
CALLED = {"cifar10": "cifar10", "cifar100": "cifar100", "imagenet16": "ImageNet16-120"}
partial = pytest.mark.filterwarnings("ignore:.*; the others stay unknown")


def check_201(opened, official, seeds=(777, 888)):
    for index in INDICES:
        answer = opened.details(index)
        assert answer["runs"] == len(seeds)
        for dataset, called in CALLED.items():
            valid = ("cifar10-valid" if dataset == "cifar10" else called, "x-valid")
            test = (called, "ori-test" if dataset == "cifar10" else "x-test")
            wanted = {"valid": (200, *valid), "test": (200, *test), "valid_12": (12, *valid), "test_12": (12, *test)}
            for key, where in wanted.items():
                mean = np.mean([official.accuracy(index, *where, seed) for seed in seeds])
                assert answer[dataset][key] == pytest.approx(mean, abs=1e-5)
            assert (answer[dataset]["params"], answer[dataset]["flops"]) == (129306 + 10_000 * index, 15647370)
            assert answer[dataset]["latency"] == pytest.approx(0.02)
            assert answer[dataset]["train_time"] == pytest.approx(200 * (2.5 + np.mean(seeds) / 1000))
    with pytest.raises(InputError, match="has no values for index 1; import the whole benchmark"):
        opened.query(1)
    assert opened.rank(0).of == len(INDICES)
    assert len(opened.top(10)) == len(INDICES)


def test_nats_folder(official, tmp_path, own_cache):
    folder = official.nats_folder(tmp_path / "NATS-tss-v1_0-3ffb9-simple", INDICES)
    reports = []
    with pytest.warns(UserWarning, match="holds 3 of 15625 cells"):
        written = import_table(folder, progress=lambda done, total: reports.append((done, total)))
    assert written == own_cache.folder / "nas-bench-201.npz"
    assert reports[0] == (1, 15625)
    assert reports[-1] == (15625, 15625)
    check_201(table("nas-bench-201"), official)


@partial
@pytest.mark.parametrize("zipped", [False, True])
def test_pth_as_old_and_new_torch_write_it(official, tmp_path, zipped):
    file = official.pth(tmp_path / "NAS-Bench-201-v1_1-096897.pth", INDICES, zipped)
    assert zipfile.is_zipfile(file) == zipped
    reports = []
    import_table(file, tmp_path / "tables", progress=lambda done, total: reports.append((done, total)))
    assert 0 < reports[-1][0] <= reports[-1][1]
    check_201(table("nas-bench-201", tmp_path / "tables"), official)


@partial
def test_one_pbz2_with_all_cells(official, tmp_path):
    file = tmp_path / "NATS-tss-v1_0-3ffb9.pickle.pbz2"
    official.pbz2(file, official.meta({index: official.cell(index) for index in INDICES}))
    check_201(table("nas-bench-201", import_table(file, tmp_path / "tables").parent), official)


@partial
def test_weights_in_a_file_are_passed_over(official, tmp_path):
    import torch

    cells = {index: official.cell(index, seeds=(1,)) for index in INDICES}
    cells[0]["200"]["all_results"]["cifar10", 1]["net_state_dict"] = OrderedDict(w=torch.ones(3), n=torch.tensor(2))
    for zipped in (False, True):
        torch.save(official.meta(cells), tmp_path / "all.pth", _use_new_zipfile_serialization=zipped)
        check_201(table("nas-bench-201", import_table(tmp_path / "all.pth", tmp_path / "t").parent), official, (1,))


def cells_101():
    """Matrices, operations and fingerprints: cells of 1Shot1 among them."""
    draw, cells = random.Random(3), {}
    for variant in ("S1", "S2", "S3"):
        choices = list(nas_bench_1shot1.parent_choices(variant))
        for _ in range(8):
            parents = draw.choice(choices)
            ops = draw.choices(nas_bench_101.OPS, k=len(parents) - 1)
            cell = nas_bench_1shot1.to_nas_bench_101(nas_bench_1shot1.from_choices(variant, ops, parents))
            cells[nas_bench_101.fingerprint(cell)] = nas_bench_101.to_matrix(cell)
    straight = nas_bench_101.from_matrix([[0, 1, 0], [0, 0, 1], [0, 0, 0]], ["maxpool3x3"])
    return cells | {nas_bench_101.fingerprint(straight): nas_bench_101.to_matrix(straight)}


def trainings(official, lengths=(108,)):
    """Records in random order, and what each cell's means must be: time, train, valid, test by epochs."""
    draw, records, means = random.Random(4), [], {}
    for key, (matrix, ops) in cells_101().items():
        for epochs in lengths:
            runs = [(draw.uniform(100, 900), draw.random(), draw.random(), draw.random()) for _ in range(3)]
            records += [official.training(key, epochs, matrix, ops, 8_555_530 + len(ops), run) for run in runs]
            means[key, epochs] = np.mean(runs, axis=0)
    draw.shuffle(records)
    return records, means


@pytest.mark.parametrize(("name", "lengths"), [("only108", (108,)), ("full", (4, 12, 36, 108))])
def test_tfrecord(official, tmp_path, name, lengths):
    records, means = trainings(official, lengths)
    file = tmp_path / f"nasbench_{name}.tfrecord"
    file.write_bytes(official.tfrecord(records))
    with pytest.warns(UserWarning, match=f"holds {len(cells_101())} of 423624 cells"):
        import_table(file)
    opened = table("nas-bench-101")
    for key, (matrix, ops) in cells_101().items():
        answer = opened.details({"matrix": matrix, "ops": ops})
        assert (answer["hash"], answer["params"]) == (key, 8_555_530 + len(ops))
        assert parse(answer["architecture"]) == nas_bench_101.from_matrix(matrix, ops)
        assert list(answer["epochs"]) == [str(length) for length in lengths]
        for length in lengths:
            values = [answer["epochs"][str(length)][name] for name in ("train_time", "train", "valid", "test")]
            assert values == pytest.approx(means[key, length] * (1, 100, 100, 100), rel=1e-5)
        assert [answer["valid"], answer["test"]] == pytest.approx(100 * means[key, 108][2:], rel=1e-5)
    best = max(cells_101(), key=lambda key: means[key, 108][2])
    assert opened.best(split="valid")["hash"] == best
    inside = {key for key, (_, ops) in cells_101().items() if ops != ["input", "maxpool3x3", "output"]}
    assert {answer["hash"] for answer in table("nas-bench-1shot1").top(99)} == inside


def test_parquet(real, tmp_path):
    written = import_table(Path(real.folder, "nasbench201_tss.parquet"), tmp_path)
    assert written.read_bytes() == real.table("nas-bench-201").columns.file.read_bytes()


def test_parquet_of_something_else(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow (idarts[tables])")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "a.parquet is not a file that can be imported", tmp_path / "out")
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    refused(tmp_path / "b.parquet", "cannot be read as Parquet", tmp_path / "out")


def columns_101():
    """A Parquet table's columns for `cells_101`, with a made-up accuracy for each."""
    cells = cells_101()
    places = {"conv3x3-bn-relu": "0", "conv1x1-bn-relu": "1", "maxpool3x3": "2"}
    digits = ["".join(places[op] for op in ops[1:-1]) for _, ops in cells.values()]
    edges = [
        sum(matrix[x][y] << x + y * (y - 1) // 2 for y in range(len(matrix)) for x in range(y))
        for matrix, _ in cells.values()
    ]
    return {
        "hash": [bytes.fromhex(key) for key in cells],
        "n_vertices": [len(matrix) for matrix, _ in cells.values()],
        "adj_bits": edges,
        "ops": digits,
        "params": [8_555_530 + place for place in range(len(cells))],
        "test_acc_108ep_mean": [0.9 + place / 1000 for place in range(len(cells))],
        **{f"in_1shot1_ss{number}": [number == 1] * len(cells) for number in (1, 2, 3)},
    }


def columns_201():
    rng, size = np.random.default_rng(0), len(official_strings())
    columns = {"arch_str": official_strings(), "n_runs_200ep": np.full(size, 3)}
    for dataset in DATASETS:
        for name in PARQUET.values():
            whole = name in ("params", "flops")
            columns[f"{dataset}_{name}"] = np.full(size, 100) if whole else rng.uniform(40, 95, size)
    return columns


@pytest.fixture
def parquet(tmp_path):
    """Writes columns as a Parquet file."""
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow (idarts[tables])")
    import pyarrow.parquet as pq

    def write(columns):
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        return tmp_path / "a.parquet"

    return write


def test_parquet_of_some_cells(parquet, tmp_path):
    """The matrices come back, and missing cells are reported."""
    columns = columns_101()
    columns["test_acc_108ep_mean"][0] = None
    with pytest.warns(
        UserWarning, match=f"a.parquet holds {len(cells_101())} of 423624 cells; the others stay unknown"
    ):
        import_table(parquet(columns), tmp_path / "t")
    opened = table("nas-bench-101", tmp_path / "t")
    for place, (key, (matrix, ops)) in enumerate(cells_101().items()):
        answer = opened.query({"matrix": matrix, "ops": ops})
        assert (answer["hash"], answer["params"]) == (key, 8_555_530 + place)
        assert answer["test"] == (pytest.approx(90 + place / 10, rel=1e-6) if place else None)
    columns = columns_201()
    columns["cifar10_test_200ep_mean"][3] = np.nan
    with pytest.warns(UserWarning, match="a.parquet holds 15624 of 15625 cells"):
        import_table(parquet(columns), tmp_path / "t")
    assert table("nas-bench-201", tmp_path / "t").rank(0).of == 15624


@partial
@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (None, lambda _: [], "a.parquet has no rows; get the table again"),
        ("test_acc_108ep_mean", lambda old: [100 * value for value in old], "goes from 90 to "),
        ("test_acc_108ep_mean", lambda old: [float("nan")] * len(old), "test_acc_108ep_mean has no known value"),
        ("test_acc_108ep_mean", lambda old: [-0.1, *old[1:]], "goes from -0.1"),
        ("test_acc_108ep_mean", lambda old: [str(value) for value in old], "test_acc_108ep_mean holds string"),
        ("hash", lambda old: [old[1], *old[1:]], "two rows with the same hash"),
        ("hash", lambda old: [None, *old[1:]], "hash is None in row 0, expected 16 bytes"),
        ("hash", lambda old: [b"short", *old[1:]], "hash is b'short' in row 0"),
        ("hash", lambda old: [value.hex()[:16] for value in old], "in row 0, expected 16 bytes"),
        ("n_vertices", lambda old: [99, *old[1:]], "expected whole numbers from 2 to 7"),
        ("n_vertices", lambda old: [2.5, *old[1:]], "expected whole numbers from 2 to 7"),
        ("adj_bits", lambda old: [1 << 40, *old[1:]], "expected whole numbers from 0 to 2097151"),
        ("ops", lambda old: ["99999", *old[1:]], "digits from 0 to 2"),
        ("ops", lambda old: [f"{old[0]}0", *old[1:]], "0' in a cell of "),
        ("ops", lambda old: [None, *old[1:]], "ops is None in a cell of "),
        ("ops", lambda old: list(range(len(old))), "digits from 0 to 2"),
        ("params", lambda old: [None, *old[1:]], "params has 1 rows without a value"),
        ("params", lambda old: [1e10, *old[1:]], "expected whole numbers from 0 to 2147483647"),
        ("in_1shot1_ss2", lambda old: [None, *old[1:]], "in_1shot1_ss2 has 1 rows without a value"),
        ("in_1shot1_ss2", lambda old: [2] * len(old), "in_1shot1_ss2 goes from 2 to 2"),
    ],
)
def test_nonsense_in_parquet_of_101_loses_nothing(parquet, tmp_path, name, change, message):
    before = import_table(parquet(columns_101()), tmp_path / "t")
    content = before.read_bytes()
    columns = {key: change(old) if name in (key, None) else old for key, old in columns_101().items()}
    with pytest.raises(InputError) as caught:
        import_table(parquet(columns), tmp_path / "t")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert before.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("cifar10_test_200ep_mean", lambda old: old * np.nan, "cifar10_test_200ep_mean has no known value"),
        ("cifar10_test_200ep_mean", lambda old: old / 100, "goes up to 0.95, expected percent; multiply it by 100"),
        ("cifar100_test_12ep", lambda old: old / 100, "expected percent; multiply it by 100"),
        ("imagenet16_valid_200ep_mean", lambda old: 100 * old, "expected from 0 to 100"),
        ("cifar10_params", lambda old: [None, *old[1:].tolist()], "cifar10_params has 1 rows without a value"),
        ("cifar10_params", lambda old: [float("nan"), *old[1:].tolist()], "cifar10_params goes from nan"),
        ("cifar10_params", lambda old: old / 1000, "expected whole numbers"),
        ("cifar10_latency_s", lambda old: old * np.inf, "cifar10_latency_s goes from inf"),
        ("n_runs_200ep", lambda old: old * 100, "n_runs_200ep goes from 300 to 300"),
        ("arch_str", lambda old: [None, *old[1:]], "row 0 is None"),
    ],
)
def test_nonsense_in_parquet_of_201(parquet, tmp_path, name, change, message):
    columns = columns_201()
    refused(parquet(columns | {name: change(columns[name])}), message, tmp_path / "out")


def refused(file, message, out):
    with pytest.raises(InputError) as caught:
        import_table(file, out)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not out.exists() or not list(out.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_malicious_pbz2_is_refused_and_nothing_runs(name, official, tmp_path):
    mark, folder = tmp_path / "ran", tmp_path / "folder"
    attack, named = attacks(str(mark))[name]
    official.nats_folder(folder, [])
    (folder / "000000.pickle.pbz2").write_bytes(bz2.compress(attack))
    refused(folder, f"000000.pickle.pbz2 was refused: its pickle calls {named};", tmp_path / "out")
    (folder / "meta.pickle.pbz2").write_bytes(bz2.compress(attack))
    refused(folder, f"meta.pickle.pbz2 was refused: its pickle calls {named};", tmp_path / "out")
    refused(folder / "meta.pickle.pbz2", f"was refused: its pickle calls {named};", tmp_path / "out")
    assert not mark.exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_malicious_pth_is_refused_and_nothing_runs(name, tmp_path):
    mark, file = tmp_path / "ran", tmp_path / "a.pth"
    attack, named = attacks(str(mark))[name]
    magic = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)
    head = magic + pickle.dumps(1001, protocol=2) + pickle.dumps({"little_endian": True}, protocol=2)
    for content in (attack, magic + attack, head + attack):
        file.write_bytes(content)
        refused(file, f"was refused: its pickle calls {named};", tmp_path / "out")
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", attack)
    refused(file, f"was refused: its pickle calls {named};", tmp_path / "out")
    assert not mark.exists()


def test_pickles_that_misuse_what_is_allowed(tmp_path):
    file = tmp_path / "a.pickle.pbz2"
    for content in (
        b"ctorch.storage\n_load_from_bytes\n(S'cos\\nsystem\\n.'\ntR.",  # torch's own would unpickle its argument
        b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'O8'\nI0\nI1\ntRS'x'\ntR.",
        b"cnumpy.core.multiarray\nscalar\n(S'f8'\nS'x'\ntR.",
    ):
        file.write_bytes(bz2.compress(content))
        refused(file, str(file), tmp_path / "out")


def test_cut_off_or_damaged_pickles(official, tmp_path):
    folder = official.nats_folder(tmp_path / "folder", [0])
    good = (folder / "000000.pickle.pbz2").read_bytes()
    draw = random.Random(0)
    for content in (b"", b"x", good[:-1], good[: len(good) // 2], bytes([*good[:60], good[60] ^ 4, *good[61:]])):
        (folder / "000000.pickle.pbz2").write_bytes(content)
        refused(folder, "000000.pickle.pbz2 is incomplete or not the official file", tmp_path / "out")
    plain = bz2.decompress(good)
    for _ in range(8):
        (folder / "000000.pickle.pbz2").write_bytes(bz2.compress(plain[: draw.randrange(len(plain))]))
        refused(folder, "000000.pickle.pbz2", tmp_path / "out")


@pytest.mark.parametrize("zipped", [False, True])
def test_cut_off_pth(official, tmp_path, zipped):
    good = official.pth(tmp_path / "a.pth", [0], zipped).read_bytes()
    for share in (0, 0.001, 0.5, 0.9):
        (tmp_path / "a.pth").write_bytes(good[: int(share * len(good))])
        refused(tmp_path / "a.pth", "a.pth is incomplete or not the official file", tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda cell: cell.pop("200"), "cell 0 does not have the benchmark's form (KeyError: 'full')"),
        (lambda cell: cell["200"].pop("all_results"), "(KeyError: 'all_results')"),
        (lambda cell: cell["200"]["all_results"]["cifar100", 888]["eval_acc1es"].clear(), "'x-valid@199'"),
        (lambda cell: cell["200"]["all_results"]["cifar100", 888].update(params="many"), "TypeError"),
        (lambda cell: cell["200"]["all_results"]["cifar100", 888].update(params=1e9), "Error"),
    ],
)
def test_results_of_another_form(official, tmp_path, change, message):
    folder, cell = official.nats_folder(tmp_path / "folder", []), official.cell(0)
    change(cell)
    official.pbz2(folder / "000000.pickle.pbz2", cell)
    refused(folder, message, tmp_path / "out")


def test_other_contents_than_the_benchmark(official, tmp_path):
    file = tmp_path / "a.pickle.pbz2"
    swapped = official.meta({})
    swapped["meta_archs"][:2] = swapped["meta_archs"][1::-1]
    for content, message in (
        ([1], "has no list of the 15625 cells"),
        ({"meta_archs": ["64:64:64"]}, "has no list of the 15625 cells"),
        (swapped, "at index 0, expected |avg_pool_3x3~0|"),
        (official.meta(), "has no arch2infos"),
        (official.meta({}), "holds no cells"),
        (official.meta({-1: official.cell(0)}), "has a cell at index -1"),
    ):
        official.pbz2(file, content)
        refused(file, message, tmp_path / "out")
    for name, message in (("notes.txt", "is not a file that can be imported"), ("folder", "folder is not a file that")):
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "notes.txt").touch()
        refused(tmp_path / name, message, tmp_path / "out")
    refused(tmp_path / "nothing.pth", "there is no", tmp_path / "out")


def test_damaged_tfrecords(official, tmp_path):
    records, _ = trainings(official)
    good, file = official.tfrecord(records), tmp_path / "a.tfrecord"
    frame = 16 + len(records[0])
    for cut in (1, 11, 12, 20, frame - 1, frame + 5, len(good) - 1):
        file.write_bytes(good[:cut])
        number = cut // frame if cut < 2 * frame else len(records) - 1
        refused(file, f"record {number} is cut off or damaged", tmp_path / "out")
    for place, message in {0: "damaged", 8: "record 0 has", 40: "record 0 has", frame - 1: "record 0 has"}.items():
        file.write_bytes(good[:place] + bytes([good[place] ^ 0x01]) + good[place + 1 :])
        refused(file, message, tmp_path / "out")
    last = len(good) - 30
    file.write_bytes(good[:last] + bytes([good[last] ^ 0x01]) + good[last + 1 :])
    refused(file, f"record {len(records) - 1} has a wrong checksum", tmp_path / "out")
    for content in (
        b"[]",
        b"{",
        b"\xff",
        b'["00", 108, "01", "input", "!"]',
        b'["zz", 108, "0", "", "AAAA"]',
        records[0].replace(b"108", b"Infinity", 1),
        records[0][:-9] + b'"]',
    ):
        file.write_bytes(official.tfrecord([content]))
        refused(file, "record 0 is not a training of NAS-Bench-101", tmp_path / "out")
    file.write_bytes(b"")
    refused(file, "holds no training of 108 epochs", tmp_path / "out")


def test_cells_that_are_not_of_101(official, tmp_path):
    key, (matrix, ops) = next(iter(cells_101().items()))
    file, final = tmp_path / "a.tfrecord", (1.0, 0.5, 0.5, 0.5)
    for record, message in (
        (official.training("00" * 16, 108, matrix, ops, 1, final), f"has the fingerprint {key}"),
        (official.training(key, 108, matrix, ["input", "conv5x5", "output"], 1, final), "is not one of NAS-Bench-101"),
        (official.training(key, 108, matrix[1:], ops, 1, final), "is not one of NAS-Bench-101"),
        (
            official.training(key, 108, ["x" * len(row) for row in matrix], ops, 1, final),
            "is not one of NAS-Bench-101",
        ),
        (official.training(key, 7, matrix, ops, 1, final), "a training of 7 epochs, expected one of 4, 12, 36, 108"),
        (official.training(key, 12, matrix, ops, 1, final), "holds no training of 108 epochs"),
    ):
        file.write_bytes(official.tfrecord([record]))
        refused(file, message, tmp_path / "out")


@partial
def test_a_failed_import_leaves_the_earlier_table(official, tmp_path):
    folder = official.nats_folder(tmp_path / "folder", INDICES)
    written = import_table(folder, tmp_path / "tables")
    before = written.read_bytes()
    (folder / "000009.pickle.pbz2").write_bytes(b"cut")
    with pytest.raises(InputError):
        import_table(folder, tmp_path / "tables")
    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]


@partial
def test_a_damaged_table_is_reported(official, tmp_path):
    written = import_table(official.nats_folder(tmp_path / "folder", INDICES), tmp_path / "tables")
    good = written.read_bytes()
    written.write_bytes(good[: len(good) // 2])
    with pytest.raises(InputError, match="cannot be read as a table"):
        table("nas-bench-201", written.parent)
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("cifar10_test.npy", "no numbers")
    with pytest.raises(InputError, match="column cifar10_test is damaged"):
        table("nas-bench-201", written.parent).query(0)
    place = good.index(np.float32(table_value(good)).tobytes())
    written.write_bytes(good[:place] + b"\x01" + good[place + 1 :])
    with pytest.raises(InputError, match="its checksum is wrong"):
        table("nas-bench-201", written.parent).details(0)
    with pytest.raises(InputError, match="column cifar10_valid is damaged"):
        find("nas-bench-201", written.parent)


@partial
def test_columns_that_do_not_fit_are_reported_on_opening(official, tmp_path):
    written = import_table(official.nats_folder(tmp_path / "folder", INDICES), tmp_path / "tables")
    with np.load(written) as archive:
        columns = dict(archive)
    for change, message in (
        ({"cifar10_test": columns["cifar10_test"][:9]}, "(9 numbers in cifar10_test, 15625 in "),
        ({name: column[:9] for name, column in columns.items()}, "(9 rows, expected 15625)"),
        ({"runs": columns["runs"].reshape(125, 125)}, "column runs is damaged"),
    ):
        write_columns(written, columns | change)
        with pytest.raises(InputError) as caught:
            table("nas-bench-201", written.parent)
        assert message in str(caught.value)
    del columns["runs"]
    write_columns(written, columns)
    with pytest.raises(InputError, match=r"\(no column runs\); import it again"):
        table("nas-bench-201", written.parent)


def table_value(content):
    import io

    with np.load(io.BytesIO(content)) as archive:
        return archive["cifar10_valid"][9]
