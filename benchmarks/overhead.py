"""What the package costs beyond hand-written code: the Neumann series, K = 2, on ten weights and on two MLPs.

`python benchmarks/overhead.py`: both run in one process, in interleaved rounds, and the fastest CPU time counts.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from idarts.hypergrad import Neumann, hypergradient

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


def measured(problem: Problem, rounds: int) -> tuple[float, float]:
    """Seconds of CPU time by hand, and with the package."""
    method, best = Neumann(K, STEP), [float("inf")] * 2
    runs: tuple[Callable[[], list[Tensor]], ...] = (
        lambda: by_hand(*problem),
        lambda: list(hypergradient(*problem, method).implicit),
    )
    for own, theirs in zip(*(run() for run in runs), strict=True):
        torch.testing.assert_close(own, theirs, rtol=1e-3, atol=1e-5)
    for _ in range(rounds):
        for index, run in enumerate(runs):
            begin = time.process_time()
            run()
            best[index] = min(best[index], time.process_time() - begin)
    return best[0], best[1]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=300, help="interleaved rounds; the fastest counts")
    rounds = parser.parse_args(arguments).rounds
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, problem, share in (("ten weights", quadratic(), 1), ("MLP", mlp(270), 4), ("MLP", mlp(950), 12)):
        hand, ours = measured(problem, max(rounds // share, 5))
        count = sum(t.numel() for t in problem[2])
        print(
            f"{name}, {count:,} weights: by hand {hand * 1e6:,.0f} µs, idarts {ours * 1e6:,.0f} µs ({ours / hand:.2f})"
        )


if __name__ == "__main__":
    main()
