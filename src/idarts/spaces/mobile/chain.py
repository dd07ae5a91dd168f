"""The chains of the mobile space: five stages; an option such as k5e6 has a kernel of 5 and an expansion of 6."""

from idarts.spaces.chains import SKIP, Chain

SPACE = "mobile"
KERNELS, EXPANSIONS = (3, 5, 7), (3, 6)
SHAPES = {f"k{kernel}e{expansion}": (kernel, expansion) for kernel in KERNELS for expansion in EXPANSIONS}


def label(option: str) -> str:
    """An option in the words of a drawing.

    >>> label("k5e6"), label("skip")
    ('5×5 e6', 'skip')
    """
    if option == SKIP:
        return option
    kernel, expansion = SHAPES[option]
    return f"{kernel}×{kernel} e{expansion}"


CHAIN = Chain(SPACE, stages=5, depth=4, first=tuple(SHAPES), label=label)
