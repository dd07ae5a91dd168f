"""A whole fit, stopped and resumed, as a person runs it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from idarts import load
from idarts.arch import parse
from idarts.cli import main
from idarts.engine.folder import read_result, read_rounds
from idarts.errors import InputError
from idarts.fitting import fit, plan
from idarts.pages.watch.site import Site

BUSY = min(3.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))  # as long in CPU time on a busy machine
MINUTES = round(0.3 * BUSY, 2)


def command(*words):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "idarts", "fit", "digits", *map(str, words)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A fit that a signal stops during its trainings, then resumed: its folder and what the two processes printed."""
    out = tmp_path_factory.mktemp("fit") / "mine"
    first = command("--minutes", MINUTES, "--out", out, "--log", "tensorboard")
    while first.poll() is None and not (out / "found" / "metrics.jsonl").exists():
        time.sleep(0.05)
    first.send_signal(signal.SIGTERM)
    stopped = first.communicate(timeout=400)
    assert first.returncode == 130, stopped
    second = command("--out", out, "--resume", "--json")
    resumed = second.communicate(timeout=400)
    assert second.returncode == 0, resumed
    return out, stopped, resumed


def test_a_stopped_fit_says_how_to_continue(fitted):
    out, (_, errors), _ = fitted
    assert f"idarts fit digits --out {out} --resume" in errors
    assert "left  search: " in errors


def test_the_result_has_the_promised_form(fitted):
    out, _, (printed, _) = fitted
    result = json.loads(printed)
    assert result == json.loads((out / "result.json").read_text())
    assert list(result) == ["architecture", "seconds", "accuracy", "interval", "parameters", "winner", "exported"]
    for name in ("accuracy", "interval", "parameters"):
        assert list(result[name]) == ["found", "fixed", "random"]
    for name, (low, high) in result["interval"].items():
        assert 0 <= low <= result["accuracy"][name] <= high <= 1
    assert result["winner"] in ("found", "fixed", "undecided")
    assert result["exported"] == ("fixed" if result["winner"] == "fixed" else "found")
    assert parse(result["architecture"]).space == "residual-blocks"


def test_found_and_fixed_are_equally_large_and_all_are_equally_long_trained(fitted):
    out, _, (printed, _) = fitted
    sizes = json.loads(printed)["parameters"]
    assert abs(sizes["found"] / sizes["fixed"] - 1) <= 0.05
    runs = [out / "found", out / "fixed", *out.glob("random-*")]
    assert len(runs) >= 3
    assert len({read_rounds(run)[-1]["epoch"] for run in runs}) == 1
    assert len({read_result(run)["config"]["seed"] for run in runs}) == 1


def test_the_time_is_kept_over_both_processes(fitted):
    _, _, (printed, _) = fitted
    # Two starts, with their imports and measurements, weigh much in so short a fit, and cannot be shortened.
    assert json.loads(printed)["seconds"] <= 1.1 * 60 * MINUTES + 8 * BUSY


def test_the_folder_has_a_model_and_a_page(fitted):
    out, _, (printed, _) = fitted
    result = json.loads(printed)
    net = load(out)
    assert net.card.labels == tuple("0123456789")
    assert sum(weights.numel() for weights in net.parameters()) == result["parameters"][result["exported"]]
    page = (out / "report.html").read_text()
    assert "<h2>Result</h2>" in page
    assert 'href="found/report.html"' in page
    assert (out / "search" / "report.html").is_file()
    assert (out / "fixed" / "report.html").is_file()


def test_the_command_that_trains_the_network_longer_keeps_the_test_images(fitted, tmp_path):
    out, _, (printed, _) = fitted
    (written,) = re.findall(r"idarts (train --config .*?)<", (out / "report.html").read_text())
    words = shlex.split(written)
    exported = json.loads(printed)["exported"]
    assert words[:3] == ["train", "--config", str(out / exported / "config.json")]
    epochs = read_rounds(out / exported)[-1]["epoch"]
    assert int(words[words.index("--epochs") + 1]) == max(1, round(10 * epochs))
    words[words.index("--epochs") + 1], words[words.index("--out") + 1] = "1", str(tmp_path / "longer")
    assert main([*words, "--quiet"]) == 0
    before, after = (load_file(run / "split.safetensors") for run in (out / exported, tmp_path / "longer"))
    assert all(torch.equal(before[part], after[part]) for part in ("train", "test"))


def test_the_page_can_be_written_again_from_the_folder(fitted, capsys, tmp_path):
    out, _, _ = fitted
    before = (out / "report.html").read_text()
    (out / "report.html").unlink()
    assert main(["report", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out / "report.html")
    assert (out / "report.html").read_text() == before
    assert main(["report", str(out), "-o", str(tmp_path / "page.html")]) == 2
    assert "links to files beside it" in capsys.readouterr().err


def test_all_parts_are_logged_also_after_the_resume(fitted):
    out, _, _ = fitted
    assert list((out / "search").glob("events.out.tfevents.*"))
    assert len(list((out / "found").glob("events.out.tfevents.*"))) == 2  # one for each process


def test_the_live_view_lists_the_parts(fitted):
    out, _, _ = fitted
    page = Site([out]).page()
    for name in ("search", "found", "fixed", "random-1"):
        assert f">{name}<" in page


def test_the_folder_can_be_evaluated_on_its_own_test_images(fitted, capsys):
    out, _, (printed, _) = fitted
    result = json.loads(printed)
    assert main(["evaluate", str(out), "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    assert evaluated["data"]["images"] == 359
    assert evaluated["accuracy"] == pytest.approx(result["accuracy"][result["exported"]])


def test_a_fit_is_not_overwritten_by_accident(fitted):
    out, _, _ = fitted
    with pytest.raises(InputError, match=r"already holds a fit; .* \(resume=True, overwrite=True in Python\)"):
        fit("digits", out=out)
    with pytest.raises(InputError, match="started with seed 0"):
        fit("digits", out=out, minutes=MINUTES, seed=7, resume=True)


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="holds no fit"):
        fit("digits", out=tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def test_other_files_in_the_model_folder_end_a_fit_before_it_starts(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "notes.txt").write_text("mine")
    (tmp_path / "fit.json").write_text("an old fit")
    with pytest.raises(InputError, match=r"model holds notes.txt, which is not part of a model; move it"):
        fit("digits", out=tmp_path, overwrite=True)
    assert (tmp_path / "fit.json").read_text() == "an old fit"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("digits --minutes 0", "--minutes is '0', expected a positive number"),
        (
            "digits --space darts",
            "a fit cannot use the space darts, because it has no fixed architecture to compare with; use mobile",
        ),
        ("no-such-folder", "there is no folder, file or data source 'no-such-folder'; the sources are cifar10"),
        ("/no/such/folder", "there is no folder or file '/no/such/folder'"),
        ("digits --resume --out {}/none", "holds no fit to resume"),
        ("digits --log wandbb", "unknown logger 'wandbb'; did you mean wandb?"),
    ],
)
def test_mistakes_get_one_line(words, message, capsys, tmp_path):
    assert main(["fit", *words.format(tmp_path).split(), *([] if "--out" in words else ["--plan"])]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def test_an_unknown_folder_is_refused_before_the_first_line_of_progress(capsys, tmp_path):
    assert main(["fit", "fotos", "--out", str(tmp_path / "mine")]) == 2
    assert capsys.readouterr().err.startswith("idarts: there is no folder, file or data source 'fotos'; ")
    assert not list(tmp_path.iterdir())


def test_a_plan_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen, made = plan("digits", minutes=3)
    assert (seen.classes, made.image) == (10, 8)
    assert not list(tmp_path.iterdir())


def test_the_time_left_is_that_of_the_whole_and_the_time_is_kept(tmp_path):
    statuses, started = [], time.monotonic()

    def on_status(status):
        statuses.append((time.monotonic() - started, status.left))

    whole = 60 * MINUTES
    fit("digits", minutes=MINUTES, out=tmp_path / "mine", on_status=on_status)
    end = time.monotonic() - started
    assert end <= 1.1 * whole
    wrong = [
        (passed, left) for passed, left in statuses if passed > whole / 10 and abs(passed + left - end) > whole / 4
    ]
    assert not wrong


def test_the_page_of_an_unfinished_fit_is_refused(tmp_path, capsys):
    (tmp_path / "fit.json").write_text('{"format": "idarts-fit-1"}')
    assert main(["report", str(tmp_path)]) == 2
    assert f"has not finished, so it has no page yet; follow it with: idarts watch {tmp_path}" in (
        " ".join(capsys.readouterr().err.split())
    )
