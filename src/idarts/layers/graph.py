"""A fused cell: nodes that sum mixed edges, computed source by source instead of edge by edge."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from idarts.layers.lean import relu
from idarts.layers.mixing import mix
from idarts.layers.mixture import Mixture


def complete_edges(inputs: int, nodes: int) -> tuple[tuple[int, int], ...]:
    """Every edge from an earlier node to a later one that is not an input, in the order of α's rows.

    >>> complete_edges(inputs=1, nodes=3)
    ((0, 1), (0, 2), (1, 2))
    """
    return tuple((source, target) for target in range(inputs, nodes) for source in range(target))


class FusedGraph(nn.Module):
    """Nodes from inputs: each the sum over all edges into it of the mixture of `ops` on that edge.

    `fan(source, members)` makes the operations on the `members` edges that leave a node. Where `share` is more than
    one, only the first of so many equal parts of a node's channels go through them; the rest arrives as it is (pooled
    if the operations halve the image), and the channels are shuffled, so that all take their turn.
    """

    def __init__(
        self, inputs: int, nodes: int, ops: Sequence[str], fan: Callable[[int, int], "Fan"], share: int = 1
    ) -> None:
        super().__init__()
        self.inputs, self.nodes, self.share = inputs, nodes, share
        self.columns = {op: column for column, op in enumerate(ops)}
        self.rows = {edge: row for row, edge in enumerate(complete_edges(inputs, nodes))}
        self.fans = nn.ModuleList(fan(source, len(self._targets(source))) for source in range(nodes - 1))

    def forward(self, states: Sequence[Tensor], mixture: Mixture) -> list[Tensor]:
        """The states of all nodes, given those of the inputs."""
        states, ends = list(states), [End() for _ in range(self.nodes)]
        like = states[0][:, :, :: self.fans[0].stride, :: self.fans[0].stride]  # a node, in shape
        for source, fan in enumerate(self.fans):
            if source >= self.inputs:
                states.append(self._node(ends[source], like))
            x, targets = states[source], self._targets(source)
            rows, arrived = [self.rows[source, t] for t in targets], [ends[t] for t in targets]
            if self.share > 1:
                width = x.shape[1] // self.share
                x, rest = x[:, :width].contiguous(memory_format=torch.channels_last), x[:, width:]
                self._pass_by(rest, fan.stride, mixture, rows, arrived)
            fan(x, mixture, rows, self.columns, arrived)
        return [*states, self._node(ends[-1], like)]

    def _node(self, end: "End", like: Tensor) -> Tensor:
        if self.share == 1:
            return end.total(like)
        total = end.total(like[:, : like.shape[1] // self.share])
        passed = reduce(add, end.passing) if end.passing else torch.zeros_like(like[:, total.shape[1] :])
        joined = torch.cat([total, passed], dim=1)
        shuffled: Tensor = joined.unflatten(1, (self.share, -1)).transpose(1, 2).flatten(1, 2)
        return shuffled

    def _pass_by(self, rest: Tensor, stride: Any, mixture: Mixture, rows: list[int], ends: list["End"]) -> None:
        rest = functional.max_pool2d(rest, 2, 2, ceil_mode=True) if stride == 2 else rest
        for row, end in zip(rows, ends, strict=True):
            if any(mixture.runs(row, column) for column in self.columns.values()):
                end.passing.append(rest)

    def _targets(self, source: int) -> range:
        return range(max(source + 1, self.inputs), self.nodes)


@dataclass
class End:
    """What arrives at a node: tensors that α has scaled already, and tensors with the α that is to scale them."""

    arriving: list[Tensor] = field(default_factory=list)
    scaled: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    passing: list[Tensor] = field(default_factory=list)  # channels that no operation saw

    def total(self, like: Tensor) -> Tensor:
        """Their sum; zeros where nothing arrives."""
        if self.scaled:
            return mix([term for term, _ in self.scaled], torch.stack([w for _, w in self.scaled]), self.arriving)
        return reduce(add, self.arriving) if self.arriving else torch.zeros_like(like)


def _member(parallel: Any, x: Tensor, index: int, scale: Tensor) -> Tensor:
    result: Tensor = parallel.member(x, index, scale)
    return result


class Fan(nn.Module):
    """The operations on all edges that leave one node.

    `parallel` have weights of their own on each edge, read the node's ReLU, and take α into their BatchNorm; `shared`
    are the same on all edges: computed once, scaled at each end. An operation that is in neither, as `none`, costs
    nothing.
    """

    def __init__(self, parallel: Mapping[str, nn.Module], shared: Mapping[str, nn.Module], stride: int = 1) -> None:
        super().__init__()
        self.stride = stride
        self.parallel, self.shared = nn.ModuleDict(parallel), nn.ModuleDict(shared)

    def forward(
        self, x: Tensor, mixture: Mixture, rows: list[int], columns: Mapping[str, int], ends: list[End]
    ) -> None:
        self._send_parallel(x, mixture, rows, columns, ends)
        for op, module in self.shared.items():
            running = [(row, end) for row, end in zip(rows, ends, strict=True) if mixture.runs(row, columns[op])]
            if running:
                result = module(x)
                for row, end in running:
                    end.scaled.append((result, mixture.weights[row, columns[op]]))

    def _send_parallel(
        self, x: Tensor, mixture: Mixture, rows: list[int], columns: Mapping[str, int], ends: list[End]
    ) -> None:
        running = {op: [mixture.runs(row, columns[op]) for row in rows] for op in self.parallel}
        if not any(map(any, running.values())):
            return
        x, together = relu(x), []
        for op, module in self.parallel.items():
            if all(running[op]):
                together.append(module(x, mixture.weights[rows, columns[op]]))
                continue
            for index, (row, end) in enumerate(zip(rows, ends, strict=True)):
                if running[op][index]:
                    end.arriving.append(_member(module, x, index, mixture.weights[row, columns[op]]))
        if together:
            for end, part in zip(ends, reduce(add, together).chunk(len(ends), dim=1), strict=True):
                end.arriving.append(part)
