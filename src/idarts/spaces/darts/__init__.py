"""DARTS' space (Liu et al., ICLR 2019, arXiv:1806.09055): a normal and a reduction cell with two inputs, four nodes.

>>> from idarts.arch import SPACES
>>> SPACES["darts"].size
1076746950455072400
"""

from idarts.arch import SPACES, Skeleton, Space, lazy
from idarts.spaces.darts import cells
from idarts.spaces.darts.cells import EDGES, INPUTS, NODES, OPS, OTHER_OPS, SPACE
from idarts.spaces.darts.genotype import Genotype, from_genotype, from_text, parse, to_genotype, to_text

__all__ = [
    "EDGES",
    "INPUTS",
    "NODES",
    "OPS",
    "OTHER_OPS",
    "SPACE",
    "Genotype",
    "from_genotype",
    "from_text",
    "to_genotype",
    "to_text",
]

SPACES.add(
    SPACE,
    Space(
        name=SPACE,
        check=cells.check,
        parse=parse,
        reads="a Genotype(…)",
        forms={"genotype": to_text},
        text_form="genotype",
        style=cells.STYLE,
        labels=cells.labels,
        size=cells.SIZE,
        sample=cells.sample,
        mutate=cells.mutate,
        growth=cells.growth,
        supernet=lazy(f"{__name__}.supernet:DartsSupernet"),
        network=lazy(f"{__name__}.network:DartsNetwork"),
        has_auxiliary=True,
        has_drop_path=True,
        skeletons={
            "cifar": Skeleton(depth=20, channels=36, classes=10, image=32),
            "imagenet": Skeleton(depth=14, channels=48, classes=1000, image=224, large=True),
        },
        search_skeleton=Skeleton(depth=8, channels=16, classes=10, image=32),
        prices=lazy(f"{__name__}.prices:prices"),
    ),
)
