"""Spaces whose architectures are a chain of blocks: rules, the text form, random architectures, names for drawings.

A chain has some stages, each with the same number of blocks, and every block is one decision. The first block of a
stage changes the shape, so it cannot be skipped.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from reprlib import repr as short
from typing import Any, TypeVar

from idarts.arch import Architecture, Cell, Edge, Space, Style
from idarts.arch.rules import counted
from idarts.errors import InputError

SKIP = "skip"
Place = TypeVar("Place")  # what a space knows about the place of a block
Blocks = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Chain:
    """The chains of one space.

    >>> mobile = Chain("mobile", stages=5, depth=4, first=("k3e3", "k3e6"))
    >>> mobile.further, mobile.size == (2 * 3**3) ** 5
    (('k3e3', 'k3e6', 'skip'), True)
    """

    space: str
    stages: int
    depth: int
    """blocks in a stage, as usual"""
    first: tuple[str, ...]
    """options of the first block of a stage"""
    label: Callable[[str], str] = str
    """an option in the words of a drawing"""

    @property
    def further(self) -> tuple[str, ...]:
        """Options of the other blocks."""
        return (*self.first, SKIP)

    @property
    def size(self) -> int:
        """The number of chains of the usual depth."""
        further: int = len(self.further) ** (self.depth - 1)
        return int((len(self.first) * further) ** self.stages)

    def options(self, block: int) -> tuple[str, ...]:
        """Options of a block, by its number in the stage."""
        return self.further if block else self.first

    def check(self, architecture: Architecture) -> None:
        """Raise an InputError if an architecture is not a chain of this space."""
        if architecture.cells:
            raise InputError(f"{self.space}: it has cells, expected only choices")
        depth = max(1, -(-len(architecture.choices) // self.stages))
        names = {_name(stage, block): block for stage in range(self.stages) for block in range(depth)}
        unknown, missing = architecture.choices.keys() - names, names.keys() - architecture.choices
        if unknown or missing:
            wrong = f"unknown block {short(min(unknown))}" if unknown else f"the block {min(missing)} is missing"
            raise InputError(f"{self.space}: {wrong}; expected {self.stages} stages with the same number of blocks")
        for name, option in architecture.choices.items():
            allowed = self.options(names[name])
            if option not in allowed:
                reason = " (the first block of a stage changes the shape)" if option == SKIP else ""
                expected = ", ".join(allowed)
                raise InputError(f"{self.space} {name}: it is {short(option)}{reason}, expected one of {expected}")

    def from_blocks(self, blocks: Blocks) -> Architecture:
        """The architecture with these options, stage by stage."""
        if len(blocks) != self.stages or len({len(stage) for stage in blocks}) != 1:
            given = ", ".join(str(len(stage)) for stage in blocks) or "none"
            raise InputError(
                f"{self.space}: the blocks of its {counted(len(blocks), 'stage')} are {given}, "
                f"expected {self.stages} stages with the same number of blocks"
            )
        return Architecture(
            self.space,
            choices={
                _name(stage, block): option
                for stage, options in enumerate(blocks)
                for block, option in enumerate(options)
            },
        )

    def same(self, option: str) -> Architecture:
        """The chain of the usual depth with one option throughout."""
        return self.from_blocks([[option] * self.depth] * self.stages)

    def to_blocks(self, architecture: Architecture) -> list[list[str]]:
        """The options, stage by stage."""
        if architecture.space != self.space:
            raise InputError(f"an architecture of {architecture.space} is not a chain of {self.space}")
        depth = self.depth_of(architecture)
        return [[architecture.choices[_name(stage, block)] for block in range(depth)] for stage in range(self.stages)]

    def placed(self, architecture: Architecture, places: Sequence[tuple[Place, Place]]) -> Iterator[tuple[Place, str]]:
        """The blocks that are not skipped: the place and the option of each.

        `places` has two for every stage, that of its first block and that of its further blocks.
        """
        for (first, further), options in zip(places, self.to_blocks(architecture), strict=True):
            yield from (
                (further if number else first, option) for number, option in enumerate(options) if option != SKIP
            )

    def depth_of(self, architecture: Architecture) -> int:
        """Blocks in a stage."""
        return len(architecture.choices) // self.stages

    def parse(self, form: object) -> Architecture | None:
        """The architecture of a text such as `mobile:k3e6-skip+…`; None for other texts."""
        if not isinstance(form, str) or not form.lower().startswith(f"{self.space}:"):
            return None
        text = "".join(form.lower().split())
        return self.from_blocks([stage.split("-") for stage in text.removeprefix(f"{self.space}:").split("+")])

    def to_text(self, architecture: Architecture) -> str:
        """The short form: `+` stands between stages, `-` between blocks."""
        return f"{self.space}:{'+'.join('-'.join(stage) for stage in self.to_blocks(architecture))}"

    def sample(self, random: Random) -> Architecture:
        """A chain of the usual depth, each with the same probability."""
        depth = range(self.depth)
        return self.from_blocks([[random.choice(self.options(block)) for block in depth] for _ in range(self.stages)])

    def mutate(self, architecture: Architecture, random: Random) -> Architecture:
        """Another option in one block."""
        blocks = self.to_blocks(architecture)
        stage, block = random.randrange(self.stages), random.randrange(len(blocks[0]))
        others = [option for option in self.options(block) if option != blocks[stage][block]]
        blocks[stage][block] = random.choice(others)
        return self.from_blocks(blocks)

    def labels(self, group: str, shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
        """Blocks and their options, for the two groups of decisions: `first` and `further` blocks of the stages."""
        stages = range(1, self.stages + 1)
        if group == "first":
            return [f"stage {stage}" for stage in stages], [self.label(option) for option in self.first]
        further = range(2, shape[0] // self.stages + 2)
        rows = [f"stage {stage}, block {block}" for stage in stages for block in further]
        return rows, [self.label(option) for option in self.further]

    def cells(self, architecture: Architecture) -> dict[str, Cell]:
        """The stages as cells, to be drawn one below the other."""
        depth = self.depth_of(architecture)
        return {
            f"stage{stage}": Cell(depth + 1, [Edge(i, i + 1, option) for i, option in enumerate(options)], [depth])
            for stage, options in enumerate(self.to_blocks(architecture), start=1)
        }

    def record(self, **parts: Any) -> Space:
        """The record of the space: all that chains share, and further parts."""
        stages = {f"stage{stage}": f"stage {stage}" for stage in range(1, self.stages + 1)}
        groups = {"first": "first block of each stage", "further": "further blocks"}
        return Space(
            name=self.space,
            check=self.check,
            parse=self.parse,
            reads=f"{self.space}:BLOCK-BLOCK+BLOCK-…",
            forms={"chain": self.to_text},
            text_form="chain",
            style=Style(titles=stages | groups, cells=self.cells, label=self.label),
            labels=self.labels,
            size=self.size,
            sample=self.sample,
            mutate=self.mutate,
            depth_of=self.depth_of,
            **parts,
        )


def _name(stage: int, block: int) -> str:
    return f"stage{stage + 1}.block{block + 1}"
