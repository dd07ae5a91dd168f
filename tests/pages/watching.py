"""A real `idarts watch` in a process of its own, and requests to it as a browser or an attacker would send them."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

QUICK = 60.0  # seconds for what takes a moment: other processes share the cores


class Watch:
    """The running command; `url` is what it printed."""

    def __init__(self, folders, *options):
        command = [sys.executable, "-m", "idarts", "watch", *map(str, folders), *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, env=environment, **pipes)
        self.url, self.hint = (self.process.stdout.readline().strip() for _ in range(2))
        parts = urlsplit(self.url)
        self.port, self.path = parts.port, parts.path

    def ask(self, path="", method="GET", whole=None, **headers):
        """The answer and its content; `path` is below the printed address, `whole` replaces all of it."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=QUICK)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, self.path + path if whole is None else whole, headers=named)
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def news(self, after=0, run=""):
        """The news of a page after a tick, and how many bytes they were."""
        answer, content = self.ask(f"{run}news?after={after}")
        assert answer.status == 200
        return json.loads(content), len(content)

    def key(self, name):
        """The address of the run with a name, as soon as it is listed."""
        found = []

        def listed():
            page = self.ask()[1].decode()
            found[:] = [line for line in page.splitlines() if f">{name}</a>" in line]
            return found

        until(listed)
        return found[0].partition('href="')[2].partition('"')[0]

    def facts(self, name):
        """What the card of a run says: its facts and its problem, as HTML."""
        key = self.key(name)
        texts = self.news()[0]["texts"]
        return texts[f"{key}facts"] + texts[f"{key}problem"]

    def stop(self):
        """Ctrl-C; the exit code and what was printed after the address."""
        self.process.send_signal(signal.SIGINT)
        rest = self.process.communicate(timeout=QUICK)
        return self.process.returncode, *rest


@contextmanager
def watching(*folders, options=()):
    """The command, for a block of code."""
    made = Watch(folders, *options)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
        made.process.communicate()


def until(condition, seconds=QUICK):
    """Wait for something that must happen."""
    end = time.monotonic() + seconds
    while not (seen := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)
    return seen
