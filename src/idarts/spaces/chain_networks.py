"""What the networks and supernets of chains share: stem, blocks, head, classifier; and the decisions of α."""

from collections.abc import Iterable, Iterator, Mapping

from torch import Tensor, nn

from idarts.arch import Architecture, Skeleton
from idarts.errors import InputError
from idarts.layers.lean import lean
from idarts.layers.mixture import Mixture, one_hot
from idarts.spaces.chains import Chain
from idarts.spaces.relaxation import Relaxation, share_of, weighs_edges
from idarts.spaces.supernet import Supernet, channels_last, require_size


class ChainNetwork(nn.Module):
    """Stem, blocks, head, classifier. The head's output has `width` channels."""

    def __init__(self, stem: nn.Module, blocks: Iterable[nn.Module], head: nn.Module, width: int, classes: int) -> None:
        super().__init__()
        self.stem, self.blocks, self.head = stem, nn.Sequential(*blocks), head
        self.classifier = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch of images."""
        logits: Tensor = self.classifier(self.head(self.blocks(self.stem(images))).mean(dim=(2, 3)))
        return logits


class ChainSupernet(Supernet):
    """A supernet with `depth` mixed blocks in every stage of a chain.

    α: `first` has a row for the first block of each stage, `further` one for each of the others, which can be skipped.
    A block is a module of its input, a mixture and a row of that mixture.
    """

    stem: nn.Module
    blocks: nn.ModuleList
    head: nn.Module
    classifier: nn.Module

    def __init__(self, chain: Chain, skeleton: Skeleton, relaxation: Relaxation) -> None:
        if share_of(relaxation, skeleton.channels) > 1 or weighs_edges(relaxation):
            raise InputError(f"partial channels need a cell with operations on edges; the {chain.space} space has none")
        require_size(skeleton.image, skeleton.image)
        further = (chain.stages * (skeleton.depth - 1), len(chain.further))
        groups = {"further": further} if skeleton.depth > 1 else {}
        super().__init__({"first": (chain.stages, len(chain.first)), **groups}, relaxation)
        self.chain, self.depth = chain, skeleton.depth

    def build(self, stem: nn.Module, blocks: Iterable[nn.Module], head: nn.Module, width: int, classes: int) -> None:
        """Take the modules, as a `ChainNetwork` does."""
        self.stem, self.blocks, self.head = stem, nn.ModuleList(blocks), head
        self.classifier = nn.Linear(width, classes)
        channels_last(lean(self))

    def mixed(self, images: Tensor, mixtures: Mapping[str, Mixture]) -> Tensor:
        """Logits of a batch of images."""
        x = self.stem(images)
        for block, (group, row) in zip(self.blocks, self.decisions(), strict=True):
            x = block(x, mixtures[group], row)
        logits: Tensor = self.classifier(self.head(x).mean(dim=(2, 3)))
        return logits

    def architecture(self) -> Architecture:
        """The discrete architecture that α stands for."""
        best = {group: alpha.argmax(1).tolist() for group, alpha in self.alpha.items()}
        options = [self.chain.further[best[group][row]] for group, row in self.decisions()]
        return self.chain.from_blocks(
            [options[start : start + self.depth] for start in range(0, len(options), self.depth)]
        )

    def path(self, architecture: Architecture) -> dict[str, Mixture]:
        """Mixtures that run one chain on the shared weights."""
        blocks = self.chain.to_blocks(architecture)
        if len(blocks[0]) != self.depth:
            raise InputError(
                f"the architecture has {len(blocks[0])} blocks in a stage, and the supernet {self.depth}; "
                "build the supernet with that depth"
            )
        columns: dict[str, list[int]] = {group: [] for group in self.alpha}
        for (group, _), option in zip(self.decisions(), (option for stage in blocks for option in stage), strict=True):
            columns[group].append(self.chain.further.index(option))
        return {group: one_hot(columns[group], alpha.shape[1], alpha) for group, alpha in self.alpha.items()}

    def decisions(self) -> Iterator[tuple[str, int]]:
        """The group and the row of α for every block, in the order of the chain."""
        for stage in range(self.chain.stages):
            yield "first", stage
            yield from (("further", stage * (self.depth - 1) + block) for block in range(self.depth - 1))
