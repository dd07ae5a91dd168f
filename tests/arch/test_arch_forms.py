"""Every form of an architecture is recognised, and whatever else is typed gives an InputError and nothing else."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from idarts.arch import convert, from_data, parse, registry, sample, to_data, to_json
from idarts.arch.forms import forms_of
from idarts.errors import InputError
from idarts.spaces import darts, nas_bench_101, nas_bench_201

V2 = registry.entry("DARTS_V2").architecture
TEXTS = [
    "DARTS_V2",
    "nas-bench-201:1462",
    nas_bench_201.to_string(nas_bench_201.from_index(7)),
    darts.to_text(V2),
    to_json(V2),
    convert(registry.entry("NB101_best_cifar10").architecture, "nas-bench-101"),
]


def test_every_form_is_recognised(tmp_path):
    record, genotype, run = tmp_path / "cell.json", tmp_path / "cell.txt", tmp_path / "run"
    record.write_text(to_json(V2))
    genotype.write_text(darts.to_text(V2))
    run.mkdir()
    (run / "result.json").write_text(json.dumps({"accuracy": 97.0, "architecture": to_data(V2)}))
    forms = ["DARTS_V2", " darts_v2 ", V2, to_data(V2), to_json(V2), darts.to_text(V2)]
    forms += [record, str(record), genotype, run, str(run), run / "result.json"]
    assert all(parse(form) == V2 for form in forms)
    held = {"index": 3, "architecture": nas_bench_201.to_string(nas_bench_201.from_index(3)), "cifar10": {"test": 90.0}}
    assert parse(held) == parse(json.dumps(held)) == parse(json.dumps([held])) == nas_bench_201.from_index(3)
    best = registry.entry("NB101_best_cifar10").architecture
    matrix, ops = nas_bench_101.to_matrix(best)
    answer = {"hash": nas_bench_101.fingerprint(best), "architecture": {"matrix": matrix, "ops": ops}, "test": 94.0}
    assert parse(answer) == parse(json.dumps(answer)) == best
    assert parse("NAS-Bench-201:3") == nas_bench_201.from_index(3)
    assert parse(nas_bench_201.to_string(nas_bench_201.from_index(3))) == nas_bench_201.from_index(3)


def test_a_published_name_is_stronger_than_a_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("iDARTS").write_text(to_json(V2))
    assert parse("iDARTS") != V2
    assert parse("./iDARTS") == V2


@pytest.mark.parametrize("name", registry.names())
def test_every_published_cell_survives_every_form_it_has(name):
    cell = registry.entry(name).architecture
    for form in forms_of(cell):
        text = convert(cell, form)
        assert parse(f"nas-bench-201:{text}" if form == "index" else text) == cell


def test_1shot1_converts_to_nas_bench_101():
    text = convert(sample("nas-bench-1shot1", Random(0), "S3"), "nas-bench-101")
    assert parse(text).space == "nas-bench-101"
    assert json.loads(text)["fingerprint"] == nas_bench_101.fingerprint(parse(text))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("DRATS_V2", "'DRATS_V2' is not an architecture; did you mean DARTS_V2"),
        ("", "expected a published cell's name"),
        ("zzzzzzzz", "`idarts arch list` names all"),
        ("nas-bench-201:15625", "NAS-Bench-201 index 15625, expected 0 to 15624"),
        ("{", "not JSON"),
        ("{}", "lacks the key"),
        ("[" * 100_000, "is not an architecture"),
        ('{"a":' * 100_000, "nested too deeply"),
        (3, "3 is not an architecture, expected"),
        ({"matrix": [[0, 1], [0, 0]]}, "lacks the key 'ops'"),
        ({"matrix": [[0, 1], [0, 0]], "ops": [], "more": 1}, "unknown key 'more'"),
        ({"matrix": [[0, 1], [0, 0]], "ops": [], "fingerprint": "00"}, "but that of matrix and ops is 043721b9"),
        ({"architecture": 7}, "the architecture is 7"),
        ({"architecture": "some cell"}, "the architecture is 'some cell'"),
        ({"architecture": "|none~0|"}, "|none~0|"),
        (json.dumps([to_data(V2)] * 2), "is not an architecture, expected an object with keys"),
    ],
)
def test_what_is_no_architecture(what, message):
    with pytest.raises(InputError) as caught:
        parse(what)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_and_folders_without_an_architecture(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "prose.txt").write_text("once upon a time")
    (tmp_path / "bad.json").write_text('{"schema": 1, "space": "darts", "cells": {}}')
    for name, message in {
        "binary": "cannot be read as text",
        "prose.txt": "is not an architecture, expected JSON",
        "bad.json": "bad.json: darts: cells are none",
        ".": "expected a run folder with result.json",
        "absent": "expected a file",
    }.items():
        with pytest.raises(InputError, match=message):
            parse(tmp_path / name)


def test_a_form_that_a_space_does_not_have():
    with pytest.raises(
        InputError, match="an architecture of nas-bench-201 has no form 'genotype', expected json or str"
    ):
        convert(nas_bench_201.from_index(0), "genotype")
    with pytest.raises(InputError, match="unknown form 'yaml', expected one of json"):
        convert(V2, "yaml")


def accepts_or_complains(function, *arguments):
    """The only two things a parser may do."""
    message = ""
    try:
        function(*arguments)
    except InputError as error:
        message = str(error)
    assert "\n" not in message


quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@quick
@given(st.text())
@example("\0")
@example("a" * 10_000)
@example("|" * 1000)
@example("Genotype(" + "(" * 500)
@example("Genotype('\\d')")
@example("nas-bench-201:" + "9" * 5000)
def test_fuzz_any_text(text):
    accepts_or_complains(parse, text)
    accepts_or_complains(nas_bench_201.from_string, text)
    accepts_or_complains(darts.from_text, text)
    accepts_or_complains(darts.from_text, f"Genotype({text})")
    accepts_or_complains(parse, "{" + text)


@quick
@given(st.sampled_from(TEXTS), st.lists(st.tuples(st.integers(0, 2000), st.text(max_size=3)), max_size=4))
def test_fuzz_damaged_forms(text, damages):
    for position, replacement in damages:
        text = text[: position % len(text)] + replacement + text[position % len(text) + 1 :] or "x"
    accepts_or_complains(parse, text)


@quick
@given(json_values)
def test_fuzz_any_data(data):
    accepts_or_complains(from_data, data)
    accepts_or_complains(parse, json.dumps(data))
    accepts_or_complains(darts.from_genotype, data, data, data, data)
    accepts_or_complains(nas_bench_101.from_matrix, data, data)


@quick
@given(st.data())
def test_fuzz_records_with_a_foreign_part(data):
    """One value anywhere in a valid record is replaced by something else."""
    record = to_data(data.draw(st.sampled_from([V2, parse("nas-bench-201:5"), parse("NB101_best_cifar10")])))
    node, key = record, data.draw(st.sampled_from(sorted(record)))
    while isinstance(node[key], (dict, list)) and node[key] and data.draw(st.booleans()):
        node = node[key]
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
    node[key] = data.draw(json_values)
    accepts_or_complains(from_data, record)
