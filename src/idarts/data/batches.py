"""An endless stream of batches that resumes bit for bit from any position.

Everything random in an epoch (order, crops, flips, squares) is drawn at its start, by the stream's own generator, and
moved to the device once. So a step draws nothing and waits for nothing, the stream does not depend on the device or the
number of workers, and its state is the generator's at the start of the epoch plus the number of batches since.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from idarts.data.augment import NONE, Augment, Draws, draw, render
from idarts.data.digest import part_digest
from idarts.data.fetch import Fetch, Fetched, fetch_from
from idarts.data.record import Part
from idarts.errors import InputError

STATE = ("generator", "epoch", "position", "images", "size")


@dataclass(frozen=True)
class _Plan:
    """The random draws for one epoch."""

    order: Tensor
    draws: Draws  # on the device, entry i for the i-th image of the epoch
    seed: int  # for datasets with random transforms


class Batches(Iterator[tuple[Tensor, Tensor]]):
    """Batches of a part: `next(batches)` always works and gives (x, y) on the device, normalised, channels last.

    `epoch` is the number of complete epochs, `position` the number of batches since, `len` the batches in an epoch.
    In-memory parts move to the device as a whole if they fit; lazy parts are read by `workers` processes. With `share`
    (i, n), one of n processes takes the i-th of n pieces of every batch; all of them make the same draws.

    >>> from idarts.data import CIFAR, load
    >>> batches = Batches(load("digits").train, 64, seed=1, augment=CIFAR)
    >>> x, y = next(batches)
    >>> x.shape, y.shape, batches.epoch, batches.position, len(batches)
    (torch.Size([64, 1, 8, 8]), torch.Size([64]), 0, 1, 22)
    >>> state = batches.state_dict()
    >>> expected = next(batches)[0]
    >>> resumed = Batches(load("digits").train, 64, augment=CIFAR)
    >>> resumed.load_state_dict(state)
    >>> torch.equal(next(resumed)[0], expected)
    True
    """

    def __init__(
        self,
        part: Part,
        size: int,
        *,
        seed: int = 0,
        augment: Augment = NONE,
        shuffle: bool = True,
        drop_last: bool = True,
        device: "str | torch.device" = "cpu",
        workers: int = 2,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        self.part, self.size, self.augment = part, _checked(size, part, drop_last), augment
        self.shuffle, self.drop_last, self.device = shuffle, drop_last, torch.device(device)
        self.epoch, self.position, self.share = 0, 0, share
        self._generator = torch.Generator().manual_seed(seed)
        self._start = self._generator.get_state()
        self._plan: _Plan | None = None
        self._fetch: Fetch = fetch_from(part, self.device, workers)
        self._incoming: Iterator[Fetched] = iter(())
        std = torch.tensor(part.std, dtype=torch.float64)
        self._scale = (1 / (255 * std)).float().to(self.device)
        self._shift = (-torch.tensor(part.mean, dtype=torch.float64) / std).float().to(self.device)

    def __len__(self) -> int:
        whole, rest = divmod(len(self.part), self.size)
        return whole + (rest > 0 and not self.drop_last)

    def __next__(self) -> tuple[Tensor, Tensor]:
        plan = self._plan or self._start_epoch()
        pixels, labels, kept = next(self._incoming)
        here = slice(self.position * self.size, (self.position + 1) * self.size)
        draws = {name: self._piece(drawn[..., here]) for name, drawn in plan.draws.items()}
        if kept is not None:
            draws = {name: drawn[..., kept] for name, drawn in draws.items()}
        self.position += 1
        if self.position == len(self):
            self.epoch, self.position, self._plan = self.epoch + 1, 0, None
            self._start = self._generator.get_state()
        return render(pixels, self.augment, draws, self._scale, self._shift), labels

    def one_epoch(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches up to the end of this epoch: all of them at its start.

        >>> from idarts.data import load
        >>> test = Batches(load("digits").test, 100, shuffle=False, drop_last=False)
        >>> [len(y) for x, y in test.one_epoch()], test.epoch
        ([100, 100, 100, 59], 1)
        """
        epoch = self.epoch
        while self.epoch == epoch:
            yield next(self)

    def digest(self) -> str:
        """A digest of the content of the part."""
        return part_digest(self.part)

    def state_dict(self) -> dict[str, Any]:
        """The position of the stream, as tensors and integers. It costs a copy of five kilobytes."""
        values = (self._start.clone(), self.epoch, self.position, len(self.part), self.size)
        return dict(zip(STATE, values, strict=True))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state. The part and the settings must be the same; their numbers are checked."""
        missing = [key for key in STATE if key not in state]
        if missing:
            raise InputError(f"this is not the state of a stream of batches: it lacks {', '.join(missing)}")
        images, size, position = state["images"], state["size"], state["position"]
        if (images, size) != (len(self.part), self.size):
            raise InputError(
                f"the state has {images} images in batches of {size}, but this stream has {len(self.part)} images in "
                f"batches of {self.size}; use the same data, split and batch size"
            )
        if not 0 <= position < len(self) or state["epoch"] < 0:
            raise InputError(f"the state is at batch {position} of an epoch of {len(self)}; it is damaged")
        try:
            self._generator.set_state(state["generator"].cpu())
        except (RuntimeError, TypeError, AttributeError):
            raise InputError("the generator in the state of this stream is damaged; use another checkpoint") from None
        self.epoch, self.position = state["epoch"], position
        self._start, self._plan = self._generator.get_state(), None

    def _start_epoch(self) -> _Plan:
        """Make the draws of the epoch, and request its batches from the current position on."""
        count, (_, height, width) = len(self.part), self.part.shape
        order = torch.randperm(count, generator=self._generator) if self.shuffle else torch.arange(count)
        draws = draw(self.augment, count, height, width, self._generator)
        seed = int(torch.randint(0, 2**62, (), generator=self._generator))
        self._plan = _Plan(order, {name: drawn.to(self.device) for name, drawn in draws.items()}, seed)
        chunks = [self._piece(chunk) for chunk in order.split(self.size)][self.position : len(self)]
        self._incoming = self._fetch(chunks, seed)
        return self._plan

    def _piece(self, batch: Tensor) -> Tensor:
        """The piece of a batch, along the last axis, that belongs to this stream."""
        piece, pieces = self.share
        return batch if pieces == 1 else batch.tensor_split(pieces, dim=-1)[piece]


def _checked(size: int, part: Part, drop_last: bool) -> int:
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise InputError(f"the batch size is {size!r}, expected a positive integer")
    if size > len(part) and drop_last:
        raise InputError(f"a batch of {size} is larger than the split of {len(part)} images; give a smaller batch size")
    return size
