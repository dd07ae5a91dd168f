"""A tuple of tensors as one flat vector, so that linear algebra needs no loop over parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

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
    """

    shapes: tuple[torch.Size, ...]
    dtypes: tuple[torch.dtype, ...]
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, tensors: Tensors) -> "Layout":
        dtypes = tuple(t.dtype for t in tensors)
        return cls(tuple(t.shape for t in tensors), dtypes, reduce(torch.promote_types, dtypes), tensors[0].device)

    @property
    def size(self) -> int:
        return sum(shape.numel() for shape in self.shapes)

    def zeros(self) -> Tensor:
        """A flat vector of zeros."""
        return torch.zeros(self.size, dtype=self.dtype, device=self.device)

    def flatten(self, tensors: Sequence[Tensor | None]) -> Tensor:
        """One vector. `None`, which autograd returns for an unused parameter, counts as zeros."""
        return torch.cat(
            [
                torch.zeros(shape.numel(), dtype=self.dtype, device=self.device)
                if tensor is None
                else tensor.detach().reshape(-1).to(self.dtype)
                for tensor, shape in zip(tensors, self.shapes, strict=True)
            ]
        )

    def unflatten(self, vector: Tensor) -> Tensors:
        parts = torch.split(vector, [shape.numel() for shape in self.shapes])
        return tuple(
            part.view(shape).to(dtype) for part, shape, dtype in zip(parts, self.shapes, self.dtypes, strict=True)
        )

    def leaves(self, vector: Tensor) -> Tensors:
        """`unflatten`, as leaves that require gradients."""
        return tuple(part.detach().requires_grad_() for part in self.unflatten(vector))

    def diagonal(self, values: PerParameter, name: str) -> Tensor:
        """One number as a 0-d tensor; one value per parameter as a flat vector that repeats it for each entry."""
        if not isinstance(values, Sequence):  # a number from Python or NumPy, or a 0-d tensor
            return torch.as_tensor(values, dtype=self.dtype, device=self.device)
        if len(values) != len(self.shapes):
            raise InputError(
                f"{name} has {len(values)} values for {len(self.shapes)} inner parameters; give one number, "
                "or one value per parameter"
            )
        return self.flatten(
            [
                torch.as_tensor(v, dtype=self.dtype, device=self.device).expand(s)
                for v, s in zip(values, self.shapes, strict=True)
            ]
        )


def random_normal(shape: Sequence[int], like: Tensor, seed: int) -> Tensor:
    """Normal numbers, the same in every precision, from a separate generator: the global random state does not change.

    >>> single, double = (torch.zeros(1, dtype=dtype) for dtype in (torch.float32, torch.float64))
    >>> torch.equal(random_normal((2,), single, seed=0), random_normal((2,), double, seed=0).float())
    True
    """
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tuple(shape), dtype=torch.float64, generator=generator).to(like)


def length(v: Tensor) -> Tensor:
    """Euclidean norm as a 0-d tensor, never exactly zero, so that one can divide by it.

    >>> length(torch.tensor([3.0, 4.0])).item()
    5.0
    """
    result: Tensor = torch.linalg.vector_norm(v)
    return result.clamp_min(torch.finfo(v.dtype).tiny)
