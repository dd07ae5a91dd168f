"""Three problems after benchopt's `benchmark_bilevel`, on data of scikit-learn."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from sklearn.datasets import load_breast_cancer, load_digits
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

Tensors = tuple[Tensor, ...]
Loss = Callable[[Tensors, Tensors], Tensor]
BATCH = 64


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
