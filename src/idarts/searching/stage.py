"""A stage of a search: a share of the budget, the size of the supernet in it, and how many options stay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.layers.mixture import Mixture
from idarts.spaces.relaxation import Relaxation

Mask = dict[str, list[list[bool]]]  # of every α: which options are still alive


@dataclass(frozen=True)
class Stage:
    """A part of a search.

    `share` of the budget; `depth` and `channels` of its supernet (None: as the settings have it); `keep`: how many
    options of each decision stay when the stage begins, those with the largest α (None: all that are alive). A stage
    begins with a new supernet, fresh w and fresh α, unless it is the first.
    """

    share: float = 1.0
    depth: int | None = None
    channels: int | None = None
    keep: int | None = None


def require_stages(stages: Sequence[Stage]) -> None:
    """Refuse a schedule that does not make one search."""
    total = sum(stage.share for stage in stages)
    if not stages or any(stage.share <= 0 for stage in stages) or abs(total - 1) > 1e-9:
        shares = ", ".join(f"{stage.share:g}" for stage in stages) or "none"
        raise InputError(f"the shares of the stages are {shares}; expected positive numbers that sum to 1")
    if stages[0].keep is not None:
        raise InputError("the first stage keeps all options: α says nothing yet; leave its `keep` out")


def ends(stages: Sequence[Stage]) -> list[float]:
    """The share of the budget at which each stage ends; the last one is exactly 1.

    >>> ends([Stage(0.25), Stage(0.75)])
    [0.25, 1.0]
    """
    return [*list(accumulate(stage.share for stage in stages))[:-1], 1.0]


def prune(alphas: Mapping[str, Tensor], mask: Mask, keep: int) -> Mask:
    """The mask with only the `keep` largest living options of every decision.

    >>> prune({"cell": torch.tensor([[0.1, 0.3, 0.2]])}, {"cell": [[True, True, True]]}, keep=2)
    {'cell': [[False, True, True]]}
    """
    pruned: Mask = {}
    for name, rows in mask.items():
        pruned[name] = []
        for alive, values in zip(rows, alphas[name].tolist(), strict=True):
            living = sorted((column for column in range(len(alive)) if alive[column]), key=lambda c: -values[c])[:keep]
            pruned[name].append([column in living for column in range(len(alive))])
    return pruned


@dataclass(frozen=True)
class Restricted:
    """A relaxation among the living options: the others get weight 0 and do not run.

    `idle` is a column that costs nothing in a supernet (`none`): where only that is gone, all others run together,
    which is the fastest way.

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
            kept = torch.tensor([column for column, on in enumerate(pattern) if on], device=alpha.device)
            whole = len(rows) == len(alpha)
            mixture = self.base(alpha[:, kept] if whole else alpha[rows][:, kept])
            spread = alpha.new_zeros(len(rows), len(pattern)).index_copy(1, kept, mixture.weights)
            weights = spread if whole else weights.index_copy(0, torch.tensor(rows, device=alpha.device), spread)
            if mixture.active is not None:
                everything = False
                for row, running in zip(rows, mixture.active, strict=True):
                    for column, runs in zip(kept.tolist(), running, strict=True):
                        active[row][column] = runs
        return Mixture(weights) if everything else Mixture(weights, tuple(map(tuple, active)))

    def _patterns(self) -> dict[tuple[bool, ...], list[int]]:
        """Rows with the same living options, together."""
        groups: dict[tuple[bool, ...], list[int]] = {}
        for row, alive in enumerate(self.alive):
            groups.setdefault(tuple(alive), []).append(row)
        return groups
