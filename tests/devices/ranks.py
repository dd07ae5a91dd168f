"""One of two ranks whose tensors are on the pretend device; Gloo sends the values that they hold.

A script, since the device stays for the rest of its process: ranks.py OUT, with the variables that torchrun sets.
"""

import json
import sys
import warnings
from pathlib import Path

import cases
import pretend
import torch

from idarts.engine.ranks import process_group, rank, traffic


def searched(device):
    """α of a search in which each rank has its own batches, the waits of a weight step, and what the ranks sent."""
    work = cases.begin("idarts", device)
    for _ in range(3 * rank()):
        next(work.task.train), next(work.task.valid)
    pretend.waits.clear()
    with traffic() as sent:
        work._train_weights(1)
        waits = list(pretend.waits)
        work._step_architecture()
    alpha = torch.cat([a.detach().reshape(-1) for a in work.a])
    return {"device": str(alpha.device), "alpha": alpha.tolist(), "waits": waits, "calls": sent.calls}


if __name__ == "__main__":
    torch.set_num_threads(1)
    pretend.install()
    warnings.simplefilter("ignore")
    with process_group():
        found = {device: searched(device) for device in ("cpu", "pretend")}
    Path(sys.argv[1]).write_text(json.dumps(found))
