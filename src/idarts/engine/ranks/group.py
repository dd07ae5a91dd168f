"""The process group of a `torchrun` job: which rank this is, and what happens when another rank dies."""

import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore  # type: ignore[attr-defined] # torch does not export it in its stubs
from torch.distributed.rendezvous import rendezvous

from idarts.engine.ranks.watch import watched
from idarts.errors import IdartsError, InputError

# Between ranks that do the same work, and for signs of life from a rank: one that hangs ends the job within a minute.
TIMEOUT = timedelta(seconds=float(os.environ.get("IDARTS_RANK_TIMEOUT", "50")))
PATIENCE = timedelta(minutes=30)  # while the first rank alone reads or writes files
SAME_ERROR = timedelta(seconds=5)  # for the first rank to reach the error that another rank has met
LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # set by torchrun

_slow_group: list[Any] = []  # the one with the longer timeout


def world() -> int:
    """The number of ranks; 1 without `torchrun`.

    >>> world(), rank()
    (1, 0)
    """
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def local_rank() -> int:
    """The number of this process on its machine, which is the number of its device."""
    return int(os.environ.get("LOCAL_RANK", "0")) if world() > 1 else 0


def restarted() -> bool:
    """Whether `torchrun --max-restarts` has restarted the job after a rank died.

    >>> restarted()
    False
    """
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def share(batch: int) -> tuple[int, int]:
    """This rank and the number of ranks, over which a batch of this size is divided evenly.

    >>> share(64)
    (0, 1)
    """
    if batch % world():
        raise InputError(f"a batch of {batch} cannot be divided evenly over {world()} ranks; use a multiple")
    return rank(), world()


@contextmanager
def process_group() -> Iterator[None]:
    """In a `torchrun` job, join its process group for this block; else do nothing.

    A group that the caller has created is used as it is. Only the first rank shows warnings.
    """
    ours = not dist.is_initialized() and all(name in os.environ for name in LAUNCHED) and _size() > 1
    watch: AbstractContextManager[None] = nullcontext()
    if ours:
        watch = _join()
    elif world() > 1:
        _slow_group[:] = [dist.new_group(backend="gloo", timeout=PATIENCE)]
    try:
        with warnings.catch_warnings(), watch:
            if rank():
                warnings.simplefilter("ignore")
            yield
    finally:
        _slow_group.clear()
        if ours:
            dist.destroy_process_group()


def _size() -> int:
    return int(os.environ["WORLD_SIZE"])


def _join() -> AbstractContextManager[None]:
    """Use Gloo for tensors on the CPU and, if there are GPUs, NCCL for theirs. The result watches over the ranks."""
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    store, number, size = _store(TIMEOUT)
    dist.init_process_group(backend, store=store, rank=number, world_size=size, timeout=TIMEOUT)
    _slow_group[:] = [dist.new_group(backend="gloo", timeout=PATIENCE)]
    return watched(store.clone(), number, size, TIMEOUT)


def _store(timeout: timedelta) -> tuple[Any, int, int]:
    """The store where ranks meet, the number of this rank, and the number of ranks.

    torchrun's store survives a restart, with the addresses of dead ranks, so each attempt has its own keys.
    """
    store, number, size = next(rendezvous("env://", timeout=timeout))
    return PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store), number, size


def reported_by_first(line: str) -> bool:
    """Whether this is another rank of a `torchrun` job, and the first rank reports the same line as its last error.

    >>> reported_by_first("no such space")
    False
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return False
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun stops a rank when another one ends; not before this
        store, number, _ = _store(SAME_ERROR)
        if number:
            same: bool = store.get("last error") == line.encode()
            return same
        store.set("last error", line)
    except (RuntimeError, ValueError):  # there is no store or no answer in time, or this is not the main thread
        pass
    return False


def slow_group() -> Any:
    """The group with the longer timeout."""
    return _slow_group[0]


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Explain torch's error for a rank that is gone."""
    try:
        yield
    except RuntimeError as error:
        raise IdartsError(
            f"rank {rank()} of {world()} waited for the others to {what}: one has ended, or did not answer for "
            f"{TIMEOUT.seconds} s; the last checkpoint is intact: continue with --resume, or torchrun --max-restarts"
        ) from error
