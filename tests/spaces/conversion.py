"""Tensors of a plain supernet (weights, gradients, statistics) under the fused one's names, and back.

A space says in `place(key)` where an edge's tensor lies: under which key of the fused supernet, and which member of
its bundle it is; None for a tensor that has the same name in both. The fused supernet does not count batches.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

Place = Callable[[str], tuple[str, int] | None]


def to_plain(fused: Mapping[str, Tensor], like: Mapping[str, Tensor], place: Place) -> dict[str, Tensor]:
    """What stands in `fused`, under the names and in the shapes of `like`."""
    found = {}
    for key, tensor in like.items():
        at = place(key)
        if at is None:
            found[key] = fused[key]
        elif key.endswith("num_batches_tracked"):
            found[key] = tensor
        else:
            size = tensor.shape[0]
            found[key] = fused[at[0]][at[1] * size : (at[1] + 1) * size]
    return found


def to_fused(plain: Mapping[str, Tensor], place: Place) -> dict[str, Tensor]:
    """What stands in `plain`, under the fused supernet's names."""
    found = {key: tensor for key, tensor in plain.items() if place(key) is None}
    bundles: dict[str, dict[int, Tensor]] = {}
    for key, tensor in plain.items():
        at = place(key)
        if at is not None and not key.endswith("num_batches_tracked"):
            bundles.setdefault(at[0], {})[at[1]] = tensor
    return found | {key: torch.cat([parts[i] for i in sorted(parts)]) for key, parts in bundles.items()}
