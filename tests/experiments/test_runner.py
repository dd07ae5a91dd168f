"""The runner: nothing is measured twice, nothing finished is lost, and a folder belongs to one experiment."""

import csv
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from idarts.cli import main
from idarts.errors import InputError
from idarts.experiments import Experiment, FailedJobsError, FunctionJob, Request, local, run_experiment
from idarts.experiments.store import Store
from idarts.pages.experiment import Section


def silent(_):
    pass


def counting(measured, names=("a", "b", "c"), failing=(), settings="", stop=None):
    """An experiment whose jobs note that they ran."""

    def measure(name):
        if name == stop:
            raise KeyboardInterrupt
        measured.append(name)
        if name in failing:
            raise RuntimeError(f"{name} broke")
        return [{"value": len(measured), "name": name}, {"value": 0.5, "name": f"{name}, too"}]

    def plan(_):
        return [FunctionJob(name, settings, function=measure, arguments={"name": name}) for name in names]

    def show(rows, _):
        return [Section("Values", header=("name",), rows=[[str(row["name"])] for row in rows])]

    return Experiment("counts", "Counts.", plan, show, columns=("value", "name"))


def rows(out):
    with (out / "results.csv").open() as file:
        return list(csv.DictReader(file))


def test_an_experiment_that_was_stopped_continues(tmp_path):
    measured, request = [], Request(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        run_experiment(counting(measured, stop="b"), request, tell=measured.append)
    assert [row["name"] for row in rows(tmp_path / "out")] == ["a", "a, too"]
    lines = []
    page = run_experiment(counting(measured), request, tell=lines.append)
    assert [name for name in measured if name in "abc"] == ["a", "b", "c"]
    assert lines[0] == "1 of 3 jobs are done already"
    assert [row["name"] for row in rows(tmp_path / "out")] == ["a", "a, too", "b", "b, too", "c", "c, too"]
    assert page == tmp_path / "out" / "index.html"
    assert "c, too" in page.read_text()
    assert "| c, too |" in (tmp_path / "out" / "results.md").read_text()


def test_a_finished_experiment_measures_nothing(tmp_path):
    measured, request = [], Request(tmp_path / "out")
    for _ in range(2):
        run_experiment(counting(measured), request, tell=silent)
    assert measured == ["a", "b", "c"]


def test_a_failed_job_does_not_stop_the_others_and_is_tried_again(tmp_path):
    measured, lines, request = [], [], Request(tmp_path / "out")
    with pytest.raises(FailedJobsError, match=r"1 of 3 jobs failed, first b \(b broke\); .*the same command") as error:
        run_experiment(counting(measured, failing=("b",)), request, tell=lines.append)
    assert error.value.failures == {"b": "b broke"}
    assert "[2/3] b failed: b broke" in lines
    assert "RuntimeError: b broke" in (tmp_path / "out" / "logs" / "b.log").read_text()
    assert measured == ["a", "b", "c"]
    run_experiment(counting(measured), request, tell=silent)
    assert measured == ["a", "b", "c", "b"]
    assert [row["name"] for row in rows(tmp_path / "out")][::2] == ["a", "b", "c"]  # as planned, not as finished


def mistaken(reason):
    raise InputError(reason)


def test_the_same_mistake_in_all_jobs_is_one_of_the_request(tmp_path):
    def experiment(reasons):
        jobs = [FunctionJob(str(n), function=mistaken, arguments={"reason": r}) for n, r in enumerate(reasons)]
        return Experiment("mistakes", "Mistakes.", lambda _: jobs)

    with pytest.raises(InputError, match=r"^no data$"):
        run_experiment(experiment(["no data"] * 2), Request(tmp_path / "out"), tell=silent)
    with pytest.raises(FailedJobsError, match="2 of 2 jobs failed"):
        run_experiment(experiment(["no data", "no table"]), Request(tmp_path / "other"), tell=silent)


def noted(file, name, wait):
    """At the module level, for other processes."""
    time.sleep(wait)
    with Path(file).open("a") as notes:
        notes.write(f"{name}\n")
    return [{"name": name, "process": os.getpid()}]


@pytest.mark.parametrize("engine", [None, local], ids=["here", "local"])
def test_a_stage_waits_for_the_one_before(tmp_path, engine):
    late, slow = (
        FunctionJob(name, stage=stage, function=noted, arguments={"file": tmp_path / "notes", "name": name, "wait": s})
        for name, stage, s in (("late", 1, 0), ("slow", 0, 0.2))
    )
    experiment = Experiment("stages", "Stages.", lambda _: [late, slow])
    run_experiment(experiment, Request(tmp_path / "out"), engine and engine(), jobs=2, tell=silent)
    assert (tmp_path / "notes").read_text() == "slow\nlate\n"
    assert [row["name"] for row in rows(tmp_path / "out")] == ["late", "slow"]
    assert all((row["process"] == str(os.getpid())) == (engine is None) for row in rows(tmp_path / "out"))


def test_results_with_other_settings_are_not_taken_for_these(tmp_path):
    request = Request(tmp_path / "out")
    run_experiment(counting([], settings="3 rounds"), request, tell=silent)
    for settings in ("4 rounds", ""):  # without a text of its own, a job's arguments count
        with pytest.raises(InputError, match=r"has a with other settings than now; name a new folder with --out"):
            run_experiment(counting([], settings=settings), request, tell=silent)
    first, other = (FunctionJob("a", function=noted, arguments={"wait": wait}) for wait in (1, 2))
    assert first.settings != other.settings


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [("other", {}, "experiment counts, not other"), ("counts", {"preset": "smoke"}, "preset cpu, not smoke")],
)
def test_a_folder_belongs_to_one_experiment(tmp_path, name, change, message):
    request = Request(tmp_path / "out")
    run_experiment(counting([]), request, tell=silent)
    with pytest.raises(InputError, match=message):
        run_experiment(replace(counting([]), name=name), replace(request, **change), tell=silent)


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="holds no experiment"):
        run_experiment(counting([]), Request(tmp_path), tell=silent)
    assert os.listdir(tmp_path) == ["mine.txt"]


def test_two_processes_cannot_write_one_folder(tmp_path):
    hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True)"
    hold += "; input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="is in use by another experiment"):
            run_experiment(counting([]), Request(tmp_path), tell=silent)
        other.communicate("\n")


def test_two_jobs_cannot_have_one_name(tmp_path):
    with pytest.raises(InputError, match="the plan has b twice"):
        run_experiment(counting([], names=("a", "b", "b")), Request(tmp_path / "out"), tell=silent)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["else\n1\n", "job,settings\na\n", "job,settings\n\udcff"])
def test_a_file_that_is_no_table_is_refused(tmp_path, text):
    (tmp_path / "results.csv").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match="name a new folder with --out"):
        Store(tmp_path / "results.csv", ("value",))


def test_values_come_back_as_they_were(tmp_path):
    values = [{"value": 0.1 + 0.2, "name": "γ, “quoted”\nline"}, {"value": 10**12}, {"name": "no value", "more": None}]
    store = Store(tmp_path / "results.csv", ("value", "name"))
    store.add("12", "", values)
    again = Store(tmp_path / "results.csv").rows
    assert again == store.rows
    assert [row["value"] for row in again] == [0.1 + 0.2, 10**12, ""]
    assert again[0]["name"] == "γ, “quoted”\nline"
    assert again[0]["job"] == "12"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preset": "gpu"}, "unknown preset 'gpu'"),
        ({"seeds": (1, 1)}, "each once"),
        ({"methods": ("darts", "idarts", "darts")}, "methods are darts, idarts, darts, expected each once"),
    ],
)
def test_requests_that_make_no_sense(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        Request(tmp_path, **change)


OWN = '''
"""An experiment of a user's own, in a module outside the package."""

import time
from dataclasses import replace
from pathlib import Path

from idarts.experiments import Experiment, FunctionJob, search_jobs
from idarts.pages.experiment import Section


def power(number, notes, exponent=2):
    with Path(notes).open("a") as file:
        file.write(f"{number}\\n")
    if number > 1 and len(Path(notes).read_text().split()) == 2:
        time.sleep(60)  # the first attempt waits here to be killed
    return [{"number": number, "power": number**exponent}]


def plan(request):
    notes = request.out.with_name("notes")
    for seed in request.seeds:
        yield FunctionJob(f"power-{seed}", function=power, arguments={"number": seed, "notes": notes})
    yield from search_jobs(replace(request, seeds=(1,)), "nas-bench-201", "gdas", method="gdas")


def show(rows, request):
    return [Section("Powers", header=("job", "power"), rows=[[str(row["job"]), str(row["power"])] for row in rows])]


powers = Experiment("powers", "Powers of the seeds.", plan, show)
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The module above, where a user would have it."""
    (tmp_path / "own_experiment.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("own_experiment", None)


@pytest.mark.filterwarnings("ignore::idarts.errors.CollapseWarning")
def test_an_own_experiment_by_its_name_is_killed_and_continued_by_object(own):
    command = [sys.executable, "-m", "idarts", "reproduce", "own_experiment:powers"]
    command += ["--preset", "smoke", "--seeds", "2", "--out", str(own / "out")]
    path = os.pathsep.join([str(own), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path}) as process:
        notes = own / "notes"
        while process.poll() is None and not (notes.exists() and len(notes.read_text().split()) == 2):
            time.sleep(0.02)
        process.kill()
    assert [row["power"] for row in rows(own / "out")] == ["1"]

    from own_experiment import powers

    lines = []
    page = run_experiment(powers, Request(own / "out", "smoke", (1, 2)), tell=lines.append)
    assert lines[0] == "1 of 3 jobs are done already"
    table = rows(own / "out")
    assert [row["job"] for row in table] == ["power-1", "power-2", "gdas-1"]
    assert [row["power"] for row in table] == ["1", "4", ""]
    assert [row["method"] for row in table] == ["", "", "gdas"]  # the usual row of a search
    assert "| power-2 | 4 |" in (page.parent / "results.md").read_text()
    assert (own / "notes").read_text().split() == ["1", "2", "2"]
    assert main([*command[3:], "--jobs", "2"]) == 0  # nothing is left to do


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_experiment:power", "own_experiment:power is a function, expected an idarts.experiments.Experiment"),
        ("own_experiment:pwers", "the module own_experiment has no 'pwers'; did you mean powers?"),
        ("no_such_module:powers", "no_such_module cannot be imported"),
        ("table-9", "unknown experiment 'table-9'; did you mean table-k?"),
    ],
)
def test_a_wrong_name_is_explained(own, capsys, name, message):
    assert main(["reproduce", name]) == 2
    assert message in capsys.readouterr().err
