"""How a stream gets its pixels: from memory, or from worker processes."""

import os
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias
from weakref import finalize

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from idarts.data.record import Images, LazyImages, Part
from idarts.errors import InputError

# Pixels (N, H, W, C) and labels on the device; if some images were unreadable, the places of the others in the batch.
Fetched: TypeAlias = tuple[Tensor, Tensor, Tensor | None]
# Takes the indices of each batch to come, and the seed of the epoch.
Fetch: TypeAlias = Callable[[Sequence[Tensor], int], Iterator[Fetched]]
DEVICE_SHARE = 0.25  # the share of a device's free memory that one part may take


def fetch_from(part: Part, device: torch.device, workers: int) -> Fetch:
    """A function that gets batches of a part onto a device.

    >>> from idarts.data import load
    >>> fetch = fetch_from(load("digits").train, torch.device("cpu"), workers=0)
    >>> [tuple(pixels.shape) for pixels, labels, _ in fetch([torch.tensor([4, 2])], 0)]
    [(2, 8, 8, 1)]
    """
    if isinstance(part, Images):
        return _from_memory(part, device)
    return _from_workers(part, device, workers)


def _from_memory(part: Images, device: torch.device) -> Fetch:
    pixels, labels = part.images.permute(0, 2, 3, 1).contiguous(), part.labels
    if _fits(pixels, device):
        pixels, labels = pixels.to(device), labels.to(device)

    def fetch(chunks: Sequence[Tensor], _seed: int) -> Iterator[Fetched]:
        # One transfer for the whole epoch; its batches are views.
        order = torch.cat(list(chunks)).to(pixels.device, non_blocking=True)
        for chunk in order.split([len(chunk) for chunk in chunks]):
            yield _to(pixels.index_select(0, chunk), device), _to(labels.index_select(0, chunk), device), None

    return fetch


def _from_workers(part: LazyImages, device: torch.device, workers: int) -> Fetch:
    """One loader for all epochs, so that its workers stay; each epoch replaces its list of batches."""
    upcoming: list[list[tuple[int, int]]] = []
    loader: DataLoader[Any] = DataLoader(
        _Seeded(part.dataset),
        batch_sampler=upcoming,
        num_workers=workers,
        collate_fn=_stack,
        persistent_workers=workers > 0,
        worker_init_fn=_leave_group,
        generator=torch.Generator(),  # otherwise it draws from the global one
    )

    damaged: set[str] = set()

    def fetch(chunks: Sequence[Tensor], seed: int) -> Iterator[Fetched]:
        upcoming[:] = [[(index, seed) for index in chunk.tolist()] for chunk in chunks]
        for (pixels, kept, errors), chunk in zip(loader, chunks, strict=True):
            if not errors:
                yield _to(pixels, device), _to(part.labels[chunk], device), None
                continue
            _count(errors, damaged, part, len(kept))
            yield _to(pixels, device), _to(part.labels[chunk[kept]], device), _to(kept, device)

    # Python would close the queues of a loader in a reference cycle before the loader can tell its workers to end, and
    # torch waits five seconds for each. This reference keeps the loader out of the cycle.
    finalize(fetch, [loader].clear)
    return fetch


def _leave_group(_worker: int) -> None:
    """Ctrl-C and `timeout` signal all processes of a group, but only the main process may decide when a run ends."""
    os.setpgrp()


def _count(errors: list[str], damaged: set[str], part: LazyImages, left: int) -> None:
    """Warn about the first damaged image, and stop when there are too many."""
    if not damaged and part.unreadable:
        allowed = f"up to {part.unreadable:.0%} of the images may be unreadable"
        warnings.warn(f"{errors[0]}; it is left out ({allowed})", stacklevel=2)
    damaged.update(errors)
    if len(damaged) > part.unreadable * len(part) or not left:
        many = f"{len(damaged)} of {len(part)} images cannot be read; the last: " if len(damaged) > 1 else ""
        raise InputError(many + errors[-1])


class _Seeded(Dataset[Tensor | str]):
    """Seeds every item separately, so that random transforms do not depend on which worker runs them, and when.

    The generators of the process are restored, because without workers it is the caller's process. An item that cannot
    be read comes as the text of its error, because an error from a worker has a traceback in its message.
    """

    def __init__(self, dataset: Dataset[Tensor]) -> None:
        self.dataset = dataset

    def __getitem__(self, key: tuple[int, int]) -> Tensor | str:
        index, epoch_seed = key
        before = random.getstate(), np.random.get_state()
        with torch.random.fork_rng(devices=[]):
            seed = random.Random(f"{epoch_seed} {index}").getrandbits(63)
            torch.default_generator.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % 2**32)
            try:
                return self.dataset[index]
            except InputError as error:
                return str(error)
            finally:
                random.setstate(before[0])
                np.random.set_state(before[1])


def _stack(items: list[Tensor | str]) -> tuple[Tensor, Tensor, list[str]]:
    """Pixels, their places in the batch, and the errors of the others."""
    images = {place: item.permute(1, 2, 0) for place, item in enumerate(items) if isinstance(item, Tensor)}
    pixels = torch.stack(list(images.values())) if images else torch.empty(0)
    return pixels, torch.tensor(list(images), dtype=torch.int64), [item for item in items if isinstance(item, str)]


def _fits(pixels: Tensor, device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return pixels.numel() < DEVICE_SHARE * free


def _to(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy without waiting for the device, which needs pinned memory."""
    if tensor.device == device or device.type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
