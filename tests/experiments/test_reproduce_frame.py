"""The frame: nothing is measured twice, nothing finished is lost, and a folder belongs to one experiment."""

import csv
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from idarts.errors import IdartsError, InputError
from idarts.experiments.frame import Experiment, Job, Request, conduct
from idarts.experiments.store import Store
from idarts.pages.experiment import Section


def counting(measured, names=("a", "b", "c"), failing=(), settings=None, stop=None):
    """An experiment whose jobs note that they ran."""

    def measure(name):
        if name == stop:
            raise KeyboardInterrupt
        measured.append(name)
        if name in failing:
            raise RuntimeError(f"{name} broke")
        return [{"value": len(measured), "name": name}, {"value": 0.5, "name": f"{name}, too"}]

    def jobs(_):
        return [Job(name, settings or {}, lambda name=name: measure(name)) for name in names]

    def show(rows, _):
        return [Section("Values", header=("name",), rows=[[str(row["name"])] for row in rows])]

    return Experiment("Counts.", ("value", "name"), jobs, show)


def rows(out):
    with (out / "results.csv").open() as file:
        return list(csv.DictReader(file))


def test_an_experiment_that_was_stopped_goes_on_where_it_was(tmp_path):
    measured, request = [], Request(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        conduct("counts", counting(measured, stop="b"), request, measured.append)
    assert [row["name"] for row in rows(tmp_path / "out")] == ["a", "a, too"]
    told = []
    page = conduct("counts", counting(measured), request, told.append)
    assert [name for name in measured if name in "abc"] == ["a", "b", "c"]
    assert told[0] == "1 of 3 jobs are done already"
    assert [row["name"] for row in rows(tmp_path / "out")] == ["a", "a, too", "b", "b, too", "c", "c, too"]
    assert page == tmp_path / "out" / "index.html"
    assert "c, too" in page.read_text()
    assert "| c, too |" in (tmp_path / "out" / "results.md").read_text()


def test_a_finished_experiment_measures_nothing(tmp_path):
    measured, request = [], Request(tmp_path / "out")
    for _ in range(2):
        conduct("counts", counting(measured), request, lambda _: None)
    assert measured == ["a", "b", "c"]


def test_a_failed_job_does_not_stop_the_others_and_is_tried_again(tmp_path):
    measured, request = [], Request(tmp_path / "out")
    with pytest.raises(IdartsError, match=r"1 of 3 jobs failed, first b \(b broke\); the same command tries again"):
        conduct("counts", counting(measured, failing=("b",)), request, lambda _: None)
    assert measured == ["a", "b", "c"]
    conduct("counts", counting(measured), request, lambda _: None)
    assert measured == ["a", "b", "c", "b"]


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_stage_waits_for_the_one_before(tmp_path, parallel):
    order = []

    def measure(name, wait):
        time.sleep(wait)
        order.append(name)
        return [{"name": name}]

    jobs = [Job("late", {}, lambda: measure("late", 0), stage=1), Job("slow", {}, lambda: measure("slow", 0.2))]
    experiment = Experiment("Stages.", ("name",), lambda _: jobs, lambda *_: [])
    conduct("stages", experiment, Request(tmp_path / "out", parallel=parallel), lambda _: None)
    assert order == ["slow", "late"]


def test_results_with_other_settings_are_not_taken_for_these(tmp_path):
    request = Request(tmp_path / "out")
    conduct("counts", counting([], settings={"rounds": 3}), request, lambda _: None)
    with pytest.raises(InputError, match=r"has a with other settings than now; name a new folder with --out"):
        conduct("counts", counting([], settings={"rounds": 4}), request, lambda _: None)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [("other", {}, "experiment counts, not other"), ("counts", {"preset": "smoke"}, "preset cpu, not smoke")],
)
def test_a_folder_belongs_to_one_experiment(tmp_path, name, change, said):
    request = Request(tmp_path / "out")
    conduct("counts", counting([]), request, lambda _: None)
    with pytest.raises(InputError, match=said):
        conduct(name, counting([]), replace(request, **change), lambda _: None)


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is there and holds no experiment"):
        conduct("counts", counting([]), Request(tmp_path), lambda _: None)
    assert os.listdir(tmp_path) == ["mine.txt"]


def test_two_processes_cannot_write_one_folder(tmp_path):
    hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True)"
    hold += "; input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="is in use by another experiment"):
            conduct("counts", counting([]), Request(tmp_path), lambda _: None)
        other.communicate("\n")


def test_a_table_of_another_experiment_is_refused(tmp_path):
    (tmp_path / "results.csv").write_text("job,settings,else\n")
    with pytest.raises(InputError, match="is not of this experiment"):
        Store(tmp_path / "results.csv", ("value",))


def test_values_come_back_as_they_were(tmp_path):
    values = [{"value": 0.1 + 0.2, "name": "γ, “quoted”\nline"}, {"value": 10**12}, {"name": "no value"}]
    Store(tmp_path / "results.csv", ("value", "name")).add("12", {}, values)
    found = Store(tmp_path / "results.csv", ("value", "name")).rows
    assert [row["value"] for row in found] == [0.1 + 0.2, 10**12, ""]
    assert found[0]["name"] == "γ, “quoted”\nline"
    assert found[0]["job"] == "12"


def test_a_job_is_put_on_record_once(tmp_path):
    store = Store(tmp_path / "results.csv", ("value",))
    store.add("a", {}, [{"value": 1}])
    with pytest.raises(IdartsError, match="has a already"):
        store.add("a", {}, [{"value": 1}])
    assert len(Store(tmp_path / "results.csv", ("value",)).rows) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"preset": "gpu"}, "unknown preset 'gpu'"),
        ({"seeds": (1, 1)}, "each once"),
        ({"methods": ("darts", "idarts", "darts")}, "methods are darts, idarts, darts, expected each once"),
    ],
)
def test_requests_that_make_no_sense(tmp_path, change, said):
    with pytest.raises(InputError, match=said):
        Request(tmp_path, **change)
