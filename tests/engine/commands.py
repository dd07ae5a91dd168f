"""Commands in processes of their own, real ones to be stopped and killed, which start in a moment.

They are forked from a server that has torch loaded: importing torch takes longer than the searches of the tests.
"""

import io
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path

import torch

from idarts.cli import main
from idarts.experiments.engines import PRELOADED

SERVER = multiprocessing.get_context("forkserver")


def _run(words, folder, environment):
    os.environ.clear()  # the server's is that of the test that started it
    os.environ.update(environment)
    for number in (1, 2):
        os.dup2(os.open(folder / str(number), os.O_WRONLY), number)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(number, "w"), line_buffering=True) for number in (1, 2))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)
    sys.exit(main(words))


class Command:
    """`idarts WORDS`, just started."""

    def __init__(self, *words):
        self._folder = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        for number in (1, 2):
            (self._folder / str(number)).touch()
        SERVER.set_forkserver_preload(PRELOADED)
        self._process = SERVER.Process(target=_run, args=([*map(str, words)], self._folder, dict(os.environ)))
        self._process.start()

    @property
    def code(self):
        """How it ended: None while it runs, −9 after SIGKILL."""
        return self._process.exitcode

    @property
    def output(self):
        return (self._folder / "1").read_text()

    @property
    def errors(self):
        return (self._folder / "2").read_text()

    def send(self, number):
        """Send it a signal, which may come too late."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def until(self, happened):
        """Wait for something, or for its end."""
        while self.code is None and not happened():
            time.sleep(0.02)

    def until_rounds(self, run, count):
        """Wait until so many rounds are on record in a run folder, or for its end."""
        log = run / "metrics.jsonl"
        self.until(lambda: log.exists() and log.read_text().count("\n") >= count)

    def end(self, timeout=60):
        """Wait for its end: how it ended."""
        self._process.join(timeout)
        assert self.code is not None, self.errors
        return self.code
