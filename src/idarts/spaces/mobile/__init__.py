"""The mobile space: a chain of inverted residuals, from which networks for phones and small devices are searched.

A block widens its input by a 1×1 convolution (expansion 3 or 6), filters each channel (kernel 3, 5 or 7), and narrows
it by another 1×1 convolution. The blocks are those of MobileNetV2 (Sandler et al., CVPR 2018, arXiv:1801.04381), the
decisions those of ProxylessNAS (Cai et al., ICLR 2019, arXiv:1812.00332), with the ReLU of FBNet (Wu et al., CVPR 2019,
arXiv:1812.03443) and the widths and strides of MobileNetV3 (Howard et al., ICCV 2019, arXiv:1905.02244).

>>> from idarts.arch import SPACES, parse
>>> SPACES["mobile"].size == (6 * 7**3) ** 5
True
>>> parse("mobile:k3e6+k5e3+k3e3+k7e6+k3e6").choices["stage2.block1"]
'k5e3'
>>> parse("mobile:k3e6-skip+k5e3-skip")
Traceback (most recent call last):
idarts.errors.InputError: mobile: the blocks of its 2 stages are 2, 2, expected 5 stages with the same number of blocks
"""

from idarts.arch import SPACES, Skeleton, lazy
from idarts.spaces.mobile.chain import CHAIN

SPACES.add(
    CHAIN.space,
    CHAIN.record(
        fixed=lambda: CHAIN.same("k3e6"),  # MobileNetV2's block
        supernet=lazy(f"{__name__}.supernet:MobileSupernet"),
        network=lazy(f"{__name__}.network:MobileNetwork"),
        skeletons={
            "cifar": Skeleton(depth=CHAIN.depth, channels=16, classes=10, image=32),
            "imagenet": Skeleton(depth=CHAIN.depth, channels=16, classes=1000, image=224, large=True),
        },
        prices=lazy("idarts.spaces.chain_prices:prices"),
        latency=lazy(f"{__name__}.prices:latency"),
        latency_prices=lazy("idarts.spaces.chain_prices:latency_prices"),
    ),
)
