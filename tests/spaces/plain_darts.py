"""DARTS' supernet edge by edge, as published code has it: the readable reference for the fused one."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from idarts.spaces import Skeleton, darts
from idarts.spaces.darts.network import cell_places, stem
from idarts.spaces.operations import FactorizedReduce, operation, relu_conv_bn

EDGES = [(source, target) for target in range(2, 6) for source in range(target)]


def edge_operation(op: str, channels: int, stride: int) -> nn.Module:
    """The operation with its pool followed by a BatchNorm; no BatchNorm has weights in the supernet."""
    module = operation(op, channels, stride, affine=False)
    return nn.Sequential(module, nn.BatchNorm2d(channels, affine=False)) if "pool" in op else module


class PlainCell(nn.Module):
    def __init__(
        self,
        before: int,
        previous: int,
        channels: int,
        reduces: bool,
        previous_reduces: bool,
        ops: Sequence[str] = darts.OPS,
    ) -> None:
        super().__init__()
        self.reduces, self.ops = reduces, ops
        reducing = FactorizedReduce(before, channels, affine=False)
        self.preprocess0 = reducing if previous_reduces else relu_conv_bn(before, channels, affine=False)
        self.preprocess1 = relu_conv_bn(previous, channels, affine=False)
        self.edges = nn.ModuleList(
            nn.ModuleList(edge_operation(op, channels, 2 if reduces and source < 2 else 1) for op in ops)
            for source, _ in EDGES
        )

    def forward(self, before: Tensor, previous: Tensor, weights: Tensor) -> Tensor:
        states = [self.preprocess0(before), self.preprocess1(previous)]
        noise = self._noise(states[0])
        for node in range(2, 6):
            total = 0.0
            for row, (source, target) in enumerate(EDGES):
                if target == node:
                    results = [noise[row] if n == "noise" else op(states[source]) for n, op in self._named(row)]
                    total = total + sum(w * result for w, result in zip(weights[row], results, strict=True))
            states.append(total)
        return torch.cat(states[2:], dim=1)

    def _noise(self, state: Tensor) -> dict[int, Tensor]:
        """The noise on every edge, in the order in which a fused cell draws it: source by source."""
        rows = sorted(range(len(EDGES)), key=EDGES.__getitem__) if "noise" in self.ops else []
        inner = state[:, :, ::2, ::2] if self.reduces else state  # has the shape of the nodes that are no inputs
        return {row: dict(self._named(row))["noise"](state if EDGES[row][0] < 2 else inner) for row in rows}

    def _named(self, row: int) -> list[tuple[str, nn.Module]]:
        return list(zip(self.ops, self.edges[row], strict=True))


class PlainDarts(nn.Module):
    def __init__(self, skeleton: Skeleton, in_channels: int = 3, ops: Sequence[str] = darts.OPS) -> None:
        super().__init__()
        self.alpha = nn.ParameterDict({name: nn.Parameter(torch.zeros(14, len(ops))) for name in ("normal", "reduce")})
        self.stem, width = stem(in_channels, skeleton)
        places, widths = zip(*cell_places(skeleton, width, {"normal": 4, "reduce": 4}), strict=True)
        self.cells = nn.ModuleList(PlainCell(*place, ops) for place in places)
        self.classifier = nn.Linear(widths[-1], skeleton.classes)

    def forward(self, images: Tensor) -> Tensor:
        weights = {name: alpha.softmax(1) for name, alpha in self.alpha.items()}
        before, previous = self.stem(images)
        for cell in self.cells:
            before, previous = previous, cell(before, previous, weights["reduce" if cell.reduces else "normal"])
        return self.classifier(previous.mean(dim=(2, 3)))


def place(key: str, ops: Sequence[str] = darts.OPS) -> tuple[str, int] | None:
    """Where a tensor of an edge lies in the fused supernet: its key, and which member of the bundle it is.

    cells.1.edges.7.4.5.weight is cell 1, edge 7 (2→4), operation 4 (sep_conv_3x3), layer 5 (its second depthwise).
    """
    parts = key.split(".")
    if "edges" not in parts:
        return None
    at = parts.index("edges")
    (source, target), op = EDGES[int(parts[at + 1])], ops[int(parts[at + 2])]
    fan = [*parts[:at], "graph", "fans", str(source)]
    rest = parts[at + 3 :]
    if "pool" in op:
        return ".".join([*fan, "shared", op, "1", rest[-1]]), 0
    index = target - max(source + 1, 2)
    if op == "skip_connect":  # of a reducing edge: straight, shifted, norm
        inside = rest if rest[0] == "norm" else [rest[0]]
    else:
        layer = int(rest[0])
        inside = ["blocks", str(layer // 4), *{1: ["weight"], 2: ["pointwise"], 3: ["norm", rest[1]]}[layer % 4]]
    return ".".join([*fan, "parallel", op, *inside]), index
