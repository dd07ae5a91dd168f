"""What the options of the mobile space take on a machine."""

from typing import Any

from idarts.arch import Skeleton
from idarts.spaces import chain_prices
from idarts.spaces.mobile.chain import CHAIN, SHAPES
from idarts.spaces.mobile.network import InvertedResidual, MobileNetwork, places
from idarts.spaces.prices import Milliseconds


def latency(skeleton: Skeleton, milliseconds: Milliseconds) -> dict[str, Any]:
    """Milliseconds of every option in the first and in a further block of each stage, and of all the rest."""
    stages = places(skeleton)

    def block(stage: int, further: bool, option: str) -> chain_prices.Block:
        place = stages[stage][further]
        return InvertedResidual(place, *SHAPES[option]), (place.inputs, place.side, place.side)

    least = MobileNetwork(CHAIN.from_blocks([[CHAIN.first[0]]] * CHAIN.stages), skeleton)
    return chain_prices.latency(CHAIN, block, (least, (3, skeleton.image, skeleton.image)), milliseconds)
