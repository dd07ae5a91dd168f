"""A fused cell: nodes that sum mixed edges, computed source by source instead of edge by edge."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from idarts.layers.constants import constant
from idarts.layers.lean import relu
from idarts.layers.mixing import mix
from idarts.layers.mixture import Mixture
from idarts.layers.noise import Noise
from idarts.layers.parallel import run_all
from idarts.layers.reading import Reads


def complete_edges(inputs: int, nodes: int) -> tuple[tuple[int, int], ...]:
    """Every edge from an earlier node to a later one that is not an input, in the order of α's rows.

    >>> complete_edges(inputs=1, nodes=3)
    ((0, 1), (0, 2), (1, 2))
    """
    return tuple((source, target) for target in range(inputs, nodes) for source in range(target))


class FusedGraph(nn.Module):
    """A cell in which each node is the sum over all its incoming edges of the mixture of `ops` on that edge.

    `fan(source, members)` makes the operations on the `members` edges that leave a node. If `share` is greater than
    one, only the first 1/`share` of a node's channels pass through the operations. The others bypass them (pooled if
    the operations halve the image), and the channels are shuffled, so that each of them gets its turn.
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
        states, nodes = list(states), [NodeInputs() for _ in range(self.nodes)]
        like = states[0][:, :, :: self.fans[0].stride, :: self.fans[0].stride]  # has the shape of a node
        for source, fan in enumerate(self.fans):
            if source >= self.inputs:
                states.append(self._state(nodes[source], mixture, like))
            x, indices = states[source], self._targets(source)
            rows, targets = [self.rows[source, t] for t in indices], [nodes[t] for t in indices]
            if self.share > 1:
                width = x.shape[1] // self.share
                x, rest = x[:, :width].contiguous(memory_format=torch.channels_last), x[:, width:]
                self._bypass(rest, fan.stride, mixture, rows, targets)
            fan(x, mixture, rows, self.columns, targets)
        return [*states, self._state(nodes[-1], mixture, like)]

    def _state(self, node: "NodeInputs", mixture: Mixture, like: Tensor) -> Tensor:
        if self.share == 1:
            return node.total(mixture, like)
        total = node.total(mixture, like[:, : like.shape[1] // self.share])
        rest = reduce(add, node.bypass) if node.bypass else torch.zeros_like(like[:, total.shape[1] :])
        joined = torch.cat([total, rest], dim=1)
        shuffled: Tensor = joined.unflatten(1, (self.share, -1)).transpose(1, 2).flatten(1, 2)
        return shuffled

    def _bypass(
        self, rest: Tensor, stride: Any, mixture: Mixture, rows: list[int], targets: list["NodeInputs"]
    ) -> None:
        rest = functional.max_pool2d(rest, 2, 2, ceil_mode=True) if stride == 2 else rest
        for row, target in zip(rows, targets, strict=True):
            if any(mixture.runs(row, column) for column in self.columns.values()):
                target.bypass.append(rest if mixture.bypass is None else mixture.bypass[row] * rest)

    def _targets(self, source: int) -> range:
        return range(max(source + 1, self.inputs), self.nodes)


@dataclass
class NodeInputs:
    """The terms of a node's sum."""

    scaled: list[Tensor] = field(default_factory=list)  # already multiplied by α
    weighted: list[tuple[Tensor, int, int]] = field(default_factory=list)  # with the row and column of their α
    bypass: list[Tensor] = field(default_factory=list)  # channels that passed through no operation

    def total(self, mixture: Mixture, like: Tensor) -> Tensor:
        """The sum without the bypass; zeros if there are no terms."""
        if self.weighted:
            terms, *places = zip(*self.weighted, strict=True)
            rows, columns = constant(places, like.device)
            return mix(terms, mixture.weights[rows, columns], self.scaled)
        return reduce(add, self.scaled) if self.scaled else torch.zeros_like(like)


class Fan(nn.Module):
    """The operations on all edges that leave one node.

    `parallel` operations have separate weights for each edge, read the node after ReLU, and apply α in their BatchNorm.
    `shared` operations are the same for all edges: computed once, scaled for each target; only noise is drawn for each
    edge. An operation in neither, such as `none`, costs nothing. `skip_dropout` is the rate of dropout on each edge's
    identity, while training.
    """

    skip_dropout = 0.0

    def __init__(self, parallel: Mapping[str, nn.Module], shared: Mapping[str, nn.Module], stride: int = 1) -> None:
        super().__init__()
        self.stride = stride
        self.parallel, self.shared = nn.ModuleDict(parallel), nn.ModuleDict(shared)

    def forward(
        self, x: Tensor, mixture: Mixture, rows: list[int], columns: Mapping[str, int], targets: list[NodeInputs]
    ) -> None:
        """Add to the targets what the edges, given by their rows of the mixture, contribute."""
        self._run_parallel(x, mixture, rows, columns, targets)
        for op, module in self.shared.items():
            running = [(row, node) for row, node in zip(rows, targets, strict=True) if mixture.runs(row, columns[op])]
            for (row, node), term in zip(running, self._shared_terms(module, x, len(running)), strict=True):
                node.weighted.append((term, row, columns[op]))

    def _shared_terms(self, module: nn.Module, x: Tensor, edges: int) -> list[Tensor]:
        """What a shared operation gives to so many edges: one tensor for all, unless something is drawn for each."""
        if isinstance(module, Noise):
            return [module(x) for _ in range(edges)]
        if not edges:
            return []
        result: Tensor = module(x)
        if self.skip_dropout and self.training and isinstance(module, nn.Identity):
            return [functional.dropout(result, self.skip_dropout) for _ in range(edges)]
        return [result] * edges

    def _run_parallel(
        self, x: Tensor, mixture: Mixture, rows: list[int], columns: Mapping[str, int], targets: list[NodeInputs]
    ) -> None:
        running = {op: [mixture.runs(row, columns[op]) for row in rows] for op in self.parallel}
        if not any(map(any, running.values())):
            return
        reads, weights = Reads(relu(x)), mixture.weights[constant(rows, x.device)]
        together: list[str] = []
        for op, module in self.parallel.items():
            if all(running[op]):
                together.append(op)
                continue
            member: Any = module.member
            for index, node in enumerate(targets):
                if running[op][index]:
                    node.scaled.append(reads.total([member(reads, index, weights[index, columns[op]])]))
        if together:
            scales = [weights[:, columns[op]] for op in together]
            parts = run_all([self.parallel[op] for op in together], reads, scales)
            total = reads.total(parts)  # in place: the norms do not keep their outputs
            for node, part in zip(targets, total.chunk(len(targets), dim=1), strict=True):
                node.scaled.append(part)
