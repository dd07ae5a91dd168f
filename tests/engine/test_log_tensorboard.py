"""Event files as TensorBoard's own reader reads them: complete, and with every step once after a kill and a resume."""

import json
import math
import sys
from contextlib import contextmanager

import pytest

from idarts import InputError, train
from idarts.cli import main
from idarts.engine.folder import read_rounds
from idarts.engine.loggers import LOGGERS, Started, numbers

pytest.importorskip("tensorboard", reason="needs idarts[tensorboard]")
TINY = {"depth": 1, "channels": 2, "epochs": 1, "batch": 256, "log_steps": 1, "checkpoint_rounds": 2}


def read(folder, kind="scalars"):
    """tag → [(step, value)], over all files of the folder; or tag → text."""
    from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={SCALARS: 0})
    events.Reload()
    if kind == "tensors":
        return {name: events.Tensors(name)[-1].tensor_proto.string_val[0].decode() for name in events.Tags()[kind]}
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in events.Tags()["scalars"]}


def files(folder):
    return sorted(folder.glob("*tfevents*"))


@contextmanager
def event_log(folder, first):
    logger = LOGGERS["tensorboard"]()
    logger.start(Started(folder, "train", {}, first))
    yield logger.round
    logger.end("finished")


def write(folder, first, *steps, scale=1.0):
    with event_log(folder, first) as log:
        for step in steps:
            log({"number": step, "valid_loss": scale * step})


def test_a_run_logs_all_its_numbers(tmp_path):
    train("nas-bench-201:0", "digits", out=tmp_path / "run", log="tensorboard", **TINY)
    expected = {}
    for entry in read_rounds(tmp_path / "run"):
        for tag, value in numbers(entry).items():
            expected.setdefault(tag, []).append((entry["number"], pytest.approx(value)))
    assert read(tmp_path / "run") == expected
    assert {"loss/train", "loss/valid", "accuracy/valid", "run/rate", "run/seconds"} <= expected.keys()


def test_without_the_setting_there_is_no_file(tmp_path):
    train("nas-bench-201:0", "digits", out=tmp_path / "run", **TINY)
    assert not files(tmp_path / "run")


def test_a_run_that_stops_and_resumes_has_every_step_once(tmp_path):
    """It stops in round 4, after the checkpoint of round 2 and with events of round 3; the log is the reference."""

    class StoppedError(Exception):
        pass

    def stop(record, _training):
        if record.number == 4:
            raise StoppedError

    out = tmp_path / "run"
    with pytest.raises(StoppedError):
        train("nas-bench-201:0", "digits", out=out, log="tensorboard", on_round=stop, **TINY | {"checkpoint_rounds": 3})
    assert [step for step, _ in read(out)["loss/train"]] == [1, 2, 3, 4]
    train("nas-bench-201:0", "digits", out=out, log="tensorboard", resume=True, **TINY | {"checkpoint_rounds": 3})
    assert len(files(out)) == 2
    logged = [(entry["number"], pytest.approx(entry["train_loss"])) for entry in read_rounds(out)]
    assert read(out)["loss/train"] == logged
    train("nas-bench-201:0", "digits", out=out, overwrite=True, **TINY)
    assert not files(out)  # a new run in the folder leaves nothing of the old one


def test_steps_after_a_checkpoint_are_forgotten(tmp_path):
    write(tmp_path, 1, *range(1, 8))
    write(tmp_path, 5, *range(5, 10), scale=10.0)  # resumed after round 4
    write(tmp_path, 9, *range(9, 12), scale=100.0)
    values = [1, 2, 3, 4, 50, 60, 70, 80, 900, 1000, 1100]
    assert read(tmp_path)["loss/valid"] == [(step, float(value)) for step, value in enumerate(values, start=1)]


@pytest.mark.parametrize("missing", [1, 10, 30])
def test_a_record_that_a_kill_cut_off_is_left_out(tmp_path, missing):
    write(tmp_path, 1, 1, 2, 300)
    (path,) = files(tmp_path)
    path.write_bytes(path.read_bytes()[:-missing])
    write(tmp_path, 300, 300, 301)
    assert [step for step, _ in read(tmp_path)["loss/valid"]] == [1, 2, 300, 301]


def test_a_round_is_on_disk_before_the_next(tmp_path):
    with event_log(tmp_path, 1) as log:
        log({"number": 1, "train_loss": 1.5})
        assert read(tmp_path) == {"loss/train": [(1, 1.5)]}


def test_numbers_that_are_not_finite_or_too_large(tmp_path):
    with event_log(tmp_path, 1) as log:
        for step, value in enumerate((math.nan, math.inf, 1e300, -1e300), start=1):
            log({"number": step, "rate": value, "alpha": {"cell": [[0.5]]}, "architecture": "text", "norm": None})
    (values,) = read(tmp_path).values()
    assert math.isnan(values[0][1])
    assert values[1:] == [(2, math.inf), (3, math.inf), (4, -math.inf)]


def test_without_tensorboard_it_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"pip install 'idarts\[tensorboard\]', or use --log none"):
        train("nas-bench-201:0", "digits", out=tmp_path / "run", log="tensorboard", **TINY)
    assert not (tmp_path / "run" / "config.json").exists()
    command = ["train", "nas-bench-201:0", "--data", "digits", "--log", "tensorboard", "--out", str(tmp_path / "run")]
    assert main(command) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_setting_is_kept(tmp_path):
    train("nas-bench-201:0", "digits", out=tmp_path / "run", log="tensorboard", **TINY)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["log"] == "tensorboard"


def test_settings_and_result_are_texts(tmp_path):
    train("nas-bench-201:0", "digits", out=tmp_path / "run", log="tensorboard", **TINY)
    texts = read(tmp_path / "run", "tensors")
    assert '"channels": 2' in texts["settings/text_summary"]
    assert '"test.images": 359' in texts["result/text_summary"]


def test_a_run_that_resumes_in_the_same_second_has_every_step_once(tmp_path):
    for first in (1, 3, 5):
        with event_log(tmp_path, first) as log_round:
            for number in range(first, first + 4):
                log_round({"number": number, "train_loss": 1.0})
    assert len({file.name.split(".")[3] for file in files(tmp_path)}) == 3
    assert [step for step, _ in read(tmp_path)["loss/train"]] == list(range(1, 9))
