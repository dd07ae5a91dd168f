"""The best of some sampled architectures with the shared weights, as in RandomNAS, SETN and ENAS."""

from typing import TYPE_CHECKING, ClassVar

from idarts.searching.judge import FORWARD_COST, Judge
from idarts.searching.registries import SELECTIONS
from idarts.searching.strategy import Selected

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@SELECTIONS.register("best-of")
class BestOf:
    """Sample architectures as the strategy does, and take the one that is best on validation batches."""

    needs_supernet: ClassVar[bool] = True

    def __call__(self, search: "Search") -> Selected:
        judge = Judge.of(search)
        search.on_message("selection: best-of")
        sampled = [search.strategy.sample() for _ in range(search.selection.samples)]
        different = list({str(architecture): architecture for architecture in sampled}.values())
        best = max(different, key=lambda architecture: judge(search.net.path(architecture)))
        return Selected(best, judge.cost * len(different))

    def seconds(self, search: "Search") -> float:
        """At most as long as so many forward passes, at the pace of the rounds so far."""
        passes = search.selection.samples * search.selection.batches
        return search.seconds_per_evaluation() * FORWARD_COST * passes
