"""The process group of a `torchrun` job: who is in it, and what happens when one of them is gone."""

import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from idarts.errors import IdartsError, InputError

TIMEOUT = timedelta(seconds=50)  # between ranks that work alike: one that hangs ends the job within a minute
PATIENCE = timedelta(minutes=30)  # while the first one alone reads or writes files
LAST_WORD = timedelta(seconds=5)  # for the first one to come to the error that another has met
LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun tells its processes

_patient: list[Any] = []  # the group that waits longer


def world() -> int:
    """How many ranks work together; 1 without `torchrun`.

    >>> world(), rank()
    (1, 0)
    """
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this process is, from 0."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def local_rank() -> int:
    """Which of this machine's processes this one is: the number of its device."""
    return int(os.environ.get("LOCAL_RANK", "0")) if world() > 1 else 0


def restarted() -> bool:
    """Whether `torchrun --max-restarts` has begun the job again, after a rank had died.

    >>> restarted()
    False
    """
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def share(batch: int) -> tuple[int, int]:
    """This rank and the number of ranks, between which a batch of this size is shared out evenly.

    >>> share(64)
    (0, 1)
    """
    if batch % world():
        raise InputError(f"a batch of {batch} cannot be shared out evenly over {world()} ranks; give a multiple")
    return rank(), world()


@contextmanager
def joined() -> Iterator[None]:
    """In a job of `torchrun`, its process group for as long as the block lasts; else nothing.

    A group that the caller has made is used as it is. Warnings are the same on all ranks: the first one shows them.
    """
    ours = not dist.is_initialized() and all(name in os.environ for name in LAUNCHED) and _size() > 1
    if ours:
        _begin()
    elif world() > 1:
        _patient[:] = [dist.new_group(backend="gloo", timeout=PATIENCE)]
    try:
        with warnings.catch_warnings():
            if rank():
                warnings.simplefilter("ignore")
            yield
    finally:
        _patient.clear()
        if ours:
            dist.destroy_process_group()


def _size() -> int:
    return int(os.environ["WORLD_SIZE"])


def _begin() -> None:
    """Gloo for tensors on the CPU; where there are GPUs, NCCL for theirs."""
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    store, place, size = _store(TIMEOUT)
    dist.init_process_group(backend, store=store, rank=place, world_size=size, timeout=TIMEOUT)
    _patient[:] = [dist.new_group(backend="gloo", timeout=PATIENCE)]


def _store(timeout: timedelta) -> tuple[Any, int, int]:
    """What ranks meet by, this one's number, and how many they are.

    torchrun's store outlives a restart, with the addresses of ranks that are gone: each attempt has keys of its own.
    """
    store, place, size = next(rendezvous("env://", timeout=timeout))
    return PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store), place, size


def said_by_first(line: str) -> bool:
    """Whether the first rank of a `torchrun` job ends with this very line, so that another one need not say it, too.

    >>> said_by_first("no such space")
    False
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return False
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun ends a rank when another has ended: not before this
        store, place, _ = _store(LAST_WORD)
        if place:
            said: bool = store.get("last word") == line.encode()
            return said
        store.set("last word", line)
    except (RuntimeError, ValueError):  # no such store, or no word of it in time; or not in the main thread
        pass
    return False


def patient() -> Any:
    """The group in which ranks wait long for each other."""
    return _patient[0]


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Torch's words for a rank that is gone, in ours."""
    try:
        yield
    except RuntimeError as error:
        raise IdartsError(
            f"rank {rank()} of {world()} waited in vain for the others to {what}: one has ended, or was silent for "
            f"{TIMEOUT.seconds} s; the last checkpoint is whole: continue with --resume, or run torchrun --max-restarts"
        ) from error
