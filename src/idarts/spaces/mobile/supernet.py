"""The supernet of the mobile space, with the expansions of a block shared by its options."""

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import add

import torch
from torch import Tensor, nn

from idarts.arch import Skeleton
from idarts.layers.lean import conv2d, relu
from idarts.layers.mixing import mix
from idarts.layers.mixture import Mixture
from idarts.layers.parallel import ParallelNorm
from idarts.spaces.chain_networks import ChainSupernet
from idarts.spaces.chains import SKIP
from idarts.spaces.mobile.chain import CHAIN, EXPANSIONS, KERNELS, SHAPES
from idarts.spaces.mobile.network import Place, head, places, stem
from idarts.spaces.relaxation import Relaxation, softmax


class MobileSupernet(ChainSupernet):
    """Stem, five stages of `depth` mixed blocks, head, classifier.

    α: `first` has a row for the first block of each stage, `further` one for each of the others, which can be skipped.

    >>> net = MobileSupernet(Skeleton(depth=3, channels=8, classes=10, image=8), in_channels=1)
    >>> net(torch.zeros(2, 1, 8, 8)).shape, net.alpha["first"].shape, net.alpha["further"].shape
    (torch.Size([2, 10]), torch.Size([5, 6]), torch.Size([10, 7]))
    """

    def __init__(self, skeleton: Skeleton, in_channels: int = 3, relaxation: Relaxation = softmax) -> None:
        super().__init__(CHAIN, skeleton, relaxation)
        blocks = [
            MixedBlock(further if block else first)
            for first, further in places(skeleton)
            for block in range(skeleton.depth)
        ]
        self.build(stem(in_channels, skeleton), blocks, *head(skeleton), skeleton.classes)


class MixedBlock(nn.Module):
    """All options of a block, mixed: Σ p·f(x) over kernels k and expansions e, where f is an inverted residual.

    f(x) = N(P_{k,e} ρ(N(D_k ρ(N(E x))))), with 1×1 convolutions E and P, a depthwise convolution D, BatchNorm N without
    weights, and ρ = ReLU. What the options share:

    - E: one expansion to 6 times the width. Expansion 3 reads its first half.
    - D_k: one for each kernel. Expansion 3 reads its first half.
    - P_{k,e} and its BatchNorm: nothing is shared; p is the weight of the BatchNorm.

    E's rows, D's filters, N and ρ act on each channel alone, so the first half of the wide result is exactly what
    expansion 3 computes by itself. So this is the same function as running option by option with the same weights, at
    two ninths of the expansions' work (6 instead of 27 times the width) and two thirds of the filters'. A further block
    adds its input, and so does `skip`: all together they add Σ p·x. Options that do not run are not computed.
    """

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.options = CHAIN.options(place.further)
        wide = EXPANSIONS[-1] * place.inputs
        self.expand = nn.Conv2d(place.inputs, wide, 1, bias=False).weight
        self.norm = ParallelNorm(wide)
        self.kernels = nn.ModuleDict({str(kernel): _Filters(place, kernel) for kernel in KERNELS})

    def forward(self, x: Tensor, mixture: Mixture, row: int) -> Tensor:
        """The mixture by one row of weights."""
        running = [column for column in range(len(self.options)) if mixture.runs(row, column)]
        wanted: dict[int, dict[int, Tensor]] = {}  # by kernel and expansion
        for kernel, expansion, column in ((*SHAPES[self.options[c]], c) for c in running if self.options[c] != SKIP):
            wanted.setdefault(kernel, {})[expansion] = mixture.weights[row, column]
        terms: list[Tensor] = []
        if wanted:
            part = slice(0, self.place.inputs * max(map(max, wanted.values())))
            wide = relu(self.norm(conv2d(x, self.expand[part]), part=part))
            terms = [term for kernel, scales in wanted.items() for term in self.kernels[str(kernel)](wide, scales)]
        if self.place.further:
            return mix([x], mixture.weights[row, running].sum().view(1), terms)
        return reduce(add, terms)


class _Filters(nn.Module):
    """The depthwise convolution of one kernel, and the narrow outputs that its expansions make of it."""

    def __init__(self, place: Place, kernel: int) -> None:
        super().__init__()
        self.place, self.padding = place, kernel // 2
        wide = EXPANSIONS[-1] * place.inputs
        self.weight = nn.Conv2d(wide, wide, kernel, groups=wide, bias=False).weight
        self.norm = ParallelNorm(wide)
        self.narrow = nn.ParameterDict(
            {str(e): nn.Conv2d(e * place.inputs, place.outputs, 1, bias=False).weight for e in EXPANSIONS}
        )
        self.norms = nn.ModuleDict({str(e): ParallelNorm(place.outputs) for e in EXPANSIONS})

    def forward(self, wide: Tensor, scales: Mapping[int, Tensor]) -> Iterator[Tensor]:
        """The outputs of the expansions in `scales`, each times its scale."""
        inputs, outputs = self.place.inputs, self.place.outputs
        part = slice(0, inputs * max(scales))
        z = conv2d(_first(wide, part.stop), self.weight[part], None, self.place.stride, self.padding, groups=part.stop)
        z = relu(self.norm(z, part=part))
        for expansion, scale in scales.items():
            narrow = conv2d(_first(z, expansion * inputs), self.narrow[str(expansion)])
            yield self.norms[str(expansion)](narrow, scale.expand(outputs))


def _first(x: Tensor, channels: int) -> Tensor:
    """The first channels, dense in memory."""
    return x if x.shape[1] == channels else x[:, :channels].contiguous(memory_format=torch.channels_last)
