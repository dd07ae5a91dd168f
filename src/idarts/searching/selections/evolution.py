"""An evolutionary search for the best path of the shared weights, as EN²AS may end (Zhang et al. 2020)."""

from collections.abc import Iterable, Iterator
from random import Random
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from idarts.arch import Architecture
from idarts.errors import InputError
from idarts.searching.judge import FORWARD_COST, Judge
from idarts.searching.registries import SELECTIONS
from idarts.searching.relaxations.gumbel import gumbel_noise
from idarts.searching.strategy import Selected

if TYPE_CHECKING:
    from idarts.searching.loop import Search

Genome = dict[str, Tensor]  # scores with the shape of α, whose largest are the architecture; a gene is a row


@SELECTIONS.register("evolution")
class Evolution:
    """`selection.samples` architectures by α; the best of parents and children survive, generation by generation.

    A share `crossed` of the children has two parents, whose genes are exchanged between two points; the others have
    one, of whose genes each is drawn anew with probability `changed`. No architecture is judged twice. The paper: 100
    architectures, 60 generations. Where minutes are limited, it ends when they are spent.
    """

    needs_supernet: ClassVar[bool] = True

    def __init__(self, generations: int = 10, crossed: float = 0.6, changed: float = 0.2) -> None:
        if generations < 0 or not (0 <= crossed <= 1 and 0 <= changed <= 1):
            raise InputError(
                f"evolution: generations={generations}, crossed={crossed}, changed={changed}, expected a count and two "
                "probabilities"
            )
        self.generations, self.crossed, self.changed = generations, crossed, changed

    def __call__(self, search: "Search") -> Selected:
        judge, random = Judge.of(search), Random(search.settings.seed)
        scores: dict[Architecture, float] = {}

        def scored(genomes: Iterable[Genome], name: str) -> Iterator[tuple[float, Genome]]:
            """As many as there is time for, and at least one."""
            for genome in genomes:
                if scores and search.seconds_left() <= 0:
                    return
                search.on_message(f"selection: evolution, {name}")
                architecture = search.pick(genome)
                if architecture not in scores:
                    with search.clock:
                        scores[architecture] = judge(search.net.path(architecture))
                yield scores[architecture], genome

        size = search.selection.samples
        living = sorted(scored((draw(search) for _ in range(size)), "the first generation"), key=_worst_last)
        for generation in range(self.generations):
            if search.seconds_left() <= 0:
                break
            children = [self._child([genome for _, genome in living], search, random) for _ in range(size)]
            name = f"generation {generation + 1} of {self.generations}"
            living = sorted([*living, *scored(children, name)], key=_worst_last)[:size]
        return Selected(search.pick(living[0][1]), judge.cost * len(scores))

    def _child(self, parents: list[Genome], search: "Search", random: Random) -> Genome:
        if random.random() < self.crossed:
            return cross(random.choice(parents), random.choice(parents), random)
        return change(random.choice(parents), draw(search), self.changed, random)

    def seconds(self, search: "Search") -> float:
        """At most as long as so many forward passes, at the pace of the rounds so far."""
        passes = search.selection.samples * (1 + self.generations) * search.selection.batches
        return search.seconds_per_evaluation() * FORWARD_COST * passes


def draw(search: "Search") -> Genome:
    """A random genome: by the softmax of α."""
    return {name: alpha.detach() + gumbel_noise(alpha) for name, alpha in search.net.alpha.items()}


def cross(one: Genome, other: Genome, random: Random) -> Genome:
    """The first, with the second's genes between two points; neither of them changes."""
    first, last = sorted(random.sample(range(sum(map(len, one.values())) + 1), 2))
    return _mixed(one, other, [first <= place < last for place in range(sum(map(len, one.values())))])


def change(one: Genome, fresh: Genome, probability: float, random: Random) -> Genome:
    """The first, with some of its genes taken from a fresh one."""
    return _mixed(one, fresh, [random.random() < probability for _ in range(sum(map(len, one.values())))])


def _mixed(one: Genome, other: Genome, taken: list[bool]) -> Genome:
    """A copy of the first with the genes of the second where `taken` says so."""
    places = iter(taken)
    mixed: Genome = {}
    for name, rows in one.items():
        mixed[name] = rows.clone()
        for row in range(len(rows)):
            if next(places):
                mixed[name][row] = other[name][row]
    return mixed


def _worst_last(scored: tuple[float, Genome]) -> float:
    return -scored[0]
