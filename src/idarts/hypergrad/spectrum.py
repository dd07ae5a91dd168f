"""The largest eigenvalue of a curvature: followed from call to call, or measured once."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.hypergrad.implicit import System
from idarts.hypergrad.method import State
from idarts.hypergrad.problem import Averaging
from idarts.hypergrad.vectors import length, random_normal

COLD_ITERATIONS, WARM_ITERATIONS = 20, 2

Product = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Spectrum:
    """A running estimate of the eigenvalue of largest modulus, by power iteration.

    A measurement starts where the last one ended, so two products are enough while the weights move slowly.
    """

    vector: Tensor
    eigenvalue: Tensor  # 0-d; a power iteration approaches it from below
    age: int = 0  # calls since it was measured

    def state(self) -> State:
        return dict(vars(self))

    @classmethod
    def load(cls, state: State, system: System) -> "Spectrum | None":
        """The estimate in a state; None before the first measurement."""
        if state is None:
            return None
        if not isinstance(state, dict) or state.keys() != {"vector", "eigenvalue", "age"}:
            raise InputError("this is not a state of Neumann; pass the state of its last estimate, or state=None")
        return cls(system.load(state["vector"]), state["eigenvalue"].to(system.g), state["age"])


def power_iteration(product: Product, start: Tensor, iterations: int) -> Spectrum:
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


def largest_eigenvalue(product: Product, start: Tensor, iterations: int) -> float:
    """The largest eigenvalue of a symmetric `product`, also if there is a negative one of larger modulus.

    Lanczos' method: the largest in the Krylov space of `start`, which approaches it from below. It ends early when that
    space is complete.

    >>> d = torch.tensor([-4.0, 1.0, 3.0])
    >>> round(largest_eigenvalue(lambda v: d * v, torch.ones(3), 20), 4)
    3.0
    """
    basis, images = (start / length(start))[None], []
    while True:
        images.append(product(basis[-1]))
        rest = images[-1]
        for _ in range(2):  # rounding leaves a part of the others after the first time
            rest = rest - basis.T @ (basis @ rest)
        negligible = torch.finfo(start.dtype).eps ** 0.5 * max(map(length, images))
        if len(images) == iterations or length(rest) <= negligible:
            break
        basis = torch.cat([basis, (rest / length(rest))[None]])
    projected = (basis @ torch.stack(images).T).cpu().double()
    if not projected.isfinite().all():
        return math.nan
    return float(torch.linalg.eigvalsh((projected + projected.T) / 2)[-1])


def measure(product: Product, start: Tensor, iterations: int, averaging: Averaging) -> Spectrum:
    """`power_iteration`, with the same estimate for all processes."""
    own = power_iteration(product, start, iterations)
    if averaging.vectors:
        return own
    both = averaging.number(torch.cat([own.vector, own.eigenvalue.reshape(1)]))
    return Spectrum(both[:-1], both[-1])


def update(previous: Spectrum | None, product: Product, system: System, refresh: int) -> Spectrum:
    """The estimate for this call: measured at first and then every `refresh` calls, otherwise one call older."""
    if previous is None:
        return measure(product, random_normal(system.g.shape, system.g, seed=0), COLD_ITERATIONS, system.averaging)
    if previous.age + 1 < refresh:
        return Spectrum(previous.vector, previous.eigenvalue, previous.age + 1)
    return measure(product, previous.vector, WARM_ITERATIONS, system.averaging)
