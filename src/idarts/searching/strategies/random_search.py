"""Random search: the control of every other strategy."""

from idarts.arch import Architecture
from idarts.searching.proposing import Proposing
from idarts.searching.registries import STRATEGIES


@STRATEGIES.register("random-search")
class RandomSearch(Proposing):
    """Evaluate random architectures, and take the best."""

    def propose(self) -> Architecture:
        return self.draw()
