"""NAS-Bench-201 (Dong and Yang, ICLR 2020, arXiv:2001.00326): one cell of four nodes, five operations on six edges.

>>> from idarts.spaces import nas_bench_201
>>> nas_bench_201.to_string(nas_bench_201.from_index(0))[:16]
'|avg_pool_3x3~0|'
"""

from idarts.arch import SPACES, Skeleton, Space, lazy
from idarts.spaces.nas_bench_201 import cells
from idarts.spaces.nas_bench_201.cells import (
    EDGES,
    OPS,
    SIZE,
    SPACE,
    from_index,
    from_ops,
    from_string,
    to_index,
    to_ops,
    to_string,
)

__all__ = ["EDGES", "OPS", "SIZE", "SPACE", "from_index", "from_ops", "from_string", "to_index", "to_ops", "to_string"]

# The block of ResNet: two convolutions and a shortcut.
RESIDUAL = "|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|skip_connect~2|"

SPACES.add(
    SPACE,
    Space(
        name=SPACE,
        check=cells.check,
        parse=cells.parse,
        reads=f"a NAS-Bench-201 string or {SPACE}:INDEX",
        forms={"string": to_string, "index": lambda architecture: str(to_index(architecture))},
        text_form="string",
        labels=cells.labels,
        size=SIZE,
        sample=cells.sample,
        mutate=cells.mutate,
        fixed=lambda: from_string(RESIDUAL),
        growth=cells.growth,
        supernet=lazy(f"{__name__}.supernet:NasBench201Supernet"),
        network=lazy(f"{__name__}.network:NasBench201Network"),
        skeletons={
            "cifar10": Skeleton(depth=5, channels=16, classes=10, image=32),
            "cifar100": Skeleton(depth=5, channels=16, classes=100, image=32),
            "imagenet16": Skeleton(depth=5, channels=16, classes=120, image=16),
        },
        prices=lazy(f"{__name__}.prices:prices"),
        latency=lazy(f"{__name__}.prices:latency"),
        latency_prices=lazy(f"{__name__}.prices:latency_prices"),
    ),
)
