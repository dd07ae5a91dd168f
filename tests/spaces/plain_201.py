"""NAS-Bench-201's supernet edge by edge, as published code has it: the readable reference for the fused one."""

import torch
from torch import Tensor, nn

from idarts.spaces import Skeleton, nas_bench_201
from idarts.spaces.nas_bench_201.network import stages, stem
from idarts.spaces.operations import operation


class PlainCell(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.edges = nn.ModuleList(
            nn.ModuleList(operation(op, channels, affine=False) for op in nas_bench_201.OPS)
            for _ in nas_bench_201.EDGES
        )

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        states = [x]
        for target in range(1, 4):
            total = 0.0
            for row, (source, to) in enumerate(nas_bench_201.EDGES):
                if to == target:
                    total = total + sum(
                        w * op(states[source]) for w, op in zip(weights[row], self.edges[row], strict=True)
                    )
            states.append(total)
        return states[-1]


class Plain201(nn.Module):
    def __init__(self, skeleton: Skeleton, in_channels: int = 3) -> None:
        super().__init__()
        self.alpha = nn.ParameterDict({"cell": nn.Parameter(torch.zeros(6, 5))})
        self.stem = stem(in_channels, skeleton)
        blocks, channels = stages(skeleton, PlainCell)
        self.body = nn.ModuleList(blocks)
        self.norm = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, skeleton.classes)

    def forward(self, images: Tensor) -> Tensor:
        weights = self.alpha["cell"].softmax(1)
        x = self.stem(images)
        for block in self.body:
            x = block(x, weights) if isinstance(block, PlainCell) else block(x)
        return self.classifier(torch.relu(self.norm(x)).mean(dim=(2, 3)))


def place(key: str) -> tuple[str, int] | None:
    """Where a tensor of an edge lies in the fused supernet: its key, and which member of the bundle it is.

    body.0.edges.4.3.1.weight is cell 0, edge 4 (1→3), operation 3 (the 3×3 convolution), layer 1 (the convolution).
    """
    parts = key.split(".")
    if "edges" not in parts:
        return None
    at = parts.index("edges")
    row, op, layer, name = int(parts[at + 1]), int(parts[at + 2]), int(parts[at + 3]), parts[at + 4]
    source, target = nas_bench_201.EDGES[row]
    bundle = ["fans", str(source), "parallel", nas_bench_201.OPS[op], "blocks.0"]
    inside = ["weight"] if layer == 1 else ["norm", name]
    return ".".join([*parts[:at], *bundle, *inside]), target - source - 1
