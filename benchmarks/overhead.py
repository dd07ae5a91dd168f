"""What the package costs beyond hand-written code: the Neumann series, K = 2, on ten weights and on two MLPs.

`python benchmarks/overhead.py`: all run in one process, in interleaved rounds, and the fastest CPU time counts. Only
the first line is without `numpy.random`, whose state is saved and restored where it is imported; torch's optimisers
import it. Where hypertorch is installed, its series runs beside ours from the second line on. The last lines are for
the driver, `Bilevel`, on ten weights: a round against its estimate and optimiser steps without the driver, and against
SOBA by hand.
"""

import argparse
import importlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from idarts.hypergrad import Bilevel, Neumann, Running, hypergradient

K, STEP = 2, 0.01
Tensors = tuple[Tensor, ...]
Loss = Callable[[Tensors, Tensors], Tensor]
Problem = tuple[Loss, Loss, Tensors, Tensors]


def by_hand(inner: Loss, outer: Loss, w: Tensors, a: Tensors) -> list[Tensor]:
    """The same estimate in the fewest lines; it checks nothing and measures nothing."""
    g = torch.autograd.grad(outer(w, a), w)
    grads = torch.autograd.grad(inner(w, a), w, create_graph=True)
    term = [STEP * t for t in g]
    total = list(term)
    for _ in range(K):
        images = torch.autograd.grad(grads, w, term, retain_graph=True)
        term = [t - STEP * image for t, image in zip(term, images, strict=True)]
        total = [s + t for s, t in zip(total, term, strict=True)]
    return [-m for m in torch.autograd.grad(grads, a, total)]


def quadratic() -> Problem:
    A, B = torch.randn(10, 10), torch.randn(10, 3)
    A = A @ A.T / 10

    def inner(w: Tensors, a: Tensors) -> Tensor:
        return w[0] @ A @ w[0] / 2 - w[0] @ (B @ a[0])

    def outer(w: Tensors, a: Tensors) -> Tensor:
        return ((w[0] - 1) ** 2).sum() / 2

    return inner, outer, (torch.randn(10, requires_grad=True),), (torch.randn(3, requires_grad=True),)


def mlp(width: int) -> Problem:
    """Three layers on 64 examples; α has a weight decay for each tensor."""
    sizes = [(width, 100), (width,), (width, width), (width,), (10, width), (10,)]
    w = tuple((0.1 * torch.randn(size)).requires_grad_() for size in sizes)
    batches = [(torch.randn(64, 100), torch.randint(10, (64,))) for _ in range(2)]

    def loss(batch: tuple[Tensor, Tensor], w: Tensors) -> Tensor:
        hidden = torch.tanh(linear(torch.tanh(linear(batch[0], w[0], w[1])), w[2], w[3]))
        return cross_entropy(linear(hidden, w[4], w[5]), batch[1])

    def inner(w: Tensors, a: Tensors) -> Tensor:
        decay = torch.stack([(t**2).sum() for t in w])
        return loss(batches[0], w) + 1e-3 * (a[0].exp() * decay).sum()

    return inner, lambda w, a: loss(batches[1], w), w, (torch.zeros(len(w), requires_grad=True),)


def series(problem: Problem, *, alone: bool = False) -> dict[str, Callable[[], object]]:
    """One estimate in each way. The implicit parts must agree. `alone` leaves out what imports `numpy.random`."""
    method, (inner, outer, w, a) = Neumann(K, STEP), problem

    def step(w: Sequence[Tensor], a: Sequence[Tensor]) -> list[Tensor]:
        grads = torch.autograd.grad(inner(tuple(w), tuple(a)), w, create_graph=True)
        return [t - STEP * g for t, g in zip(w, grads, strict=True)]

    for own, ours in zip(by_hand(*problem), hypergradient(*problem, method).implicit, strict=True):
        torch.testing.assert_close(own, ours, rtol=1e-3, atol=1e-5)
    runs: dict[str, Callable[[], object]] = {
        "by hand": lambda: by_hand(*problem),
        "idarts": lambda: hypergradient(*problem, method),
    }
    if alone:
        return runs
    importlib.import_module("numpy.random")
    try:
        fixed_point = importlib.import_module("hypergrad").fixed_point
    except (ImportError, AttributeError):
        return runs
    return runs | {"hypertorch": lambda: fixed_point(list(w), list(a), K + 1, step, outer, set_grad=False)}


def rounds_of(problem: Problem) -> dict[str, Callable[[], object]]:
    """One round of SOBA, in which w, v and α move at once, in three ways."""
    inner, outer = problem[:2]
    copies = [tuple(tuple(t.detach().clone().requires_grad_() for t in ts) for ts in problem[2:]) for _ in range(3)]
    optimizers = [[torch.optim.SGD(tensors, lr=1e-3) for tensors in pair] for pair in copies]
    method, engine = (
        Running(STEP, damping=0.0),
        Bilevel(inner, outer, Running(STEP, damping=0.0), *optimizers[0], one_loop=True),
    )
    kept: dict[str, object] = {"state": None}
    solution = [torch.zeros_like(t) for t in copies[2][0]]

    def pieces() -> None:
        w, a = copies[1]
        estimate = hypergradient(inner, outer, w, a, method, state=kept["state"])
        kept["state"] = estimate.state
        assert estimate.inner_gradient is not None
        w[0].grad = estimate.inner_gradient
        for tensor, grad in zip(a, estimate.grads, strict=True):
            tensor.grad = grad
        for optimizer in optimizers[1]:
            optimizer.step()

    def hand() -> None:
        w, a = copies[2]
        g = torch.autograd.grad(outer(w, a), w)
        grads = torch.autograd.grad(inner(w, a), w, create_graph=True)
        pulled = torch.autograd.grad(grads, (*w, *a), solution)
        for v, image, target in zip(solution, pulled, g, strict=False):
            v.sub_(image - target, alpha=STEP)
        for tensor, grad in zip((*w, *a), (*grads, *(-m for m in pulled[len(w) :])), strict=True):
            tensor.grad = grad.detach()
        for optimizer in optimizers[2]:
            optimizer.step()

    return {"by hand": hand, "without the driver": pieces, "Bilevel": engine.round}


def fastest(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Microseconds of CPU time of each."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            begin = process_time()
            run()
            best[name] = min(best[name], 1e6 * (process_time() - begin))
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=300, help="interleaved rounds; the fastest counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the results here as well")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    plans: dict[str, tuple[Callable[[], dict[str, Callable[[], object]]], int]] = {
        "ten weights": (lambda: series(quadratic(), alone=True), 1),
        "ten weights, numpy.random imported": (lambda: series(quadratic()), 1),
        "MLP, 103,150 weights": (lambda: series(mlp(270)), 4),
        "MLP, 1,008,910 weights": (lambda: series(mlp(950)), 12),
        "one round of SOBA, ten weights": (lambda: rounds_of(quadratic()), 1),
    }
    results = {}
    for name, (make, share) in plans.items():
        results[name] = fastest(make(), max(options.rounds // share, 5))
        hand = results[name]["by hand"]
        print(f"{name}: " + ", ".join(f"{key} {us:,.0f} µs ({us / hand:.2f})" for key, us in results[name].items()))
    one = results["one round of SOBA, ten weights"]
    print(f"the driver's own part of a round: {one['Bilevel'] - one['without the driver']:.0f} µs")
    if options.json:
        options.json.write_text(json.dumps({"torch": torch.__version__, "microseconds": results}, indent=2))


if __name__ == "__main__":
    main()
