"""NAS-Bench-1Shot1's supernet module by module, as published code has it: the readable reference for the fused one."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from idarts.arch.rules import NAS_BENCH_1SHOT1_PARENTS
from idarts.spaces.macro import Macro


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
    def __init__(self, variant: str, macro: Macro, in_channels: int = 3) -> None:
        super().__init__()
        nodes = len(NAS_BENCH_1SHOT1_PARENTS[variant]) - 1
        shapes = {"ops": (nodes, 3)} | {f"inputs_{i}": (1, i) for i in range(2, nodes + 1)} | {"output": (1, nodes + 1)}
        self.alpha = nn.ParameterDict({name: nn.Parameter(torch.zeros(shape)) for name, shape in shapes.items()})
        channels = inputs = macro.channels
        convolution = nn.Conv2d(in_channels, channels, 3, padding=1, bias=False)
        self.stem = nn.Sequential(convolution, nn.BatchNorm2d(channels), nn.ReLU())
        self.body = nn.ModuleList()
        for stack in range(3):
            if stack:
                self.body.append(nn.MaxPool2d(2, ceil_mode=True))
                channels *= 2
            for _ in range(macro.depth):
                self.body.append(PlainCell(inputs, channels, nodes))
                inputs = channels // nodes * nodes
        self.classifier = nn.Linear(inputs, macro.classes)

    def forward(self, images: Tensor, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        """By the softmax of α, or by given weights."""
        if weights is None:
            weights = {name: alpha.softmax(1) for name, alpha in self.alpha.items()}
        weights = {"inputs_1": torch.ones(1, 1, dtype=images.dtype), **weights}  # node 1 reads the cell's input alone
        x = self.stem(images)
        for block in self.body:
            x = block(x, weights) if isinstance(block, PlainCell) else block(x)
        return self.classifier(x.mean(dim=(2, 3)))


def place(key: str, nodes: int, width: int) -> tuple[str, slice] | None:
    """Where a tensor of a plain cell lies in the fused supernet: its key and its channels there.

    body.0.ops.2.1.0.weight is cell 0, node 3, operation 1 (the 3×3 convolution), layer 0 (the convolution).
    """
    parts = key.split(".")
    if parts[0] != "body":
        return None
    inside = ["weight"] if parts[-1] == "weight" else ["norm", parts[-1]]
    if parts[2] == "ops":
        kind = {1: "conv3", 2: "conv1"}[int(parts[4])]
        return ".".join([*parts[:2], kind, parts[3], *inside]), slice(None)
    first = int(parts[3]) * width if parts[2] == "projections" else nodes * width
    last = first + (width if parts[2] == "projections" else nodes * width)
    return ".".join([*parts[:2], "projections", *inside]), slice(first, last)


def places(plain: nn.Module) -> dict[str, tuple[str, slice]]:
    """Of every tensor of the plain supernet; the fused one does not count batches."""
    nodes = len(plain.alpha["ops"])
    found = {}
    for key in plain.state_dict():
        if key.startswith("body") and key.endswith("num_batches_tracked"):
            continue
        cell = plain.body[int(key.split(".")[1])] if key.startswith("body") else None
        width = 0 if cell is None else cell.projections[0][0].out_channels
        found[key] = place(key, nodes, width) or (key, slice(None))
    return found


def to_plain(fused: Mapping[str, Tensor], plain: nn.Module) -> dict[str, Tensor]:
    """The fused supernet's tensors under the plain one's names."""
    found = {
        key: fused[name][part] if fused[name].dim() else fused[name] for key, (name, part) in places(plain).items()
    }
    return plain.state_dict() | found


def to_fused(tensors: Mapping[str, Tensor], plain: nn.Module) -> dict[str, Tensor]:
    """Tensors with the plain supernet's names under the fused one's."""
    bundles: dict[str, list[tuple[int, Tensor]]] = {}
    for key, (name, part) in places(plain).items():
        if key in tensors:
            bundles.setdefault(name, []).append((part.start or 0, tensors[key]))
    return {
        name: parts[0][1] if len(parts) == 1 else torch.cat([tensor for _, tensor in sorted(parts, key=lambda p: p[0])])
        for name, parts in bundles.items()
    }
