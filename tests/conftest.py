"""For all tests: small problems are fastest on one thread, and two cores are shared with whatever else runs."""

import signal

import pytest
import torch

torch.set_num_threads(1)
# A shell ignores some of them for commands in the background, and so would every process that a test starts.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One Chromium for all tests of a process."""
    from browser import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as made:
        yield made
