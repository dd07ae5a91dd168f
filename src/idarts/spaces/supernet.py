"""The base of all supernets: weights w and architecture parameters α, both ordinary parameters in the `state_dict`."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from idarts.arch import Architecture
from idarts.errors import InputError
from idarts.layers.constants import constant
from idarts.layers.graph import Fan
from idarts.layers.mixture import Mixture
from idarts.spaces.relaxation import Relaxation, softmax

SMALLEST_IMAGE = 3  # below it a reduction would leave nothing
ALPHA_SCALE = 1e-3  # of the normal distribution that α starts from


def channels_last(module: nn.Module) -> None:
    """Lay a network's convolution weights out channels-last, in place."""
    move: Any = module.to  # torch's annotations lack memory_format
    move(memory_format=torch.channels_last)


def require_size(height: int, width: int) -> None:
    """Refuse images that the reductions of a network would leave nothing of."""
    if min(height, width) < SMALLEST_IMAGE:
        least = f"{SMALLEST_IMAGE}×{SMALLEST_IMAGE}"
        raise InputError(f"images of {height}×{width} pixels, expected at least {least}: they are halved twice")


class Supernet(nn.Module):
    """All architectures of a space in one network, mixed by `relaxation`.

    `alpha` holds a matrix for each group of decisions. `forward(x)` mixes with the relaxation of α, `forward(x,
    mixtures=…)` with given mixtures, such as those of a single path: `net(x, mixtures=net.path(architecture))`.
    """

    none: int | None = None  # the column of α for no operation, in a space that has one
    skip: int | None = None  # the column of α for a skip connection, in a space that has one

    def __init__(self, alphas: Mapping[str, tuple[int, int]], relaxation: Relaxation = softmax) -> None:
        super().__init__()
        self.relaxation = relaxation
        self.relaxations: dict[str, Relaxation] = {}  # of a single α, where it differs
        self.alpha = nn.ParameterDict(
            {name: nn.Parameter(ALPHA_SCALE * torch.randn(shape)) for name, shape in alphas.items()}
        )
        self.beta = nn.ParameterDict()  # a weight for each row of an α, where edges have weights
        self.readers: dict[str, list[int]] = {}  # the node that the edge of each row enters
        self.edges_kept: int | None = None  # of those that enter a node, in a space that keeps so many by α
        self.fewest: dict[str, int] = {}  # options that a decision takes, where that is more than one

    def weigh_edges(self, readers: Mapping[str, list[int]]) -> None:
        """Give every edge a weight β, a softmax over the edges that enter one node; by the names of α."""
        self.readers = dict(readers)
        self.beta.update({name: nn.Parameter(ALPHA_SCALE * torch.randn(len(rows))) for name, rows in readers.items()})

    def edge_weights(self, name: str) -> Tensor | None:
        """The softmax of β over the inputs of each node; None where edges have no weights."""
        if name not in self.beta:
            return None
        shares, readers = torch.zeros_like(self.beta[name]), self.readers[name]
        for node in dict.fromkeys(readers):
            rows = constant([row for row, reader in enumerate(readers) if reader == node], shares.device)
            shares = shares.index_copy(0, rows, self.beta[name][rows].softmax(dim=0))
        return shares

    def weighed(self, name: str, mixture: Mixture) -> Mixture:
        """A mixture of an α with the weights of the edges, where there are such."""
        shares = self.edge_weights(name)
        return mixture if shares is None else Mixture(shares[:, None] * mixture.weights, mixture.active, shares)

    def set_skip_dropout(self, rate: float) -> None:
        """The rate of dropout behind identity skips, while training."""
        for module in self.modules():
            if isinstance(module, Fan):
                module.skip_dropout = rate

    def architecture_parameters(self) -> tuple[nn.Parameter, ...]:
        """α, and β where there is one: the outer parameters."""
        return (*self.alpha.values(), *self.beta.values())

    def weight_parameters(self) -> tuple[nn.Parameter, ...]:
        """w: all others that can be trained; frozen parameters stay as they are."""
        outer = {id(parameter) for parameter in self.architecture_parameters()}
        others = (parameter for parameter in self.parameters() if id(parameter) not in outer)
        return tuple(parameter for parameter in others if parameter.requires_grad)

    def mixtures(self) -> dict[str, Mixture]:
        """The relaxation of every α; a stochastic one draws at each call."""
        return {
            name: self.weighed(name, self.relaxations.get(name, self.relaxation)(alpha))
            for name, alpha in self.alpha.items()
        }

    def forward(self, images: Tensor, *, mixtures: Mapping[str, Mixture] | None = None) -> Tensor:
        """Logits of a batch of images."""
        if images.dim() != 4:
            raise InputError(f"images have shape {tuple(images.shape)}, expected (batch, channels, height, width)")
        require_size(*images.shape[2:])
        images = images.contiguous(memory_format=torch.channels_last)
        return self.mixed(images, self.mixtures() if mixtures is None else mixtures)

    @abstractmethod
    def mixed(self, images: Tensor, mixtures: Mapping[str, Mixture]) -> Tensor:
        """The forward pass proper, on images in channels-last layout."""

    def derived(self, architecture: Architecture) -> nn.Module | None:
        """The network of an architecture with this supernet's modules; None if `idarts.spaces.network` builds it."""
        return None

    @abstractmethod
    def architecture(self) -> Architecture:
        """The discrete architecture that α selects."""

    @abstractmethod
    def path(self, architecture: Architecture) -> dict[str, Mixture]:
        """Mixtures that run one architecture of this space, and only its operations, on the shared weights."""
