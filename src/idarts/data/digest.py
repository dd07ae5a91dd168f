"""Digests of data, by content: they say whether two runs, or two ranks, see the same images in the same order."""

import hashlib
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from idarts.data.content import digests
from idarts.data.record import Images, Part


def part_digest(part: Part) -> str:
    """A digest of the images and labels of a part, and of how they are normalised.

    Images that a `Dataset` computes during use count by number and labels alone.

    >>> from idarts.data import load, split
    >>> digits = load("digits").train
    >>> part_digest(digits) == part_digest(load("digits").train), part_digest(digits) == part_digest(split(digits)[0])
    (True, False)
    """
    content = part.images.permute(0, 2, 3, 1) if isinstance(part, Images) else digests(part)
    known = [] if content is None else [torch.as_tensor(content)]
    return tensors_digest([*known, part.labels], about=(tuple(part.shape), part.mean, part.std))


def tensors_digest(tensors: Iterable[Tensor], about: Any = None) -> str:
    """A digest of the values, types and shapes of tensors.

    >>> tensors_digest([torch.zeros(2)]) == tensors_digest([torch.zeros(1, 2)])
    False
    """
    checksum = hashlib.sha256(repr(about).encode())
    for tensor in tensors:
        plain = tensor.detach().cpu().contiguous()
        checksum.update(f"{plain.dtype} {tuple(plain.shape)}".encode())
        checksum.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return f"sha256:{checksum.hexdigest()[:32]}"


def streams_digest(*streams: Any) -> str | None:
    """One digest for the data of some streams; None if one of them is a user's own, which has no `digest`."""
    known = [stream.digest() for stream in streams if hasattr(stream, "digest")]
    if len(known) < len(streams) or None in known:
        return None
    return f"sha256:{hashlib.sha256(' '.join(known).encode()).hexdigest()[:32]}"
