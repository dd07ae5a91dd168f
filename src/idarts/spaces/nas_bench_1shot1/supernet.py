"""NAS-Bench-1Shot1's supernet, fused: operations are on the nodes, and every node chooses its operation and parents."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from idarts.arch import Architecture, Skeleton
from idarts.errors import InputError
from idarts.layers.constants import constant
from idarts.layers.fallback import must_fall_back
from idarts.layers.functions import Linear
from idarts.layers.lean import conv2d, lean, relu
from idarts.layers.mixing import mix
from idarts.layers.mixture import Mixture, multi_hot, one_hot
from idarts.layers.parallel import ParallelNorm
from idarts.layers.pooling import max_pool2d
from idarts.spaces.nas_bench_1shot1.cells import COLUMNS, PARENTS, SPACE, from_choices, parents_of
from idarts.spaces.relaxation import Relaxation, share_of, softmax, weighs_edges
from idarts.spaces.supernet import Supernet, channels_last, require_size

POOL, CONV3, CONV1 = range(len(COLUMNS))


class NasBench1Shot1Supernet(Supernet):
    """Stem, then three stacks of `depth` cells; before the second and third, a 2×2 max-pool and doubled channels.

    α: `ops` has a row for each of the n nodes in a cell, `inputs_i` weighs the candidates 0 (the cell's input) to i − 1
    that node i reads, `output` the cell's input and its nodes 1 to n. Node 1 always reads the cell's input.

    >>> net = NasBench1Shot1Supernet("S1", Skeleton(depth=1, channels=8, classes=10, image=32))
    >>> net(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    >>> {name: tuple(alpha.shape) for name, alpha in net.alpha.items()}
    {'inputs_2': (1, 2), 'inputs_3': (1, 3), 'inputs_4': (1, 4), 'ops': (4, 3), 'output': (1, 5)}
    """

    def __init__(
        self, variant: str, skeleton: Skeleton, in_channels: int = 3, relaxation: Relaxation = softmax
    ) -> None:
        if str(variant) not in PARENTS:
            raise InputError(f"unknown variant {variant!r}, expected one of {', '.join(PARENTS)}")
        nodes, channels = len(PARENTS[variant]) - 1, skeleton.channels
        if share_of(relaxation, channels) > 1 or weighs_edges(relaxation):
            raise InputError("partial channels need operations on edges; NAS-Bench-1Shot1 has them on nodes")
        if channels < nodes:
            raise InputError(
                f"{channels} channels, expected at least {nodes}: one for each node in a cell of {variant}"
            )
        require_size(skeleton.image, skeleton.image)
        choices = {_inputs(node): (1, node) for node in range(2, nodes + 1)}
        super().__init__({"ops": (nodes, len(COLUMNS)), **choices, "output": (1, nodes + 1)}, relaxation)
        self.variant, self.nodes, self.depth = variant, nodes, skeleton.depth
        self.fewest = dict(zip([*choices, "output"], PARENTS[variant][1:], strict=True))
        self.stem = nn.Sequential(
            nn.Conv2d(in_channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()
        )
        self.cells = nn.ModuleList()
        inputs = channels
        for position in range(3 * skeleton.depth):
            width = (channels << position // skeleton.depth) // nodes  # a remainder is left out
            self.cells.append(FusedCell(inputs, width, nodes))
            inputs = nodes * width
        self.classifier = nn.Linear(inputs, skeleton.classes)
        channels_last(lean(self))

    def mixed(self, images: Tensor, mixtures: Mapping[str, Mixture]) -> Tensor:
        x = self.stem(images)
        for position, cell in enumerate(self.cells):
            if position in (self.depth, 2 * self.depth):
                x = max_pool2d(x, 2, 2, ceil_mode=True)
            x = cell(x, mixtures)
        logits: Tensor = self.classifier(x.mean(dim=(2, 3)))
        return logits

    def architecture(self) -> Architecture:
        ops = [COLUMNS[_best(row, 1)[0]] for row in self.alpha["ops"].tolist()]
        names = [*map(_inputs, range(2, self.nodes + 1)), "output"]
        parents = [
            _best(self.alpha[name][0].tolist(), count)
            for name, count in zip(names, PARENTS[self.variant][1:], strict=True)
        ]
        return from_choices(self.variant, ops, [[0], *parents])

    def path(self, architecture: Architecture) -> dict[str, Mixture]:
        if (architecture.space, architecture.variant) != (SPACE, self.variant):
            given = " ".join(filter(None, (architecture.space, architecture.variant)))
            raise InputError(f"an architecture of {given} is not a path of the supernet of {SPACE} {self.variant}")
        like = self.alpha["ops"]
        parents = parents_of(architecture)
        ops = one_hot([COLUMNS.index(op) for op in architecture.cell.ops], len(COLUMNS), like)
        inputs = {_inputs(node): multi_hot([parents[node - 1]], node, like) for node in range(2, self.nodes + 1)}
        return {"ops": ops, **inputs, "output": multi_hot([parents[-1]], self.nodes + 1, like)}


class FusedCell(nn.Module):
    """All projections of the cell's input (one for each node, and a wide one for the output) are one convolution."""

    def __init__(self, inputs: int, width: int, nodes: int) -> None:
        super().__init__()
        self.width, self.nodes = width, nodes
        self.projections = ConvNormReLU(inputs, 2 * nodes * width, 1)
        self.conv3 = nn.ModuleList(ConvNormReLU(width, width, 3) for _ in range(nodes))
        self.conv1 = nn.ModuleList(ConvNormReLU(width, width, 1) for _ in range(nodes))

    def forward(self, x: Tensor, mixtures: Mapping[str, Mixture]) -> Tensor:
        sources = _sources(mixtures, self.nodes)
        projected = self._project(x, [node for node, read in sources.items() if 0 in read])
        read_by_output = sources.pop(self.nodes + 1)
        states: dict[int, Tensor] = {}
        for node, read in sources.items():
            terms = {source: states[source] if source else projected[node - 1] for source in read}
            total = terms[0] if node == 1 else self._blend(terms, mixtures[_inputs(node)], 0, x)
            states[node] = self._operate(total, node - 1, mixtures["ops"])
        slots = []
        for node in range(1, self.nodes + 1):
            skip = {0: projected[self.nodes + node - 1]} if 0 in read_by_output else {}
            own = {node: states[node]} if node in read_by_output else {}
            slots.append(self._blend(skip | own, mixtures["output"], 0, x))
        return _join(slots)

    def _project(self, x: Tensor, readers: Sequence[int]) -> dict[int, Tensor]:
        """The cell's input as these nodes read it, in parts one node wide: a part each, n more for the output.

        If all are read, it is one convolution; else one for each reader.
        """
        n, width = self.nodes, self.width
        if len(readers) == n + 1:
            return dict(enumerate(_split(self.projections(x), 2 * n)))
        parts: dict[int, Tensor] = {}
        for node in readers:
            first, last = (node - 1, node) if node <= n else (n, 2 * n)
            part = self.projections(x, slice(first * width, last * width))
            parts.update(enumerate(_split(part, last - first), start=first))
        return parts

    def _operate(self, x: Tensor, row: int, ops: Mixture) -> Tensor:
        """The mixed operation of one node."""
        kinds: dict[int, Callable[[Tensor], Tensor]] = {
            POOL: lambda x: max_pool2d(x, kernel=3, stride=1, padding=1),
            CONV3: self.conv3[row],
            CONV1: self.conv1[row],
        }
        return self._blend({op: run(x) for op, run in kinds.items() if ops.runs(row, op)}, ops, row, x)

    def _blend(self, terms: Mapping[int, Tensor], mixture: Mixture, row: int, like: Tensor) -> Tensor:
        """The weighted sum of a row's options; zeros if there is none."""
        if not terms:
            shape = like.shape[0], self.width, *like.shape[2:]
            return like.new_zeros(shape).to(memory_format=torch.channels_last)
        weights = mixture.weights[row]
        if len(terms) < len(weights):
            weights = weights[constant(list(terms), weights.device)]
        return mix(list(terms.values()), weights)


class ConvNormReLU(nn.Module):
    """Convolution, BatchNorm (not affine), ReLU; of all output channels, or of a part of them alone."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.padding = kernel // 2
        self.weight = nn.Conv2d(inputs, outputs, kernel, bias=False).weight
        self.norm = ParallelNorm(outputs)

    def forward(self, x: Tensor, part: slice = slice(None)) -> Tensor:
        return relu(self.norm(conv2d(x, self.weight[part], padding=self.padding), part=part))


def _split(x: Tensor, parts: int) -> tuple[Tensor, ...]:
    """Equal parts of the channels, each dense in memory: passes over a few channels out of many are an order slower."""
    stacked = _linear(x, partial(_apart, parts), _together)
    return tuple(part.permute(0, 3, 1, 2) for part in stacked.unbind())


def _join(parts: Sequence[Tensor]) -> Tensor:
    """Parts side by side in the channels; their gradients are dense, as those of `torch.cat` are not."""
    stacked = torch.stack([part.permute(0, 2, 3, 1) for part in parts])
    return _linear(stacked, _together, partial(_apart, len(parts)))


def _linear(x: Tensor, apply: Callable[[Tensor], Tensor], transpose: Callable[[Tensor], Tensor]) -> Tensor:
    function: Any = Linear.apply
    result: Tensor = apply(x) if must_fall_back(x if x.dim() == 4 else x[0]) else function(x, apply, transpose)
    return result


def _apart(parts: int, x: Tensor) -> Tensor:
    """(n, parts·c, h, w) as (parts, n, h, w, c)."""
    n, c, h, w = x.shape
    return x.permute(0, 2, 3, 1).reshape(n, h, w, parts, c // parts).movedim(3, 0).contiguous()


def _together(stacked: Tensor) -> Tensor:
    return stacked.movedim(0, 3).flatten(3, 4).permute(0, 3, 1, 2)


def _sources(mixtures: Mapping[str, Mixture], nodes: int) -> dict[int, list[int]]:
    """The nodes that each node reads, and the output (node n + 1); nodes that nothing needs are left out."""
    reading = {1: [0]}
    for node in range(2, nodes + 2):
        mixture = mixtures["output" if node > nodes else _inputs(node)]
        reading[node] = [source for source in range(node) if mixture.runs(0, source)]
    needed = {nodes + 1}
    for node in range(nodes + 1, 0, -1):
        if node in needed:
            needed.update(reading[node])
    return {node: read for node, read in reading.items() if node in needed}


def _inputs(node: int) -> str:
    return f"inputs_{node}"


def _best(scores: Sequence[float], count: int) -> list[int]:
    """The places of the largest scores, ascending; of equal ones the first."""
    return sorted(sorted(range(len(scores)), key=lambda place: -scores[place])[:count])
