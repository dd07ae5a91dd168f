"""Runs as a user has them: real processes, killed for real, resumed to the bit; folders in use, taken or read-only."""

import json
import math
import os
import signal
import subprocess
import sys
from random import Random

import numpy as np
import pytest
import torch
from commands import Command
from torch import nn

import idarts
from idarts import Choice, NotFiniteError
from idarts.arch import parse
from idarts.cli import main
from idarts.data import load
from idarts.engine import checkpoint
from idarts.engine.folder import clear, read_result
from idarts.engine.settings import change
from idarts.errors import CollapseWarning, InputError
from idarts.searching import RunConfig, resolved, run
from idarts.searching.selections.trials import Trial
from idarts.searching.settings import Selection

TINY = {
    "rounds": 1,
    "batch": 8,
    "depth": 1,
    "channels": 4,
    "inner_steps": 1,
    "hypergradient": {"method": "first-order"},
}
SMALL = ["--preset", "smoke", "--channels", "4", "--batch", "16", "--rounds", "14", "--checkpoint-rounds", "2"]


def command(out, *more):
    return ["search", *SMALL, "--out", str(out), *more]


def log(out):
    """The log without the time that it took."""
    return [
        {key: value for key, value in json.loads(line).items() if key not in ("seconds", "digest")}
        for line in (out / "metrics.jsonl").read_text().splitlines()
    ]


def stop_after(out, rounds, number):
    """Start a run, send it a signal once so many rounds are on record, and wait for its end."""
    process = Command(*command(out))
    process.until_rounds(out, rounds)
    process.send(number)
    process.end()
    return process


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Run in this process; the others in processes of their own must come to the same."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert main(command(out)) == 0
    return out


def test_a_run_leaves_what_it_should(whole):
    result = json.loads((whole / "result.json").read_text())
    assert result["space"] == "nas-bench-201"
    assert parse(str(whole)).space == "nas-bench-201"  # a run folder is accepted wherever an architecture is
    assert len(log(whole)) == 14
    assert [path.name for path in sorted((whole / "checkpoints").iterdir())] == ["00000012.pt", "00000014.pt"]
    assert result["config"]["rounds"] == 14
    assert set(result["versions"]) >= {"idarts", "python", "torch"}
    assert torch.tensor(result["alpha"]["cell"]).shape == (6, 5)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_killed_at_a_random_moment_and_resumed_to_the_bit(whole, tmp_path, seed):
    out, rounds = tmp_path / "run", Random(seed).randint(3, 12)
    assert stop_after(out, rounds, signal.SIGKILL).code == -signal.SIGKILL
    kept = checkpoint.latest(out / "checkpoints")
    assert kept is not None
    assert kept[0] >= rounds - 2  # no more is lost than the steps since the last checkpoint
    assert main(command(out, "--resume")) == 0
    assert log(out) == log(whole)
    final = [checkpoint.latest(folder / "checkpoints")[1]["net"] for folder in (out, whole)]
    assert all(torch.equal(final[0][key], final[1][key]) for key in final[1])
    assert not [path for path in out.rglob("*") if path.name.startswith(".") and path.name != ".lock"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_writes_a_checkpoint_and_says_how_to_continue(whole, tmp_path, number):
    out = tmp_path / "run"
    process = stop_after(out, 3, number)
    assert process.code == 130
    assert "Traceback" not in process.errors
    line = next(line for line in process.output.splitlines() if "--resume" in line)
    assert checkpoint.latest(out / "checkpoints")[0] == len(log(out))
    if number == signal.SIGTERM:  # the same from here on
        return
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PATH": path}
    done = subprocess.run(line.split(), capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert log(out) == log(whole)


def test_a_warm_up_says_so_and_can_be_stopped(tmp_path):
    out, long = tmp_path / "run", ["--rounds", "1", "--weights.warmup", "60"]
    assert main(command(tmp_path / "whole", *long)) == 0
    process = Command(*command(out, *long))
    process.until(lambda: "warm-up: 0 of 60 weight steps" in process.errors)
    process.send(signal.SIGINT)
    assert process.end() == 130
    assert "stopping after this round" in process.errors
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["00000000.pt"]
    assert main(command(out, *long, "--resume")) == 0
    assert log(out) == log(tmp_path / "whole")


def test_a_second_signal_ends_at_once(tmp_path):
    slow = ["--batch", "512", "--inner-steps", "2000"]  # a round of minutes
    process = Command(*command(tmp_path / "run", *slow))
    process.until_rounds(tmp_path / "run", 0)
    process.send(signal.SIGTERM)
    process.until(lambda: "stopping after this round" in process.errors)
    assert process.code is None
    process.send(signal.SIGTERM)
    assert process.end(timeout=20) == -signal.SIGTERM


def test_a_selection_that_takes_a_while_says_so_and_can_be_stopped(tmp_path):
    out = tmp_path / "run"
    long = ["--rounds", "1", "--selection.rule", "trials", "--selection.samples", "4", "--selection.steps", "10"]
    process = Command(*command(out, *long))
    process.until(lambda: "selection: trial 1 of 4, 10 steps each" in process.errors)
    process.send(signal.SIGINT)
    assert process.end() == 130
    assert "Traceback" not in process.errors
    assert not (out / "result.json").exists()
    line = next(line for line in process.output.splitlines() if "--resume" in line)
    assert main(line.split()[1:]) == 0
    assert parse(str(out)).space == "nas-bench-201"


def test_an_existing_run_is_not_overwritten_unasked_nor_for_nothing(whole, capsys):
    before = {path.name: path.read_bytes() for path in whole.rglob("*") if path.is_file() and path.name != ".lock"}
    assert main(["search", *SMALL, "--out", str(whole)]) == 2
    assert "--resume" in capsys.readouterr().err
    assert main(["search", *SMALL, "--out", str(whole), "--overwrite", "--data", "npz:nowhere.npz"]) == 2
    capsys.readouterr()
    after = {path.name: path.read_bytes() for path in whole.rglob("*") if path.is_file() and path.name != ".lock"}
    assert after == before


def test_what_is_overwritten_is_a_runs(tmp_path, capsys):
    mine = {"config.json": '{"name": "a web site"}', "report.html": "mine"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    assert main(["search", *SMALL, "--out", str(tmp_path), "--overwrite"]) == 2
    assert "is not a run" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == mine
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.json").write_text('{"checkpoint_rounds": 1}')
    kept = [run / "checkpoints" / "teacher.pt", run / "evaluation.xlsx", run / "notes.txt"]
    for path in kept:
        path.write_text("mine")
    clear(run)
    assert sorted(path for path in run.rglob("*") if path.is_file()) == sorted([*kept, run / "config.json"])


def test_wrong_folders(tmp_path, capsys):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years of work")
    for arguments, words in [
        (["--out", str(tmp_path / "other")], "is not a run"),
        (["--out", str(tmp_path / "other"), "--overwrite"], "is not a run"),
        (["--out", str(tmp_path / "none"), "--resume"], "holds no run to resume"),
        (["--out", str(tmp_path / "other" / "thesis.tex" / "run")], "cannot be written"),
    ]:
        assert main(["search", *SMALL, *arguments]) == 2
        shown = capsys.readouterr().err
        assert words in shown
        assert shown.count("\n") == 1
    assert (tmp_path / "other" / "thesis.tex").read_text() == "years of work"


def test_a_folder_in_use(tmp_path, capsys):
    out = tmp_path / "run"
    process = Command(*command(out))
    try:
        process.until_rounds(out, 0)
        assert main(["search", *SMALL, "--out", str(out), "--resume"]) == 2
        assert "in use by another run" in capsys.readouterr().err
    finally:
        process.send(signal.SIGKILL)
        process.end()


def test_other_settings_are_not_resumed(whole, capsys):
    assert main(["search", *SMALL, "--out", str(whole), "--resume", "--seed", "5"]) == 2
    assert "was started with another seed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--weights.rat", "1"], "did you mean --weights.rate?"),
        (["--method", "dart"], "unknown method 'dart'"),
        (["--rounds", "many"], "--rounds is 'many', expected a whole number"),
        (["--data", "digitz"], "digits"),
        (["--space", "nasbench201"], "nas-bench-201"),
        (["--batch", "100000"], "larger than the split"),
        (["--device", "gpu"], "expected auto, cpu"),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, arguments, words):
    assert main(["search", *SMALL, "--out", str(tmp_path / "run"), *arguments]) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert shown.count("\n") == 1
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "xnas", "alpha.options": {"bound": 0.01}},
        {"method": "random-trials", "evaluator.steps": 1, "gradient_evaluations": 20.0},
    ],
)
def test_a_search_that_has_nothing_left_to_decide_takes_no_larger_budget(settings, tmp_path):
    typed = {"batch": 8, "depth": 1, "channels": 4, "rounds": 12, **settings}
    rounds = run(resolved([typed]), tmp_path / "run").rounds
    before = (tmp_path / "run" / "config.json").read_text()
    larger = {**typed, "rounds": 40} | ({"gradient_evaluations": 99.0} if "gradient_evaluations" in typed else {})
    with pytest.raises(InputError, match=r"nothing left to search, so a larger budget \(.*rounds\)"):
        run(resolved([larger]), tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "config.json").read_text() == before
    assert len(run(resolved([typed]), tmp_path / "run", resume=True).rounds) == len(rounds)


def test_a_printed_configuration_can_be_used_again(tmp_path, capsys):
    assert main(["search", "--preset", "smoke", "--print-config"]) == 0
    file = tmp_path / "settings.yaml"
    file.write_text(capsys.readouterr().out)
    assert main(["search", "--config", str(file), "--rounds", "1", "--out", str(tmp_path / "run")]) == 0
    settings = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (settings["rounds"], settings["channels"], settings["alpha"]["rate"]) == (1, 8, 0.01)


def test_a_full_disk_is_one_line_that_says_what_to_do(tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    out = tmp_path / "run"
    monkeypatch.setattr("idarts.engine.checkpoint.torch.save", full)
    assert main(["search", *SMALL, "--out", str(out)]) == 1
    shown = capsys.readouterr().err.splitlines()[-1]
    assert "No space left on device" in shown
    assert "free some space or remove the cause, then continue with --resume" in shown
    assert list((out / "checkpoints").iterdir()) == []


@pytest.mark.filterwarnings("ignore:a loss or the hypergradient was not finite")
def test_a_search_that_ends_in_nan_names_its_last_good_checkpoint(tmp_path, monkeypatch):
    x, y = torch.randn(64, 4), torch.randn(64, 1)
    model = Choice({"line": nn.Linear(4, 1), "curve": nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))}, name="layer")
    calls = 0

    def loss(outputs, targets):
        nonlocal calls
        calls += 1
        return nn.functional.mse_loss(outputs, targets) * (math.nan if calls > 32 else 1.0)

    with pytest.raises(NotFiniteError, match=r"last good checkpoint is that of round 5"):
        idarts.search(model, (x, y), loss=loss, out=tmp_path / "run", rounds=50, batch=8, checkpoint_rounds=1)


def test_a_collapse_to_skip_connections_is_said_once(tmp_path):
    digits = load("digits").train
    with pytest.warns(CollapseWarning, match="skip connections on 100 % of the edges") as caught:
        idarts.search(
            "nas-bench-201",
            (digits.images[:100], digits.labels[:100]),
            out=tmp_path / "run",
            rounds=4,
            batch=16,
            depth=1,
            channels=4,
            on_round=_push_to_skip,
        )
    assert sum(w.category is CollapseWarning for w in caught) == 1


def test_a_collapse_of_weights_that_know_their_images_by_heart_names_the_cause(tmp_path):
    noise, labels = torch.rand(24, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(24) % 2
    with pytest.warns(CollapseWarning, match=r"know their images by heart \(training loss .*smaller `valid`"):
        idarts.search(
            "nas-bench-201",
            (noise, labels),
            out=tmp_path / "run",
            rounds=4,
            batch=12,
            depth=1,
            channels=8,
            weights={"warmup": 80},
            hypergradient={"method": "first-order"},
            on_round=_push_to_skip,
        )


def _push_to_skip(_round, search):
    with torch.no_grad():
        search.a[0][:, 1] = 3.0


@pytest.mark.parametrize(("valid", "sizes"), [(None, (64, 32)), (0.25, (48, 16))])
def test_validation_images_of_the_datas_own_are_those_that_alpha_sees(valid, sizes, tmp_path):
    draw = np.random.default_rng(0)
    arrays = {}
    for part, count in (("train", 64), ("valid", 32), ("test", 16)):
        arrays |= {f"x_{part}": draw.integers(0, 255, (count, 8, 8), dtype=np.uint8), f"y_{part}": np.arange(count) % 3}
    np.savez(tmp_path / "dots.npz", **arrays)
    settings = change(RunConfig(data=f"npz:{tmp_path / 'dots.npz'}", valid=valid), TINY)
    seen = []
    run(
        settings,
        tmp_path / "run",
        on_round=lambda _, search: seen.append((search.task.train.part, search.task.valid.part)),
    )
    assert tuple(map(len, seen[0])) == sizes
    parts = json.loads((tmp_path / "run" / "result.json").read_text())["data"]["parts"]
    assert (parts["search"]["size"], parts["valid"]["size"]) == sizes


def test_a_trial_that_diverges_leaves_json_behind(tmp_path):
    selection = {"rule": "trials", "samples": 2, "steps": 3, "batches": 1, "rate": 1e12}
    run(change(RunConfig(), {**TINY, "selection": selection}), tmp_path / "run")
    found = (tmp_path / "run" / "result.json").read_text()
    assert "Infinity" not in found
    assert [one["loss"] for one in json.loads(found)["trials"]] == [None, None]
    assert "; trials of 2 architectures decided instead" in json.loads(found)["verdict"]["sentence"]


def test_a_selection_continues_between_its_trials(tmp_path, monkeypatch):
    """`checkpoint_minutes` holds in the selection, too: trials that have ended are not repeated."""
    settings = RunConfig(
        space="nas-bench-201",
        data="digits",
        depth=1,
        channels=4,
        batch=16,
        rounds=1,
        checkpoint_minutes=1e-9,
        selection=Selection(rule="trials", samples=4, steps=2, batches=1),
    )
    expected = run(settings, tmp_path / "whole")
    trained, plain = [], Trial._trained

    def counted(trial, architecture, steps):
        if len(trained) == 3:
            raise StoppedError
        trained.append(steps)
        return plain(trial, architecture, steps)

    monkeypatch.setattr(Trial, "_trained", counted)
    with pytest.raises(StoppedError):
        run(settings, tmp_path / "run")
    state = checkpoint.latest(tmp_path / "run" / "checkpoints")[1]
    assert len(state["trials"]) == len(trained) == 3
    trained.clear()
    monkeypatch.setattr(Trial, "_trained", lambda *what: trained.append(1) or plain(*what))
    again = run(settings, tmp_path / "run", resume=True)
    assert len(trained) == 3  # of 4 + 2
    assert again.architecture == expected.architecture
    losses = [read_result(tmp_path / name)["trials"] for name in ("whole", "run")]
    assert losses[0] == losses[1]


class StoppedError(Exception):
    pass


def test_changed_data_is_refused_and_accepted_from_python(tmp_path):
    x = torch.randn(64, 4)

    def searched(y, **more):
        model = Choice({"line": nn.Linear(4, 1), "flat": nn.Linear(4, 1, bias=False)}, name="layer")
        loss = nn.functional.mse_loss
        return idarts.search(model, (x, y), loss=loss, out=tmp_path / "run", batch=8, **more)

    searched(x.sum(1, keepdim=True), rounds=2)
    with pytest.raises(InputError, match="accept_changed_data=True in Python"):
        searched(x.mean(1, keepdim=True), rounds=3, resume=True)
    with pytest.warns(UserWarning, match="the data has changed since the run was started, and you accepted that"):
        result = searched(x.mean(1, keepdim=True), rounds=3, resume=True, accept_changed_data=True)
    assert len(result.rounds) == 3
