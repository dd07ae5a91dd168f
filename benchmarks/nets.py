"""One supernet written three times: same parameters, same mathematics, different cost of its second derivatives.

NAS-Bench-201's cell (four nodes, an edge from each to each later one, five operations an edge), 24 channels and 71,266
weights in 79 tensors. `Plain` is what one writes first; `Lean` and `Fused` are what the lean layers make possible.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import torch
from torch import Tensor, nn

from idarts.layers.lean import avg_pool2d, batch_norm, conv2d, relu

EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))  # from node, to node
SKIP, CONV1, CONV3, POOL = 1, 2, 3, 4  # the columns of α; 0 is the zero operation
CHANNELS, CELLS, CLASSES, SIZE, BATCH = 24, 2, 10, 16, 64


def total(parts: Iterable[Tensor]) -> Tensor:
    """Of a generator, so that the parts need not all live at once."""
    return reduce(torch.add, parts)


class Edge(nn.Module):
    """The five operations between two nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.relu, self.pool = nn.ReLU(), nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.conv1 = nn.Conv2d(CHANNELS, CHANNELS, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(CHANNELS)
        self.conv3 = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(CHANNELS)

    def forward(self, x: Tensor, alpha: Tensor) -> Tensor:
        ones = self.norm1(self.conv1(self.relu(x)))
        threes = self.norm3(self.conv3(self.relu(x)))
        operations = (x.mul(0.0), x, ones, threes, self.pool(x))
        return total(a * y for a, y in zip(alpha, operations, strict=True))


class Plain(nn.Module):
    """Edge by edge, α times each operation's output."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(1e-3 * torch.randn(len(EDGES), 5))
        self.stem = nn.Conv2d(3, CHANNELS, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(CHANNELS)
        self.edges = nn.ModuleList(Edge() for _ in range(CELLS * len(EDGES)))
        self.last_norm = nn.BatchNorm2d(CHANNELS)
        self.relu = nn.ReLU()
        self.head = nn.Linear(CHANNELS, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        alpha = self.alpha.softmax(-1)
        x = self.stem_norm(self.stem(x))
        for start in range(0, len(self.edges), len(EDGES)):
            x = self.cell(list(self.edges)[start : start + len(EDGES)], x, alpha)
        logits: Tensor = self.head(self.relu(self.last_norm(x)).mean((2, 3)))
        return logits

    def cell(self, edges: Sequence[nn.Module], x: Tensor, alpha: Tensor) -> Tensor:
        nodes = [x]
        for node in (1, 2, 3):
            ends = [k for k, (_, j) in enumerate(EDGES) if j == node]
            nodes.append(total(edges[k](nodes[EDGES[k][0]], alpha[k]) for k in ends))
        return nodes[-1]


class Lean(Plain):
    """Lean layers, channels last; α in the weight of BatchNorm; one ReLU and one pooling a node; no zero operation."""

    def forward(self, x: Tensor) -> Tensor:
        x, alpha = x.contiguous(memory_format=torch.channels_last), self.alpha.softmax(-1)
        x = normalised([self.stem_norm], conv2d(x, self.stem.weight, padding=1))
        for start in range(0, len(self.edges), len(EDGES)):
            x = self.cell(list(self.edges)[start : start + len(EDGES)], x, alpha)
        logits: Tensor = self.head(relu(normalised([self.last_norm], x)).mean((2, 3)))
        return logits

    def cell(self, edges: Sequence[nn.Module], x: Tensor, alpha: Tensor) -> Tensor:
        sources: list[tuple[Tensor, Tensor, Tensor]] = []
        for node in (1, 2, 3):
            sources.append((x, relu(x), pooled(x)))
            ends = [k for k, (_, j) in enumerate(EDGES) if j == node]
            x = total(part for k in ends for part in arriving(edges[k], *sources[EDGES[k][0]], alpha[k]))
        return x


class Fused(Lean):
    """Also one convolution of each size, and one BatchNorm for it, for all edges that leave a node."""

    def cell(self, edges: Sequence[nn.Module], x: Tensor, alpha: Tensor) -> Tensor:
        nodes = {0: x}
        for node in (0, 1, 2):
            x, pool = nodes[node], pooled(nodes[node])
            starts = [k for k, (i, _) in enumerate(EDGES) if i == node]
            wide = total(convolved([edges[k] for k in starts], relu(x), alpha[starts]))
            for k, convolutions in zip(starts, wide.split(CHANNELS, 1), strict=True):
                part, end = convolutions + alpha[k, SKIP] * x + alpha[k, POOL] * pool, EDGES[k][1]
                nodes[end] = nodes[end] + part if end in nodes else part
        return nodes[3]


def arriving(edge: nn.Module, x: Tensor, positive: Tensor, pool: Tensor, alpha: Tensor) -> Iterator[Tensor]:
    """What an edge brings to its end, α included."""
    yield from convolved([edge], positive, alpha[None])
    yield alpha[SKIP] * x
    yield alpha[POOL] * pool


def convolved(edges: Sequence[nn.Module], x: Tensor, alpha: Tensor) -> Iterator[Tensor]:
    """The two convolutions of all edges, normalised and scaled by α, side by side in the channels."""
    for size, column in ((1, CONV1), (3, CONV3)):
        weight = joined([edge.get_submodule(f"conv{size}") for edge in edges], "weight")
        norms = [edge.get_submodule(f"norm{size}") for edge in edges]
        yield normalised(norms, conv2d(x, weight, padding=size // 2), alpha[:, column])


def pooled(x: Tensor) -> Tensor:
    return avg_pool2d(x, 3, 1, 1, count_include_pad=False)


def normalised(norms: Sequence[nn.Module], x: Tensor, scale: Tensor | None = None) -> Tensor:
    """Several BatchNorms, each with its own share of the channels, as one; `scale` multiplies their outputs."""
    weight, bias = joined(norms, "weight"), joined(norms, "bias")
    if scale is not None:
        spread = scale.repeat_interleave(CHANNELS)
        weight, bias = weight * spread, bias * spread
    mean, var = joined(norms, "running_mean"), joined(norms, "running_var")
    y = batch_norm(x, mean, var, weight, bias, training=True)
    for norm, new_mean, new_var in zip(norms, mean.split(CHANNELS), var.split(CHANNELS), strict=True):
        norm.get_buffer("num_batches_tracked").add_(1)
        if len(norms) > 1:  # `mean` and `var` were copies
            norm.get_buffer("running_mean").copy_(new_mean)
            norm.get_buffer("running_var").copy_(new_var)
    return y


def joined(modules: Sequence[nn.Module], name: str) -> Tensor:
    tensors: list[Tensor] = [getattr(module, name) for module in modules]
    return torch.cat(tensors) if len(tensors) > 1 else tensors[0]
