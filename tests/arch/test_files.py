"""Files that exist as a whole or not at all, JSON, pickles that run nothing, checksums."""

import io
import json
import os
import pickle
import random
import stat
from contextlib import suppress

import numpy as np
import pytest
from attacks import HARMLESS, NAMES, attacks

from idarts.errors import InputError
from idarts.files import crc32c, dump_json, load_json, read_json, write_whole
from idarts.pickles import NUMPY, NumberType, RefusedError, unpickle, unpickling


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_file_has_the_permissions_of_new_files(mask, tmp_path):
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "a.txt", b"a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~mask


def test_a_failed_write_changes_nothing(tmp_path):
    target = tmp_path / "folder"
    (target / "inside").mkdir(parents=True)  # a file cannot take the place of a folder
    with pytest.raises(InputError, match=f"cannot write {target}: "):
        write_whole(target, b"a")
    with pytest.raises(InputError, match=r"cannot write .*/none/a.txt: No such file or directory"):
        write_whole(tmp_path / "none" / "a.txt", b"a")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_json_comes_back_with_null_for_numbers_that_are_not_finite(tmp_path):
    data = {"a": [1, 2.5, float("nan"), float("-inf")], "b": {"c": (True, None, "é")}}
    write_whole(tmp_path / "a.json", dump_json(data))
    written = json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
    assert written.pop("digest").startswith("sha256:")
    assert written == read_json(tmp_path / "a.json")
    assert read_json(tmp_path / "a.json") == {"a": [1, 2.5, None, None], "b": {"c": [True, None, "é"]}}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 5000, b"nul"])
def test_a_file_that_is_not_json_is_one_line_with_its_name(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=r"^[^\n]*a\.json is not [^\n]*$"):
        read_json(tmp_path / "a.json")
    with pytest.raises(InputError, match=r"^not JSON[^\n]*$"):
        load_json(content.decode("latin1"))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in HARMLESS])
def test_attacks_do_work_where_anything_may_run(name, tmp_path):
    """Otherwise the next test would show nothing."""
    mark = tmp_path / "ran"
    pickle.loads(attacks(str(mark))[name][0])
    assert mark.exists()


@pytest.mark.parametrize("encoding", ["ASCII", "bytes"])
@pytest.mark.parametrize("allowed", [{}, {**NUMPY, "collections.OrderedDict": dict}], ids=["nothing", "some names"])
@pytest.mark.parametrize("name", NAMES)
def test_a_malicious_pickle_is_refused_and_nothing_runs(name, allowed, encoding, tmp_path):
    mark = tmp_path / "ran"
    attack, called = attacks(str(mark))[name]
    with pytest.raises(RefusedError, match=f"^calls {called}$"):
        unpickle(io.BytesIO(attack), allowed, encoding)
    expected = f"batch was refused: its pickle calls {called}; get the official file again"
    with pytest.raises(InputError, match=expected), unpickling(tmp_path / "batch"):
        unpickle(io.BytesIO(attack), allowed, encoding)
    assert not mark.exists()


def test_an_allowed_name_calls_the_stand_in_only():
    """`os.system` itself is never looked up."""
    content = pickle.dumps([1, os.path.join])
    module = os.path.join.__module__
    calls = []
    restored = unpickle(io.BytesIO(content), {f"{module}.join": lambda *arguments: calls.append(arguments)})
    restored[1]("a", "b")
    assert calls == [("a", "b")]


@pytest.mark.parametrize(
    "content",
    [
        b"cnumpy\ndtype\n(N}S'__code__'\nI1\nstb.",  # sets attributes of what it names
        b"cnumpy\ndtype\n(N}S'__init__'\nI1\nstb.",
        b"c_codecs\nencode\n(N}S'__defaults__'\n(I1\ntstb.",
        b"cnumpy\ndtype\n}S'_code'\nS'O8'\nsb.",
    ],
)
def test_a_pickle_cannot_change_the_stand_ins(content):
    before = {name: dict(vars(part)) for name, part in NUMPY.items()}, NumberType("f8").dtype
    with suppress(Exception):
        unpickle(io.BytesIO(content), NUMPY)
    assert ({name: dict(vars(part)) for name, part in NUMPY.items()}, NumberType("f8").dtype) == before
    assert NUMPY["_codecs.encode"].__defaults__ is None


def test_stand_ins_take_plain_numbers_and_latin1_only():
    for content in (
        b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR.",
        b"c_codecs\nencode\n(I1\nS'latin1'\ntR.",
    ):
        with pytest.raises(RefusedError, match="codec"):
            unpickle(io.BytesIO(content), NUMPY)
    for code in ("O", "O8", "V8", "M8", "U3", "S"):
        with pytest.raises(RefusedError, match="expected plain numbers"):
            _ = NumberType(code).dtype
    for kind in ("<f8", ">i4", "|u1", "|b1", "<f2"):
        restored = unpickle(io.BytesIO(pickle.dumps(np.dtype(kind), protocol=2)), NUMPY)
        assert np.dtype(restored.dtype) == np.dtype(kind)


def test_damaged_pickles_are_one_line(tmp_path):
    whole = pickle.dumps({"labels": list(range(300)), "names": [b"a", "b"], "more": {"x": (1.5, None)}}, protocol=4)
    draw = random.Random(0)
    for _ in range(200):
        damaged = bytearray(whole[: draw.randrange(len(whole))])
        for _ in range(draw.randrange(3)):
            damaged and damaged.__setitem__(draw.randrange(len(damaged)), draw.randrange(256))
        message = r"^[^\n]*a (is incomplete or not|was refused)[^\n]*; get[^\n]*$"
        with pytest.raises(InputError, match=message), unpickling(tmp_path / "a"):
            unpickle(io.BytesIO(bytes(damaged)), {})


def test_crc32c_against_the_polynomial_bit_by_bit():
    def bit_by_bit(content):
        state = 0xFFFFFFFF
        for byte in content:
            state ^= byte
            for _ in range(8):
                state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
        return state ^ 0xFFFFFFFF

    draw = random.Random(1)
    contents = [draw.randbytes(draw.choice([0, 1, 7, 8, 200])) for _ in range(40)]
    assert crc32c(contents).tolist() == [bit_by_bit(content) for content in contents]
    assert crc32c([]).tolist() == []
