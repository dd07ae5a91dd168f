"""What is searched: settings, data, a loss, and how supernets and networks are built from them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idarts.arch import Architecture, Growth
from idarts.errors import InputError
from idarts.searching.registries import STRATEGIES, require_options
from idarts.searching.settings import Config
from idarts.searching.stage import Stage
from idarts.searching.streams import Stream
from idarts.spaces import Supernet
from idarts.tables import Table

if TYPE_CHECKING:
    from idarts.searching.loop import Search

Loss = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class Task:
    """One search problem. `search()` starts the search that its settings describe.

    `supernet` is a supernet, or a function that builds one for a stage. `network` builds the network of an architecture
    for selections and evaluators that train candidates; without it, these are refused. `candidates` proposes what the
    selection `trials` compares, in place of the neighbours of α. `sample`, `mutate` and `growth` are those of the
    space, for strategies that propose architectures. `table` is only shown: no step and no selection reads it, except
    by the evaluator `table`.

    >>> from idarts.data import Batches, load, split
    >>> from idarts.searching import Task, config
    >>> from idarts.spaces import space
    >>> train, valid = split(load("digits").train, 0.5, seed=0)
    >>> chosen = space("nas-bench-201")
    >>> net = chosen.supernet(chosen.skeleton.changed(depth=1, channels=4), in_channels=1)
    >>> search = Task(net, Batches(train, 16), Batches(valid, 16), config(rounds=2)).search()
    >>> [round.number for round in search.rounds()]
    [1, 2]
    """

    supernet: Supernet | Callable[[Stage], Supernet]
    train: Stream
    valid: Stream
    settings: Config
    loss: Loss = cross_entropy
    network: Callable[[Architecture], nn.Module] | None = None
    table: Table | None = None
    sample: Callable[[Any], Architecture] | None = None
    mutate: Callable[[Architecture, Any], Architecture] | None = None
    growth: Callable[[], Growth] | None = None
    labels: dict[str, list[str]] = field(default_factory=dict)  # a user's own names for the columns of α
    sizes: dict[str, int] = field(default_factory=dict)  # of a supernet that was built for this task: depth, channels
    candidates: "Callable[[Search], list[Architecture]] | None" = None

    def search(self) -> "Search":
        """The search in progress, at its start."""
        from idarts.searching.loop import Search  # noqa: PLC0415 (it needs this module)

        require_options(STRATEGIES, self.settings.strategy, self.settings.strategy_options)
        return Search(self, STRATEGIES[self.settings.strategy])

    def table_accuracy(self, architecture: Architecture) -> float | None:
        """By the table, unless it does not describe the architecture: PNAS' first cells have too few nodes."""
        try:
            return self.table.accuracy(architecture) if self.table else None
        except InputError:
            return None

    def build_supernet(self, stage: Stage) -> Supernet:
        """The supernet of a stage."""
        if not isinstance(self.supernet, Supernet):
            return self.supernet(stage)
        if stage.depth is not None or stage.channels is not None or stage.deepen != 1:
            raise InputError(
                "this schedule of stages changes the supernet's size, but your own model has one size; "
                "search a space by name, or use --stages single"
            )
        return self.supernet
