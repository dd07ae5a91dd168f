"""The overview of hypergradients (Appendix E), measured, and tests of the paper's theorems."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from idarts import hypergrad
from idarts.experiments.experiment import Experiment, Request
from idarts.experiments.jobs import FunctionJob, Job
from idarts.experiments.paper import add, theory
from idarts.experiments.paper.measure import cost, quality
from idarts.experiments.paper.small_supernet import SmallSupernet, Tensors, require_digits, small_supernet, stepped
from idarts.experiments.paper.theory_page import COLUMNS, sections
from idarts.experiments.store import Row, digest
from idarts.hypergrad import Estimate, Method

PLAIN, ADDITIVE = "noise as in condition 2", "additive noise"
_PAPER = 0.01  # γ
_RANK_DAMPING = 0.02
# images, hidden units, the largest K and T, and the steps of Theorem 2
Size = tuple[int, int, int, int]
SIZES: dict[str, Size] = {"paper": (1000, 16, 256, 3000), "cpu": (400, 8, 64, 600), "smoke": (60, 3, 4, 120)}

# At the inner optimum: the method for a K and γ = 1/λ_max; some take the paper's γ.
AT_OPTIMUM: dict[str, Callable[[int, float], Method]] = {
    "Neumann, γ = 1/λ_max": hypergrad.Neumann,
    "Neumann, γ = 0.01": lambda K, _: hypergrad.Neumann(K, _PAPER),
    "conjugate gradient": lambda K, _: hypergrad.ConjugateGradient(K),
    "Nyström": lambda K, _: hypergrad.Nystrom(K, _RANK_DAMPING),
    "truncated reverse": lambda K, step: hypergrad.TruncatedReverse(K, K, step),
}
WITHOUT_K: dict[str, Callable[[float], Method]] = {
    "first order": lambda _: hypergrad.FirstOrder(),
    "one step (DARTS), γ = 0.01": lambda _: hypergrad.OneStep(_PAPER),
    "one step (DARTS), γ = 1/λ_max": hypergrad.OneStep,
    "identity (T1–T2)": lambda _: hypergrad.Identity(),
    "exact": lambda _: hypergrad.Exact(),
}
# After T inner steps from weights beside the optimum. Reverse mode takes these steps itself; they count in all cases.
AFTER_STEPS: dict[str, Callable[[int, float], Method]] = {
    "one step (DARTS)": lambda _, step: hypergrad.OneStep(step),
    "Neumann, K = 2": lambda _, step: hypergrad.Neumann(2, step),
    "Neumann, K = 32": lambda _, step: hypergrad.Neumann(32, step),
    "exact at w_T": lambda _, __: hypergrad.Exact(),
    "truncated reverse, K ≤ 2": lambda T, step: hypergrad.TruncatedReverse(T, min(T, 2), step),
    "reverse mode": hypergrad.ReverseMode,
}


def doubling(largest: int) -> list[int]:
    """1, 2, 4, … up to the largest.

    >>> doubling(9)
    [1, 2, 4, 8]
    """
    return [2**power for power in range(largest.bit_length())]


def _plan(request: Request) -> Iterator[Job]:
    require_digits()
    size = SIZES[request.preset]
    for case in (*WITHOUT_K, *AT_OPTIMUM):
        yield _job("at w*", case, {"sizes": size}, size=size)
    for case in AFTER_STEPS:
        yield _job("after T steps", case, {"sizes": size, "cost": "with the inner steps"}, size=size)
    for case in theory.CASES:
        yield _job("theorem 1", case, {"sizes": ()})
    yield FunctionJob("corollary 2", digest({"sizes": ()}), function=measure, arguments={"part": "corollary 2"})
    for terms, case in ((0, PLAIN), (2, PLAIN), (8, PLAIN), (32, PLAIN), (8, ADDITIVE)):
        for seed in request.seeds:
            arguments = {"part": "theorem 2", "case": case, "terms": terms, "steps": size[3], "seed": seed}
            name = f"theorem 2: K={terms}, {case}, seed {seed}"
            yield FunctionJob(name, digest({"sizes": size[3:]}), function=measure, arguments=arguments)


def _job(part: str, case: str, settings: Mapping[str, object], **arguments: Any) -> Job:
    arguments |= {"part": part, "case": case}
    return FunctionJob(f"{part}: {case}", digest(settings), function=measure, arguments=arguments)


def measure(part: str, **arguments: Any) -> list[Row]:
    """The rows of one job, on one thread: threads would only wait for each other on matrices this small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [{"part": part, **row} for row in PARTS[part](**arguments)]
    finally:
        torch.set_num_threads(threads)


def _theorem_2(case: str, terms: int, steps: int, seed: int) -> Iterator[Row]:
    for row in theory.theorem_2(terms, steps, seed, additive=case == ADDITIVE):
        yield {"case": case, "seed": seed, **row}


def _at_optimum(case: str, size: Size) -> Iterator[Row]:
    """An estimate at w*, as K grows if the method has one."""
    net, w, a, eigenvalue = small_supernet(*size[:2])
    take = partial(hypergrad.hypergradient, net.inner, net.outer, w, a)
    if case in WITHOUT_K:
        yield {"case": case, **_taken(partial(take, WITHOUT_K[case](1 / eigenvalue)), size)}
        return
    for K in [*([0] if case.startswith("Neumann") else []), *doubling(size[2])]:
        yield {"case": case, "K": K, **_taken(partial(take, AT_OPTIMUM[case](K, 1 / eigenvalue)), size)}


def _after_steps(case: str, size: Size) -> Iterator[Row]:
    """An estimate after T inner steps, as T grows."""
    net, w, a, eigenvalue = small_supernet(*size[:2])
    for steps in doubling(size[2]):
        method = AFTER_STEPS[case](steps, 1 / eigenvalue)
        before = 0 if isinstance(method, hypergrad.ReverseMode | hypergrad.TruncatedReverse) else steps
        take = partial(_after, before, 1 / eigenvalue, net, w, a, method)
        yield {"case": case, "T": steps, **_taken(take, size, before)}


PARTS: dict[str, Callable[..., Iterable[Row]]] = {
    "at w*": _at_optimum,
    "after T steps": _after_steps,
    "theorem 1": theory.theorem_1,
    "corollary 2": theory.corollary_2,
    "theorem 2": _theorem_2,
}


@cache
def _exact(images: int, hidden: int) -> Tensor:
    net, w, a, _ = small_supernet(images, hidden)
    return hypergrad.hypergradient(net.inner, net.outer, w, a, hypergrad.Exact()).grads[0].flatten()


def _after(steps: int, step: float, net: SmallSupernet, w: Tensors, a: Tensors, method: Method) -> Estimate:
    return hypergrad.hypergradient(net.inner, net.outer, stepped(net, w, a, step, steps)[1], a, method)


def _taken(take: Callable[[], Estimate], size: Size, steps: int = 0) -> Row:
    """The quality and the cost of an estimate; its own count does not contain the inner `steps` before it."""
    return {**quality(take(), _exact(*size[:2]), steps), **cost(take)}


_ABOUT = "The overview of hypergradients measured; Theorem 1's bound, Corollary 2 and Theorem 2 tested."
add(Experiment("table-hypergradients", _ABOUT, _plan, lambda rows, _: sections(rows), columns=COLUMNS, uses=()))
