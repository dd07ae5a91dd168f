"""NAS-Bench-201's supernet, fused: one cell of four nodes and six edges, α shared by all cells."""

from collections.abc import Mapping

from torch import Tensor, nn

from idarts.arch import Architecture, Skeleton
from idarts.errors import InputError
from idarts.layers.graph import Fan, FusedGraph
from idarts.layers.lean import lean, relu
from idarts.layers.mixture import Mixture, one_hot
from idarts.layers.parallel import Block, Parallel
from idarts.spaces.nas_bench_201.cells import EDGES, NODES, OPS, SPACE, from_ops, to_ops
from idarts.spaces.nas_bench_201.network import stages, stem
from idarts.spaces.operations import operation
from idarts.spaces.relaxation import Relaxation, share_of, softmax, weighs_edges
from idarts.spaces.supernet import Supernet, channels_last, require_size


class NasBench201Supernet(Supernet):
    """Stem, `depth` cells, block, `depth` cells, block, `depth` cells, classifier; every edge mixes all operations.

    >>> import torch
    >>> net = NasBench201Supernet(Skeleton(depth=1, channels=4, classes=10, image=32))
    >>> net(torch.zeros(2, 3, 32, 32)).shape, net.alpha["cell"].shape
    (torch.Size([2, 10]), torch.Size([6, 5]))
    """

    none, skip = OPS.index("none"), OPS.index("skip_connect")

    def __init__(self, skeleton: Skeleton, in_channels: int = 3, relaxation: Relaxation = softmax) -> None:
        require_size(skeleton.image, skeleton.image)
        super().__init__({"cell": (len(EDGES), len(OPS))}, relaxation)
        self.stem = stem(in_channels, skeleton)
        if weighs_edges(relaxation):
            self.weigh_edges({"cell": [target for _, target in EDGES]})
        share = share_of(relaxation, skeleton.channels)
        blocks, channels = stages(skeleton, lambda channels: _cell(channels, share))
        self.body = nn.ModuleList(blocks)
        self.norm = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, skeleton.classes)
        channels_last(lean(self))

    def mixed(self, images: Tensor, mixtures: Mapping[str, Mixture]) -> Tensor:
        x = self.stem(images)
        for block in self.body:
            x = block([x], mixtures["cell"])[-1] if isinstance(block, FusedGraph) else block(x)
        logits: Tensor = self.classifier(relu(self.norm(x)).mean(dim=(2, 3)))
        return logits

    def architecture(self) -> Architecture:
        return from_ops([OPS[column] for column in self.alpha["cell"].argmax(1).tolist()])

    def path(self, architecture: Architecture) -> dict[str, Mixture]:
        if architecture.space != SPACE:
            raise InputError(f"an architecture of {architecture.space} is not a path of the supernet of {SPACE}")
        columns = [OPS.index(op) for op in to_ops(architecture)]
        return {"cell": one_hot(columns, len(OPS), self.alpha["cell"])}


def _cell(channels: int, share: int) -> FusedGraph:
    def fan(_source: int, members: int) -> Fan:
        width = channels // share
        kernels = {"nor_conv_1x1": 1, "nor_conv_3x3": 3}
        return Fan(
            {op: Parallel(width, members, [Block(kernel)]) for op, kernel in kernels.items()},
            {op: operation(op, width) for op in ("skip_connect", "avg_pool_3x3")},
        )

    return FusedGraph(1, NODES, OPS, fan, share)
