"""The chains of the space of blocks: three stages; an option is a kind of block and its kernel."""

from idarts.spaces.chains import SKIP, Chain

KINDS = {"conv": "residual", "sep": "separable", "inv": "inverted"}
SHAPES = {"conv3": ("conv", 3), "sep3": ("sep", 3), "sep5": ("sep", 5), "inv3": ("inv", 3), "inv5": ("inv", 5)}


def label(option: str) -> str:
    """An option in the words of a drawing.

    >>> label("sep5"), label("skip")
    ('separable 5×5', 'skip')
    """
    if option == SKIP:
        return option
    kind, kernel = SHAPES[option]
    return f"{KINDS[kind]} {kernel}×{kernel}"


CHAIN = Chain("residual-blocks", stages=3, depth=2, first=tuple(SHAPES), label=label)
