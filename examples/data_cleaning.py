"""Detect wrong labels: a weight for every training example, learnt from a small clean validation set.

The inner problem is a weighted logistic regression on digits, 30 % of them with a wrong label. The outer parameters are
the weights of the examples, before a sigmoid. The hypergradient decreases a weight where the label harms validation.
"""

import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn import functional

from idarts.hypergrad import Bilevel, Estimate, Neumann

Tensors = tuple[Tensor, ...]
TRAIN, VALID, WRONG, ROUNDS = 800, 300, 0.3, 40


def main() -> float:
    torch.set_num_threads(1)  # more threads are slower for matrices this small
    data, make = load_digits(), torch.Generator().manual_seed(0)
    order = torch.randperm(len(data.target), generator=make)
    x, y = torch.tensor(data.data / 16, dtype=torch.float32)[order], torch.tensor(data.target)[order]
    wrong = torch.rand(TRAIN, generator=make) < WRONG
    given = torch.where(wrong, (y[:TRAIN] + torch.randint(1, 10, (TRAIN,), generator=make)) % 10, y[:TRAIN])
    valid, test = slice(TRAIN, TRAIN + VALID), slice(TRAIN + VALID, None)

    def inner(w: Tensors, a: Tensors) -> Tensor:
        losses = functional.cross_entropy(x[:TRAIN] @ w[0] + w[1], given, reduction="none")
        return (a[0].sigmoid() * losses).mean() + 1e-3 * (w[0] ** 2).sum()

    def outer(w: Tensors, a: Tensors) -> Tensor:
        return functional.cross_entropy(x[valid] @ w[0] + w[1], y[valid])

    def accuracy(w: Tensors) -> float:
        return 100 * ((x[test] @ w[0] + w[1]).argmax(1) == y[test]).float().mean().item()

    w = torch.zeros(64, 10, requires_grad=True), torch.zeros(10, requires_grad=True)
    a = (torch.zeros(TRAIN, requires_grad=True),)
    table = Table("round", "validation loss", "test %", "area under ROC", "terms")

    def area() -> float:
        """Of the ROC curve of the weights as detectors of wrong labels."""
        return float(roc_auc_score(wrong, -a[0].detach()))

    def log(number: int, estimate: Estimate) -> None:
        if number % 10 == 0:
            loss, terms = f"{estimate.outer_loss.item():.3f}", str(estimate.diagnostics.terms)
            table.add_row(str(number), loss, f"{accuracy(w):.1f}", f"{area():.3f}", terms)

    weights, examples = torch.optim.SGD(w, lr=2.0, momentum=0.9), torch.optim.Adam(a, lr=0.3)
    method = Neumann(20, "auto", tolerance=0.1)
    Bilevel(inner, outer, method, weights, examples, inner_steps=100).run(ROUNDS, log)
    Console().print(table)
    return area()


if __name__ == "__main__":
    main()
