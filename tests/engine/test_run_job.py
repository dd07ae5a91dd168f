"""A job that only counts: its log, checkpoints, signals, messages, resume and result."""

import os
import signal
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from counting_job import Group, Round, Settings

from idarts.engine import checkpoint
from idarts.engine.folder import read_config, read_made_with, read_result, read_rounds
from idarts.engine.run import Interrupted, Job, run_job, start_job
from idarts.errors import IdartsError, InputError, NotFiniteError


class Count:
    """Adds up the numbers of its rounds, after a warm-up of two messages."""

    def __init__(self, rounds, fail_at=None):
        self.number, self.until, self.fail_at = 0, rounds, fail_at
        self.sum = torch.zeros(())
        self.healthy = True
        self.on_message = lambda _: None

    def rounds(self):
        if not self.number:
            for place in (1, 2):
                self.on_message(f"warm-up {place}")
        while self.number < self.until:
            self.number += 1
            self.sum = self.sum + self.number
            self.healthy = self.fail_at is None or self.number < self.fail_at
            if self.fail_at is not None and self.number > self.fail_at:
                raise NotFiniteError("the sum is not finite")
            yield Round(self.number, self.sum.item())

    def state_dict(self):
        return {"number": self.number, "sum": self.sum}

    def load_state_dict(self, state):
        self.number, self.sum = state["number"], state["sum"]


def run(path, settings=None, **options):
    """Returns the log and all messages."""
    settings, messages = settings or Settings(), []
    work = Count(settings.rounds, options.pop("fail_at", None))

    def result(log):
        for place in (1, 2):
            work.on_message(f"selection {place}")
        return {"total": log[-1]["total"]}

    more = {name: options.pop(name) for name in ("data", "growing") if name in options}

    def prepare():
        entry = {"seen": True}
        facts = {"kind": "count"}
        return Job(work, lambda record: {**vars(record), **entry}, result, kind="count", facts=facts, **more)

    log = run_job(prepare, settings, path, on_message=options.pop("on_message", messages.append), **options)
    return log, messages


def numbers(path):
    return [int(file.stem) for file in sorted((path / "checkpoints").iterdir())]


def test_a_run_from_start_to_end(tmp_path):
    seen = []
    log, messages = run(tmp_path / "run", on_round=lambda record, work: seen.append((record.number, work.number)))
    assert [entry["total"] for entry in log] == [1, 3, 6, 10, 15, 21]
    assert log == read_rounds(tmp_path / "run")
    assert seen == [(number, number) for number in range(1, 7)]
    assert messages == ["warm-up 1", "warm-up 2", "selection 1", "selection 2"]
    assert numbers(tmp_path / "run") == [4, 6]
    result = read_result(tmp_path / "run")
    assert result["total"] == 21
    assert result["seconds"] >= log[-1]["seconds"] >= log[0]["seconds"] >= 0
    assert read_config(tmp_path / "run")["kind"] == "count"


def test_a_run_is_replaced_only_on_request_and_then_wholly(tmp_path):
    run(tmp_path / "run")
    with pytest.raises(InputError, match="already holds a run"):
        run(tmp_path / "run")
    assert numbers(tmp_path / "run") == [4, 6]
    log, _ = run(tmp_path / "run", Settings(rounds=3), overwrite=True)
    assert [entry["total"] for entry in log] == [1, 3, 6]
    assert numbers(tmp_path / "run") == [2, 3]


def test_a_job_that_is_closed_between_rounds_writes_a_checkpoint(tmp_path):
    work = Count(6)
    job = Job(work, vars, lambda log: {"rounds logged": len(log)}, kind="count")
    running = start_job(lambda: job, Settings(), tmp_path / "run")
    for _ in range(4):  # before the first round, and after three
        assert next(running) is work
    running.close()
    assert numbers(tmp_path / "run") == [2, 3]
    log, _ = run(tmp_path / "run", resume=True)
    assert [entry["total"] for entry in log] == [1, 3, 6, 10, 15, 21]


@pytest.mark.parametrize("when", ["before", "while"])
def test_without_a_terminal_a_run_that_stops_still_writes_its_checkpoint(tmp_path, when):
    """The signal comes before the round is shown, or while."""

    def hang_up(now, record):
        if record.number == 3 and now == when:
            os.kill(os.getpid(), signal.SIGHUP)
        return vars(record)

    def show(record, _work):
        hang_up("while", record)
        if record.number == 3:
            raise BrokenPipeError

    job = Job(Count(6), partial(hang_up, "before"), lambda _: {}, kind="count")
    with pytest.raises(Interrupted, match="3"):
        run_job(lambda: job, Settings(), tmp_path / "run", on_round=show)
    assert numbers(tmp_path / "run") == [2, 3]

    def full(*_):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):  # nobody asked for a stop: an error is an error
        run(tmp_path / "run", resume=True, on_round=full)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_after_the_round_and_the_run_resumes(tmp_path, number):
    before = signal.getsignal(number)

    def stop(record, _work):
        if record.number == 3:
            os.kill(os.getpid(), number)

    with pytest.raises(Interrupted, match="3"):
        run(tmp_path / "run", on_round=stop)
    assert signal.getsignal(number) is before
    assert numbers(tmp_path / "run") == [2, 3]
    log, messages = run(tmp_path / "run", resume=True)
    assert [entry["total"] for entry in log] == [1, 3, 6, 10, 15, 21]
    assert messages == ["selection 1", "selection 2"]


def test_a_stop_outside_rounds(tmp_path):
    """In the warm-up it writes a checkpoint; in the selection there is one."""
    messages = []

    def stop_at(where):
        def send(message):
            messages.append(message)
            if message == where:
                os.kill(os.getpid(), signal.SIGINT)

        return send

    with pytest.raises(Interrupted, match="0"):
        run(tmp_path / "run", on_message=stop_at("warm-up 1"))
    assert messages == ["warm-up 1", "stopping after this round; the same signal again stops at once"]
    assert numbers(tmp_path / "run") == [0]
    with pytest.raises(Interrupted, match="6"):
        run(tmp_path / "run", resume=True, on_message=stop_at("selection 1"))
    assert not (tmp_path / "run" / "result.json").exists()
    assert numbers(tmp_path / "run") == [4, 6]
    log, _ = run(tmp_path / "run", resume=True)
    assert len(log) == 6


def test_rounds_after_the_checkpoint_run_again(tmp_path):
    class BrokenError(Exception):
        pass

    def fail(record, _work):
        if record.number == 5:
            raise BrokenError

    with pytest.raises(BrokenError):
        run(tmp_path / "run", on_round=fail)
    assert [entry["number"] for entry in read_rounds(tmp_path / "run")] == [1, 2, 3, 4, 5]
    numbered = []
    log, _ = run(tmp_path / "run", resume=True, on_round=lambda record, _: numbered.append(record.number))
    assert numbered == [5, 6]
    assert [entry["total"] for entry in log] == [1, 3, 6, 10, 15, 21]


def test_other_settings_are_refused_and_new_ones_are_not(tmp_path):
    run(tmp_path / "run")
    with pytest.raises(InputError, match=r"started with another weights\.rate; resume with the settings of its config"):
        run(tmp_path / "run", Settings(weights=Group(0.2)), resume=True)

    @dataclass(frozen=True)
    class Newer(Settings):
        damping: float = 0.5

    run(tmp_path / "run", Newer(), resume=True)


@dataclass(frozen=True)
class Limited(Settings):
    minutes: float | None = 3.0


@pytest.mark.parametrize(
    ("before", "now", "grows"), [(3.0, 4.0, True), (3.0, None, True), (3.0, 2.0, False), (None, 3.0, False)]
)
def test_a_budget_of_a_resumed_run_can_only_grow(tmp_path, before, now, grows):
    run(tmp_path / "run", Limited(minutes=before), growing=("minutes",))
    if grows:
        run(tmp_path / "run", Limited(minutes=now), resume=True, growing=("minutes",))
        config = read_config(tmp_path / "run")
        assert (config["minutes"], config["history"]) == (now, [{"round": 6, "minutes": [before, now]}])
    else:
        with pytest.raises(InputError, match=f"started with minutes {before}; it can only be raised, not to {now}"):
            run(tmp_path / "run", Limited(minutes=now), resume=True, growing=("minutes",))


def test_a_state_that_is_not_healthy_is_not_saved(tmp_path):
    with pytest.raises(NotFiniteError, match="the last good checkpoint is that of round 2, in"):
        run(tmp_path / "run", fail_at=4)
    assert numbers(tmp_path / "run") == [2]


def test_damaged_checkpoints(tmp_path):
    run(tmp_path / "run")
    (tmp_path / "run" / "checkpoints" / "00000006.pt").write_bytes(b"half")
    with pytest.warns(UserWarning, match="00000006.pt is damaged.* resuming from round 4"):
        log, _ = run(tmp_path / "run", resume=True)
    assert [entry["total"] for entry in log] == [1, 3, 6, 10, 15, 21]
    assert checkpoint.latest(tmp_path / "run" / "checkpoints", "count")[0] == 6


def test_a_restarted_job_resumes_without_an_option(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    run(tmp_path / "run")  # nothing to resume yet
    numbered = []
    run(tmp_path / "run", overwrite=True, on_round=lambda record, _: numbered.append(record.number))
    assert numbered == []


def test_a_state_that_cannot_be_loaded_is_skipped_for_the_one_before_it(tmp_path):
    run(tmp_path / "run")
    checkpoint.save(tmp_path / "run" / "checkpoints", 6, {"number": 6, "ranks": 1}, "count")  # whole, but lacks the sum
    with pytest.warns(UserWarning, match=r"00000006.pt cannot be used .KeyError.; resuming from round 4"):
        log, _ = run(tmp_path / "run", resume=True)
    assert [entry["total"] for entry in log] == [1, 3, 6, 10, 15, 21]


def test_sigusr1_writes_a_checkpoint_and_the_run_continues(tmp_path):
    earlier = []
    before = signal.signal(signal.SIGUSR1, lambda *_: earlier.append(numbers(tmp_path / "run")))

    def warned(record, _work):
        if record.number == 3:
            os.kill(os.getpid(), signal.SIGUSR1)

    try:
        log, messages = run(tmp_path / "run", Settings(checkpoint_rounds=100), on_round=warned)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(log) == 6
    assert earlier == [[3]]  # the earlier handler acts, too, after the checkpoint
    assert "writing a checkpoint after this round" in messages


def test_an_ignored_signal_stays_ignored(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        log, _ = run(tmp_path / "run", on_round=lambda *_: os.kill(os.getpid(), signal.SIGHUP))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert len(log) == 6


def test_minutes_between_checkpoints_count_in_a_warm_up(tmp_path):
    class BrokenError(Exception):
        pass

    def fail(message):
        if message == "warm-up 2":
            raise BrokenError

    with pytest.raises(BrokenError):
        run(tmp_path / "run", Settings(checkpoint_minutes=1e-9), on_message=fail)
    assert numbers(tmp_path / "run") == [0]


def test_other_data_is_refused_unless_accepted(tmp_path):
    run(tmp_path / "run", data="sha256:a")
    with pytest.raises(InputError, match=r"the data is not the same .* accept the change with --accept-changed-data"):
        run(tmp_path / "run", data="sha256:b", resume=True)
    with pytest.warns(UserWarning, match="the data has changed since the run was started"):
        run(tmp_path / "run", data="sha256:b", resume=True, accept_changed_data=True)
    run(tmp_path / "run", data="sha256:b", resume=True)  # without a warning
    assert read_made_with(tmp_path / "run")["data"] == "sha256:b"


def test_another_number_of_threads_is_said(tmp_path):
    run(tmp_path / "run")
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        with pytest.warns(UserWarning, match=f"had threads {threads}, now {threads + 1}: .* not equal bit for bit"):
            run(tmp_path / "run", resume=True)
    finally:
        torch.set_num_threads(threads)


def test_damaged_lines_are_kept_aside_and_gaps_are_said(tmp_path):
    run(tmp_path / "run")
    file = tmp_path / "run" / "metrics.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1].replace("3", "7", 1), *lines[3:]]) + "\n")
    with pytest.warns(UserWarning, match="resuming from round 6") as warned:
        log, _ = run(tmp_path / "run", resume=True)
    said = " ".join(str(warning.message) for warning in warned)
    assert "1 damaged lines of" in said
    assert "lacks rounds: 2 to 3" in said
    assert [entry["number"] for entry in log] == [1, 4, 5, 6]
    assert len((tmp_path / "run" / "metrics.damaged").read_text().splitlines()) == 1


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_too_little_memory_is_one_line_that_names_the_checkpoint(tmp_path, error):
    def fail(record, _work):
        if record.number == 5:
            raise error

    words = r"^there is not enough memory; the last whole checkpoint is that of round 4: end other programs, then"
    with pytest.raises(IdartsError, match=words):
        run(tmp_path / "run", on_round=fail)


@pytest.mark.parametrize("error", [RuntimeError("shapes do not match"), InputError("out of memory cards")])
def test_other_errors_pass_as_they_are(tmp_path, error):
    def fail(*_):
        raise error

    with pytest.raises(type(error)) as caught:
        run(tmp_path / "run", on_round=fail)
    assert caught.value is error


def test_a_full_disk_names_the_checkpoint_that_is_whole(tmp_path, monkeypatch):
    save = checkpoint.save

    def full(folder, number, *what):
        if number == 4:
            raise OSError(28, "No space left on device")
        return save(folder, number, *what)

    monkeypatch.setattr(checkpoint, "save", full)
    words = r"round 4 could not be written .*No space left on device.; the last whole checkpoint is that of round 2"
    with pytest.raises(IdartsError, match=words):
        run(tmp_path / "run")
