"""NAS-Bench-201's supernet, fused: one cell of four nodes and six edges, α shared by all cells."""

from collections.abc import Mapping

from torch import Tensor, nn

from idarts.arch import Architecture, nas_bench_201
from idarts.arch.rules import NAS_BENCH_201_EDGES, NAS_BENCH_201_OPS
from idarts.errors import InputError
from idarts.layers.graph import Fan, FusedGraph
from idarts.layers.lean import lean, relu
from idarts.layers.mixture import Mixture, one_hot
from idarts.layers.parallel import Block, Parallel
from idarts.spaces.macro import Macro
from idarts.spaces.nas_bench_201_network import stages, stem
from idarts.spaces.operations import operation
from idarts.spaces.relaxation import Relaxation, share_of, softmax
from idarts.spaces.supernet import Supernet, channels_last, require_size

NODES = 4


class NasBench201Supernet(Supernet):
    """Stem, `depth` cells, block, `depth` cells, block, `depth` cells, classifier; every edge mixes all operations.

    >>> import torch
    >>> net = NasBench201Supernet(Macro(depth=1, channels=4, classes=10, image=32))
    >>> net(torch.zeros(2, 3, 32, 32)).shape, net.alpha["cell"].shape
    (torch.Size([2, 10]), torch.Size([6, 5]))
    """

    none = NAS_BENCH_201_OPS.index("none")

    def __init__(self, macro: Macro, in_channels: int = 3, relaxation: Relaxation = softmax) -> None:
        require_size(macro.image, macro.image)
        super().__init__({"cell": (len(NAS_BENCH_201_EDGES), len(NAS_BENCH_201_OPS))}, relaxation)
        self.stem = stem(in_channels, macro)
        share = share_of(relaxation, macro.channels)
        blocks, channels = stages(macro, lambda channels: _cell(channels, share))
        self.body = nn.ModuleList(blocks)
        self.norm = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, macro.classes)
        channels_last(lean(self))

    def mixed(self, images: Tensor, mixtures: Mapping[str, Mixture]) -> Tensor:
        x = self.stem(images)
        for block in self.body:
            x = block([x], mixtures["cell"])[-1] if isinstance(block, FusedGraph) else block(x)
        logits: Tensor = self.classifier(relu(self.norm(x)).mean(dim=(2, 3)))
        return logits

    def architecture(self) -> Architecture:
        return nas_bench_201.from_ops([NAS_BENCH_201_OPS[column] for column in self.alpha["cell"].argmax(1).tolist()])

    def path(self, architecture: Architecture) -> dict[str, Mixture]:
        if architecture.space != nas_bench_201.SPACE:
            raise InputError(
                f"an architecture of {architecture.space} is no path through the supernet of nas-bench-201"
            )
        columns = [NAS_BENCH_201_OPS.index(op) for op in nas_bench_201.to_ops(architecture)]
        return {"cell": one_hot(columns, len(NAS_BENCH_201_OPS), self.alpha["cell"])}


def _cell(channels: int, share: int) -> FusedGraph:
    def fan(_source: int, members: int) -> Fan:
        width = channels // share
        kernels = {"nor_conv_1x1": 1, "nor_conv_3x3": 3}
        return Fan(
            {op: Parallel(width, members, [Block(kernel)]) for op, kernel in kernels.items()},
            {op: operation(op, width) for op in ("skip_connect", "avg_pool_3x3")},
        )

    return FusedGraph(1, NODES, NAS_BENCH_201_OPS, fan, share)
