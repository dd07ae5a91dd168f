"""Parts from outside the package, one file each: by object and by `module:name`, end to end, killed and resumed."""

import json
import signal
from importlib import import_module
from pathlib import Path

import pytest
from commands import Command

import idarts
from idarts.arch import SPACES
from idarts.cli import main
from idarts.data import SOURCES, load
from idarts.experiments import EXPERIMENTS, Request, run_experiment
from idarts.hypergrad import SOLVERS
from idarts.pages import write_report
from idarts.searching import OBJECTIVES, PENALTIES, RELAXATIONS, RULES, SCHEDULES, SELECTIONS, STRATEGIES
from idarts.tables import TABLES

PARTS = Path(__file__).parent / "parts"
SMALL = ["--preset", "smoke", "--channels", "4", "--batch", "8", "--inner-steps", "1", "--checkpoint-rounds", "2"]
SMALL += ["--hypergradient.step", "0.01"]

# kind → option, module:name, setting from Python, the registry that learns it
CASES = {
    "relaxation": ("--relaxation", "sharp_relaxation:sharp", "relaxation", RELAXATIONS),
    "rule for α": ("--alpha.rule", "sign_rule:Sign", "alpha.rule", RULES),
    "estimator": ("--hypergradient.method", "running_estimator:Running", "hypergradient.method", SOLVERS),
    "selection": ("--selection.rule", "second_best_selection:second_best", "selection.rule", SELECTIONS),
    "objective": ("--weights.objective", "twice_objective:Twice", "weights.objective", OBJECTIVES),
    "penalty": ("--alpha.penalty", "small_alpha:small", "alpha.penalty", PENALTIES),
    "stages": ("--stages", "two_stages:two_stages", "stages", SCHEDULES),
    "strategy": ("--strategy", "tiny_evolution:TinyEvolution", "strategy", STRATEGIES),
    "space": ("--space", "chain_space:CHAIN", None, SPACES),
    "table": ("--tables", "own_table:TABLE", None, TABLES),
    "data source": ("--data", "own_source:stripes", None, SOURCES),
}


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(PARTS))


@pytest.fixture
def as_if_new(monkeypatch):
    """Let a registry forget users' own parts, as in another process."""

    def forget(registry):
        monkeypatch.setattr(registry, "_own", {})

    return forget


def object_of(reference):
    module, name = reference.split(":")
    return getattr(import_module(module), name)


def log_of(out):
    lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [{name: value for name, value in line.items() if name not in ("seconds", "digest")} for line in lines]


def result_of(out):
    result = json.loads((out / "result.json").read_text())
    return {name: result[name] for name in ("architecture", "alpha", "argmax", "gradient_evaluations", "table")}


def kill_after(rounds, run, *arguments):
    """Start a command in a process of its own, and kill it once the search in the folder `run` has logged rounds."""
    process = Command(*arguments)
    process.until_rounds(run, rounds)
    process.send(signal.SIGKILL)
    assert process.end() == -signal.SIGKILL, process.errors


@pytest.mark.parametrize("kind", CASES)
def test_by_name_killed_and_resumed(kind, tmp_path, capsys, as_if_new):
    option, reference, _, registry = CASES[kind]
    typed = [option, reference, "--rounds", "8"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(["search", *SMALL, *typed, "--out", str(whole)]) == 0
    kill_after(3, killed, "search", *SMALL, *typed, "--out", str(killed))
    assert not (killed / "result.json").exists()
    as_if_new(registry)
    capsys.readouterr()
    assert main(["search", "--resume", "--out", str(killed)]) == 2  # a file alone imports nothing
    assert reference in capsys.readouterr().err
    assert main(["search", "--resume", "--out", str(killed), option, reference]) == 0
    assert result_of(killed) == result_of(whole)
    assert log_of(killed) == log_of(whole)
    assert json.loads((whole / "config.json").read_text())
    assert main(["report", str(whole)]) == 0
    assert "Search finished" in (whole / "report.html").read_text()
    assert main(["compare", str(whole), str(killed), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out.splitlines()[-1])["groups"]) == 1


@pytest.mark.parametrize("kind", ["relaxation", "rule for α", "estimator", "selection", "stages", "strategy"])
def test_by_object(kind, tmp_path):
    _, reference, setting, _ = CASES[kind]
    digits = load("digits").train
    group, _, name = setting.partition(".")
    own = {group: {name: object_of(reference)}} if name else {setting: object_of(reference)}
    own["hypergradient"] = {"step": 0.01, **own.get("hypergradient", {})}
    result = idarts.search(
        "nas-bench-201",
        (digits.images[:96], digits.labels[:96]),
        out=tmp_path / "run",
        rounds=2,
        batch=8,
        depth=1,
        channels=4,
        inner_steps=1,
        **own,
    )
    assert result.architecture.space == "nas-bench-201"
    assert result.rounds[-1]["number"] == 2
    assert "Search finished" in write_report(tmp_path / "run").read_text()


def test_a_space_a_table_and_a_source_by_object(tmp_path):
    space, table, source = map(object_of, ("chain_space:CHAIN", "own_table:TABLE", "own_source:stripes"))
    images = load(source, hold_out=0).train
    size = {"batch": 8, "channels": 4, "hypergradient": {"step": 0.01}, "rounds": 2}
    found = idarts.search(space, images, out=tmp_path / "chain", **size)
    assert set(found.architecture.choices) == {"first", "second"}
    net = idarts.train(found.architecture, (images.images, images.labels), out=tmp_path / "net", epochs=1, batch=8)
    assert net.net(images.images[:2].float()).shape == (2, 2)
    shown = idarts.search("nas-bench-201", images, out=tmp_path / "table", table=table, depth=1, **size)
    assert shown.rounds[-1]["table_accuracy"] == table.accuracy(shown.architecture)


def test_an_experiment_by_name_is_killed_and_continued_by_object(tmp_path, capsys):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    typed = ["reproduce", "own_experiment:rates", "--preset", "smoke", "--seeds", "1"]
    kill_after(2, killed / "runs" / "fast-1", *typed, "--out", str(killed))
    assert not (killed / "runs" / "fast-1" / "result.json").exists()
    rates, lines = object_of("own_experiment:rates"), []
    page = run_experiment(rates, Request(killed, "smoke", (1,)), tell=lines.append)
    assert lines[0] == "1 of 2 jobs are done already"
    assert "Entropy of α" in page.read_text()
    assert main([*typed, "--out", str(whole)]) == 0
    for run in ("runs/slow-1", "runs/fast-1"):
        assert result_of(killed / run) == result_of(whole / run)
        assert log_of(killed / run) == log_of(whole / run)
    assert main(["report", str(killed / "runs" / "fast-1")]) == 0
    capsys.readouterr()
    assert main(["compare", str(killed / "runs"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out.splitlines()[-1])["groups"]) == 2
    assert "own_experiment:rates" in EXPERIMENTS


def test_the_second_stage_keeps_three_options_and_selects_among_them(tmp_path):
    two_stages = object_of("two_stages:two_stages")
    masks = []
    idarts.search(
        "nas-bench-201",
        load("digits").train,
        out=tmp_path / "run",
        rounds=4,
        batch=8,
        channels=4,
        hypergradient={"step": 0.01},
        stages=two_stages,
        on_round=lambda round, search: masks.append((round.stage, search.mask["cell"], search.net, search.current())),
    )
    assert [stage for stage, *_ in masks] == [1, 1, 2, 2]
    assert [len(list(net.body)) for *_, net, _ in masks] == [5, 5, 8, 8]  # one cell a stage, then two
    _, mask, net, current = masks[-1]
    assert [sum(row) for row in mask] == [3] * 6
    chosen = net.path(current)["cell"].active
    assert all(mask[row][options.index(True)] for row, options in enumerate(chosen))
