"""Noise in place of a tensor."""

import torch
from torch import Tensor, nn


class Noise(nn.Module):
    """Normal noise of mean 0 and variance 1 in the shape of its input, of which it uses nothing else.

    Each call draws again from torch's global generator, also in evaluation. A stride of 2 halves the image.

    >>> Noise(stride=2)(torch.zeros(1, 4, 7, 7)).shape
    torch.Size([1, 4, 4, 4])
    """

    def __init__(self, stride: int = 1) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """The noise; the numbers do not depend on the input's memory layout, and lie channels-last."""
        batch, channels, height, width = x[:, :, :: self.stride, :: self.stride].shape
        return torch.randn(batch, height, width, channels, dtype=x.dtype, device=x.device).permute(0, 3, 1, 2)
