"""The largest eigenvalue of the curvature, kept from call to call."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.hypergrad.vectors import drawn, length

COLD_ITERATIONS, WARM_ITERATIONS = 20, 2


@dataclass(frozen=True)
class Spectrum:
    """A running estimate of the eigenvalue of largest modulus, by power iteration.

    Hand `estimate.spectrum` back to the next `hypergradient` call: it starts where the last one ended, so two products
    now and then are enough while the weights move slowly. Plain tensors and a count, so that it can be saved.
    """

    vector: Tensor
    eigenvalue: Tensor  # 0-d; a power iteration approaches it from below
    age: int = 0  # calls since it was measured


def power_iteration(product: Callable[[Tensor], Tensor], start: Tensor, iterations: int) -> Spectrum:
    """The dominant eigenvalue of a symmetric `product`.

    >>> d = torch.tensor([1.0, 3.0, 10.0])
    >>> round(power_iteration(lambda v: d * v, torch.ones(3), 20).eigenvalue.item(), 4)
    10.0
    """
    vector = start / length(start)
    eigenvalue = torch.zeros((), dtype=start.dtype, device=start.device)
    for _ in range(iterations):
        image = product(vector)
        eigenvalue = torch.dot(vector, image)
        vector = image / length(image)
    return Spectrum(vector, eigenvalue)


def renewed(previous: Spectrum | None, product: Callable[[Tensor], Tensor], like: Tensor, every: int) -> Spectrum:
    """The estimate to use now: measured from nothing, renewed every so many calls, else a call older."""
    if previous is None:
        return power_iteration(product, drawn(like.shape, like, seed=0), COLD_ITERATIONS)
    if previous.vector.shape != like.shape:
        raise InputError(
            f"the running spectrum was measured on {previous.vector.numel()} weights, these are {like.numel()}; "
            "pass spectrum=None for another problem"
        )
    if previous.age + 1 < every:
        return Spectrum(previous.vector, previous.eigenvalue, previous.age + 1)
    return power_iteration(product, previous.vector.to(like), WARM_ITERATIONS)
