"""Loggers receive settings, rounds and result, continue the same run after a stop, and never end a run."""

import json
import struct
import sys
import time
from pathlib import Path

import pytest

from idarts import InputError, train
from idarts.cli import main
from idarts.engine.folder import read_result, read_rounds
from idarts.engine.log import run_log
from idarts.engine.loggers import LOGGERS, Logger, Started, facts, numbers
from idarts.engine.run import Interrupted

PARTS = Path(__file__).parents[1] / "extending" / "parts"
TINY = {"depth": 1, "channels": 2, "epochs": 1, "batch": 256, "log_steps": 1, "checkpoint_rounds": 3}
SEARCH = ["search", "--preset", "smoke", "--channels", "4", "--batch", "8", "--rounds", "3", "--inner-steps", "1"]


class StoppedError(Exception):
    pass


def stopped_and_resumed(out, log):
    """A training that stops in round 4, one round after a checkpoint, and then resumes."""

    def stop(record, _training):
        if record.number == 4:
            raise StoppedError

    with pytest.raises(StoppedError):
        train("nas-bench-201:0", "digits", out=out, log=log, on_round=stop, **TINY)
    train("nas-bench-201:0", "digits", out=out, log=log, resume=True, **TINY)


def test_a_logger_by_module_and_name_receives_all_of_a_search(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(PARTS))
    out = tmp_path / "run"
    assert main([*SEARCH, "--log", "list_logger:ListLogger", "--out", str(out)]) == 0
    lines = list(map(json.loads, (tmp_path / "list.jsonl").read_text().splitlines()))
    assert [what for what, _ in lines] == ["start", "round", "round", "round", "result", "end"]
    config = json.loads((out / "config.json").read_text())
    start = lines[0][1]
    assert start == {"kind": "search", "settings": {name: config[name] for name in start["settings"]}} | {
        "first": 1,
        "id": None,
    }
    assert [entry for _, entry in lines[1:4]] == read_rounds(out)
    assert lines[4][1] == read_result(out)
    assert lines[5][1] == "finished"


def test_a_logger_by_object_resumes_with_its_own_id(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(PARTS))
    from list_logger import ListLogger

    stopped_and_resumed(tmp_path / "run", ListLogger)
    lines = list(map(json.loads, (tmp_path / "list.jsonl").read_text().splitlines()))
    starts = [(value["kind"], value["first"], value["id"]) for what, value in lines if what == "start"]
    assert starts == [("train", 1, None), ("train", 4, "the first")]
    assert [value["number"] for what, value in lines if what == "round"] == [1, 2, 3, 4, 4, 5]
    assert [value for what, value in lines if what == "end"] == ["failed", "finished"]


def test_a_logger_that_fails_becomes_one_warning(tmp_path):
    class Failing(Logger):
        def round(self, entry):
            raise ConnectionError("the server\nis away")

    with pytest.warns(UserWarning, match="receives nothing more; the run continues") as caught:
        result = train("nas-bench-201:0", "digits", out=tmp_path / "run", log=Failing, **TINY)
    (warning,) = caught
    assert "has failed (the server is away) and" in str(warning.message)
    plain = train("nas-bench-201:0", "digits", out=tmp_path / "plain", **TINY)
    assert result.accuracy == plain.accuracy


def test_a_logger_that_cannot_start_leaves_no_run(tmp_path):
    class Closed(Logger):
        def start(self, run):
            raise PermissionError("no key")

    with pytest.raises(InputError, match=r"cannot start \(no key\); use --log none"):
        train("nas-bench-201:0", "digits", out=tmp_path / "run", log=Closed, **TINY)
    assert not [path for path in (tmp_path / "run").iterdir() if not path.name.startswith(".")]
    train("nas-bench-201:0", "digits", out=tmp_path / "run", **TINY)  # the folder can be used


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("wandbb", "log: unknown logger 'wandbb'; did you mean wandb?"),
        (dict, "logger builtins:dict has no method 'start'; derive it from idarts.engine.loggers.Logger"),
        (Logger(), "cannot be made without arguments"),
        ("os:getcwd", "log: the logger os:getcwd is not loaded"),
    ],
)
def test_what_is_no_logger_is_refused(tmp_path, log, message):
    with pytest.raises(InputError) as error:
        train("nas-bench-201:0", "digits", out=tmp_path / "run", log=log, **TINY)
    assert message in str(error.value)
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.mark.parametrize("log", ["wandb", "mlflow"])
def test_a_missing_package_is_one_line(tmp_path, monkeypatch, capsys, log):
    monkeypatch.setitem(sys.modules, log, None)
    monkeypatch.setitem(sys.modules, f"{log}.entities", None)
    assert main([*SEARCH, "--log", log, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert f"pip install 'idarts[{log}]', or use --log none" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run" / "config.json").exists()


def test_all_loggers_are_in_the_help(capsys):
    main(["train", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{', '.join(LOGGERS)}, or your own package.module:name (default: none)" in shown
    assert {"mlflow", "none", "tensorboard", "wandb"} <= set(LOGGERS)


def whole_records(file):
    """The records once the last one is there: wandb's own process writes them, and may be a moment late."""
    for _ in range(200):
        records = list(wandb_records(file))
        if records and records[-1].HasField("exit"):
            break
        time.sleep(0.1)
    return records


def wandb_records(file):
    """The records of a .wandb file: LevelDB's log format (blocks of 32 KB) with protobuf inside."""
    pb = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    content, place, parts = file.read_bytes(), 7, []
    while place + 7 <= len(content):
        if 32768 - place % 32768 < 7:  # padding
            place += 32768 - place % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        parts.append(content[place + 7 : place + 7 + length])
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield pb.Record.FromString(b"".join(parts))
            parts = []


def test_wandb_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="needs idarts[wandb]")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    out = tmp_path / "run"
    stopped_and_resumed(out, "wandb")
    identity = json.loads((out / "logger.json").read_text())["id"]
    first, second = sorted((out / "wandb").glob("offline-run-*/*.wandb"), key=lambda file: file.stat().st_mtime_ns)
    assert first.name == second.name == f"run-{identity}.wandb"
    history, config, summary = {}, {}, {}
    for file in (first, second):
        for record in whole_records(file):
            items = {"/".join(item.nested_key) or item.key: item.value_json for item in record.history.item}
            if items:
                history[record.history.step.num] = {name: json.loads(value) for name, value in items.items()}
            config |= {update.key: json.loads(update.value_json) for update in record.run.config.update}
            summary |= {update.key: json.loads(update.value_json) for update in record.summary.update}
    for entry in read_rounds(out):
        logged = history.pop(entry["number"])
        expected = numbers(entry)
        if entry["number"] == 4:  # was logged by both processes
            del expected["run/seconds"]
        assert expected.items() <= logged.items()
    assert not history
    assert config["channels"] == 2
    assert config["weights"]["rate"] == 0.025
    assert facts(read_result(out)).items() <= summary.items()


def test_mlflow_in_a_local_store(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="needs idarts[mlflow]")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    out = tmp_path / "run"
    stopped_and_resumed(out, "mlflow")
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("idarts")
    (run,) = client.search_runs([experiment.experiment_id])  # one run, although two processes wrote to it
    assert run.info.run_id == json.loads((out / "logger.json").read_text())["id"]
    assert (run.info.run_name, run.info.status) == ("run", "FINISHED")
    assert run.data.params["weights.rate"] == "0.025"
    logged = [(entry["number"], entry["train_loss"]) for entry in read_rounds(out)]
    history = client.get_metric_history(run.info.run_id, "loss/train")
    assert [(point.step, point.value) for point in history] == logged
    result = read_result(out)
    assert run.data.metrics["result/accuracy"] == result["accuracy"]
    assert run.data.tags["architecture"].startswith("|")


def test_mlflow_without_a_store_is_one_line(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mlflow", reason="needs idarts[mlflow]")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nowhere://there")
    assert main([*SEARCH, "--log", "mlflow", "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "log is mlflow, which has no store to write to: " in error
    assert error.count("\n") == 1


def test_a_logger_learns_how_a_run_ended(tmp_path):
    ends = []

    class Ends(Logger):
        def end(self, outcome):
            ends.append(outcome)

    def ended_by(error):
        with pytest.raises(type(error)), run_log(Ends(), Started(tmp_path, "train", {"log": "own"})):
            raise error

    ended_by(Interrupted(3))
    ended_by(ValueError())
    with run_log(Ends(), Started(tmp_path, "train", {"log": "own"})):
        pass
    assert ends == ["stopped", "failed", "finished"]
