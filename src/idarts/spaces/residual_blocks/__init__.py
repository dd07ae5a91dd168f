"""The space of blocks: a chain of residual blocks, from which `idarts fit` searches networks for images.

Every block adds to its input what one of these makes of it: two 3×3 convolutions (ResNet: He et al., CVPR 2016,
arXiv:1512.03385), two separable convolutions (Xception: Chollet, CVPR 2017, arXiv:1610.02357), or an inverted residual
(MobileNetV2: Sandler et al., CVPR 2018, arXiv:1801.04381). They differ most in what they make of the same number of
parameters: separable and inverted blocks are wider, and take more time.

>>> from idarts.arch import SPACES, parse
>>> SPACES["residual-blocks"].size
27000
>>> parse("residual-blocks:conv3-skip+sep3-inv5+inv3-inv3").choices["stage2.block2"]
'inv5'
"""

from idarts.arch import SPACES, Skeleton, lazy
from idarts.spaces.residual_blocks.chain import CHAIN

SPACES.add(
    CHAIN.space,
    CHAIN.record(
        fixed=lambda: CHAIN.same("conv3"),  # ResNet's block
        supernet=lazy(f"{__name__}.supernet:BlockSupernet"),
        network=lazy(f"{__name__}.network:BlockNetwork"),
        skeletons={"cifar": Skeleton(depth=CHAIN.depth, channels=16, classes=10, image=32)},
        prices=lazy("idarts.spaces.chain_prices:prices"),
        latency=lazy(f"{__name__}.network:latency"),
        latency_prices=lazy("idarts.spaces.chain_prices:latency_prices"),
    ),
)
