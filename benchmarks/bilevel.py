"""Bilevel problems of the field's benchmark, on data of scikit-learn: suboptimality against gradients and CPU time.

Three problems, after benchopt's `benchmark_bilevel`: a decay for every feature of a logistic regression, weights that
clean the labels of training examples, and a representation of digits under a linear head. All methods run from the
same start with the same minibatches, one loop (w, v and α move at once where the method allows it, else one weight step
a round), Adam for α; they differ in the estimate alone. Rounds of all methods are interleaved. The value is L2 at the
minimum of L1 for the present α (by L-BFGS, not counted); the best of all runs is the zero of the suboptimality.

`python benchmarks/bilevel.py --json benchmarks/results/bilevel.json`. Peers run only as Neumann series, in
`benchmarks/hypergradient.py`: their own drivers keep no running solution, and none is installed by default.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import torch
from sklearn.datasets import load_breast_cancer, load_digits
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from idarts.hypergrad import F2SA, AmIGO, Bilevel, FirstOrder, Method, Neumann, Recursive, Running

Tensors = tuple[Tensor, ...]
Loss = Callable[[Tensors, Tensors], Tensor]
METHODS: dict[str, Method] = {
    "FirstOrder": FirstOrder(),
    "Neumann K=2": Neumann(2, damping=0.02),
    "Neumann K=10": Neumann(10, damping=0.02),
    "Running": Running(),
    "AmIGO, 5 steps": AmIGO(iterations=5),
    "Recursive": Recursive(),
    "F2SA": F2SA(step=0.3, damping=0.02),
}
BATCH, LEVELS = 64, (0.5, 0.2, 0.1, 0.05)  # shares of the first suboptimality


@dataclass(frozen=True)
class Problem:
    """L1 and L2 on some examples each, and where w and α start."""

    inner: Callable[[Tensors, Tensors, Tensor], Tensor]
    outer: Callable[[Tensors, Tensors, Tensor], Tensor]
    sizes: tuple[int, int]  # examples for training and validation
    w: Tensors
    a: Tensors

    def batches(self, outer: bool, seed: int) -> Iterator[Loss]:
        make, loss = torch.Generator().manual_seed(2 * seed + outer), self.outer if outer else self.inner
        while True:
            chosen = torch.randint(self.sizes[outer], (BATCH,), generator=make)
            yield lambda w, a, chosen=chosen: loss(w, a, chosen)  # type: ignore[misc]

    def value(self, a: Tensors) -> float:
        """L2 at the minimum of L1, on all examples."""
        w, fixed = tuple(t.detach().clone().requires_grad_() for t in self.w), tuple(t.detach() for t in a)
        optimizer = torch.optim.LBFGS(w, max_iter=200, history_size=20, line_search_fn="strong_wolfe")
        train, valid = (torch.arange(size) for size in self.sizes)

        def closure() -> float:
            optimizer.zero_grad()
            loss = self.inner(w, fixed, train)
            loss.backward()
            return loss.item()

        optimizer.step(closure)
        return self.outer(w, fixed, valid).item()


def regularisation() -> Problem:
    """log λ of every feature; breast cancer, with noise features that a single λ cannot remove."""
    data, make = load_breast_cancer(), torch.Generator().manual_seed(0)
    x = torch.tensor(data.data, dtype=torch.float32)
    x = torch.cat([(x - x.mean(0)) / x.std(0), torch.randn(len(x), 30, generator=make)], 1)
    order = torch.randperm(len(x), generator=make)
    x, y = x[order], torch.tensor(data.target, dtype=torch.float32)[order]
    (tx, ty), (vx, vy) = (x[:150], y[:150]), (x[150:], y[150:])

    def inner(w: Tensors, a: Tensors, chosen: Tensor) -> Tensor:
        loss = binary_cross_entropy_with_logits(tx[chosen] @ w[0], ty[chosen])
        return loss + (a[0].exp() * w[0] ** 2).sum() / 2

    def outer(w: Tensors, a: Tensors, chosen: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(vx[chosen] @ w[0], vy[chosen])

    return Problem(inner, outer, (len(ty), len(vy)), (torch.zeros(60),), (torch.full((60,), -4.0),))


def cleaning() -> Problem:
    """A weight for every training example, of which 40 % have a wrong label; digits."""
    data, make = load_digits(), torch.Generator().manual_seed(0)
    order = torch.randperm(len(data.target), generator=make)
    x, y = torch.tensor(data.data / 16, dtype=torch.float32)[order], torch.tensor(data.target)[order]
    n = 500
    wrong = torch.rand(n, generator=make) < 0.4
    given = torch.where(wrong, (y[:n] + torch.randint(1, 10, (n,), generator=make)) % 10, y[:n])

    def inner(w: Tensors, a: Tensors, chosen: Tensor) -> Tensor:
        losses = cross_entropy(x[chosen] @ w[0] + w[1], given[chosen], reduction="none")
        return (a[0][chosen].sigmoid() * losses).mean() + 0.01 * (w[0] ** 2).sum()

    def outer(w: Tensors, a: Tensors, chosen: Tensor) -> Tensor:
        return cross_entropy(x[n + chosen] @ w[0] + w[1], y[n + chosen])

    return Problem(inner, outer, (n, 500), (torch.zeros(64, 10), torch.zeros(10)), (torch.zeros(n),))


def representation() -> Problem:
    """A linear map of the pixels to ten features, with a head for the digit, ridge-regularised; few training images."""
    data, make = load_digits(), torch.Generator().manual_seed(0)
    order = torch.randperm(len(data.target), generator=make)
    x, y = torch.tensor(data.data / 16, dtype=torch.float32)[order], torch.tensor(data.target)[order]
    n = 200

    def loss(w: Tensors, a: Tensors, chosen: Tensor) -> Tensor:
        return cross_entropy(torch.tanh(x[chosen] @ a[0]) @ w[0], y[chosen])

    def inner(w: Tensors, a: Tensors, chosen: Tensor) -> Tensor:
        return loss(w, a, chosen) + 0.01 * (w[0] ** 2).sum()

    def outer(w: Tensors, a: Tensors, chosen: Tensor) -> Tensor:
        return loss(w, a, n + chosen)

    return Problem(inner, outer, (n, 800), (torch.zeros(10, 10),), (0.2 * torch.randn(64, 10, generator=make),))


PROBLEMS: dict[str, tuple[Callable[[], Problem], float]] = {  # and the rate of α
    "regularisation": (regularisation, 0.03),
    "cleaning": (cleaning, 0.1),
    "representation": (representation, 0.01),
}


@dataclass
class Curve:
    """What a method has reached, after how many gradient evaluations and CPU seconds."""

    engine: Bilevel
    evaluations: list[float] = field(default_factory=lambda: [0.0])
    seconds: list[float] = field(default_factory=lambda: [0.0])
    values: list[float] = field(default_factory=list)

    def advance(self, rounds: int) -> None:
        spent, start = self.evaluations[-1], process_time()
        for _ in range(rounds):
            estimate = self.engine.round()
            spent += estimate.diagnostics.gradient_evaluations + (not self.engine.one_loop)
        self.seconds.append(self.seconds[-1] + process_time() - start)
        self.evaluations.append(spent)


def engine(problem: Problem, method: Method, rate: float, seed: int) -> Bilevel:
    w, a = (tuple(t.clone().requires_grad_() for t in tensors) for tensors in (problem.w, problem.a))
    losses = problem.batches(False, seed), problem.batches(True, seed)
    one_loop = method.needs_inner  # first order has no inner gradient: it takes a separate weight step
    return Bilevel(*losses, method, torch.optim.SGD(w, lr=0.3), torch.optim.Adam(a, lr=rate), one_loop=one_loop)


def compare(name: str, rounds: int, points: int, seed: int) -> dict[str, Curve]:
    make, rate = PROBLEMS[name]
    problem = make()
    curves = {label: Curve(engine(problem, method, rate, seed)) for label, method in METHODS.items()}
    for curve in curves.values():
        curve.values.append(problem.value(curve.engine.a))
    for _ in range(points):
        for curve in curves.values():
            curve.advance(rounds // points)
            curve.values.append(problem.value(curve.engine.a))
    return curves


def reached(curve: Curve, goal: float) -> tuple[float, float] | None:
    """Gradient evaluations and seconds until the value is below the goal; None if it never is."""
    for value, evaluations, seconds in zip(curve.values, curve.evaluations, curve.seconds, strict=True):
        if value <= goal:
            return evaluations, seconds
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--points", type=int, default=15, help="measurements along a run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the curves here as well")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    results = {}
    for name in options.problems:
        curves = compare(name, options.rounds, options.points, options.seed)
        best, start = min(min(c.values) for c in curves.values()), next(iter(curves.values())).values[0]
        print(f"\n{name}: L2 from {start:.4f}, best {best:.4f}")
        print("gradient evaluations (CPU seconds) until this share of the gap is left")
        print(f"{'':16}{'last':>9}" + "".join(f"{level:>16}" for level in LEVELS))
        for label, curve in curves.items():
            cells = [reached(curve, best + level * (start - best)) for level in LEVELS]
            text = "".join(f"{'–':>16}" if c is None else f"{f'{c[0]:.0f} ({c[1]:.2f})':>16}" for c in cells)
            print(f"{label:16}{curve.values[-1]:9.4f}{text}", flush=True)
        keys = "evaluations", "seconds", "values"
        results[name] = {label: {key: getattr(curve, key) for key in keys} for label, curve in curves.items()}
    if options.json:
        facts = {"torch": torch.__version__, "rounds": options.rounds, "seed": options.seed}
        options.json.write_text(json.dumps(facts | {"problems": results}, indent=2))


if __name__ == "__main__":
    main()
