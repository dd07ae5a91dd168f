"""The run folder: what is written is read again, damage is named in one line, and no other files are touched."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from idarts.arch import parse
from idarts.engine.folder import (
    claim,
    current_architecture,
    drop_rounds,
    extend,
    is_finished,
    is_run,
    read_config,
    read_result,
    read_rounds,
    read_run,
    round_log,
    start,
    write_result,
)
from idarts.engine.lock import locked, require_own, wait_until_free
from idarts.errors import InputError

CONFIG = {"checkpoint_rounds": 1, "weights": {"rate": 0.1}}


def test_what_is_written_is_read_again(tmp_path):
    start(tmp_path, CONFIG)
    with round_log(tmp_path) as append:
        append({"number": 1, "train_loss": float("nan"), "alpha": {"cell": [[0.0, 1.0]]}})
        append({"number": 2, "train_loss": 2.5})
        assert len(read_rounds(tmp_path)) == 2  # on disk at once
    assert is_run(tmp_path)
    assert not is_finished(tmp_path)
    write_result(tmp_path, {"accuracy": float("inf"), "seconds": 1.5})
    assert is_finished(tmp_path)
    assert read_config(tmp_path) == CONFIG
    assert read_rounds(tmp_path)[0] == {"number": 1, "train_loss": None, "alpha": {"cell": [[0.0, 1.0]]}}
    assert read_result(tmp_path) == {"accuracy": None, "seconds": 1.5}
    run = read_run(tmp_path)
    assert (run.config, run.result, run.cut) == (CONFIG, read_result(tmp_path), False)
    assert run.alphas()[0][1]["cell"].shape == (1, 2)


def test_rounds_after_a_checkpoint_are_dropped_with_what_a_kill_cut_off(tmp_path):
    lines = [json.dumps({"number": number}) for number in (1, 2, 3, 4)]
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, '{"numb']))
    drop_rounds(tmp_path, after=2)
    assert (tmp_path / "metrics.jsonl").read_text() == '{"number": 1}\n{"number": 2}\n'
    drop_rounds(tmp_path, after=0)
    assert read_rounds(tmp_path) == []


def test_a_folder_is_taken_only_as_it_was_meant(tmp_path):
    def refused(words, **how):
        with pytest.raises(InputError, match=words) as caught, claim(tmp_path / "run", **how):
            pass
        assert "\n" not in str(caught.value)

    new, resume, overwrite = ({"resume": r, "overwrite": o} for r, o in ((False, False), (True, False), (False, True)))
    refused("holds no run to resume", **resume)
    with claim(tmp_path / "run", **new):
        start(tmp_path / "run", CONFIG)
        refused(r"already holds a run; continue it with --resume, .* \(resume=True, overwrite=True in Python\)", **new)
        refused(f"in use by another run .process {os.getpid()}.", **resume)
    (tmp_path / "run" / ".result.json.1a2b3c4d").write_text("half")
    with claim(tmp_path / "run", **resume):
        assert read_config(tmp_path / "run") == CONFIG
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [".lock", "config.json"]
    with claim(tmp_path / "run", **overwrite):
        pass
    (tmp_path / "run" / "config.json").write_text('{"name": "a web site"}')
    refused("exists and is not a run", **overwrite)


@pytest.mark.parametrize("text", ["{", "[1]", "\x00"])
def test_damage_is_named(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(InputError, match=r"config.json .*; put it back, or start again with --overwrite"):
        read_config(tmp_path)
    with pytest.raises(InputError, match=r"result.json .*; delete it, and --resume writes it again"):
        read_result(tmp_path)
    with pytest.raises(InputError, match=r"no-such/config.json cannot be read: No such file"):
        read_config(tmp_path / "no-such")


def test_damaged_settings_are_those_of_a_run_where_a_run_has_been(tmp_path):
    (tmp_path / "config.json").write_text("{")
    assert not is_run(tmp_path)
    (tmp_path / ".lock").touch()
    assert is_run(tmp_path)


@pytest.mark.parametrize(("more", "command"), [({}, "search"), ({"architecture": "nas-bench-201:0"}, "train")])
def test_a_run_without_rounds_names_the_command_that_continues_it(tmp_path, more, command):
    start(tmp_path, {**CONFIG, **more})
    with pytest.raises(
        InputError, match=f"no rounds yet; wait for the first round, or start it with `idarts {command} "
    ):
        read_run(tmp_path)


def test_the_current_architecture_is_that_of_the_last_checkpoint_then_of_the_result(tmp_path):
    start(tmp_path, CONFIG)
    with round_log(tmp_path) as append:
        for number in (1, 2, 3):
            append({"number": number, "architecture": f"nas-bench-201:{number}"})
    assert current_architecture(tmp_path) == parse("nas-bench-201:3")
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "00000002.pt").touch()
    assert current_architecture(tmp_path) == parse("nas-bench-201:2")
    write_result(tmp_path, {"architecture": "nas-bench-201:7", "rounds": 3})
    assert current_architecture(tmp_path) == parse("nas-bench-201:7")


def test_a_longer_budget_makes_a_run_unfinished_and_is_recorded(tmp_path):
    start(tmp_path, CONFIG)
    extend(tmp_path, {"rounds": 8}, {"round": 3})  # nothing to delete yet
    write_result(tmp_path, {"accuracy": 0.5})
    (tmp_path / "report.html").touch()
    extend(tmp_path, {"rounds": 9}, {"round": 8})
    assert not is_finished(tmp_path)
    assert not (tmp_path / "report.html").exists()
    assert read_config(tmp_path) == {**CONFIG, "rounds": 9, "history": [{"round": 3}, {"round": 8}]}


def test_a_folder_of_other_things_is_refused(tmp_path):
    require_own(tmp_path / "new", "sweep.json", "sweep")
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match="holds no sweep"):
        require_own(tmp_path, "sweep.json", "sweep")
    (tmp_path / "sweep.json").touch()
    require_own(tmp_path, "sweep.json", "sweep")


def test_a_lock_ends_with_its_process(tmp_path):
    hold = "import sys, time; from pathlib import Path; from idarts.engine.lock import locked\n"
    hold += "with locked(Path(sys.argv[1]), 'run'):\n    print('locked', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(InputError, match=f"process {process.pid}"), locked(tmp_path, "run"):
            pass
        started = time.monotonic()
        assert not wait_until_free(tmp_path, 0.3)
        assert time.monotonic() - started >= 0.3
        process.send_signal(signal.SIGKILL)
        assert wait_until_free(tmp_path, 10)
        with locked(tmp_path, "run"):
            pass
    finally:
        process.kill()
        process.communicate()


def test_reading_a_run_does_not_need_torch():
    names = "idarts.engine.folder, idarts.engine.lock, idarts.engine.settings, idarts.engine.schedules"
    script = f"import sys, {names}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
