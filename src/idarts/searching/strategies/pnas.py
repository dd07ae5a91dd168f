"""PNAS (Liu et al. 2018, Progressive Neural Architecture Search, Alg. 1): cells grow node by node.

All cells of one node are evaluated. Then, level by level: each cell that was evaluated grows by every node that it can,
a surrogate that is fitted to all rewards so far scores them, and the best K = `population.size` are evaluated. That is
|level 1| + K·(nodes − 1) evaluations; the result is the best of the last level. All cells of an architecture (normal,
reduction) are the same. The paper: five nodes, K = 256, children trained for 20 epochs.
"""

from typing import TYPE_CHECKING, Any, ClassVar

import torch

from idarts.arch import Architecture, Block
from idarts.errors import InputError
from idarts.searching.proposing import Member, Proposing, growth_of
from idarts.searching.registries import STRATEGIES
from idarts.searching.surrogate import Surrogate, features

if TYPE_CHECKING:
    from idarts.searching.loop import Search

Cell = tuple[Block, ...]  # the first nodes of a cell


@STRATEGIES.register("pnas")
class Pnas(Proposing):
    """A round evaluates one cell of the current level; the search ends with the last level."""

    needs: ClassVar[tuple[str, ...]] = ("sample", "growth")

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        self.growth = growth_of(search)
        self.level: list[Cell] = [(block,) for block in self.growth.blocks(0)]
        if search.budget.limited:  # it may shorten the level, which should then be a fair sample
            self.random.shuffle(self.level)
        self.waiting = self.level[::-1]  # cells of the level without a reward, the next one last
        self.rewards: dict[Cell, float] = {}  # of all levels, in the order of evaluation
        self.counts = self._count_levels()
        if sum(self.counts) > search.total:
            raise InputError(
                f"pnas evaluates {' + '.join(map(str, self.counts))} cells, level by level, but there are "
                f"{search.total} rounds; give --rounds {sum(self.counts)}, or a smaller --population.size"
            )

    def _count_levels(self) -> list[int]:
        """The cells of each level, if the budget is enough for all."""
        counts, most = [len(self.level)], self.search.settings.population.size
        for node in range(1, self.growth.nodes):
            counts.append(min(most, counts[-1] * len(self.growth.blocks(node))))
        return counts

    def propose(self) -> Architecture:
        return self.growth.same(self.waiting[-1])

    def learn(self, member: Member) -> None:
        self.rewards[self.waiting.pop()] = member.reward
        while not self._is_last() and (not self.waiting or self._is_late()):
            self.level = self._grown()
            self.waiting = self._unknown()[::-1]

    def _is_late(self) -> bool:
        """Whether the levels so far have spent their share of a limited budget: it shortens all levels alike."""
        share = sum(self.counts[: len(self.level[0])]) / sum(self.counts)
        return self.search.budget.limited and self.search.used() >= share

    def _grown(self) -> list[Cell]:
        """The next level: the best of all cells with one node more than those evaluated, by the surrogate."""
        nodes, most = len(self.level[0]), self.search.settings.population.size
        parents = [cell for cell in self.level if cell in self.rewards] or self.level
        grown = [(*cell, block) for cell in parents for block in self.growth.blocks(nodes)]
        if len(grown) <= most:
            return grown
        known = features(self.growth, list(self.rewards))
        surrogate = Surrogate(known, torch.tensor(list(self.rewards.values())), self.search.settings.seed + nodes)
        scores = surrogate(features(self.growth, grown))
        return [grown[place] for place in scores.argsort(descending=True, stable=True)[:most].tolist()]

    def _unknown(self) -> list[Cell]:
        """The cells of this level to be evaluated: a cell whose architecture was evaluated before has its reward."""
        before = {member.architecture: member.reward for member in self.history}
        for cell in self.level:
            architecture = self.growth.same(cell)
            if architecture in before:
                self.rewards[cell] = before[architecture]
        return [cell for cell in self.level if cell not in self.rewards]

    def _is_last(self) -> bool:
        return len(self.level[0]) == self.growth.nodes

    @property
    def finished(self) -> bool:
        return self._is_last() and not self.waiting

    def _ranked(self) -> list[Cell]:
        """The cells with most nodes first, the best of these first."""
        return sorted(self.rewards, key=lambda cell: (-len(cell), -self.rewards[cell]))

    def current(self) -> Architecture:
        """The best of the largest cells that were evaluated; where the budget ends before, the surrogate's best."""
        if self._is_last() and not any(len(cell) == self.growth.nodes for cell in self.rewards):
            return self.growth.same(self.level[0])
        cell = max(self.rewards.items(), key=lambda scored: (len(scored[0]), scored[1]))[0]
        return self.growth.same(cell)

    def finalists(self, number: int) -> list[Architecture]:
        return [self.growth.same(cell) for cell in self._ranked()[:number]]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "level": self.level, "rewards": list(self.rewards.items())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.level = [_cell(blocks) for blocks in state["level"]]
        self.rewards = {_cell(blocks): reward for blocks, reward in state["rewards"]}
        self.waiting = [cell for cell in self.level if cell not in self.rewards][::-1]


def _cell(blocks: Any) -> Cell:
    return tuple(tuple((source, op) for source, op in block) for block in blocks)
