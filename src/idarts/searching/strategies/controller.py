"""ENAS: an LSTM samples a path, decision by decision, and learns from its accuracy by REINFORCE (Pham et al. 2018)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from idarts.arch import Architecture
from idarts.errors import InputError
from idarts.layers.constants import constant
from idarts.layers.mixture import Mixture, one_hot
from idarts.searching.judge import look
from idarts.searching.registries import STRATEGIES
from idarts.searching.round import Step
from idarts.searching.settings import Controller as Settings
from idarts.searching.strategy import Strategy
from idarts.spaces import Supernet

if TYPE_CHECKING:
    from idarts.searching.loop import Search

HIDDEN = 32  # width of the LSTM


@STRATEGIES.register("controller")
class ControllerStrategy(Strategy):
    """Weights train on sampled paths; the controller learns from the validation accuracy of others.

    Its greedy path is written to α after each step, so that everything that reads α sees it.
    """

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        if search.settings.cost.kind != "none":
            raise InputError("cost needs α, and a controller samples without it; use another method than enas")
        net = search.net
        self.settings = search.settings.controller
        barred = None if search.settings.none else net.none
        self.controller = Controller(shapes_of(net), barred, self.settings).to(net.architecture_parameters()[0])
        self.optimizer = torch.optim.Adam(self.controller.parameters(), self.settings.rate)

    def mixtures(self) -> dict[str, Mixture]:
        return self.controller.sample_path()

    def step(self) -> Step:
        """One Adam step on the mean REINFORCE loss of some paths; their mean loss and accuracy."""
        seen: list[Step] = []
        losses: list[Tensor] = []
        for _ in range(self.settings.samples):
            choices, log_likelihood, entropy, _ = self.controller.sample()
            seen.append(look(self.search, self.controller.path(choices)))
            reward = torch.tensor(seen[-1].reward).to(log_likelihood)
            losses.append(self.controller.loss(reward, log_likelihood, entropy))
        torch.stack(losses).mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.controller.write_alpha(self.search.net)
        means = torch.tensor([[one.loss, one.accuracy] for one in seen]).mean(dim=0)
        return Step(*means.tolist())

    def current(self) -> Architecture:
        return self.search.largest()

    def sample(self) -> Architecture:
        weights = {name: mixture.weights for name, mixture in self.controller.sample_path().items()}
        return self.search.largest(weights)

    def state_dict(self) -> dict[str, Any]:
        return {"controller": self.controller.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.controller.load_state_dict(state["controller"])
        self.optimizer.load_state_dict(state["optimizer"])


def shapes_of(net: Supernet) -> dict[str, tuple[int, int]]:
    """The decisions of a supernet: rows and columns of every α."""
    return {name: (alpha.shape[0], alpha.shape[1]) for name, alpha in net.alpha.items()}


class Controller(nn.Module):
    """Samples one option for every decision; each draw is an input of the next.

    `shapes` has, for each group of decisions, their number and that of their options.

    >>> controller = Controller({"cell": (6, 5)})
    >>> choices, log_likelihood, entropy, _ = controller.sample()
    >>> len(choices["cell"]), bool(log_likelihood < 0)
    (6, True)
    """

    baseline: Tensor

    def __init__(
        self, shapes: Mapping[str, tuple[int, int]], barred: int | None = None, settings: Settings | None = None
    ) -> None:
        super().__init__()
        self.barred = barred  # a column that is never drawn, as that of `none`
        self.settings = settings or Settings()
        self.shapes = dict(shapes)
        self.cell = nn.LSTMCell(HIDDEN, HIDDEN)
        self.start = nn.Parameter(0.1 * torch.randn(1, HIDDEN))
        self.read = nn.ModuleDict({name: nn.Linear(HIDDEN, columns) for name, (_, columns) in self.shapes.items()})
        self.tell = nn.ModuleDict({name: nn.Embedding(columns, HIDDEN) for name, (_, columns) in self.shapes.items()})
        self.register_buffer("baseline", torch.zeros(()))

    def sample(
        self, greedy: bool = False, given_choices: Mapping[str, list[int]] | None = None
    ) -> tuple[dict[str, list[int]], Tensor, Tensor, dict[str, Tensor]]:
        """Choices, their log-likelihood, the entropy and the logits; a greedy draw takes the largest.

        With given choices nothing is drawn: the rest is what the controller thinks of them.
        """
        state, given = None, self.start
        total = entropy = self.start.new_zeros(())
        choices: dict[str, list[int]] = {}
        logits: dict[str, Tensor] = {}
        for name, (rows, _) in self.shapes.items():
            choices[name], scored = [], []
            for row in range(rows):
                state = self.cell(given, state)
                scores = self._scores(name, state[0])
                if given_choices is not None:
                    pick = given_choices[name][row]
                elif greedy:
                    pick = int(scores.argmax(dim=1))
                else:  # drawn by the CPU's generator on any device
                    pick = int(torch.multinomial(scores.exp().detach().cpu(), 1))
                given = self.tell[name](constant([pick], scores.device))
                total = total + scores[0, pick]
                entropy = entropy - (scores.exp() * scores).sum()
                choices[name].append(pick)
                scored.append(scores)
            logits[name] = torch.cat(scored)
        return choices, total, entropy, logits

    def _scores(self, name: str, hidden: Tensor) -> Tensor:
        logits = self.read[name](hidden)
        if self.barred is not None:
            logits = logits.index_fill(1, constant([self.barred], logits.device), -1e9)
        scores: Tensor = logits.log_softmax(dim=1)
        return scores

    def path(self, choices: Mapping[str, list[int]]) -> dict[str, Mixture]:
        """What a supernet mixes for these choices."""
        return {name: one_hot(choices[name], columns, self.start) for name, (_, columns) in self.shapes.items()}

    @torch.no_grad()
    def sample_path(self) -> dict[str, Mixture]:
        """A path to run, not to learn from."""
        return self.path(self.sample()[0])

    @torch.no_grad()
    def write_alpha(self, net: Supernet) -> None:
        """Write the greedy path to α."""
        for name, logits in self.sample(greedy=True)[3].items():
            net.alpha[name].copy_(logits)

    def loss(self, reward: Tensor, log_likelihood: Tensor, entropy: Tensor) -> Tensor:
        """REINFORCE with a moving baseline, which each reward moves, and a bonus for entropy."""
        decay = self.settings.baseline
        moved = decay * self.baseline + (1 - decay) * reward
        self.baseline.copy_(torch.where(self.baseline == 0, reward, moved))  # zero before the first reward
        return -(reward - self.baseline) * log_likelihood - self.settings.entropy * entropy
