"""Streams of batches: endless, with a place that can be saved; and those for tensors of any kind, for any task."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import Dataset

from idarts.data import dataset_of, streams_digest, tensors_digest
from idarts.errors import InputError


class Stream(Protocol):
    """Endless batches whose place can be saved: `idarts.data.Batches`, or anything like it."""

    def __next__(self) -> tuple[Any, Any]: ...

    def __len__(self) -> int: ...  # batches in an epoch

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def peek(stream: Stream) -> Any:
    """The inputs of the next batch; the stream stays where it is."""
    return peek_batch(stream)[0]


def peek_batch(stream: Stream) -> tuple[Any, Any]:
    """The next batch; the stream and the random state stay where they are."""
    state = stream.state_dict()
    with torch.random.fork_rng(devices=[]):
        batch = next(stream)
    stream.load_state_dict(state)
    return batch


def replay(stream: Stream) -> Callable[[], Iterator[tuple[Any, Any]]]:
    """The batches of a stream from here on, as often as they are wanted, and never all in memory."""
    state = stream.state_dict()

    def again() -> Iterator[tuple[Any, Any]]:
        stream.load_state_dict(state)
        while True:
            yield next(stream)

    return again


def is_stream(data: Any) -> bool:
    """Whether data is a stream; one whose place cannot be saved is refused."""
    if not hasattr(data, "__next__"):
        return False
    missing = next((name for name in ("__len__", "state_dict", "load_state_dict") if not hasattr(data, name)), None)
    if missing:
        raise InputError(f"a stream of batches without {missing} cannot be resumed; see idarts.searching.Stream")
    return True


def pair(data: Any) -> tuple[Tensor, Tensor]:
    """Inputs and targets as two tensors, of two tensors or arrays, or of a torch `Dataset` or `DataLoader` of pairs.

    >>> x, y = pair(torch.utils.data.TensorDataset(torch.zeros(5, 3), torch.arange(5)))
    >>> x.shape, y.tolist()
    (torch.Size([5, 3]), [0, 1, 2, 3, 4])
    """
    expected = "expected (x, y), a torch Dataset of such pairs, or a stream of batches"
    data = dataset_of(data)
    try:
        if isinstance(data, Dataset):
            data = [torch.stack([torch.as_tensor(one) for one in column]) for column in zip(*_all(data), strict=True)]
        x, y = (torch.as_tensor(column) for column in data)
    except (TypeError, ValueError, RuntimeError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"a {type(data).__name__} cannot be searched on ({first}); {expected}") from None
    if len(x) != len(y):
        raise InputError(f"{len(x)} inputs with {len(y)} targets, expected the same number")
    return x, y


def _all(dataset: Any) -> list[Any]:
    return [dataset[index] for index in range(len(dataset))]


class TensorBatches:
    """Shuffled batches of two tensors with one entry for each example, endless; its state is its place.

    >>> batches = TensorBatches(torch.arange(10.0), torch.arange(10.0), size=4, seed=0)
    >>> x, y = next(batches)
    >>> state, following = batches.state_dict(), next(batches)[0]
    >>> batches.load_state_dict(state)
    >>> torch.equal(next(batches)[0], following), len(batches)
    (True, 2)
    """

    def __init__(self, x: Tensor, y: Tensor, size: int, seed: int = 0) -> None:
        if len(x) != len(y):
            raise InputError(f"{len(x)} inputs with {len(y)} targets, expected the same number")
        if not len(x):
            raise InputError("there are no examples to make batches of; give more data, or another share for α")
        if not 1 <= size <= len(x):
            raise InputError(f"a batch of {size} from {len(x)} examples; give a batch size of 1 to {len(x)}")
        self.x, self.y, self.size = x, y, size
        self.epoch, self.position = 0, 0
        self._generator = torch.Generator().manual_seed(seed)
        self._begin()

    def __len__(self) -> int:
        return len(self.x) // self.size

    def __next__(self) -> tuple[Tensor, Tensor]:
        if self.position == len(self):
            self.epoch, self.position = self.epoch + 1, 0
            self._begin()
        where = self._order[self.position * self.size : (self.position + 1) * self.size].to(self.x.device)
        self.position += 1
        return self.x[where], self.y[where]

    def digest(self) -> str:
        """A digest of the content of both tensors."""
        return tensors_digest([self.x, self.y])

    def state_dict(self) -> dict[str, Any]:
        """Tensors and numbers only."""
        return {"generator": self._start, "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._generator.set_state(state["generator"].cpu())
        self.epoch, self.position = state["epoch"], state["position"]
        self._begin()

    def _begin(self) -> None:
        self._start = self._generator.get_state()
        self._order = torch.randperm(len(self.x), generator=self._generator)


class Piece:
    """The i-th of n equal pieces of every batch of a stream, for one of n processes; its place is the stream's.

    >>> both = [Piece(TensorBatches(torch.arange(8.0), torch.arange(8.0), size=4), (i, 2)) for i in (0, 1)]
    >>> whole = next(TensorBatches(torch.arange(8.0), torch.arange(8.0), size=4))[0]
    >>> torch.equal(torch.cat([next(piece)[0] for piece in both]), whole)
    True
    """

    def __init__(self, stream: Any, share: tuple[int, int]) -> None:
        self.stream, (self.piece, self.pieces) = stream, share

    def __len__(self) -> int:
        return len(self.stream)

    def __next__(self) -> tuple[Any, Any]:
        x, y = next(self.stream)
        size, rest = divmod(len(x), self.pieces)
        if rest:
            raise InputError(f"a batch of {len(x)} cannot be divided evenly among {self.pieces} ranks")
        here = slice(self.piece * size, (self.piece + 1) * size)
        return x[here], y[here]

    def digest(self) -> str | None:
        """That of the stream."""
        return streams_digest(self.stream)

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = self.stream.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.stream.load_state_dict(state)
