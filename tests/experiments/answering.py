"""A task for the engines' tests: in a module of its own, because a worker imports the module of its task."""

import os
import signal


def answer(task):
    if task["kill"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()
