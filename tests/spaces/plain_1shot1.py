"""NAS-Bench-1Shot1's supernet module by module, as published code has it: the readable reference for the fused one."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from idarts.spaces import Skeleton, nas_bench_1shot1


def conv_bn_relu(inputs: int, outputs: int, kernel: int) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs, affine=False), nn.ReLU())


class PlainCell(nn.Module):
    def __init__(self, inputs: int, channels: int, nodes: int) -> None:
        super().__init__()
        width = channels // nodes
        self.projections = nn.ModuleList(conv_bn_relu(inputs, width, 1) for _ in range(nodes))
        self.ops = nn.ModuleList(
            nn.ModuleList(
                [nn.MaxPool2d(3, stride=1, padding=1), conv_bn_relu(width, width, 3), conv_bn_relu(width, width, 1)]
            )
            for _ in range(nodes)
        )
        self.output = conv_bn_relu(inputs, nodes * width, 1)

    def forward(self, x: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        states: list[Tensor] = []
        for i, (projection, ops) in enumerate(zip(self.projections, self.ops, strict=True)):
            candidates = [projection(x), *states]
            total = sum(w * c for w, c in zip(weights[f"inputs_{i + 1}"][0], candidates, strict=True))
            states.append(sum(w * op(total) for w, op in zip(weights["ops"][i], ops, strict=True)))
        first, *others = weights["output"][0]
        return torch.cat([w * state for w, state in zip(others, states, strict=True)], dim=1) + first * self.output(x)


class Plain1Shot1(nn.Module):
    def __init__(self, variant: str, skeleton: Skeleton, in_channels: int = 3) -> None:
        super().__init__()
        nodes = len(nas_bench_1shot1.PARENTS[variant]) - 1
        shapes = {"ops": (nodes, 3)} | {f"inputs_{i}": (1, i) for i in range(2, nodes + 1)} | {"output": (1, nodes + 1)}
        self.alpha = nn.ParameterDict({name: nn.Parameter(torch.zeros(shape)) for name, shape in shapes.items()})
        inputs = skeleton.channels
        convolution = nn.Conv2d(in_channels, inputs, 3, padding=1, bias=False)
        self.stem = nn.Sequential(convolution, nn.BatchNorm2d(inputs), nn.ReLU())
        self.pool = nn.MaxPool2d(2, ceil_mode=True)
        self.depth = skeleton.depth
        self.cells = nn.ModuleList()
        for stack in range(3):
            channels = skeleton.channels * 2**stack
            for _ in range(skeleton.depth):
                self.cells.append(PlainCell(inputs, channels, nodes))
                inputs = channels // nodes * nodes
        self.classifier = nn.Linear(inputs, skeleton.classes)

    def forward(self, images: Tensor, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        """By the softmax of α, or by given weights."""
        if weights is None:
            weights = {name: alpha.softmax(1) for name, alpha in self.alpha.items()}
        weights = {"inputs_1": torch.ones(1, 1, dtype=images.dtype), **weights}  # node 1 reads the cell's input alone
        x = self.stem(images)
        for position, cell in enumerate(self.cells):
            if position in (self.depth, 2 * self.depth):
                x = self.pool(x)
            x = cell(x, weights)
        return self.classifier(x.mean(dim=(2, 3)))


def place(key: str) -> tuple[str, int] | None:
    """Where a cell's tensor lies in the fused supernet: its key, and its place there counted in tensors of its size.

    cells.1.ops.2.1.0.weight is cell 1, node 3, operation 1 (a 3×3 convolution), layer 0 (its weights).
    """
    parts = key.split(".")
    if parts[0] != "cells":
        return None
    inside = ["weight"] if parts[-1] == "weight" else ["norm", parts[-1]]
    if parts[2] == "ops":
        return ".".join([*parts[:2], {"1": "conv3", "2": "conv1"}[parts[4]], parts[3], *inside]), 0
    # The output's projection is as wide as those of all nodes, which stand before it.
    return ".".join([*parts[:2], "projections", *inside]), 1 if parts[2] == "output" else int(parts[3])


def to_fused(plain: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of the plain supernet, in its order, under the fused one's names; `conversion.to_plain` is the way back.

    Not `conversion.to_fused`, for which all members of a bundle are equally wide.
    """
    bundles: dict[str, list[Tensor]] = {}
    for key, tensor in plain.items():
        at = place(key)
        if at is None or not key.endswith("num_batches_tracked"):  # which the fused one does not count in its cells
            bundles.setdefault(at[0] if at else key, []).append(tensor)
    return {key: parts[0] if len(parts) == 1 else torch.cat(parts) for key, parts in bundles.items()}
