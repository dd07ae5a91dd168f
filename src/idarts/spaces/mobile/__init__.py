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
"""

from idarts.arch import SPACES, Skeleton, Space, Style, lazy
from idarts.spaces.mobile import chain
from idarts.spaces.mobile.chain import DEPTH, SIZE, SPACE, from_blocks, to_blocks, to_text

__all__ = ["DEPTH", "SIZE", "SPACE", "from_blocks", "to_blocks", "to_text"]

SPACES.add(
    SPACE,
    Space(
        name=SPACE,
        check=chain.check,
        parse=chain.parse,
        reads=f"{SPACE}:BLOCK-BLOCK+BLOCK-…",
        forms={"chain": to_text},
        text_form="chain",
        style=Style(
            titles={f"stage{stage}": f"stage {stage}" for stage in range(1, chain.STAGES + 1)}
            | {"first": "first block of each stage", "further": "further blocks"},
            cells=chain.cells,
            label=chain.label,
        ),
        labels=chain.labels,
        size=SIZE,
        sample=chain.sample,
        mutate=chain.mutate,
        fixed=lambda: from_blocks([["k3e6"] * DEPTH] * chain.STAGES),  # MobileNetV2's block throughout
        supernet=lazy(f"{__name__}.supernet:MobileSupernet"),
        network=lazy(f"{__name__}.network:MobileNetwork"),
        skeletons={
            "cifar": Skeleton(depth=DEPTH, channels=16, classes=10, image=32),
            "imagenet": Skeleton(depth=DEPTH, channels=16, classes=1000, image=224, large=True),
        },
        depth_of=chain.depth_of,
        prices=lazy(f"{__name__}.prices:prices"),
        latency=lazy(f"{__name__}.prices:latency"),
        latency_prices=lazy(f"{__name__}.prices:latency_prices"),
    ),
)
