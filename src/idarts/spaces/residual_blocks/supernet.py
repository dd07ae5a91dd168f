"""The supernet of the space of blocks: every option of a block runs, and α weighs what it adds."""

from torch import Tensor, nn

from idarts.arch import Skeleton
from idarts.layers.constants import constant
from idarts.layers.mixing import mix
from idarts.layers.mixture import Mixture
from idarts.spaces.chain_networks import ChainSupernet
from idarts.spaces.chains import SKIP
from idarts.spaces.relaxation import Relaxation, softmax
from idarts.spaces.residual_blocks.chain import CHAIN
from idarts.spaces.residual_blocks.network import Place, head, layers, places, shortcut, stem


class BlockSupernet(ChainSupernet):
    """Stem, three stages of `depth` mixed blocks, classifier.

    >>> import torch
    >>> net = BlockSupernet(Skeleton(depth=2, channels=8, classes=10, image=8), in_channels=1)
    >>> net(torch.zeros(2, 1, 8, 8)).shape, net.alpha["first"].shape, net.alpha["further"].shape
    (torch.Size([2, 10]), torch.Size([3, 5]), torch.Size([3, 6]))
    """

    def __init__(self, skeleton: Skeleton, in_channels: int = 3, relaxation: Relaxation = softmax) -> None:
        super().__init__(CHAIN, skeleton, relaxation)
        blocks = [
            MixedBlock(further if block else first, CHAIN.options(block))
            for first, further in places(skeleton)
            for block in range(skeleton.depth)
        ]
        self.build(stem(in_channels, skeleton), blocks, *head(skeleton), skeleton.classes)


class MixedBlock(nn.Module):
    """The shortcut + Σ p·f(x) over the options f, each of which ends in a BatchNorm without weights.

    `skip` adds nothing. Options that do not run are not computed.
    """

    def __init__(self, place: Place, options: tuple[str, ...]) -> None:
        super().__init__()
        self.options = options
        self.shortcut = shortcut(place)
        self.layers = nn.ModuleDict({name: layers(place, name, affine=False) for name in options if name != SKIP})

    def forward(self, x: Tensor, mixture: Mixture, row: int) -> Tensor:
        """The mixture by one row of weights."""
        running = [column for column, option in enumerate(self.options) if option != SKIP and mixture.runs(row, column)]
        same: Tensor = self.shortcut(x)
        if not running:
            return same
        terms = [self.layers[self.options[column]](x) for column in running]
        return mix(terms, mixture.weights[row, constant(running, x.device)], [same])
