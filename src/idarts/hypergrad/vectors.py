"""A tuple of tensors as one flat vector, so that linear algebra needs no loop over parameters."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from idarts.errors import InputError

Tensors = tuple[Tensor, ...]
PerParameter = float | Tensor | Sequence[float | Tensor]  # one number for all, or one value per parameter tensor


@dataclass(frozen=True)
class Layout:
    """The place of each tensor of a tuple in a flat vector, whose dtype is the widest of theirs.

    >>> layout = Layout.of((torch.zeros(2, 3), torch.zeros(4)))
    >>> vector = layout.flatten((torch.ones(2, 3), torch.zeros(4)))
    >>> vector.shape, [part.shape for part in layout.unflatten(vector)]
    (torch.Size([10]), [torch.Size([2, 3]), torch.Size([4])])
    >>> mixed = Layout.of((torch.zeros(2), torch.zeros(1, dtype=torch.float64)))
    >>> mixed.mixed, mixed.dtype, [part.dtype for part in mixed.unflatten(mixed.zeros())]
    (True, torch.float64, [torch.float32, torch.float64])
    >>> layout.mixed  # parts of one dtype are not looked at
    False
    """

    shapes: tuple[torch.Size, ...]
    sizes: list[int]  # numbers of entries
    dtypes: tuple[torch.dtype, ...]
    dtype: torch.dtype
    device: torch.device
    mixed: bool  # not all tensors have this dtype

    @classmethod
    def of(cls, tensors: Tensors) -> "Layout":
        shapes, dtypes = tuple([t.shape for t in tensors]), tuple([t.dtype for t in tensors])
        sizes, kinds = [shape.numel() for shape in shapes], set(dtypes)
        return cls(shapes, sizes, dtypes, reduce(torch.promote_types, kinds), tensors[0].device, len(kinds) > 1)

    @property
    def size(self) -> int:
        return sum(self.sizes)

    def zeros(self) -> Tensor:
        """A flat vector of zeros."""
        return torch.zeros(self.size, dtype=self.dtype, device=self.device)

    def flatten(self, tensors: Sequence[Tensor | None]) -> Tensor:
        """`join`, without a graph."""
        vector = self.join(tensors)
        return vector.detach() if vector.requires_grad else vector

    def join(self, tensors: Sequence[Tensor | None]) -> Tensor:
        """One vector. `None`, which autograd returns for an unused parameter, counts as zeros."""
        parts = [
            torch.zeros(size, dtype=self.dtype, device=self.device) if tensor is None else as_vector(tensor)
            for tensor, size in zip(tensors, self.sizes, strict=True)
        ]
        if self.mixed:
            parts = [part.to(self.dtype) for part in parts]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def unflatten(self, vector: Tensor) -> Tensors:
        parts = (vector,) if len(self.sizes) == 1 else vector.split_with_sizes(self.sizes)
        views = tuple([p if len(s) == 1 else p.view(s) for p, s in zip(parts, self.shapes, strict=True)])
        return tuple(v.to(d) for v, d in zip(views, self.dtypes, strict=True)) if self.mixed else views

    def leaves(self, vector: Tensor) -> Tensors:
        """`unflatten`, as leaves that require gradients."""
        return leaves(self.unflatten(vector))

    def load(self, vector: Tensor) -> Tensor:
        """A flat vector from a state, on this layout's device; an error if it belongs to another problem."""
        if vector.shape != (self.size,):
            raise InputError(
                f"the state belongs to a problem with {vector.numel()} weights, but this one has {self.size}; "
                "pass state=None to start anew"
            )
        return vector.to(self.device, self.dtype)

    def diagonal(self, values: PerParameter, name: str) -> Tensor:
        """One number as a 0-d tensor; one value per parameter as a flat vector that repeats it for each entry."""
        if not isinstance(values, Sequence):  # a number from Python or NumPy, or a 0-d tensor
            return self._tensor(values)
        if len(values) != len(self.shapes):
            raise InputError(
                f"{name} has {len(values)} values for {len(self.shapes)} inner parameters; give one number, "
                "or one value per parameter"
            )
        return self.flatten([self._tensor(v).expand(s) for v, s in zip(values, self.shapes, strict=True)])

    def _tensor(self, value: Any) -> Tensor:
        """On the device, without waiting for it."""
        return torch.as_tensor(value, dtype=self.dtype).to(self.device, non_blocking=True)


def leaves(tensors: Tensors) -> Tensors:
    """The same values in the same memory, as leaves that require gradients."""
    return tuple([tensor.detach().requires_grad_() for tensor in tensors])


def as_vector(tensor: Tensor) -> Tensor:
    """The entries in one dimension. An operation costs a few microseconds, so none where the tensor is a vector."""
    return tensor if tensor.dim() == 1 else tensor.reshape(-1)


def joined(tensors: Tensors) -> Tensor:
    """All entries in one vector."""
    return as_vector(tensors[0]) if len(tensors) == 1 else torch.cat([as_vector(tensor) for tensor in tensors])


def on_host(numbers: Collection[Tensor | float], device: torch.device) -> list[float]:
    """Numbers, of which some are 0-d tensors: in one transfer from their device; on the CPU, where they are.

    >>> on_host([torch.tensor(0.5), torch.tensor(2.0, dtype=torch.float64), 3.0], torch.device("cpu"))
    [0.5, 2.0, 3.0]
    """
    if device.type == "cpu":
        return [float(number) for number in numbers]
    there = [number.to(device) for number in numbers if isinstance(number, Tensor)]
    read = iter(torch.stack(there).tolist())
    return [next(read) if isinstance(number, Tensor) else number for number in numbers]


def random_normal(shape: Sequence[int], like: Tensor, seed: int) -> Tensor:
    """Normal numbers, the same in every precision, from a separate generator: the global random state does not change.

    >>> single, double = (torch.zeros(1, dtype=dtype) for dtype in (torch.float32, torch.float64))
    >>> torch.equal(random_normal((2,), single, seed=0), random_normal((2,), double, seed=0).float())
    True
    """
    generator = torch.Generator("cpu").manual_seed(seed)
    numbers = torch.randn(tuple(shape), dtype=torch.float64, generator=generator, device="cpu")
    return numbers.to(like, non_blocking=True)


def length(v: Tensor) -> Tensor:
    """Euclidean norm as a 0-d tensor, never exactly zero, so that one can divide by it.

    >>> length(torch.tensor([3.0, 4.0])).item()
    5.0
    """
    result: Tensor = torch.linalg.vector_norm(v)
    return result.clamp_min(torch.finfo(v.dtype).tiny)


def relative(v: Tensor, to: Tensor) -> Tensor:
    """‖v‖/‖to‖ as a 0-d tensor; 0 if both are zero.

    >>> relative(torch.tensor([3.0, 4.0]), torch.tensor([10.0])).item(), relative(torch.zeros(2), torch.zeros(2)).item()
    (0.5, 0.0)
    """
    size: Tensor = torch.linalg.vector_norm(v)
    return size / length(to)


def like(values: Tensors, others: Tensors) -> Tensors:
    """Outer parameters or gradients from a state, on the device of these; an error if they are of another problem."""
    if [value.shape for value in values] != [other.shape for other in others]:
        raise InputError("this state belongs to a problem with other outer parameters; pass state=None")
    return tuple([value.to(other) for value, other in zip(values, others, strict=True)])


def square(v: Tensor) -> Tensor:
    """The squared Euclidean norm as a 0-d tensor, from one pass; half precision would overflow.

    >>> square(torch.tensor([3.0, 4.0])).item(), square(torch.full((2,), 300.0, dtype=torch.float16)).item()
    (25.0, 180000.0)
    """
    wide = v if v.dtype.itemsize >= torch.float32.itemsize else v.float()
    return torch.dot(wide, wide)
