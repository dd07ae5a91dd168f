"""The number of threads follows the machine: simulated laps, and a machine whose other programs come and go."""

import os
import subprocess
import sys

import pytest
import torch

from idarts.fitting import fit
from idarts.fitting.threads import PAUSE, Threads, share_work


def simulate(seconds, laps, most=2, count=2, free=lambda _: True):
    """The threads of each lap, where a step with so many threads takes `seconds(lap, threads)`."""
    used = [count]
    threads = Threads(most, count, use=used.append, free=free)
    chosen = []
    for lap in range(laps):
        chosen.append(used[-1])
        threads.note(seconds(lap, used[-1]))
    return chosen


@pytest.mark.parametrize("count", [1, 2])
def test_the_faster_number_wins_whichever_it_is_and_tries_become_rare(count):
    for best in (1, 2):
        chosen = simulate(lambda _, threads, best=best: 1.0 if threads == best else 30.0, 500, count=count)
        assert chosen.count(3 - best) <= 7  # of 500, so not more than a third of the time even if it takes 30 laps
        assert chosen[-1] == best


def test_it_follows_a_machine_that_becomes_busy_and_idle_again():
    def seconds(lap, threads):
        busy = 100 <= lap < 300
        return {1: 2.0 if busy else 1.0, 2: 30.0 if busy else 0.6}[threads]

    chosen = simulate(seconds, 600)
    assert chosen[99] == 2
    assert chosen[100:300].count(2) <= 6  # it leaves the two threads after one slow lap
    assert chosen[-1] == 2


def test_all_threads_are_not_tried_while_other_programs_use_the_cores():
    checks = []

    def free(threads):
        checks.append(threads)
        return len(checks) > 3

    chosen = simulate(lambda _, threads: 2.0 / threads, 200, count=1, free=free)
    assert checks == [2, 2, 2, 2]
    assert chosen.index(2) == 1 + 7 * PAUSE  # the checks become rare, and no lap before the fourth one has two threads
    assert chosen[-1] == 2


def test_equal_times_and_one_core_change_nothing():
    assert simulate(lambda *_: 1.0, 100).count(1) <= 4
    assert simulate(lambda *_: 1.0, 3 * PAUSE, most=1, count=1) == [1] * 3 * PAUSE


def test_threads_do_not_share_work_on_a_busy_machine():
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        before = torch.get_num_threads()
        answers = [share_work(os.cpu_count() or 1) for _ in range(5)]
        assert answers.count(True) <= 2
        assert torch.get_num_threads() == before
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def test_a_fit_leaves_the_threads_of_the_process_as_they_were(tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        fit("digits", minutes=0.15, out=tmp_path / "fit", random=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
