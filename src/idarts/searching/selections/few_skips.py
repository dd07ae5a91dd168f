"""P-DARTS' selection: the largest of α, with a bounded number of skip connections (Chen et al. 2019, arXiv:1904.12760).

While the first group of decisions (the normal cell) has too many, the weakest skip loses its option and the
architecture is read again. The paper takes M = 2; the published code prints the cells of all M.

The paper bounds the number from above, because long searches select too many. Short searches select too few: in a
supernet every edge has a skip connection in its mixture, so α sees no need for one. With `fewest`, the skip that is
nearest to being selected takes its edge, until there are so many.
"""

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.searching.registries import SELECTIONS
from idarts.searching.strategy import Selected

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@SELECTIONS.register("few-skips")
class FewSkips:
    """The largest of α with `fewest` to `most` skip connections in the first group; the largest where it has no skips.

    `fewest` counts only edges that the architecture has: it changes their operations, not the wiring.
    """

    needs_supernet: ClassVar[bool] = True

    def __init__(self, most: int = 2, fewest: int = 0) -> None:
        if not 0 <= fewest <= most:
            raise InputError(
                f"selection.options: fewest is {fewest} and most is {most}, expected whole numbers, 0 ≤ fewest ≤ most"
            )
        self.most, self.fewest = most, fewest

    def __call__(self, search: "Search") -> Selected:
        return Selected(search.pick(self.limited(search)))

    def limited(self, search: "Search") -> dict[str, Tensor]:
        """α in which the skips that are too many have no weight, and those that are missing have the largest."""
        net, values = search.net, search.living()
        group = next(iter(values))
        while net.skip is not None:
            taken = net.path(search.largest(values))[group].weights.bool().tolist()
            rows = [row for row, columns in enumerate(taken) if columns[net.skip]]
            others = [row for row, columns in enumerate(taken) if any(columns) and not columns[net.skip]]
            shares = values[group].softmax(dim=1)[:, net.skip].tolist()
            possible = [row for row in others if shares[row] > 0]
            if len(rows) > self.most:
                values[group] = _without(values[group], min(rows, key=shares.__getitem__), net.skip)
            elif len(rows) < self.fewest and possible:
                values[group] = _first(values[group], max(possible, key=shares.__getitem__), net.skip)
            else:
                break
        return values


def _without(alpha: Tensor, row: int, column: int) -> Tensor:
    """α without an option of one decision."""
    changed = alpha.clone()
    changed[row, column] = -torch.inf
    if changed[row].isneginf().all():
        raise InputError("a decision has no other option left than a skip connection; give a larger `most`")
    return changed


def _first(alpha: Tensor, row: int, column: int) -> Tensor:
    """α with an option in the place of the largest one of its decision, whose own largest value stays the same."""
    changed, best = alpha.clone(), int(alpha[row].argmax())
    changed[row, [best, column]] = alpha[row, [column, best]]
    return changed
