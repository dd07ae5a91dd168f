"""DARTS−'s relaxation: an auxiliary skip connection on every edge, which fades (Chu et al. 2021, arXiv:2009.01027).

ō(x) = β·x + Σ softmax(α)·o(x). The auxiliary skip helps the optimisation, so that α's own skip need not: α then says
what the operation is worth. β falls linearly from 1 to 0 over the budget. Adding β·x is adding β to the weight of the
skip connection; on edges that halve the image, the auxiliary skip has that operation's weights.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.layers.mixture import Mixture
from idarts.searching.registries import RELAXATIONS
from idarts.spaces import Supernet
from idarts.spaces.relaxation import Relaxation, softmax


@RELAXATIONS.register("auxiliary-skip")
@dataclass(frozen=True)
class AuxiliarySkip:
    """The softmax, and β more for the skip connection.

    >>> AuxiliarySkip().at(0.25).beta
    0.75
    """

    first: float = 1.0
    used: float = 0.0  # share of the budget

    @property
    def beta(self) -> float:
        return self.first * (1 - self.used)

    def at(self, used: float) -> "AuxiliarySkip":
        return AuxiliarySkip(self.first, used)

    def around(self, among: Relaxation, net: Supernet) -> Relaxation:
        """The relaxation among the living options, with the auxiliary skip, which is always there."""
        if net.skip is None:
            raise InputError("auxiliary-skip needs a space with skip connections on edges; use another relaxation")
        skip = net.skip

        def mixed(alpha: Tensor) -> Mixture:
            mixture = among(alpha)
            more = torch.zeros_like(alpha)
            more[:, skip] = self.beta
            active = mixture.active
            if active is not None and self.beta:
                active = tuple(tuple(on or column == skip for column, on in enumerate(row)) for row in active)
            return Mixture(mixture.weights + more, active)

        return mixed

    def __call__(self, alpha: Tensor) -> Mixture:
        return softmax(alpha)
