"""The architecture that α selects, as in DARTS and iDARTS; within the cost target, where there is one."""

from typing import TYPE_CHECKING

from idarts.searching.registries import SELECTIONS
from idarts.searching.strategy import Selected

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@SELECTIONS.register("argmax")
def argmax(search: "Search") -> Selected:
    """The largest of α, by the space's rule; for a strategy without α, its current architecture."""
    return Selected(search.pick() if search.cost else search.current())
