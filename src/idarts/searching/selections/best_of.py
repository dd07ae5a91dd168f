"""The best of some sampled architectures with the shared weights, as in RandomNAS, SETN and ENAS."""

from typing import TYPE_CHECKING

from idarts.searching.judge import Judge
from idarts.searching.registries import SELECTIONS
from idarts.searching.strategy import Selected

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@SELECTIONS.register("best-of")
def best_of(search: "Search") -> Selected:
    """Sample architectures as the strategy does, and take the one that is best on validation batches."""
    judge = Judge.of(search)
    search.on_message("selection: best-of")
    sampled = [search.strategy.sample() for _ in range(search.selection.samples)]
    different = list({str(architecture): architecture for architecture in sampled}.values())
    best = max(different, key=lambda architecture: judge(search.net.path(architecture)))
    return Selected(best, judge.cost * len(different))
