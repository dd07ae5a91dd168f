"""P-DARTS' selection: the largest of α, with at most M skip connections (Chen et al. 2019, arXiv:1904.12760).

While the first group of decisions (the normal cell) has more, the weakest skip loses its option and the architecture is
read again. The paper takes M = 2; the published code prints the cells of all M.
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
    """The largest of α with at most `most` skip connections in the first group; where a space has none, the largest."""

    needs_supernet: ClassVar[bool] = True

    def __init__(self, most: int = 2) -> None:
        if most < 0:
            raise InputError(f"selection.options: most is {most}, expected a whole number of at least 0")
        self.most = most

    def __call__(self, search: "Search") -> Selected:
        return Selected(search.pick(self.limited(search)))

    def limited(self, search: "Search") -> dict[str, Tensor]:
        """α without the skips that are too many."""
        net, values = search.net, search.living()
        group = next(iter(values))
        while net.skip is not None:
            taken = net.path(search.largest(values))[group].weights[:, net.skip].bool()
            rows = [row for row, skips in enumerate(taken.tolist()) if skips]
            if len(rows) <= self.most:
                break
            shares = values[group].softmax(dim=1)[:, net.skip]
            weakest = min(rows, key=lambda row: shares[row].item())
            values[group] = values[group].clone()
            values[group][weakest, net.skip] = -torch.inf
            if values[group][weakest].isneginf().all():
                raise InputError("a decision has no other option left than a skip connection; give a larger `most`")
        return values
