"""The overview of hypergradients (Appendix E) measured, and Theorem 1, Corollary 2 and Theorem 2 put to the test."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial

import torch
from torch import Tensor

from idarts.experiments.frame import Experiment, Job, Request
from idarts.experiments.paper import theory
from idarts.experiments.paper.measure import cost, quality
from idarts.experiments.paper.small_supernet import SmallSupernet, Tensors, small_supernet, stepped
from idarts.experiments.paper.theory_page import COLUMNS, sections
from idarts.experiments.store import Row
from idarts.hypergrad import (
    ConjugateGradient,
    Estimate,
    Exact,
    FirstOrder,
    Identity,
    Method,
    Neumann,
    Nystrom,
    OneStep,
    ReverseMode,
    TruncatedReverse,
    hypergradient,
)

_PAPER = 0.01  # γ
_RANK_DAMPING = 0.02
# images, hidden units, the largest K and T, and the steps of Theorem 2
Size = tuple[int, int, int, int]
SIZES: dict[str, Size] = {"paper": (1000, 16, 256, 3000), "cpu": (400, 8, 64, 600), "smoke": (60, 3, 4, 120)}

# At the inner optimum: the method for a K, with γ = 1/λ_max or the paper's.
AT_OPTIMUM: dict[str, Callable[[int, float], Method]] = {
    "Neumann, γ = 1/λ_max": Neumann,
    "Neumann, γ = 0.01": lambda K, _: Neumann(K, _PAPER),
    "conjugate gradient": lambda K, _: ConjugateGradient(K),
    "Nyström": lambda K, _: Nystrom(K, _RANK_DAMPING),
    "truncated reverse": lambda K, step: TruncatedReverse(K, K, step),
}
WITHOUT_K: dict[str, Callable[[float], Method]] = {
    "first order": lambda _: FirstOrder(),
    "one step (DARTS), γ = 0.01": lambda _: OneStep(_PAPER),
    "one step (DARTS), γ = 1/λ_max": OneStep,
    "identity (T1–T2)": lambda _: Identity(),
    "exact": lambda _: Exact(),
}
# After T inner steps from weights beside the optimum; reverse mode takes these steps itself, and remembers them.
# Whoever takes them, they are counted.
AFTER_STEPS: dict[str, Callable[[int, float], Method]] = {
    "one step (DARTS)": lambda _, step: OneStep(step),
    "Neumann, K = 2": lambda _, step: Neumann(2, step),
    "Neumann, K = 32": lambda _, step: Neumann(32, step),
    "exact at w_T": lambda _, __: Exact(),
    "truncated reverse, K ≤ 2": lambda T, step: TruncatedReverse(T, min(T, 2), step),
    "reverse mode": ReverseMode,
}


def doubling(largest: int) -> list[int]:
    """1, 2, 4, … up to the largest.

    >>> doubling(9)
    [1, 2, 4, 8]
    """
    return [2**power for power in range(largest.bit_length())]


def _jobs(request: Request) -> Iterable[Job]:
    size = SIZES[request.preset]
    for name, method in WITHOUT_K.items():
        yield _job(f"at w*: {name}", {"sizes": size}, partial(_at_optimum, size, name, method))
    for name, of_terms in AT_OPTIMUM.items():
        yield _job(f"at w*: {name}", {"sizes": size}, partial(_growing_terms, size, name, of_terms))
    for name, of_steps in AFTER_STEPS.items():
        how = {"sizes": size, "cost": "with the inner steps"}
        yield _job(f"after T steps: {name}", how, partial(_growing_steps, size, name, of_steps))
    for case in theory.CASES:
        yield _job(f"theorem 1: {case}", {"sizes": ()}, partial(_theorem_1, case))
    yield _job("corollary 2", {"sizes": ()}, _corollary_2)
    for terms, additive in ((0, False), (2, False), (8, False), (32, False), (8, True)):
        case = "additive noise" if additive else "noise as in condition 2"
        for seed in request.seeds:
            name = f"theorem 2: K={terms}, {case}, seed {seed}"
            yield _job(name, {"sizes": size[3:]}, partial(_theorem_2, size[3], case, terms, seed, additive))


def _job(name: str, settings: Mapping[str, object], measure: Callable[[], list[Row]]) -> Job:
    def alone() -> Sequence[Row]:
        with _one_thread():
            return measure()

    return Job(name, settings, alone)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Matrices this small only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _theorem_1(case: str) -> list[Row]:
    return [{"part": "theorem 1", **row} for row in theory.theorem_1(case)]


def _corollary_2() -> list[Row]:
    return [{"part": "corollary 2", **row} for row in theory.corollary_2()]


def _theorem_2(steps: int, case: str, terms: int, seed: int, additive: bool) -> list[Row]:
    head: Row = {"part": "theorem 2", "case": case, "seed": seed}
    return [{**head, **row} for row in theory.theorem_2(terms, steps, seed, additive)]


def _at_optimum(size: Size, name: str, of_step: Callable[[float], Method]) -> list[Row]:
    net, w, a, eigenvalue = small_supernet(*size[:2])
    exact = _exact(*size[:2])
    take = partial(hypergradient, net.inner, net.outer, w, a, of_step(1 / eigenvalue))
    return [{"part": "at w*", "case": name, **_taken(take, exact)}]


def _growing_terms(size: Size, name: str, of_terms: Callable[[int, float], Method]) -> list[Row]:
    net, w, a, eigenvalue = small_supernet(*size[:2])
    exact = _exact(*size[:2])
    terms = [*([0] if name.startswith("Neumann") else []), *doubling(size[2])]
    take = partial(hypergradient, net.inner, net.outer, w, a)
    head: Row = {"part": "at w*", "case": name}
    return [{**head, "K": K, **_taken(partial(take, of_terms(K, 1 / eigenvalue)), exact)} for K in terms]


def _growing_steps(size: Size, name: str, of_steps: Callable[[int, float], Method]) -> list[Row]:
    net, w, a, eigenvalue = small_supernet(*size[:2])
    exact = _exact(*size[:2])
    rows: list[Row] = []
    for steps in doubling(size[2]):
        method = of_steps(steps, 1 / eigenvalue)
        before = 0 if isinstance(method, ReverseMode | TruncatedReverse) else steps
        take = partial(_after, before, 1 / eigenvalue, net, w, a, method)
        rows.append({"part": "after T steps", "case": name, "T": steps, **_taken(take, exact, before)})
    return rows


@cache
def _exact(images: int, hidden: int) -> Tensor:
    net, w, a, _ = small_supernet(images, hidden)
    return hypergradient(net.inner, net.outer, w, a, Exact()).grads[0].flatten()


def _after(steps: int, step: float, net: SmallSupernet, w: Tensors, a: Tensors, method: Method) -> Estimate:
    return hypergradient(net.inner, net.outer, stepped(net, w, a, step, steps)[1], a, method)


def _taken(take: Callable[[], Estimate], exact: Tensor, steps: int = 0) -> Row:
    """What an estimate is worth and takes; the inner `steps` before it are not in its own count."""
    return {**quality(take(), exact, steps), **cost(take)}


TABLE_HYPERGRADIENTS = Experiment(
    "The overview of hypergradients measured; Theorem 1's bound, Corollary 2 and Theorem 2 tested.",
    COLUMNS,
    _jobs,
    lambda rows, _: sections(rows),
)
