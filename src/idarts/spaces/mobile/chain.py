"""The chain of blocks: rules, the text form, random architectures, names for decisions and drawings.

The chain has five stages, each with the same number of blocks, and every block is one decision. The first block of a
stage changes the shape, so it cannot be skipped.
"""

from collections.abc import Sequence
from random import Random
from reprlib import repr as short

from idarts.arch import Architecture, Cell, Edge
from idarts.arch.rules import counted
from idarts.errors import InputError

SPACE = "mobile"
STAGES = 5
DEPTH = 4  # blocks in a stage, as usual
KERNELS, EXPANSIONS = (3, 5, 7), (3, 6)
SKIP = "skip"
SHAPES = {f"k{kernel}e{expansion}": (kernel, expansion) for kernel in KERNELS for expansion in EXPANSIONS}
FIRST = tuple(SHAPES)  # options of the first block of a stage
FURTHER = (*FIRST, SKIP)  # options of the others
SIZE = (len(FIRST) * len(FURTHER) ** (DEPTH - 1)) ** STAGES

Blocks = Sequence[Sequence[str]]


def check(architecture: Architecture) -> None:
    """Refuse what is not a chain of this space."""
    if architecture.cells:
        raise InputError(f"{SPACE}: it has cells, expected only choices")
    depth = max(1, -(-len(architecture.choices) // STAGES))
    names = {_name(stage, block): block for stage in range(STAGES) for block in range(depth)}
    unknown, missing = architecture.choices.keys() - names, names.keys() - architecture.choices
    if unknown or missing:
        wrong = f"unknown block {short(min(unknown))}" if unknown else f"the block {min(missing)} is missing"
        raise InputError(f"{SPACE}: {wrong}; expected {STAGES} stages with the same number of blocks")
    for name, option in architecture.choices.items():
        allowed = FURTHER if names[name] else FIRST
        if option not in allowed:
            reason = " (the first block of a stage changes the shape)" if option == SKIP else ""
            raise InputError(f"{SPACE} {name}: it is {short(option)}{reason}, expected one of {', '.join(allowed)}")


def from_blocks(blocks: Blocks) -> Architecture:
    """The architecture with these options, stage by stage.

    >>> to_text(from_blocks([["k3e6"], ["k5e3"], ["k3e3"], ["k7e6"], ["k3e6"]]))
    'mobile:k3e6+k5e3+k3e3+k7e6+k3e6'
    """
    if len(blocks) != STAGES or len({len(stage) for stage in blocks}) != 1:
        given = ", ".join(str(len(stage)) for stage in blocks) or "none"
        raise InputError(
            f"{SPACE}: the blocks of its {counted(len(blocks), 'stage')} are {given}, "
            f"expected {STAGES} stages with the same number of blocks"
        )
    return Architecture(
        SPACE,
        choices={
            _name(stage, block): option for stage, options in enumerate(blocks) for block, option in enumerate(options)
        },
    )


def to_blocks(architecture: Architecture) -> list[list[str]]:
    """The options, stage by stage.

    >>> to_blocks(parse("mobile:k3e6-skip+k5e3-skip+k3e3-skip+k7e6-skip+k3e6-k3e3"))[0]
    ['k3e6', 'skip']
    """
    if architecture.space != SPACE:
        raise InputError(f"an architecture of {architecture.space} is not a chain of {SPACE}")
    depth = depth_of(architecture)
    return [[architecture.choices[_name(stage, block)] for block in range(depth)] for stage in range(STAGES)]


def depth_of(architecture: Architecture) -> int:
    """Blocks in a stage.

    >>> depth_of(sample(Random(0)))
    4
    """
    return len(architecture.choices) // STAGES


def parse(form: object) -> Architecture | None:
    """The architecture of a text such as `mobile:k3e6-skip+…`; None for other texts.

    >>> parse("mobile:k3e6-skip+k5e3-skip")
    Traceback (most recent call last):
    idarts.errors.InputError: mobile: the blocks of its 2 stages are 2, 2, expected 5 stages with the same number of \
blocks
    """
    if not isinstance(form, str) or not form.lower().startswith(f"{SPACE}:"):
        return None
    text = "".join(form.lower().split())
    return from_blocks([stage.split("-") for stage in text.removeprefix(f"{SPACE}:").split("+")])


def to_text(architecture: Architecture) -> str:
    """The short form: `+` stands between stages, `-` between blocks; k5e6 has a kernel of 5 and an expansion of 6.

    >>> to_text(from_blocks([["k3e6", "skip"]] * 4 + [["k5e3", "k7e6"]]))
    'mobile:k3e6-skip+k3e6-skip+k3e6-skip+k3e6-skip+k5e3-k7e6'
    """
    return f"{SPACE}:{'+'.join('-'.join(stage) for stage in to_blocks(architecture))}"


def sample(random: Random) -> Architecture:
    """A chain of the usual depth, each with the same probability.

    >>> sample(Random(0)) == sample(Random(0))
    True
    """
    return from_blocks([[random.choice(FURTHER if block else FIRST) for block in range(DEPTH)] for _ in range(STAGES)])


def mutate(architecture: Architecture, random: Random) -> Architecture:
    """Another option in one block.

    >>> chain = sample(Random(0))
    >>> sum(chain.choices[name] != option for name, option in mutate(chain, Random(0)).choices.items())
    1
    """
    blocks = to_blocks(architecture)
    stage, block = random.randrange(STAGES), random.randrange(len(blocks[0]))
    others = [option for option in (FURTHER if block else FIRST) if option != blocks[stage][block]]
    blocks[stage][block] = random.choice(others)
    return from_blocks(blocks)


def labels(group: str, shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Blocks and their options, for the two groups of decisions: `first` and `further` blocks of the stages.

    >>> labels("further", (10, 7))[0][:3]
    ['stage 1, block 2', 'stage 1, block 3', 'stage 2, block 2']
    """
    if group == "first":
        return [f"stage {stage}" for stage in range(1, STAGES + 1)], [label(option) for option in FIRST]
    further = range(2, shape[0] // STAGES + 2)
    rows = [f"stage {stage}, block {block}" for stage in range(1, STAGES + 1) for block in further]
    return rows, [label(option) for option in FURTHER]


def label(option: str) -> str:
    """An option in the words of a drawing.

    >>> label("k5e6"), label("skip")
    ('5×5 e6', 'skip')
    """
    if option not in SHAPES:
        return option
    kernel, expansion = SHAPES[option]
    return f"{kernel}×{kernel} e{expansion}"


def cells(architecture: Architecture) -> dict[str, Cell]:
    """The stages as cells, to be drawn one below the other.

    >>> list(cells(sample(Random(0))))
    ['stage1', 'stage2', 'stage3', 'stage4', 'stage5']
    """
    depth = depth_of(architecture)
    return {
        f"stage{stage}": Cell(depth + 1, [Edge(i, i + 1, option) for i, option in enumerate(options)], [depth])
        for stage, options in enumerate(to_blocks(architecture), start=1)
    }


def _name(stage: int, block: int) -> str:
    return f"stage{stage + 1}.block{block + 1}"
