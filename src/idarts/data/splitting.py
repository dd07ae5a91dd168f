"""Disjoint parts of the training images: stratified by a seed, or by published indices."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from idarts.data.record import SomePart, take
from idarts.data.roots import locate
from idarts.data.sources.npz import open_npz
from idarts.errors import InputError

OFFICIAL_FILE = "nasbench201_dataset_splits.npz"


def split(part: SomePart, how: "float | tuple[int, int]" = 0.5, *, seed: int = 0) -> tuple[SomePart, SomePart]:
    """Two disjoint parts with the same class proportions, by the share of the first or by two numbers of images.

    The same labels, numbers and seed give the same indices, which the parts record in ascending order.

    >>> from idarts.data import load
    >>> train, valid = split(load("digits").train, 0.5, seed=1)
    >>> len(train), len(valid), set(train.indices.tolist()) & set(valid.indices.tolist())
    (719, 719, set())
    >>> split(load("digits").train, (1000, 1000))
    Traceback (most recent call last):
    idarts.errors.InputError: split: 1000 + 1000 images are more than the 1438 that there are
    """
    first, second = _sizes(how, len(part))
    generator = torch.Generator().manual_seed(seed)
    groups = [(part.labels == label).nonzero()[:, 0] for label in part.labels.unique()]
    shuffled = [group[torch.randperm(len(group), generator=generator)] for group in groups]
    left = _proportional(first, [len(group) for group in groups])
    right = _proportional(second, [len(group) - used for group, used in zip(groups, left, strict=True)])
    chosen = [torch.cat([g[:n] for g, n in zip(shuffled, left, strict=True)])]
    chosen.append(torch.cat([g[n : n + m] for g, n, m in zip(shuffled, left, right, strict=True)]))
    rule: dict[str, Any] = {"split": list(how) if isinstance(how, tuple | list) else how, "seed": seed}
    one, two = (take(part, indices.sort().values, {**rule, "part": i}) for i, indices in enumerate(chosen))
    return one, two


def split_at(part: SomePart, first: Any, second: Any, *, rule: str = "given indices") -> tuple[SomePart, SomePart]:
    """Two parts by given indices, which must be in range and disjoint.

    >>> from idarts.data import load
    >>> train, valid = split_at(load("digits").train, [0, 2, 4], [1, 3])
    >>> len(train), valid.indices.tolist()
    (3, [1, 3])
    """
    parts = []
    for which, given in (("first", first), ("second", second)):
        parts.append(_indices(given, len(part), f"{rule}, {which} part"))
    both = len(torch.cat(parts)) - len(torch.cat(parts).unique())
    if both:
        raise InputError(f"{rule}: {both} images are in both parts; give disjoint indices")
    one, two = (take(part, indices, {"split": rule, "part": i}) for i, indices in enumerate(parts))
    return one, two


def official_split(
    part: SomePart, name: str = "cifar10", root: "str | Path | None" = None
) -> tuple[SomePart, SomePart]:
    """The official halves of NAS-Bench-201, from the file of its index splits in `root` (default: IDARTS_DATA).

    Names are as in the file: `cifar10` (training images into train and valid), `cifar100_test` and
    `imagenet16_120_test` (test images into xvalid and xtest), `imagenet16_120`.

    >>> from idarts.data import load
    >>> official_split(load("digits").train, root="no/such/folder")
    Traceback (most recent call last):
    idarts.errors.InputError: the data root no/such/folder does not exist; correct --data-root or IDARTS_DATA
    """
    file = locate([OFFICIAL_FILE], root, "the official splits of NAS-Bench-201", f"the file {OFFICIAL_FILE}")
    with open_npz(file) as arrays:
        pair = next((p for p in (("train", "valid"), ("xvalid", "xtest")) if f"{name}__{p[0]}" in arrays), None)
        if pair is None or f"{name}__{pair[1]}" not in arrays:
            known = sorted({key.partition("__")[0] for key in arrays})
            raise InputError(f"{file} has no split {name!r}, expected one of {', '.join(known)}")
        first, second = (arrays[f"{name}__{half}"]() for half in pair)
    return split_at(part, first, second, rule=f"NAS-Bench-201 {name}")


def _indices(given: Any, total: int, where: str) -> Tensor:
    array = np.asarray(given)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "ui":
        raise InputError(f"{where}: {array.dtype} of shape {array.shape}, expected a non-empty list of integers")
    if int(array.min()) < 0 or int(array.max()) >= total:
        wrong = int(array.min()) if int(array.min()) < 0 else int(array.max())
        raise InputError(f"{where}: index {wrong} is out of range, expected 0 to {total - 1}")
    if len(np.unique(array)) != len(array):
        raise InputError(f"{where}: an index occurs twice; give every index once")
    return torch.from_numpy(array.astype(np.int64))


def _sizes(how: "float | tuple[int, int]", total: int) -> tuple[int, int]:
    if isinstance(how, int | float) and not isinstance(how, bool):
        first = round(how * total + 1e-9) if 0 < how < 1 else 0
        second = total - first
        if first < 1 or second < 1:
            raise InputError(
                f"split: the share {how} of {total} images leaves a part empty; give a share between 0 and 1"
            )
        return first, second
    if not (isinstance(how, tuple | list) and len(how) == 2 and all(type(n) is int and n > 0 for n in how)):
        raise InputError(f"split: {how!r} is neither a share such as 0.5 nor two numbers of images such as (1000, 500)")
    first, second = how
    if first + second > total:
        raise InputError(f"split: {first} + {second} images are more than the {total} that there are")
    return first, second


def _proportional(count: int, sizes: list[int]) -> list[int]:
    """`count` divided in proportion to `sizes`: first the whole parts, then one each by the largest remainders."""
    total = sum(sizes)
    shares = [count * size // total for size in sizes]
    order = sorted(range(len(sizes)), key=lambda i: (-(count * sizes[i] % total), i))
    for i in order[: count - sum(shares)]:
        shares[i] += 1
    return shares
