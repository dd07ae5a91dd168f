"""MdeNAS (Zheng et al. 2019, Multinomial Distribution Learning for Effective Neural Architecture Search).

For every decision p is a distribution over its options. A path is drawn from p, trained for a round, and validated; its
options note the accuracy H^a, and that they were chosen once more, H^e. Then every pair of options is compared: one
that was chosen less often and is more accurate gains η from the other. The paper trains a path for one epoch of 25,000
images in batches of 512, which is `inner_steps` = 49. α holds log p for everything that reads α.

The authors' toolbox also moves mass between options that were chosen equally often, pair by pair; here, as in the
paper, both inequalities are strict, and all pairs count at once. It also hands the error rate to this rule, which takes
larger for better.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.layers.mixture import Mixture, one_hot
from idarts.searching.evaluators.shared_weights import SharedWeights
from idarts.searching.registries import STRATEGIES
from idarts.searching.round import Step
from idarts.searching.strategies.gradient import Relaxing

if TYPE_CHECKING:
    from idarts.searching.loop import Search

RATE = 0.01  # η, where alpha.rate is `auto`
LEAST = 1e-9  # of p, where α holds its logarithm


def pairwise(p: Tensor, chosen: Tensor, accuracy: Tensor, rate: float) -> Tensor:
    """p after one comparison of all pairs of options: p_i += η(#{j it beats} − #{j that beat it}).

    i beats j if it was chosen less often and is more accurate. An option gives at most what it has: where p_i is less
    than it owes, all that it gives is scaled down alike. So p stays a distribution, and the order of options does not
    matter.

    >>> pairwise(torch.tensor([0.5, 0.5]), torch.tensor([3.0, 1.0]), torch.tensor([0.6, 0.9]), rate=0.25)
    tensor([0.2500, 0.7500])
    """
    beats = (chosen[..., :, None] < chosen[..., None, :]) & (accuracy[..., :, None] > accuracy[..., None, :])
    given = rate * beats.to(p)  # [i, j]: what i gets from j
    owed = given.sum(dim=-2)
    given = given * (p / owed.clamp_min(torch.finfo(p.dtype).tiny)).clamp(max=1.0)[..., None, :]
    return (p + given.sum(dim=-1) - given.sum(dim=-2)).clamp_min(0.0)


@STRATEGIES.register("mdenas")
class MdeNas(Relaxing):
    """One path for all weight steps of a round; then p moves by pairwise comparison of its options' histories."""

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        if search.settings.cost.kind != "none":
            raise InputError("cost needs a gradient of α, which strategy mdenas does not have; use another method")
        rate = search.settings.alpha.rate
        self.rate = RATE if rate == "auto" else float(rate)
        self.evaluator = SharedWeights(search)
        alive = {name: torch.tensor(rows, dtype=torch.float64) for name, rows in search.mask.items()}
        self.p = {name: rows / rows.sum(dim=1, keepdim=True) for name, rows in alive.items()}
        self.chosen = {name: torch.zeros_like(p) for name, p in self.p.items()}
        self.accuracy = {name: torch.full_like(p, -torch.inf) for name, p in self.p.items()}  # never chosen: no merit
        self._write_alpha()
        self.path = self._draw()

    def mixtures(self) -> dict[str, Mixture]:
        net = self.search.net
        return {
            name: one_hot(columns, net.alpha[name].shape[1], net.alpha[name]) for name, columns in self.path.items()
        }

    def step(self) -> Step:
        evaluation = self.evaluator.of_path(self.mixtures())
        self.search.spent.gradient_evaluations += evaluation.cost
        for name, columns in self.path.items():
            rows = torch.arange(len(columns))
            self.chosen[name][rows, columns] += 1
            self.accuracy[name][rows, columns] = evaluation.reward
            self.p[name] = pairwise(self.p[name], self.chosen[name], self.accuracy[name], self.rate)
        self._write_alpha()
        self.path = self._draw()
        return Step(evaluation.loss, evaluation.accuracy)

    def _draw(self) -> dict[str, list[int]]:
        return {name: torch.multinomial(p, 1)[:, 0].tolist() for name, p in self.p.items()}

    @torch.no_grad()
    def _write_alpha(self) -> None:
        for name, p in self.p.items():
            self.search.net.alpha[name].copy_(p.clamp_min(LEAST).log())

    def state_dict(self) -> dict[str, Any]:
        return {"p": self.p, "chosen": self.chosen, "accuracy": self.accuracy, "path": self.path}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.p, self.chosen, self.accuracy = state["p"], state["chosen"], state["accuracy"]
        self.path = state["path"]
