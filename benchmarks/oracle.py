"""Searches without noise: what the hypergradient is worth if it is exact.

Run `python benchmarks/oracle.py`, with IDARTS_DATA and IDARTS_TABLES set. A supernet of NAS-Bench-201 that is small
enough for full batches: w is trained until its loss hardly falls, α moves by an estimate on all images, and so on. One
path of α follows the exact hypergradient (damped Gauss–Newton, conjugate gradients to a small residual), the others
follow an estimate. Along the exact path all estimates are taken at the same points: `cosine` is that with the exact
one, and there is no noise in it, so what it lacks is bias. The accuracies are those of the last cell in the table.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from idarts.arch import Skeleton, as_text
from idarts.data import Batches, load, split
from idarts.hypergrad import ConjugateGradient, FirstOrder, Method, Neumann, OneStep, Running, hypergradient, lift
from idarts.spaces.nas_bench_201.supernet import NasBench201Supernet
from idarts.tables import row_table

DAMPING = 0.02  # also the weight decay of w: without it a small set of images is learnt by heart
EXACT = "exact"
METHODS: dict[str, Method] = {
    EXACT: ConjugateGradient(iterations=60, tolerance=1e-2, damping=DAMPING, curvature="gauss_newton"),
    "first order": FirstOrder(),
    "one step, γ = 0.01": OneStep(step=0.01),
    "K = 2, γ = 0.01": Neumann(2, 0.01, curvature="gauss_newton"),
    "K = 2, γ = 1/λ_max": Neumann(2, "auto", curvature="gauss_newton"),
    "K = 8, γ = 1/λ_max": Neumann(8, "auto", curvature="gauss_newton"),
    "running v": Running(step="auto", damping=DAMPING, curvature="gauss_newton"),
}
Batch = tuple[Tensor, Tensor]


class Course:
    """A supernet, its two full batches, and the estimates at its points."""

    def __init__(self, seed: int, train: Batch, valid: Batch, rate: float) -> None:
        torch.manual_seed(seed)
        self.net = NasBench201Supernet(Skeleton(depth=1, channels=4, classes=10, image=train[0].shape[2]))
        with torch.no_grad():
            self.net.alpha["cell"][:, 0] = -100.0  # `none` takes no part: its share and its gradient are zero
        self.w, self.a = self.net.weight_parameters(), self.net.architecture_parameters()
        self.inner, self.outer = (lift(self.net, cross_entropy, batch, self.w, self.a) for batch in (train, valid))
        self.weights = torch.optim.SGD(self.w, lr=rate, momentum=0.9, weight_decay=DAMPING)
        self.states: dict[str, Any] = dict.fromkeys(METHODS)

    def train(self, steps: int) -> float:
        """The loss after so many steps on all training images."""
        for _ in range(steps):
            loss = self.inner(self.w, self.a)
            for weight, gradient in zip(self.w, torch.autograd.grad(loss, self.w), strict=True):
                weight.grad = gradient
            self.weights.step()
        return loss.item()

    def estimate(self, name: str) -> Tensor:
        """The hypergradient by one method; its state stays."""
        found = hypergradient(self.inner, self.outer, self.w, self.a, METHODS[name], state=self.states[name])
        self.states[name] = found.state
        return found.grads[0]


def follow(name: str, args: argparse.Namespace, seed: int, train: Batch, valid: Batch) -> dict[str, Any]:
    """The path of one method: its last cell, its losses and, for the exact one, the cosines of all the others."""
    path = Course(seed, train, valid, args.rate)
    alpha = path.net.alpha["cell"]
    adam = torch.optim.Adam([alpha], lr=args.alpha_rate, betas=(0.5, 0.999))
    loss, cosines = path.train(args.first), dict[str, list[float]]()
    for _ in range(args.rounds):
        loss = path.train(args.steps)
        estimate = path.estimate(name)
        for other in METHODS if name == EXACT else ():
            cosine = cosine_similarity(path.estimate(other).flatten(), estimate.flatten(), dim=0)
            cosines.setdefault(other, []).append(cosine.item())
        alpha.grad = estimate
        adam.step()
    facts = {"train_loss": loss, "valid_loss": path.outer(path.w, path.a).item(), "cosines": _means(cosines)}
    return {"cell": as_text(path.net.architecture()), "alpha": alpha.detach()[:, 1:].tolist(), **facts}


def _means(values: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: sum(numbers) / len(numbers) for name, numbers in values.items()}


def batches(images: int, side: int, seed: int) -> tuple[Batch, Batch]:
    """Two sets of so many images of CIFAR-10."""
    first, second = split(load("cifar10", image=side).train, 0.5, seed=seed)
    return next(Batches(first, images, seed=seed)), next(Batches(second, images, seed=seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1024, help="for w, and as many for α (default: 1024)")
    parser.add_argument("--side", type=int, default=8, help="pixels (default: 8)")
    parser.add_argument("--first", type=int, default=300, help="steps of w before the first round (default: 300)")
    parser.add_argument("--steps", type=int, default=20, help="steps of w in a round (default: 20)")
    parser.add_argument("--rounds", type=int, default=40, help="steps of α (default: 40)")
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate of w (default: 0.05)")
    parser.add_argument("--alpha-rate", type=float, default=0.05)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    known, report = row_table("nas-bench-201", None), []
    for seed in args.seeds:
        train, valid = batches(args.images, args.side, seed)
        for name in METHODS:
            found = follow(name, args, seed, train, valid)
            answer = known.query(found["cell"])
            tests = [round(answer[data]["test"], 2) for data in ("cifar10", "cifar100", "imagenet16")]
            report.append({"seed": seed, "method": name, "tests": tests, **found})
            losses = [f"{found[loss]:.3f}" for loss in ("train_loss", "valid_loss")]
            print(seed, name, tests, *losses, found["cell"], flush=True)
            for other, cosine in found["cosines"].items():
                print("   cosine of", other, f"{cosine:.3f}", flush=True)
            if args.json:
                args.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
