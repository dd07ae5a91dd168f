"""What the parallel operations on one node read: its pixels, copied or rearranged once for all of them."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import iadd

import torch
from torch import Tensor
from torch.nn import functional

from idarts.layers.fallback import must_fall_back
from idarts.layers.functions import Linear, Map, call


class Reads:
    """A node's tensor in the forms in which operations read it; each is computed when the first of them asks.

    >>> reads = Reads(torch.zeros(2, 3, 8, 8))
    >>> reads("phases", copies=4).shape
    torch.Size([8, 12, 4, 4])
    >>> reads("phases", copies=4) is reads("phases", copies=4)
    True
    """

    def __init__(self, x: Tensor) -> None:
        self.batch, self.sides = len(x), tuple(x.shape[2:])
        self._forms = {("all", 1): x}

    def __call__(self, pixels: str = "all", copies: int = 1) -> Tensor:
        """The pixels `all`, every other one of every other row (`even`, `odd`), or four `phases`; in several copies."""
        key = pixels, copies
        if key not in self._forms:
            one = PIXELS[pixels] if copies == 1 else partial(side_by_side, copies=copies)
            self._forms[key] = one(self("all") if copies == 1 else self(pixels))
        return self._forms[key]

    def total(self, parts: Sequence[Tensor]) -> Tensor:
        """The sum of the results of operations, in place; what is in phases becomes an image once, after its sum.

        >>> reads = Reads(torch.zeros(2, 3, 8, 8))
        >>> reads.total([torch.ones(2, 3, 8, 8), torch.ones(8, 3, 4, 4)]).unique()
        tensor([2.])
        """
        images = [part for part in parts if len(part) == self.batch]
        phases = [part for part in parts if len(part) != self.batch]
        if phases:
            images.append(batch_to_space(reduce(iadd, phases), *self.sides))
        return reduce(iadd, images)


def side_by_side(x: Tensor, copies: int) -> Tensor:
    """Copies of x, one after the other along the channels, in channels-last layout.

    >>> side_by_side(torch.ones(1, 2, 4, 4), copies=3).shape
    torch.Size([1, 6, 4, 4])
    """
    repeat, total = partial(_repeat, copies=copies), partial(_total, copies=copies)
    return _linear(x, repeat, total)


def sum_of_parts(x: Tensor, parts: int) -> Tensor:
    """The sum of equal parts of the channels, in channels-last layout.

    >>> sum_of_parts(torch.ones(1, 6, 4, 4), parts=3)[0, :, 0, 0]
    tensor([3., 3.])
    """
    repeat, total = partial(_repeat, copies=parts), partial(_total, copies=parts)
    return _linear(x, total, repeat)


def _repeat(x: Tensor, copies: int) -> Tensor:
    return torch.cat([x] * copies, dim=1)


def _total(x: Tensor, copies: int) -> Tensor:
    first, second, *others = x.chunk(copies, dim=1)
    result = first + second
    for other in others:
        result += other
    return result


def every_other(x: Tensor, first: int = 0) -> Tensor:
    """Every other pixel of every other row, in the layout of x.

    Odd sizes: `first` 1 gets a border of zeros, so that both have the same size.

    >>> every_other(torch.arange(9.0).view(1, 1, 3, 3), first=1)[0, 0]
    tensor([[4., 0.],
            [0., 0.]])
    """
    like, size = x.detach(), [(side + 1) // 2 for side in x.shape[2:]]
    last = x.is_contiguous(memory_format=torch.channels_last)

    def pick(x: Tensor) -> Tensor:
        picked = x[:, :, first::2, first::2]
        border = size[1] - picked.shape[3], size[0] - picked.shape[2]
        picked = functional.pad(picked, (0, border[0], 0, border[1])) if any(border) else picked
        return picked.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)

    def put(g: Tensor) -> Tensor:
        image = torch.zeros_like(like)
        places = image[:, :, first::2, first::2]
        places.copy_(g[:, :, : places.shape[2], : places.shape[3]])
        return image

    return _linear(x, pick, put)


def space_to_batch(x: Tensor) -> Tensor:
    """The four images of every other row and column, as a batch four times as large, in channels-last layout.

    >>> space_to_batch(torch.arange(16.0).view(1, 1, 4, 4))[1, 0]
    tensor([[ 1.,  3.],
            [ 9., 11.]])
    """
    join = partial(_join, height=x.shape[2], width=x.shape[3])
    return _linear(x, _split, join)


def batch_to_space(phases: Tensor, height: int, width: int) -> Tensor:
    """Undo `space_to_batch`.

    >>> x = torch.randn(2, 3, 5, 7)
    >>> torch.equal(batch_to_space(space_to_batch(x), 5, 7), x)
    True
    """
    join = partial(_join, height=height, width=width)
    return _linear(phases, join, _split)


def _split(x: Tensor) -> Tensor:
    if x.shape[2] % 2 or x.shape[3] % 2:
        x = functional.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2))
    rows: Tensor = x.permute(0, 2, 3, 1).unflatten(2, (-1, 2)).unflatten(1, (-1, 2))
    return rows.permute(2, 4, 0, 1, 3, 5).reshape(-1, *rows.shape[1:4:2], x.shape[1]).permute(0, 3, 1, 2)


def _join(phases: Tensor, height: int, width: int) -> Tensor:
    rows: Tensor = phases.permute(0, 2, 3, 1).unflatten(0, (2, 2, -1)).permute(2, 3, 0, 4, 1, 5)
    whole = rows.reshape(rows.shape[0], 2 * rows.shape[1], 2 * rows.shape[3], rows.shape[5]).permute(0, 3, 1, 2)
    return whole[:, :, :height, :width].contiguous(memory_format=torch.channels_last)


PIXELS: dict[str, Callable[[Tensor], Tensor]] = {
    "even": every_other,
    "odd": partial(every_other, first=1),
    "phases": space_to_batch,
}


def _linear(x: Tensor, image: Map, transpose: Map) -> Tensor:
    """A linear map of x; with its transpose, so that all derivatives are known."""
    if must_fall_back(x):
        return image(x)
    result: Tensor = call(Linear, x, image, transpose)
    return result
