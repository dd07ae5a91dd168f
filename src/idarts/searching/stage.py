"""A stage of a search: a share of the budget, the size of the supernet in it, and how many options stay."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from torch import Tensor

from idarts.errors import InputError
from idarts.layers.constants import constant
from idarts.layers.mixture import Mixture
from idarts.spaces import Supernet
from idarts.spaces.relaxation import Relaxation

Mask = dict[str, list[list[bool]]]  # of every α: which options are still alive


@dataclass(frozen=True)
class Stage:
    """A part of a search.

    A stage begins with a new supernet and fresh w, unless it is the first.
    """

    share: float = 1.0  # of the budget
    depth: int | None = None  # of the supernet; None: `deepen` times that of the settings
    channels: int | None = None  # of the supernet; None: as the settings have it
    keep: int | float | None = None
    """how many options of each decision stay when the stage begins, those with the largest α: a number, a share of all
    its options (rounded up), or None for all that are alive"""
    deepen: float = 1.0
    relaxation: Mapping[str, Any] = field(default_factory=dict)  # options of the relaxation that change
    keep_alpha: bool = False  # begin with the α that the stage before ended with, instead of a fresh one
    drop_none: bool = False  # `none` leaves when the stage begins
    skip_dropout: Callable[[float], float] | None = None  # rate behind identity skips, by the share of the stage so far


def require_stages(stages: Sequence[Stage]) -> None:
    """Refuse a schedule that does not make one search."""
    total = sum(stage.share for stage in stages)
    if not stages or any(stage.share <= 0 for stage in stages) or abs(total - 1) > 1e-9:
        shares = ", ".join(f"{stage.share:g}" for stage in stages) or "none"
        raise InputError(f"the shares of the stages are {shares}; expected positive numbers that sum to 1")
    if stages[0].keep is not None:
        raise InputError("the first stage keeps all options, because α is not trained yet; remove its `keep`")


def ends(stages: Sequence[Stage]) -> list[float]:
    """The share of the budget at which each stage ends; the last one is exactly 1.

    >>> ends([Stage(0.25), Stage(0.75)])
    [0.25, 1.0]
    """
    return [*list(accumulate(stage.share for stage in stages))[:-1], 1.0]


def open_decisions(mask: Mask) -> int:
    """How many decisions have more than one option left.

    >>> open_decisions({"cell": [[True, False], [True, True]]})
    1
    """
    return sum(sum(row) > 1 for rows in mask.values() for row in rows)


def living_rows(alphas: Mapping[str, Tensor], mask: Mask) -> Iterator[Tensor]:
    """The living options of every decision with more than one, one row at a time.

    >>> import torch
    >>> list(living_rows({"cell": torch.tensor([[1.0, 2.0, 3.0]])}, {"cell": [[True, False, True]]}))
    [tensor([1., 3.])]
    """
    for name, rows in mask.items():
        for row, alive in enumerate(rows):
            if sum(alive) > 1:
                columns = [column for column, on in enumerate(alive) if on]
                yield alphas[name][row, constant(columns, alphas[name].device)]


def next_mask(net: Supernet, mask: Mask, stage: Stage) -> Mask:
    """What is alive when a stage begins, by the α that the stage before ended with."""
    if stage.drop_none and net.none is not None:
        mask = {
            name: [[on and (column != net.none or sum(row) == 1) for column, on in enumerate(row)] for row in rows]
            for name, rows in mask.items()
        }
    return mask if stage.keep is None else prune(dict(net.alpha.items()), mask, stage.keep, net.fewest)


def prune(alphas: Mapping[str, Tensor], mask: Mask, keep: int | float, fewest: Mapping[str, int] | None = None) -> Mask:
    """The mask with only the `keep` largest living options of every decision, or that share of all its options.

    A group's decisions keep at least as many as `fewest` says: those of a node that reads two others, for example.

    >>> import torch
    >>> prune({"cell": torch.tensor([[0.1, 0.3, 0.2]])}, {"cell": [[True, True, True]]}, keep=2)
    {'cell': [[False, True, True]]}
    >>> prune({"cell": torch.tensor([[0.1, 0.3, 0.2]])}, {"cell": [[True, True, True]]}, keep=0.3)
    {'cell': [[False, True, False]]}
    """
    pruned: Mask = {}
    for name, rows in mask.items():
        pruned[name], width = [], alphas[name].shape[1]
        stay = keep if isinstance(keep, int) else math.ceil(keep * width - 1e-9)
        stay = max(stay, (fewest or {}).get(name, 1))
        for alive, values in zip(rows, alphas[name].tolist(), strict=True):
            living = sorted((column for column in range(len(alive)) if alive[column]), key=lambda c: -values[c])[:stay]
            pruned[name].append([column in living for column in range(len(alive))])
    return pruned


@dataclass(frozen=True)
class Restricted:
    """A relaxation among the living options: the others get weight 0 and do not run.

    `idle` is a column that costs nothing in a supernet (`none`): where only that is gone, all others run together,
    which is the fastest way.

    >>> import torch
    >>> from idarts.spaces.relaxation import softmax
    >>> Restricted(softmax, [[False, True, True]])(torch.zeros(1, 3)).weights
    tensor([[0.0000, 0.5000, 0.5000]])
    """

    base: Relaxation
    alive: list[list[bool]]
    idle: int | None = None

    def __call__(self, alpha: Tensor) -> Mixture:
        weights = alpha.new_zeros(alpha.shape)
        active = [list(row) for row in self.alive]
        everything = all(all(on or column == self.idle for column, on in enumerate(row)) for row in self.alive)
        for pattern, rows in self._patterns().items():
            kept = [column for column, on in enumerate(pattern) if on]
            columns, places = constant(kept, alpha.device), constant(rows, alpha.device)
            whole = len(rows) == len(alpha)
            mixture = self.base(alpha[:, columns] if whole else alpha[places][:, columns])
            spread = alpha.new_zeros(len(rows), len(pattern)).index_copy(1, columns, mixture.weights)
            weights = spread if whole else weights.index_copy(0, places, spread)
            if mixture.active is not None:
                everything = False
                for row, running in zip(rows, mixture.active, strict=True):
                    for column, runs in zip(kept, running, strict=True):
                        active[row][column] = runs
        return Mixture(weights) if everything else Mixture(weights, tuple(map(tuple, active)))

    def _patterns(self) -> dict[tuple[bool, ...], list[int]]:
        """Rows with the same living options, together."""
        groups: dict[tuple[bool, ...], list[int]] = {}
        for row, alive in enumerate(self.alive):
            groups.setdefault(tuple(alive), []).append(row)
        return groups
