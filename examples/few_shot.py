"""Few-shot learning: a representation for many tasks, learnt by the hypergradient through the tasks' linear heads.

A task is three of the digits with one example of each. The inner problem is the linear head of every task on its own
examples (w), the outer problem the linear map of the pixels that all heads share (α): the loss on other images of the
same tasks. The test tasks have new images. Their heads are trained in the same way, on the learnt representation and on
the pixels, which is where α starts. (Digits that no task has shown are another matter: six digits are too few to learn
a representation for the other four.)
"""

import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn.functional import cross_entropy

from idarts.hypergrad import Bilevel, Running

Tensors = tuple[Tensor, ...]
Task = dict[str, Tensor]
WAYS, SHOTS, QUERIES, TASKS, ROUNDS, DECAY = 3, 1, 10, 60, 45, 0.05
MAKE = torch.Generator().manual_seed(0)


def tasks(images: slice, count: int) -> Task:
    """Pixels (task, example, pixel) and classes 0 … WAYS − 1: `support` to learn from, `query` to judge by."""
    data = load_digits()
    pixels, labels = torch.tensor(data.data[images] / 16, dtype=torch.float32) - 0.5, torch.tensor(data.target[images])
    drawn = []
    for _ in range(count):
        members = [torch.nonzero(labels == digit).flatten() for digit in torch.randperm(10, generator=MAKE)[:WAYS]]
        some = [m[torch.randperm(len(m), generator=MAKE)[: SHOTS + QUERIES]] for m in members]
        drawn.append(torch.stack([pixels[part] for part in some]))
    x = torch.stack(drawn)  # task, way, example, pixel
    y = torch.arange(WAYS).view(1, WAYS, 1).expand(x.shape[:3])
    task = {}
    for name, part in (("support", slice(SHOTS)), ("query", slice(SHOTS, None))):
        task[name], task[f"{name} classes"] = x[:, :, part].flatten(1, 2), y[:, :, part].flatten(1, 2)
    return task


def logits(w: Tensors, a: Tensors, x: Tensor) -> Tensor:
    """The heads on the representation, whose length is fixed."""
    z = x @ a[0]
    return torch.baddbmm(w[1], 4 * z / z.norm(dim=-1, keepdim=True), w[0])


def loss(w: Tensors, a: Tensors, data: Task, part: str) -> Tensor:
    """The sum over the tasks, so that each head has its own problem, for any number of tasks."""
    return cross_entropy(logits(w, a, data[part]).flatten(0, 1), data[f"{part} classes"].flatten(), reduction="sum")


def inner(w: Tensors, a: Tensors, data: Task) -> Tensor:
    return loss(w, a, data, "support") + DECAY / 2 * sum((t**2).sum() for t in w)


def heads(count: int) -> tuple[Tensors, torch.optim.Optimizer]:
    w = torch.zeros(count, 64, WAYS, requires_grad=True), torch.zeros(count, 1, WAYS, requires_grad=True)
    return w, torch.optim.SGD(w, lr=0.1, momentum=0.9)


def accuracy(a: Tensors, data: Task) -> float:
    """Percent of the query images, with heads that are trained on the support images from zero."""
    w, optimizer = heads(len(data["support"]))
    for _ in range(60):
        optimizer.zero_grad()
        inner(w, tuple(t.detach() for t in a), data).backward()
        optimizer.step()
    with torch.no_grad():
        right = logits(w, a, data["query"]).argmax(-1) == data["query classes"]
    return 100 * right.float().mean().item()


def main() -> dict[str, float]:
    torch.set_num_threads(1)  # more threads are slower for matrices this small
    MAKE.manual_seed(0)
    known, new = tasks(slice(900), TASKS), tasks(slice(900, None), 200)
    a: Tensors = (torch.eye(64, requires_grad=True),)
    results = {"pixels": accuracy(a, new)}
    _, optimizer = heads(TASKS)
    engine = Bilevel(
        lambda w, a: inner(w, a, known),
        lambda w, a: loss(w, a, known, "query") / TASKS,
        Running(damping=0.0),
        optimizer,
        torch.optim.Adam(a, lr=0.003),
        inner_steps=3,
    )
    engine.run(ROUNDS)
    results["learnt representation"] = accuracy(a, new)
    table = Table("heads on", f"accuracy in new tasks, {SHOTS} example of each digit")
    for name, value in results.items():
        table.add_row(name, f"{value:.1f} %")
    Console().print(table)
    return results


if __name__ == "__main__":
    main()
