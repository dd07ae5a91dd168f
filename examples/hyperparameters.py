"""A weight decay for every weight, learnt from the validation loss, compared with the best single one of a grid.

Two models on the digits with few training images, so that decay matters: logistic regression, where conjugate gradients
solve the linear system, and a small network, with a Neumann series whose γ follows the curvature. There are far more
decays than the validation set can determine: its loss is what is minimised, and the test column shows how well that
generalises. There is no architecture search here: this is the bilevel core alone.
"""

from itertools import pairwise

import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn import functional

from idarts.hypergrad import Bilevel, ConjugateGradient, Method, Neumann

Tensors = tuple[Tensor, ...]
Row = tuple[str, str, float, float]  # model, decay, validation loss, test accuracy in percent
GRID = [-9.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0]  # log λ


def digits() -> dict[str, tuple[Tensor, Tensor]]:
    """Images as rows of 64 numbers: 150 for training, 600 for validation, the rest for testing."""
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    x, y = torch.tensor(data.data / 16, dtype=torch.float32)[order], torch.tensor(data.target)[order]
    return {"train": (x[:150], y[:150]), "valid": (x[150:750], y[150:750]), "test": (x[750:], y[750:])}


DATA = digits()


def logits(w: Tensors, x: Tensor) -> Tensor:
    """The network's outputs; the first row of each layer is its bias."""
    for layer in w[:-1]:
        x = torch.tanh(x @ layer[1:] + layer[0])
    return x @ w[-1][1:] + w[-1][0]


def loss(w: Tensors, part: str) -> Tensor:
    x, y = DATA[part]
    return functional.cross_entropy(logits(w, x), y)


def inner(w: Tensors, log_decay: Tensors) -> Tensor:
    decay = sum((d.exp() * t**2).sum() for d, t in zip(log_decay, w, strict=True))
    return loss(w, "train") + decay / 2


def outer(w: Tensors, log_decay: Tensors) -> Tensor:
    return loss(w, "valid")


def newton(w: Tensors, steps: int) -> torch.optim.Optimizer:
    """L-BFGS, because these problems are small: one of its steps evaluates the loss up to `steps` times."""
    return torch.optim.LBFGS(w, max_iter=steps, history_size=20, line_search_fn="strong_wolfe")


def train(w: Tensors, log_decay: Tensors, steps: int) -> None:
    """Move w towards the inner optimum, in place."""
    optimizer = newton(w, steps)

    def closure() -> float:
        optimizer.zero_grad()
        value = inner(w, log_decay)
        value.backward()
        return value.item()

    optimizer.step(closure)


def start(widths: list[int]) -> Tensors:
    make = torch.Generator().manual_seed(0)
    return tuple((torch.randn(n + 1, m, generator=make) / n**0.5).requires_grad_() for n, m in pairwise(widths))


def row(model: str, decay: str, w: Tensors) -> Row:
    x, y = DATA["test"]
    with torch.no_grad():
        return model, decay, loss(w, "valid").item(), 100 * (logits(w, x).argmax(1) == y).float().mean().item()


def learn(model: str, widths: list[int], method: Method, rounds: int) -> list[Row]:
    """The best of the grid, the start of the search two units below it, and the result of the search."""
    grid = []
    for value in GRID:
        w = start(widths)
        train(w, tuple(torch.full_like(t, value) for t in w), 100)
        grid.append((row(model, f"best of {len(GRID)} single ones", w), value))
    best, value = min(grid, key=lambda entry: entry[0][2])

    w = start(widths)
    a = tuple(torch.full_like(t, value - 2).requires_grad_() for t in w)
    train(w, tuple(t.detach() for t in a), 100)
    rows = [best, row(model, "start of the search", w)]
    weights = newton(w, 15)
    engine = Bilevel(inner, outer, method, weights, torch.optim.Adam(a, lr=0.15))
    engine.run(rounds, log=lambda *_: weights.state.clear())  # what L-BFGS has seen belongs to the last decay
    train(w, tuple(t.detach() for t in a), 15)
    return [*rows, row(model, f"{sum(t.numel() for t in a)} learnt ones", w)]


def main() -> list[Row]:
    torch.set_num_threads(1)  # more threads are slower for matrices this small
    rows = learn("logistic regression", [64, 10], ConjugateGradient(20, 1e-3), rounds=20)
    rows += learn("network", [64, 12, 10], Neumann(10, "auto", tolerance=0.0), rounds=20)
    table = Table("model", "weight decay", "validation loss", "test %")
    for model, decay, value, accuracy in rows:
        table.add_row(model, decay, f"{value:.3f}", f"{accuracy:.1f}")
    Console().print(table)
    return rows


if __name__ == "__main__":
    main()
