"""Every function between ranks once, with numbers that can be added by hand: a script that each of two ranks runs."""

import os
import sys
import time
import warnings

import torch
from torch import nn

from idarts.engine.ranks import (
    Clock,
    all_mean,
    all_sum,
    any_of,
    average_buffers,
    average_gradients,
    copy_from_first,
    gather,
    joint_statistics,
    local_rank,
    on_first,
    process_group,
    rank,
    require_equal,
    require_same,
    share,
    traffic,
    wait_for_all,
    world,
)
from idarts.engine.ranks.group import explained
from idarts.errors import InputError
from idarts.hypergrad import lean

IMAGES = torch.tensor([1.0, 2.0, 4.0, 8.0, -1.0, 0.0, 3.0, 5.0], dtype=torch.float64).view(4, 1, 1, 2)


def error_of(function, *arguments):
    """The kind and the text of what a call raises; None if it raises nothing."""
    try:
        function(*arguments)
    except Exception as error:
        return type(error).__name__, str(error)
    return None


def sums():
    mine = torch.tensor([1.0, 10.0]) * (1 + rank())
    with traffic() as outer:
        total = all_sum(mine)
        with traffic() as inner:
            mean = all_mean(mine.double())
        all_sum(mine[:1])
    return {
        "sum": total.tolist(),
        "mean": mean.tolist(),
        "mine": mine.tolist(),
        "inner": (inner.calls, inner.bytes),
        "outer": (outer.calls, outer.bytes),
    }


def gradients():
    grads = [torch.full((2, 1), 1.0 + rank()), None, torch.tensor(4.0 * rank(), dtype=torch.float64)]
    with traffic() as counted:
        means, seen = average_gradients(grads, torch.tensor([2.0 * rank(), 6.0]))
    return {"means": means, "seen": seen, "calls": counted.calls}


def buffers():
    norm = nn.BatchNorm1d(2)
    with torch.no_grad():
        for tensor in norm.state_dict().values():
            tensor.fill_(5 + 2 * rank())
    average_buffers([nn.Linear(1, 1), norm])
    averaged = {name: tensor.unique().tolist() for name, tensor in norm.state_dict().items()}
    with traffic() as counted:
        average_buffers([nn.Linear(1, 1)])
    copy_from_first(norm)
    return {
        "averaged": averaged,
        "without": counted.calls,
        "copied": {name: tensor.unique().tolist() for name, tensor in norm.state_dict().items()},
    }


def normalised(joint):
    """The share of this rank, normalised, and the gradient of a sum over all ranks by it."""
    x = IMAGES[2 * rank() : 2 * rank() + 2].clone().requires_grad_()
    with joint_statistics(joint):
        y = lean(nn.BatchNorm2d(1).double())(x)
    (grad,) = torch.autograd.grad((y**3).sum(), x)
    return {"y": y.detach(), "grad": grad}


def first():
    called = []
    answer = on_first(lambda: called.append(rank()) or f"from rank {rank()}")

    def refuse():
        raise InputError("in use")

    return {"answer": answer, "called": called, "ours": error_of(on_first, refuse), "other": error_of(on_first, divide)}


def divide():
    return 1 / 0


def comparisons():
    facts = {"seed": 1, "data": f"sha256:{rank()}"}
    one, two = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    others = {
        "equal": [one, two],
        "numbers swapped": [one.flip(0), two],
        "tensors swapped": [two, one],
        "a sign of zero": [one, two, torch.tensor([-0.0])],
        "the first of many": [two, two, *[torch.tensor([0.0])] * 60],
    }
    plain = {name: [one, two, *[torch.tensor([0.0])] * 60][: len(w)] for name, w in others.items()}
    precisions = [torch.float64, torch.float16, torch.bfloat16]
    return {
        "facts": error_of(require_equal, facts),
        "equal facts": error_of(require_equal, {"seed": 1}),
        "lacking": error_of(require_equal, {"seed": 1} if rank() else {"seed": 1, "more": 2}),
        "bits": {
            name: error_of(require_same, {"α": [one], "w": w if rank() else plain[name]}, "now")
            for name, w in others.items()
        },
        "precisions": [
            error_of(require_same, {"w": [torch.full((2,), 1.0 + 0.5 * rank(), dtype=dtype)]}, "now") is not None
            for dtype in precisions
        ],
    }


def clocks():
    with Clock() as clock, clock:
        time.sleep(0.2 * rank())
    kept = clock.seconds
    error_of(fail_within, clock)
    return {"seconds": kept, "after an error": clock.seconds}


def fail_within(clock):
    with clock:
        time.sleep(0.05)
        divide()


def explain():
    with explained("average"):
        raise RuntimeError("connection closed by peer")


def waiting():
    time.sleep(0.3 * rank())
    arrived = time.time()
    wait_for_all()
    return {"arrived": arrived, "left": time.time()}


def main(path):
    with process_group():
        warnings.warn("said once", UserWarning, stacklevel=1)
        found = {
            "place": (rank(), world(), local_rank(), share(6)),
            "uneven": error_of(share, 7),
            "sums": sums(),
            "gradients": gradients(),
            "buffers": buffers(),
            "normalised": {joint: normalised(joint) for joint in (True, False)},
            "first": first(),
            "gathered": [value.tolist() for value in gather(torch.tensor([rank(), 7]))],
            "flags": any_of(rank() == 0, rank() == 1, False, True),
            "comparisons": comparisons(),
            "clocks": clocks(),
            "explained": error_of(explain),
            "waiting": waiting(),
        }
    found["afterwards"] = (rank(), world(), local_rank())
    torch.save(found, path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(os.path.join(sys.argv[1], f"{os.environ['RANK']}.pt"))
