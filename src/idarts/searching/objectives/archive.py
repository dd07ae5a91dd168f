"""NSAS' objective: the current path and an archive of earlier, diverse ones (Zhang et al., CVPR 2020).

L = (1 − ε)·L(w, current) + ε·mean over the archive of L(w, member): training one path must not make w forget others.
The archive's part is back-propagated, as the paper has it. The published scripts for the DARTS space compute it on
copies of the network and turn it into a number first: it has no gradient there, and only halves the step. A path takes
one operation on every edge of the supernet here, as in `random-nas`; theirs has two edges into each node.

The archive is kept diverse. Novelty of a path = its mean distance to the nearest members, distance = the share of
decisions that differ. While the archive is being filled, each member is the most novel of some draws. Then, each step,
the member that is most like the current path makes room for the recent path that is most novel to the others, if that
is more novel than the member: the mean distance in the archive never falls.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.layers.mixture import Mixture, one_hot
from idarts.searching.registries import OBJECTIVES

Path = dict[str, list[int]]  # of every α: the option of each decision
NEAREST = 10  # members that novelty looks at
DRAWS = 10  # paths of which the most novel one joins an archive that is not full


@OBJECTIVES.register("archive")
class Archive:
    """The loss of a drawn path, and `share` of the mean loss of `members` archived ones.

    A step costs 1 + `members` gradient evaluations, `candidates` are the recent paths that may join. With share 0 there
    is no archive, and nothing differs from `single`.
    """

    def __init__(self, _settings: object, members: int = 8, share: float = 0.5, candidates: int = 50) -> None:
        if members < 1 or candidates < 1 or not 0 <= share < 1:
            raise InputError(
                f"archive: members {members}, candidates {candidates} and share {share}; "
                "expected at least 1 of each, and a share from 0 to below 1"
            )
        self.size, self.share, self.kept = members, share, candidates
        self.members: list[Path] = []
        self.recent: list[Path] = []

    def __call__(
        self, draw: Callable[[], Mapping[str, Mixture]], evaluate: Callable[[Mapping[str, Mixture]], Tensor]
    ) -> Tensor:
        current = draw()
        if not self.share:
            return evaluate(current)
        self._update(_path(current), lambda: _path(draw()))
        loss = evaluate(current)
        archived = [evaluate(_mixtures(member, current)) for member in self.members]
        return (1 - self.share) * loss + self.share * torch.stack(archived).mean()

    def _update(self, current: Path, draw: Callable[[], Path]) -> None:
        self.recent = [*self.recent, current][-self.kept :]
        if len(self.members) < self.size:
            while len(self.members) < self.size:
                drawn = [draw() for _ in range(DRAWS)]
                self.members.append(max(drawn, key=lambda path: novelty(path, self.members)))
            return
        nearest = min(range(len(self.members)), key=lambda place: distance(self.members[place], current))
        others = [member for place, member in enumerate(self.members) if place != nearest]
        best = max(self.recent, key=lambda path: novelty(path, others))
        if novelty(best, others) > novelty(self.members[nearest], others):
            self.members[nearest] = best

    def state_dict(self) -> dict[str, Any]:
        return {"members": self.members, "recent": self.recent}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.members, self.recent = list(state["members"]), list(state["recent"])


def distance(one: Path, other: Path) -> float:
    """The share of decisions in which two paths differ.

    >>> distance({"cell": [0, 1, 2, 3]}, {"cell": [0, 1, 0, 0]})
    0.5
    """
    differ = [a != b for name in one for a, b in zip(one[name], other[name], strict=True)]
    return sum(differ) / len(differ)


def novelty(path: Path, archive: list[Path]) -> float:
    """The mean distance of a path to its nearest members of an archive; 0 if there are none.

    >>> novelty({"cell": [0, 0]}, [{"cell": [0, 1]}, {"cell": [1, 1]}])
    0.75
    """
    nearest = sorted(distance(path, member) for member in archive)[:NEAREST]
    return sum(nearest) / len(nearest) if nearest else 0.0


def _path(mixtures: Mapping[str, Mixture]) -> Path:
    if any(mixture.active is None or any(sum(row) != 1 for row in mixture.active) for mixture in mixtures.values()):
        raise InputError(
            "weights.objective archive trains single paths; use --relaxation uniform, or one that draws a path"
        )
    return {name: [row.index(True) for row in mixture.active or ()] for name, mixture in mixtures.items()}


def _mixtures(path: Path, like: Mapping[str, Mixture]) -> dict[str, Mixture]:
    return {name: one_hot(path[name], mixture.weights.shape[1], mixture.weights) for name, mixture in like.items()}
