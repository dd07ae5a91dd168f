"""For all tests: small problems are fastest on one thread, and two cores are shared with whatever else runs."""

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One Chromium for all tests of a process."""
    from browser import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as made:
        yield made
