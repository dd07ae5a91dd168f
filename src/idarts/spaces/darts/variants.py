"""Smaller versions of the space, in which DARTS collapses: it ends with skip connections, or even with noise.

They are S2, S3 and S4 of Zela et al., "Understanding and Robustifying Differentiable Architecture Search" (ICLR 2020,
arXiv:1909.09656): DARTS' cells with fewer operations on each edge. Their architectures are ordinary ones of DARTS.
"""

from idarts.spaces.darts.cells import NOISE, SPACE

VARIANTS: dict[str, tuple[str, ...]] = {
    f"{SPACE}-s2": ("skip_connect", "sep_conv_3x3"),
    f"{SPACE}-s3": ("none", "skip_connect", "sep_conv_3x3"),
    f"{SPACE}-s4": (NOISE, "sep_conv_3x3"),
}
