"""Bilevel problems of the field's benchmark, and one hypergradient of three networks: ours beside other libraries.

Three problems, after benchopt's `benchmark_bilevel`: a decay for every feature of a logistic regression, weights that
clean the labels of training examples, and a representation of digits under a linear head. All methods start at the same
point with the same minibatches and use Adam for α. Ours run in one loop (w, v and α move at once where the method
allows it). Peers run their Neumann series with the inner rate as γ, after a weight step on a batch of its own: they
return no inner gradient that the step could use. Rounds of all methods are interleaved. The value is L2 at the minimum
of L1 for the present α (by L-BFGS, not counted); the best of all runs is the zero of the suboptimality.

`python benchmarks/bilevel.py --json benchmarks/results/bilevel.json`, with the peers that `install_peers.sh` installs;
`--models` and `--problems` without names leave out the networks or the problems.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

import torch
from torch import Tensor, nn

from bilevel_networks import MODELS, Decays
from bilevel_problems import PROBLEMS, Loss, Problem, Tensors
from idarts.hypergrad import F2SA, AmIGO, Bilevel, FirstOrder, Method, Neumann, Recursive, Running, hypergradient
from overhead import fastest
from peers import PEERS, Task, missing

METHODS: dict[str, Method] = {
    "FirstOrder": FirstOrder(),
    "Neumann K=2": Neumann(2, damping=0.02),
    "Neumann K=10": Neumann(10, damping=0.02),
    "Running": Running(),
    "AmIGO, 5 steps": AmIGO(iterations=5),
    "Recursive": Recursive(),
    "F2SA": F2SA(step=0.3, damping=0.02),
}
RATE, LEVELS = 0.3, (0.5, 0.2, 0.1, 0.05)  # of the weight steps; shares of the first suboptimality
LENGTHS, STEP = (2, 10), 0.01  # K and γ on the networks
PRODUCT, MIXED = 2.0, 4 / 3  # cost of a peer's products, counted as for ours


@dataclass
class Curve:
    """What a method has reached, after how many gradient evaluations and CPU seconds."""

    round: Callable[[], float]  # returns its gradient evaluations
    a: Tensors
    evaluations: list[float] = field(default_factory=lambda: [0.0])
    seconds: list[float] = field(default_factory=lambda: [0.0])
    values: list[float] = field(default_factory=list)

    def advance(self, rounds: int) -> None:
        start = process_time()
        spent = sum(self.round() for _ in range(rounds))
        self.seconds.append(self.seconds[-1] + process_time() - start)
        self.evaluations.append(self.evaluations[-1] + spent)


def leaves(tensors: Tensors) -> Tensors:
    return tuple(t.clone().requires_grad_() for t in tensors)


def ours(problem: Problem, method: Method, rate: float, seed: int) -> Curve:
    w, a = leaves(problem.w), leaves(problem.a)
    losses = problem.batches(False, seed), problem.batches(True, seed)
    one_loop = method.needs_inner  # first order has no inner gradient: it takes a separate weight step
    engine = Bilevel(*losses, method, torch.optim.SGD(w, lr=RATE), torch.optim.Adam(a, lr=rate), one_loop=one_loop)
    return Curve(lambda: engine.round().diagnostics.gradient_evaluations + (not one_loop), a)


def theirs(problem: Problem, name: str, terms: int, rate: float, seed: int) -> Curve:
    """One weight step, one series of a peer, one step of α."""
    w, (alpha,) = leaves(problem.w), leaves(problem.a)
    inner, outer = problem.batches(False, seed), problem.batches(True, seed)
    now: dict[str, Loss] = {}

    def pure_outer(w: Tensors, a: Tensors) -> Tensor:  # they want an L2 that depends on α
        return now["outer"](w, a) + 0 * a[0].sum()

    def pure_inner(w: Tensors, a: Tensors) -> Tensor:
        return now["inner"](w, a)

    losses = (lambda alpha: pure_inner(w, (alpha,))), (lambda alpha: pure_outer(w, (alpha,)))
    peer = PEERS[name](Task(nn.Module(), w, alpha, *losses, pure_inner, pure_outer, terms, RATE))
    steps = torch.optim.SGD(w, lr=RATE), torch.optim.Adam([alpha], lr=rate)
    products = terms + (name == "hypertorch")  # its first product is with zero

    def round() -> float:
        grads = torch.autograd.grad(next(inner)(w, (alpha.detach(),)), w)
        for tensor, grad in zip(w, grads, strict=True):
            tensor.grad = grad
        steps[0].step()
        now.update(inner=next(inner), outer=next(outer))
        peer.run()
        steps[1].step()
        return 3 + PRODUCT * products + MIXED

    return Curve(round, (alpha,))


def compare(problem: Problem, curves: dict[str, Curve], rounds: int, points: int) -> None:
    for curve in curves.values():
        curve.values.append(problem.value(curve.a))
    for _ in range(points):
        for curve in curves.values():
            curve.advance(rounds // points)
            curve.values.append(problem.value(curve.a))


def reached(curve: Curve, goal: float) -> tuple[float, float] | None:
    """Gradient evaluations and seconds until the value is below the goal; None if it never is."""
    for value, evaluations, seconds in zip(curve.values, curve.evaluations, curve.seconds, strict=True):
        if value <= goal:
            return evaluations, seconds
    return None


def report(name: str, curves: dict[str, Curve]) -> None:
    best, start = min(min(c.values) for c in curves.values()), next(iter(curves.values())).values[0]
    print(f"\n{name}: L2 from {start:.4f}, best {best:.4f}")
    print("gradient evaluations (CPU seconds) until this share of the gap is left")
    print(f"{'':18}{'last':>9}" + "".join(f"{level:>16}" for level in LEVELS))
    for label, curve in curves.items():
        cells = [reached(curve, best + level * (start - best)) for level in LEVELS]
        text = "".join(f"{'–':>16}" if c is None else f"{f'{c[0]:.0f} ({c[1]:.2f})':>16}" for c in cells)
        print(f"{label:18}{curve.values[-1]:9.4f}{text}", flush=True)


def hypergradients(models: Sequence[str], peers: Sequence[str], rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of CPU time of one hypergradient, for every network and K."""
    results = {}
    for model in models:
        point = Decays.of(model)
        for terms in LENGTHS:
            method = Neumann(terms, STEP)
            task = point.task(terms, STEP)
            runs: dict[str, Callable[[], object]] = {"idarts": lambda p=point, m=method: estimate(p, m)}  # type: ignore[misc]
            for name in peers:
                peer = PEERS[name](task)
                torch.testing.assert_close(peer.implicit(), estimate(point, method), rtol=1e-2, atol=1e-6)
                runs[name] = peer.run
            results[f"{model}, K={terms}"] = {name: us / 1e3 for name, us in fastest(runs, rounds).items()}
    return results


def estimate(point: Decays, method: Method) -> Tensor:
    return hypergradient(point.inner, point.outer, point.w, (point.alpha,), method).implicit[0]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--points", type=int, default=15, help="measurements along a run")
    parser.add_argument("--repeats", type=int, default=15, help="of each network's hypergradient; the fastest counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", nargs="*", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--models", nargs="*", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the curves here as well")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # peers use what torch has deprecated
    reasons = {name: missing(name) for name in PEERS}
    peers = [name for name, reason in reasons.items() if reason is None]
    for name in reasons.keys() - set(peers):
        print(f"{name} is left out: {reasons[name]}")
    results: dict[str, Any] = {"torch": torch.__version__, "rounds": options.rounds, "seed": options.seed}
    results["problems"] = {}
    for name in options.problems:
        make, rate = PROBLEMS[name]
        problem = make()
        curves = {label: ours(problem, method, rate, options.seed) for label, method in METHODS.items()}
        curves |= {f"{peer} K={k}": theirs(problem, peer, k, rate, options.seed) for peer in peers for k in LENGTHS}
        compare(problem, curves, options.rounds, options.points)
        report(name, curves)
        keys = "evaluations", "seconds", "values"
        results["problems"][name] = {c: {key: getattr(curve, key) for key in keys} for c, curve in curves.items()}
    results["milliseconds"] = hypergradients(options.models, peers, options.repeats)
    print("\nmilliseconds of CPU time for one hypergradient")
    for label, row in results["milliseconds"].items():
        print(f"{label:20}" + ", ".join(f"{name} {value:.1f}" for name, value in row.items()))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
