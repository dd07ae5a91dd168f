"""The base of all supernets: weights w and architecture parameters α, both ordinary parameters in the `state_dict`."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from idarts.arch import Architecture
from idarts.errors import InputError
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

    none: int | None = None  # the column of α that stands for no operation, in a space that has one

    def __init__(self, alphas: Mapping[str, tuple[int, int]], relaxation: Relaxation = softmax) -> None:
        super().__init__()
        self.relaxation = relaxation
        self.alpha = nn.ParameterDict(
            {name: nn.Parameter(ALPHA_SCALE * torch.randn(shape)) for name, shape in alphas.items()}
        )

    def architecture_parameters(self) -> tuple[nn.Parameter, ...]:
        """α: the outer parameters."""
        return tuple(self.alpha.values())

    def weight_parameters(self) -> tuple[nn.Parameter, ...]:
        """w: all others that can be trained; frozen parameters stay as they are."""
        outer = {id(parameter) for parameter in self.architecture_parameters()}
        others = (parameter for parameter in self.parameters() if id(parameter) not in outer)
        return tuple(parameter for parameter in others if parameter.requires_grad)

    def mixtures(self) -> dict[str, Mixture]:
        """The relaxation of every α; a stochastic one draws at each call."""
        return {name: self.relaxation(alpha) for name, alpha in self.alpha.items()}

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
        """The discrete architecture that α stands for."""

    @abstractmethod
    def path(self, architecture: Architecture) -> dict[str, Mixture]:
        """Mixtures that run one architecture of this space, and only its operations, on the shared weights."""
