"""How much a command says, and where: -v, -q, Python's logging, --json."""

import json
import logging
import os
import warnings

import pytest

from idarts import train
from idarts.cli import main
from idarts.engine.folder import read_result

TINY = ["--depth", "1", "--channels", "2", "--epochs", "1", "--batch", "256"]
TRAIN = ["train", "nas-bench-201:0", "--data", "digits", *TINY]
SEARCH = ["search", "--preset", "smoke", "--channels", "4", "--batch", "8", "--rounds", "2", "--inner-steps", "1"]


def test_quiet_says_only_the_result(tmp_path, capsys):
    assert main([*TRAIN, "-q", "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("test accuracy: ")
    assert main(["--quiet", *TRAIN, "--out", str(tmp_path / "run")]) == 2  # errors are shown
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.filterwarnings("default::UserWarning")
def test_quiet_hides_warnings(monkeypatch, capsys):
    monkeypatch.setattr("idarts.cli.methods.run", lambda _: warnings.warn("beware", UserWarning, stacklevel=1))
    assert main(["methods"]) == 0
    assert capsys.readouterr().err == "idarts: warning: beware\n"
    assert main(["methods", "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_verbose_says_more_and_leaves_no_handler(tmp_path, capsys):
    out = str(tmp_path / "run")
    assert main([*TRAIN, "--out", out]) == 0
    assert "idarts.engine" not in capsys.readouterr().err
    assert main(["-v", *TRAIN, "--out", out, "--overwrite"]) == 0
    said = capsys.readouterr().err
    assert f"idarts.engine.run: train in {out} starts with round 1\n" in said
    assert f"idarts.engine.run: result written to {out}/result.json\n" in said
    logger = logging.getLogger("idarts")
    assert (logger.handlers, logger.level) == ([], logging.NOTSET)


def test_more_and_less_together_are_refused(capsys):
    assert main(["methods", "-v", "-q"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_python_users_have_the_logger_idarts(tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="idarts"):
        train("nas-bench-201:0", "digits", out=tmp_path / "run", depth=1, channels=2, epochs=1, batch=256)
    messages = [record.getMessage() for record in caplog.records if record.name.startswith("idarts.")]
    assert messages[0] == f"train in {tmp_path / 'run'} starts with round 1"
    assert f"checkpoint of round 1 written to {tmp_path / 'run'}" in messages


def test_a_search_as_json(tmp_path, capsys):
    out = tmp_path / "run"
    assert main([*SEARCH, "--json", "--out", str(out)]) == 0
    data, result = json.loads(capsys.readouterr().out), read_result(out)
    fields = ["architecture", "decision", "space", "method", "seed", "seconds", "gradient_evaluations", "table", "cost"]
    assert list(data) == [*fields, "rounds", "run"]
    same = ("space", "method", "seed", "seconds", "gradient_evaluations", "table", "cost")
    assert {name: data[name] for name in same} == {name: result[name] for name in same}
    assert (data["rounds"], data["run"]) == (2, str(out))
    assert data["architecture"].startswith("|")
    assert main(["train", data["architecture"], "--data", "digits", *TINY, "--json", "--out", str(tmp_path / "t")]) == 0
    trained, result = json.loads(capsys.readouterr().out), read_result(tmp_path / "t")
    fields = ["architecture", "accuracy", "interval", "loss", "images", "parameters", "seed", "seconds", "rounds"]
    assert list(trained) == [*fields, "run", "model"]
    assert trained["architecture"] == data["architecture"]
    assert trained["accuracy"] == result["accuracy"] == result["test"]["accuracy"]
    assert trained["interval"][0] <= trained["accuracy"] <= trained["interval"][1]
    assert os.path.isdir(trained["model"])


def test_settings_as_json(capsys):
    assert main([*TRAIN, "--json", "--print-config"]) == 0
    assert json.loads(capsys.readouterr().out)["channels"] == 2


STOPPER = """
import os, signal
from idarts.engine.loggers import Logger

class Stopper(Logger):
    def round(self, entry):
        os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_stopped_run_leaves_stdout_empty(tmp_path, capsys, monkeypatch):
    """stdout is for a program: how to resume is for a person."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "stopper.py").write_text(STOPPER)
    out = tmp_path / "run"
    assert main([*SEARCH, "--log", "stopper:Stopper", "--json", "--out", str(out)]) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"idarts search --resume --out {out} --log stopper:Stopper" in printed.err


@pytest.mark.parametrize("command", [SEARCH, TRAIN])
def test_an_error_prints_nothing_on_stdout(command, tmp_path, capsys):
    (tmp_path / "other").write_text("")
    assert main([*command, "--json", "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
