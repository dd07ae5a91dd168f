"""DARTS' space (Liu et al., ICLR 2019, arXiv:1806.09055): a normal and a reduction cell with two inputs, four nodes.

>>> from idarts.arch import SPACES
>>> SPACES["darts"].size, SPACES["darts-s2"].size
(1076746950455072400, 2123366400)
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from idarts.arch import SPACES, Skeleton, Space, lazy
from idarts.spaces.darts import cells
from idarts.spaces.darts.cells import EDGES, INPUTS, NODES, OPS, OTHER_OPS, SPACE
from idarts.spaces.darts.genotype import Genotype, from_genotype, from_text, parse, to_genotype, to_text
from idarts.spaces.darts.variants import VARIANTS

__all__ = [
    "EDGES",
    "INPUTS",
    "NODES",
    "OPS",
    "OTHER_OPS",
    "SPACE",
    "VARIANTS",
    "Genotype",
    "from_genotype",
    "from_text",
    "to_genotype",
    "to_text",
]


def _space(name: str, ops: Sequence[str], **own: Any) -> Space:
    """The space of cells that choose among `ops`."""
    return Space(
        name=name,
        forms={"genotype": to_text},
        text_form="genotype",
        style=cells.STYLE,
        labels=partial(cells.labels, ops=ops),
        size=cells.size(ops),
        sample=partial(cells.sample, ops=ops),
        mutate=partial(cells.mutate, ops=ops),
        growth=partial(cells.growth, ops),
        supernet=partial(lazy(f"{__name__}.supernet:DartsSupernet"), ops=ops),
        network=lazy(f"{__name__}.network:DartsNetwork"),
        has_auxiliary=True,
        has_drop_path=True,
        skeletons={
            "cifar": Skeleton(depth=20, channels=36, classes=10, image=32),
            "imagenet": Skeleton(depth=14, channels=48, classes=1000, image=224, large=True),
        },
        search_skeleton=Skeleton(depth=8, channels=16, classes=10, image=32),
        prices=lazy(f"{__name__}.prices:prices"),
        **own,
    )


SPACES.add(SPACE, _space(SPACE, OPS, check=cells.rules(OPS + OTHER_OPS), parse=parse, reads="a Genotype(…)"))
for _name, _ops in VARIANTS.items():
    _variant = _name.removeprefix(f"{SPACE}-")
    SPACES.add(_name, _space(_name, _ops, record=SPACE, variant=_variant, check=cells.rules(_ops)))
