"""Sweeps as a user has them: real processes, killed for real; two at once; interrupted; mistakes in the file."""

import csv
import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from shutil import rmtree

import numpy as np
import pytest

from idarts.cli import jobs as cli_jobs
from idarts.cli import main
from idarts.errors import InputError
from idarts.experiments import FailedJobsError, Request, engines, local, plan, run_experiment
from idarts.experiments.jobs import Outcome

TINY = {
    "preset": "smoke",
    "settings": {
        "rounds": 2,
        "channels": 5,
        "batch": 8,
        "inner_steps": 1,
        "hypergradient.method": "first-order",  # the largest eigenvalue would take most of the time
        "checkpoint_rounds": 1,
    },
}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A source that costs nothing to load."""
    file, draw = tmp_path_factory.mktemp("data") / "dots.npz", np.random.default_rng(0)
    x, y = draw.integers(0, 255, (48, 8, 8, 1), dtype=np.uint8), np.arange(48) % 3
    np.savez(file, x_train=x, y_train=y, x_test=x, y_test=y)
    return f"npz:{file}"


def tiny(images, **more):
    return {**TINY, "settings": {**TINY["settings"], "data": images}, **more}


def rows(out):
    return list(csv.DictReader((out / "results.csv").read_text().splitlines()))


def sweep(described, out, engine=None, **options):
    return run_experiment(described.experiment, Request(out), engine, **{"tell": lambda _: None, **options})


def test_a_failed_job_is_reported_and_the_others_are_done(images, tmp_path):
    described, out, lines = plan(tiny(images, grid={"data": [images, "npz:/no/such.npz"]})), tmp_path / "out", []
    bad = next(name for name in described.jobs if "no_such" in name)
    with pytest.raises(FailedJobsError) as error:
        sweep(described, out, local(), jobs=1, threads=1, tell=lines.append)
    assert list(error.value.failures) == [bad]
    assert "/no/such.npz" in error.value.failures[bad]
    assert lines[0] == f"jobs: 2, 1 at a time; logs: {out / 'logs'}"
    assert not any("trying again" in line for line in lines)  # a mistake stays one
    assert "Traceback" in (out / "logs" / f"{bad}.log").read_text()
    assert len(rows(out)) == 1
    # Another call continues: only what failed is tried.
    with pytest.raises(FailedJobsError):
        sweep(described, out, tell=lines.append)
    assert "1 of 2 jobs are done already" in lines
    # With other settings the folder is another sweep's.
    before = (out / "sweep.json").read_bytes()
    other = plan(tiny(images, settings={**TINY["settings"], "data": images, "rounds": 3}, grid={"data": [images]}))
    with pytest.raises(InputError, match="another rounds"):
        sweep(other, out)
    assert (out / "sweep.json").read_bytes() == before


def test_a_sweep_of_an_older_version_continues(images, tmp_path):
    """Settings that it did not know had today's defaults; its table may name settings in another way."""
    described, lines = plan(tiny(images)), []
    (name,) = described.jobs
    sweep(described, tmp_path)
    written = (tmp_path / "results.csv").read_text()
    config = json.loads((tmp_path / name / "config.json").read_text())
    del config["precision"], config["selection"]["rate"]
    (tmp_path / name / "config.json").write_text(json.dumps(config))
    (tmp_path / "sweep.json").write_text(json.dumps({"idarts": "0.1.0", "jobs": {name: ["nas-bench-201", "idarts"]}}))
    older = [line.rpartition(",")[0] for line in written.replace('""rounds"": 2', '""turns"": 2').splitlines()]
    (tmp_path / "results.csv").write_text("\n".join(older) + "\n")  # it knew no digests
    sweep(described, tmp_path, tell=lines.append)
    assert lines == ["1 of 1 jobs are done already"]
    rmtree(tmp_path / name)  # a search without a folder is not done, whatever the table says
    sweep(described, tmp_path, tell=lines.append)
    assert lines[1:] == [f"[1/1] {name}"]
    before = next(csv.DictReader(written.splitlines()))
    changing = {"seconds": "", "digest": ""}  # the digest is of the whole row, with its seconds
    assert {**rows(tmp_path)[0], **changing} == {**before, **changing}


def test_interrupted_it_says_how_to_continue_and_a_second_one_is_refused(images, tmp_path):
    out, file = tmp_path / "out", tmp_path / "two.yaml"
    long = {**TINY["settings"], "data": images, "rounds": 100000, "checkpoint_rounds": 100000}
    file.write_text(json.dumps({"preset": "smoke", "seeds": 2, "settings": long, "out": str(out)}))
    command = [sys.executable, "-m", "idarts", "sweep", str(file), "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    logs = [out / f"nas-bench-201-idarts-{seed}" / "metrics.jsonl" for seed in (1, 2)]
    for _ in range(1200):
        if process.poll() is not None or all(log.exists() and log.read_text().count("\n") > 1 for log in logs):
            break
        time.sleep(0.05)
    try:
        with pytest.raises(InputError, match=f"in use by another sweep .process {process.pid}."):
            sweep(plan(tiny(images)), out)
        process.send_signal(signal.SIGINT)
        shown, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert f"idarts sweep {file} --jobs 2\n" in shown
    assert "trying again" not in errors
    assert all(list((log.parent / "checkpoints").glob("*.pt")) for log in logs)  # they were stopped, not killed


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"method": ["idarts"]}, "unknown key 'method'; did you mean methods?"),
        ({"methods": ["idart"]}, "unknown method 'idart'; did you mean idarts?"),
        ({"methods": "idarts"}, "expected a list of names"),
        ({"methods": ["darts", "darts"]}, "is planned twice"),
        ({"spaces": ["nas-bench-20"]}, "unknown space"),
        ({"preset": "smok"}, "did you mean smoke?"),
        ({"seeds": 0}, "seeds is 0"),
        ({"settings": {"alpha": {"rat": 1}}}, "unknown setting 'alpha.rat'; did you mean alpha.rate?"),
        ({"settings": {"alpha": 3}}, "unknown setting 'alpha'"),
        ({"settings": {"batch": {"size": 3}}}, "unknown setting 'batch.size'"),
        ({"settings": {"rounds": "many"}}, "rounds is 'many', expected a whole number of at least 1"),
        (
            {"settings": {"rounds": 0}},
            "rounds is 0, expected a whole number of at least 1 (job nas-bench-201-idarts-1)",
        ),
        ({"settings": {"seed": 3}}, "list it under seeds"),
        ({"grid": {"batch": 3}}, "grid.batch is 3"),
        ([1], "has no settings; `idarts sweep --help` shows an example"),
    ],
)
def test_mistakes_in_a_file_are_explained_in_one_line(data, said, tmp_path, capsys):
    file = tmp_path / "sweep.yaml"
    file.write_text(json.dumps(data))
    assert main(["sweep", str(file), "--out", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_settings_in_layers():
    data = {
        "preset": "nas-bench-1shot1-paper",
        "methods": ["idarts", "darts"],
        "settings": {"alpha.rate": "1e-3"},
        "grid": {"size": {"s": {"batch": 8, "alpha": {"rate": 0.5}}, "l": {"batch": 9}}},
    }
    configs = {name: job.config for name, job in plan(data).jobs.items()}
    assert configs["nas-bench-1shot1-s3-idarts-s-1"].hypergradient.terms == 3  # the preset's
    assert configs["nas-bench-1shot1-s3-darts-s-1"].hypergradient.method == "reverse"  # DARTS stays DARTS
    assert [config.alpha.rate for config in configs.values()] == [0.5, 0.001, 0.5, 0.001]
    assert [config.batch for config in configs.values()] == [8, 9, 8, 9]


def test_options_of_a_part_are_a_mapping():
    named = {"relaxation": "partial-channels", "relaxation_options": {"share": 4, "edges": True}}
    data = {"settings": {"selection": {"rule": "few-skips", "options": {"most": 1}}}, "grid": {"change": {"p": named}}}
    (job,) = plan(data).jobs.values()
    assert job.config.relaxation_options == {"share": 4, "edges": True}
    assert job.config.selection.options == {"most": 1}


def test_values_of_two_axes_may_have_one_label():
    (job,) = plan({"grid": {"size": {"a": {"batch": 8}}, "rate": {"a": {"alpha.rate": 0.5}}}}).jobs.values()
    assert (job.config.batch, job.config.alpha.rate) == (8, 0.5)


def test_bad_options(tmp_path, capsys):
    file = tmp_path / "sweep.yaml"
    file.write_text("preset: smoke\n")
    for options in (["--engine", "sun"], ["--engine", "ray"], ["--address", "x"], ["--jobs", "0"], ["--gpus", "1"]):
        assert main(["sweep", str(file), *options]) == 2
    assert capsys.readouterr().err.count("\n") == 5
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").touch()
    assert main(["sweep", str(file), "--out", str(tmp_path / "taken")]) == 2
    assert "holds no sweep" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limit", "threads"), [("1", 1), ("3", 3), ("3,1", 3), ("100", 4), ("", 4), ("many", 4), (None, 4)]
)
def test_a_job_has_no_more_threads_than_omp_num_threads(tmp_path, monkeypatch, limit, threads):
    given = []

    @contextmanager
    def noting():
        def call(_, task):
            given.append(task["threads"])
            return Outcome("noted", again=False)

        yield call

    monkeypatch.setattr(engines, "cores", lambda: 8)
    monkeypatch.setattr(cli_jobs, "local", noting)
    if limit is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
    with pytest.raises(InputError, match="noted"):
        sweep(plan(TINY), tmp_path / "called", noting(), jobs=2)
    file = tmp_path / "sweep.yaml"
    file.write_text("preset: smoke\n")
    command = ["sweep", str(file), "--jobs", "2", "--out"]
    assert main([*command, str(tmp_path / "typed")]) == 2
    assert main([*command, str(tmp_path / "said"), "--threads", "5"]) == 2
    assert given == [threads, threads, 5]


def test_a_damaged_result_is_named(images, tmp_path):
    described = plan(tiny(images, seeds=2))
    damaged, _ = (tmp_path / name for name in described.jobs)
    damaged.mkdir()
    (damaged / "result.json").write_text("{}")
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(FailedJobsError, match=r"1 of 2 jobs failed, .*/result.json cannot be read; delete .*"):
        sweep(described, tmp_path)
    assert len(rows(tmp_path)) == 1


def test_a_finished_sweep_has_a_page_that_compares(images, tmp_path):
    page = sweep(plan(tiny(images, methods=["darts-first-order", "gdas"])), tmp_path)
    text = (page.parent / "results.md").read_text()
    assert "darts-first-order − gdas" in text
    assert "searches are planned; the tables have all finished searches of this folder." in text
