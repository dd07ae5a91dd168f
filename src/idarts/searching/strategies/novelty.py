"""EN²AS (Zhang et al. 2020, One-Shot Neural Architecture Search via Novelty Driven Sampling).

Weights train on paths that are unlike those trained before.

An archive is first filled with random paths. Then every weight step takes a random member x and moves it by an
evolution strategy, x ← x + η/(nσ) Σ N(x + σz_i)·z_i with z_i ~ N(0, 1), the gradient of its smoothed novelty; N is the
mean distance to the nearest members of the archive. The result replaces the member, and is the path of the step. α
never moves; the selection compares paths by the shared weights.

Where the published code differs: there x are whole numbers, one for each input and operation, which are rounded after
every step, and with its η = 0.01 nearly all steps return the old cell. Here x are scores with the shape of α, whose
largest are the cell, so that small steps add up, in any space.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from idarts.layers.mixture import Mixture
from idarts.searching.judge import look
from idarts.searching.registries import STRATEGIES
from idarts.searching.relaxations.gumbel import gumbel_noise
from idarts.searching.round import Step
from idarts.searching.strategies.gradient import Relaxing

if TYPE_CHECKING:
    from idarts.searching.loop import Search


def distance(paths: Tensor, archive: Tensor) -> Tensor:
    """The share of options that two paths do not have in common: a matrix, paths by members of the archive.

    >>> distance(torch.tensor([[1.0, 0.0, 0.0, 1.0]]), torch.tensor([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]]))
    tensor([[0.5000, 0.0000]])
    """
    sizes = paths.sum(dim=1)[:, None] + archive.sum(dim=1)
    return 1 - 2 * paths @ archive.T / sizes.clamp_min(1.0)


def novelty(paths: Tensor, archive: Tensor, neighbours: int) -> Tensor:
    """The mean distance of each path to its nearest in the archive."""
    near = distance(paths, archive).topk(min(neighbours, len(archive)), dim=1, largest=False)
    return near.values.mean(dim=1)


def ascend(x: Tensor, noise: Tensor, values: Tensor, rate: float, deviation: float) -> Tensor:
    """x + η/(nσ) Σ N_i z_i, for the values N_i at x + σz_i.

    >>> ascend(torch.zeros(1), torch.tensor([[1.0], [-1.0]]), torch.tensor([0.9, 0.1]), rate=1.0, deviation=1.0)
    tensor([0.4000])
    """
    weighted = values.reshape(-1, *[1] * x.dim()) * noise
    return x + rate / deviation * weighted.mean(dim=0)


@STRATEGIES.register("novelty")
class NoveltySearch(Relaxing):
    """Weights train on paths that novelty search proposes; α stays as it is.

    Every group of decisions (each kind of cell) has its own archive.
    """

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        self.settings, self.size = search.settings.novelty, search.settings.population.size
        alphas = {name: alpha.detach() for name, alpha in search.net.alpha.items()}
        # Of every member: scores (members, decisions, options), and its path as zeros and ones in one row.
        self.scores = {name: alpha.new_empty(0, *alpha.shape) for name, alpha in alphas.items()}
        self.paths = {name: alpha.new_empty(0, alpha.numel()) for name, alpha in alphas.items()}
        self.path: dict[str, Mixture] | None = None

    def mixtures(self) -> dict[str, Mixture]:
        self.path = self._moved() if self._members() == self.size else self._random()
        return self.path

    def _members(self) -> int:
        return len(next(iter(self.scores.values())))

    def _random(self) -> dict[str, Mixture]:
        """A random path, which joins the archive."""
        scores = {name: gumbel_noise(alpha.detach()) for name, alpha in self.search.net.alpha.items()}
        path = self._decode(scores)
        for name, mixture in path.items():
            self.scores[name] = torch.cat([self.scores[name], scores[name][None]])
            self.paths[name] = torch.cat([self.paths[name], mixture.weights.flatten()[None]])
        return path

    def _moved(self) -> dict[str, Mixture]:
        """The path of a random member of each archive after one step towards novelty, which takes its place."""
        settings = self.settings
        places = {name: int(torch.randint(self.size, ())) for name in self.scores}
        x = {name: self.scores[name][place] for name, place in places.items()}
        noise = {
            name: torch.randn(settings.samples, *value.shape).to(value, non_blocking=True) for name, value in x.items()
        }
        decoded = [
            self._decode({name: x[name] + settings.deviation * noise[name][sample] for name in x})
            for sample in range(settings.samples)
        ]
        for name, place in places.items():
            others = torch.cat([self.paths[name][:place], self.paths[name][place + 1 :]])
            if len(others):
                paths = torch.stack([path[name].weights.flatten() for path in decoded])
                values = novelty(paths, others, settings.neighbours)
                x[name] = ascend(x[name], noise[name], values, settings.rate, settings.deviation)
        path = self._decode(x)
        for name, place in places.items():
            self.scores[name][place] = x[name]
            self.paths[name][place] = path[name].weights.flatten()
        return path

    def _decode(self, scores: Mapping[str, Tensor]) -> dict[str, Mixture]:
        return self.search.net.path(self.search.largest(scores))

    def step(self) -> Step:
        """Look at the last path on a validation batch."""
        assert self.path is not None
        return look(self.search, self.path)

    def state_dict(self) -> dict[str, Any]:
        return {"scores": self.scores, "paths": self.paths}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        device = self.search.device
        self.scores = {name: value.to(device) for name, value in state["scores"].items()}
        self.paths = {name: value.to(device) for name, value in state["paths"].items()}
