"""DARTS' supernet, fused: a normal and a reduction cell, each with two inputs, four nodes and fourteen mixed edges."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from idarts.arch import Architecture, Cell, Edge, Skeleton
from idarts.errors import InputError
from idarts.layers.graph import Fan, FusedGraph
from idarts.layers.lean import lean
from idarts.layers.mixture import Mixture, multi_hot
from idarts.layers.parallel import Block, Parallel, ParallelNorm, ParallelReduce
from idarts.spaces.darts.cells import EDGES, INPUTS, NODES, NOISE, OPS, SPACE
from idarts.spaces.darts.network import CellPlace, cell_places, stem
from idarts.spaces.operations import FactorizedReduce, operation, relu_conv_bn
from idarts.spaces.relaxation import Relaxation, share_of, softmax, weighs_edges
from idarts.spaces.supernet import Supernet, channels_last, require_size

ROW = {edge: row for row, edge in enumerate(EDGES)}
KEPT = 2  # edges into each node


class DartsSupernet(Supernet):
    """`depth` cells, those at one and two thirds reducing; every edge mixes `ops`, in the order of α's columns.

    >>> net = DartsSupernet(Skeleton(depth=3, channels=4, classes=10, image=32))
    >>> net(torch.zeros(2, 3, 16, 16)).shape, net.alpha["normal"].shape
    (torch.Size([2, 10]), torch.Size([14, 8]))
    """

    def __init__(
        self,
        skeleton: Skeleton,
        in_channels: int = 3,
        relaxation: Relaxation = softmax,
        ops: Sequence[str] = OPS,
    ) -> None:
        require_size(skeleton.image, skeleton.image)
        super().__init__({"normal": (len(EDGES), len(ops)), "reduce": (len(EDGES), len(ops))}, relaxation)
        self.ops = tuple(ops)
        self.none, self.skip = (ops.index(op) if op in ops else None for op in ("none", "skip_connect"))
        self.stem, width = stem(in_channels, skeleton)
        places, widths = zip(*cell_places(skeleton, width, dict.fromkeys(self.alpha, NODES - INPUTS)), strict=True)
        self.edges_kept, self.readers = KEPT, {name: [target for _, target in EDGES] for name in self.alpha}
        if weighs_edges(relaxation):
            self.weigh_edges(self.readers)
        share = share_of(relaxation, skeleton.channels)
        self.cells = nn.ModuleList(FusedCell(place, self.ops, share) for place in places)
        self.classifier = nn.Linear(widths[-1], skeleton.classes)
        channels_last(lean(self))

    def mixed(self, images: Tensor, mixtures: Mapping[str, Mixture]) -> Tensor:
        before, previous = self.stem(images)
        for cell in self.cells:
            before, previous = previous, cell(before, previous, mixtures["reduce" if cell.reduces else "normal"])
        logits: Tensor = self.classifier(previous.mean(dim=(2, 3)))
        return logits

    def architecture(self) -> Architecture:
        return Architecture(SPACE, {name: self._discrete(self._importance(name)) for name in self.alpha})

    @torch.no_grad()
    def _importance(self, name: str) -> Tensor:
        """The softmax of α, times the weight of the edge where it has one (PC-DARTS)."""
        shares = self.edge_weights(name)
        weights: Tensor = self.alpha[name].softmax(1)
        return weights if shares is None else shares[:, None] * weights

    def path(self, architecture: Architecture) -> dict[str, Mixture]:
        if architecture.space != SPACE:
            raise InputError(f"an architecture of {architecture.space} is not a path of the supernet of {SPACE}")
        return {
            name: multi_hot(self._columns(name, cell), len(self.ops), self.alpha[name])
            for name, cell in architecture.cells.items()
        }

    def _discrete(self, weights: Tensor) -> Cell:
        """DARTS' rule: into each node the two edges whose best operation weighs most, not counting `none`."""
        without_none = weights.clone()
        if self.none is not None:
            without_none[:, self.none] = -1.0
        best, columns = without_none.max(dim=1)
        edges = []
        for target in range(INPUTS, NODES):
            rows = sorted((ROW[source, target] for source in range(target)), key=lambda row: -best[row].item())[:KEPT]
            edges += [Edge(*EDGES[row], self.ops[int(columns[row])]) for row in rows]
        return Cell(NODES, edges, range(INPUTS, NODES))

    def _columns(self, name: str, cell: Cell) -> list[list[int]]:
        """The operations that a cell has on each edge of the supernet."""
        columns: list[list[int]] = [[] for _ in EDGES]
        for source, target, op in cell.edges:
            if (source, target) not in ROW or op not in self.ops or cell.output != tuple(range(INPUTS, NODES)):
                raise InputError(
                    f"the {name} cell has {op!r} on {source}→{target} of {cell.nodes} nodes, "
                    f"which the supernet of {NODES} nodes with {', '.join(self.ops)} does not"
                )
            columns[ROW[source, target]].append(self.ops.index(op))
        return columns


class FusedCell(nn.Module):
    """Two inputs brought to one width, the graph of mixed edges, and its nodes side by side."""

    def __init__(self, place: CellPlace, ops: Sequence[str], share: int) -> None:
        super().__init__()
        before, previous, channels, reduces, previous_reduces = place
        self.reduces = reduces
        self.preprocess0 = (
            FactorizedReduce(before, channels, affine=False)
            if previous_reduces
            else relu_conv_bn(before, channels, affine=False)
        )
        self.preprocess1 = relu_conv_bn(previous, channels, affine=False)
        self.graph = FusedGraph(
            INPUTS,
            NODES,
            ops,
            lambda source, members: _fan(ops, channels // share, members, 2 if reduces and source < INPUTS else 1),
            share,
        )

    def forward(self, before: Tensor, previous: Tensor, mixture: Mixture) -> Tensor:
        states = self.graph([self.preprocess0(before), self.preprocess1(previous)], mixture)
        return torch.cat(states[INPUTS:], dim=1)


def _fan(ops: Sequence[str], channels: int, members: int, stride: int) -> Fan:
    blocks = {
        "sep_conv_3x3": _separable(3, stride),
        "sep_conv_5x5": _separable(5, stride),
        "dil_conv_3x3": [Block(3, stride, 2, separable=True)],
        "dil_conv_5x5": [Block(5, stride, 2, separable=True)],
    }
    # The order of modules is that of the random draws for their weights, so it is fixed here, whatever that of `ops`.
    parallel: dict[str, nn.Module] = {op: Parallel(channels, members, blocks[op]) for op in blocks if op in ops}
    # One BatchNorm after a pool serves all edges: it has no weights, so it does the same on each.
    shared: dict[str, nn.Module] = {
        op: nn.Sequential(operation(op, channels, stride), ParallelNorm(channels))
        for op in ("max_pool_3x3", "avg_pool_3x3")
        if op in ops
    }
    if "skip_connect" in ops and stride == 2:
        parallel["skip_connect"] = ParallelReduce(channels, members)
    elif "skip_connect" in ops:
        shared["skip_connect"] = nn.Identity()
    if NOISE in ops:
        shared[NOISE] = operation(NOISE, channels, stride)
    return Fan(parallel, shared, stride)


def _separable(kernel: int, stride: int) -> list[Block]:
    return [Block(kernel, stride, separable=True), Block(kernel, separable=True)]
