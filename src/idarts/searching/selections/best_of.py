"""The best of some sampled architectures with the shared weights, as in RandomNAS, SETN and ENAS."""

from typing import TYPE_CHECKING, ClassVar

from idarts.searching.judge import FORWARD_COST, Judge
from idarts.searching.registries import SELECTIONS
from idarts.searching.strategy import Selected

if TYPE_CHECKING:
    from idarts.searching.loop import Search


@SELECTIONS.register("best-of")
class BestOf:
    """Sample architectures as the strategy does, and take the one that is best on validation batches.

    Where minutes are limited, these are as many as there is time for, and at least one.
    """

    needs_supernet: ClassVar[bool] = True

    def __call__(self, search: "Search") -> Selected:
        judge = Judge.of(search)
        sampled = [search.strategy.sample() for _ in range(search.selection.samples)]
        different = list({str(architecture): architecture for architecture in sampled}.values())
        scores: list[float] = []
        for place, architecture in enumerate(different):
            if place and search.seconds_left() <= 0:
                break
            search.on_message(f"selection: best-of, candidate {place + 1} of {len(different)}")
            with search.clock:
                scores.append(judge(search.net.path(architecture)))
        return Selected(different[scores.index(max(scores))], judge.cost * len(scores))

    def seconds(self, search: "Search") -> float:
        """At most as long as so many forward passes, at the pace of the rounds so far."""
        passes = search.selection.samples * search.selection.batches
        return search.seconds_per_evaluation() * FORWARD_COST * passes
