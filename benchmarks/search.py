"""One outer round of Algorithm 1 (T weight steps, an α step with K terms): ours against the way of published code.

Run `python benchmarks/search.py`. All run in one process, in interleaved rounds, the fastest round of each counts.

The published way, written out below: a supernet edge by edge, `loss.backward()`, every Hessian-vector product from a
gradient graph from scratch, the mixed product by central differences of ∇_α L_train at w ± εv, images augmented one by
one in a `DataLoader`, and `next(iter(loader))` for a validation batch. A second row takes the Hessian-vector products
by differences too. Up to the error of these differences all estimate the same hypergradient with the same γ, T and K;
that is checked first, at the same weights and batches. With the Gauss–Newton curvature ours estimates another one;
what it spends now and then on the largest eigenvalue (two products in twenty rounds) is not in its fastest round.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, pad
from torch.utils.data import DataLoader, Dataset

from idarts.data import CIFAR, Batches, Images, load, split
from idarts.errors import DivergenceWarning
from idarts.hypergrad import Neumann, hypergradient, lift
from idarts.searching import Config, Round, Search, Task, config
from idarts.searching.log import Log
from idarts.spaces import Skeleton
from idarts.spaces.nas_bench_201.supernet import NasBench201Supernet
from measure import fastest, peak_bytes

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "spaces"))
import conversion
import plain_201

T, K, STEP, BATCH, IMAGES = 4, 2, 0.01, 64, 4096
RADIUS = 1e-2  # length of a finite difference's perturbation, as in DARTS
HESSIAN, DEFAULT = "ours, Hessian", "ours, Gauss–Newton"
PUBLISHED, DIFFERENCES = "published way", "published, differences"
Batch = tuple[Tensor, Tensor]
Vector = list[Tensor]


class OneByOne(Dataset[tuple[Tensor, int]]):
    """Images that are padded, cropped, flipped and normalised on their own, as a list of transforms does it."""

    def __init__(self, part: Images) -> None:
        self.part = part
        self.mean, self.std = (torch.tensor(values).view(-1, 1, 1) for values in (part.mean, part.std))

    def __len__(self) -> int:
        return len(self.part)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.part.images[index]
        side = image.shape[-1]
        top, left = torch.randint(0, 9, (2,)).tolist()
        image = pad(image, (4, 4, 4, 4))[:, top : top + side, left : left + side]
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        return (image.float() / 255 - self.mean) / self.std, int(self.part.labels[index])


class PublishedSearch:
    """Algorithm 1 with nothing but stock parts; correct, but written as it is usually written."""

    def __init__(self, net: nn.Module, train: Images, valid: Images, settings: Config, differences: bool) -> None:
        self.net, self.differences = net, differences
        self.w = [p for name, p in net.named_parameters() if not name.startswith("alpha")]
        self.a = [p for name, p in net.named_parameters() if name.startswith("alpha")]
        weights, alpha = settings.weights, settings.alpha
        self.weight_optimizer = torch.optim.SGD(
            self.w, weights.rate, weights.momentum, weight_decay=weights.decay, nesterov=weights.nesterov
        )
        self.alpha_optimizer = torch.optim.Adam(self.a, float(alpha.rate), alpha.betas, weight_decay=alpha.decay)
        self.clip, self.radius = weights.clip, RADIUS
        # No worker processes: they would be started again for every validation batch, to the loader's disadvantage.
        self.train, self.valid = (
            DataLoader(OneByOne(part), settings.batch, shuffle=True, drop_last=True) for part in (train, valid)
        )
        self.epoch: Iterator[Any] = iter(self.train)

    def round(self) -> None:
        for _ in range(T):
            self.weight_step()
        self.alpha_step()

    def weight_step(self) -> None:
        self.weight_optimizer.zero_grad()
        self.loss(self.train_batch()).backward()  # into α too, as nobody asks for w alone
        nn.utils.clip_grad_norm_(self.w, self.clip)
        self.weight_optimizer.step()

    def alpha_step(self) -> None:
        direct, implicit = self.estimate(self.train_batch(), next(iter(self.valid)))
        for parameter, one, other in zip(self.a, direct, implicit, strict=True):
            parameter.grad = one + other  # in place of what the weight steps left there
        self.alpha_optimizer.step()

    def train_batch(self) -> Any:
        try:
            return next(self.epoch)
        except StopIteration:
            self.epoch = iter(self.train)
            return next(self.epoch)

    def loss(self, batch: Batch) -> Tensor:
        return cross_entropy(self.net(batch[0]), batch[1])

    def estimate(self, train: Batch, valid: Batch) -> tuple[Vector, Vector]:
        """∂L2/∂α, and −γ ∂L2/∂w · Σ (I − γH)^k · ∂²L1/∂α∂w."""
        grads = torch.autograd.grad(self.loss(valid), [*self.a, *self.w])
        direct, term = list(grads[: len(self.a)]), list(grads[len(self.a) :])
        total = term
        for _ in range(K):
            term = [t - STEP * h for t, h in zip(term, self.hessian(term, train), strict=True)]
            total = [s + t for s, t in zip(total, term, strict=True)]
        return direct, [-STEP * m for m in self.difference(total, train, self.a)]

    def hessian(self, v: Vector, batch: Batch) -> Vector:
        if self.differences:
            return self.difference(v, batch, self.w)
        grads = torch.autograd.grad(self.loss(batch), self.w, create_graph=True)
        return list(torch.autograd.grad(grads, self.w, v))

    def difference(self, v: Vector, batch: Batch, of: list[nn.Parameter]) -> Vector:
        """(∇L1(w + εv) − ∇L1(w − εv)) / 2ε; the weights are moved there and back."""
        epsilon = self.radius / float(_flat(v).norm())
        self.move(v, epsilon)
        plus = torch.autograd.grad(self.loss(batch), of)
        self.move(v, -2 * epsilon)
        minus = torch.autograd.grad(self.loss(batch), of)
        self.move(v, epsilon)
        return [(p - m) / (2 * epsilon) for p, m in zip(plus, minus, strict=True)]

    @torch.no_grad()
    def move(self, v: Vector, length: float) -> None:
        for parameter, direction in zip(self.w, v, strict=True):
            parameter.add_(direction, alpha=length)


class Bench:
    """The searches, all from the same weights, on the same random images."""

    def __init__(self, macro: Skeleton) -> None:
        pixels, labels = torch.randint(256, (IMAGES, 32, 32, 3), dtype=torch.uint8), torch.randint(10, (IMAGES,))
        whole = load((pixels.numpy(), labels), hold_out=0).train
        assert isinstance(whole, Images)
        self.parts = split(whole, 0.5)
        same: dict[str, Any] = {"rounds": 10_000, "none": True, "alpha": {"rate": 3e-4}}
        explicit = config(**same, hypergradient={"step": STEP, "curvature": "hessian"})
        torch.manual_seed(0)
        start = NasBench201Supernet(macro).state_dict()
        self.ours: dict[str, Search] = {}
        for name, settings in ((HESSIAN, explicit), (DEFAULT, config(**same))):
            net = NasBench201Supernet(macro)
            net.load_state_dict(start)
            inner, outer = (Batches(part, BATCH, seed=i, augment=CIFAR) for i, part in enumerate(self.parts))
            self.ours[name] = Task(net, inner, outer, settings).search()
        self.published: dict[str, PublishedSearch] = {}
        for name, differences in ((PUBLISHED, False), (DIFFERENCES, True)):
            plain = plain_201.Plain201(macro)
            plain.load_state_dict(conversion.to_plain(start, plain.state_dict(), plain_201.place))
            self.published[name] = PublishedSearch(plain, *self.parts, explicit, differences)

    def runs(self) -> dict[str, Callable[[], Any]]:
        runs: dict[str, Callable[[], Any]] = {name: partial(one_round, search) for name, search in self.ours.items()}
        return runs | {name: search.round for name, search in self.published.items()}

    def agreement(self) -> dict[str, dict[str, float]]:
        """All must agree in double precision where no ReLU's kink is crossed; returns the usual radius's error."""
        search, found = self.ours[HESSIAN], {}
        search.net.double()
        batches = next(search.task.train), next(search.task.valid)
        train, valid = ((images.double(), labels) for images, labels in batches)
        inner, outer = (lift(search.net, cross_entropy, batch, search.w, search.a) for batch in (train, valid))
        exact = hypergradient(inner, outer, search.w, search.a, Neumann(K, STEP, curvature="hessian"))
        for name, published in self.published.items():
            published.net.double()
            for published.radius in (1e-8, RADIUS):
                direct, implicit = published.estimate(train, valid)
                torch.testing.assert_close(direct, list(exact.direct))
                ours, theirs = _flat(list(exact.implicit)), _flat(implicit)
                if published.radius < RADIUS:
                    torch.testing.assert_close(theirs, ours, rtol=1e-2, atol=1e-2 * float(ours.abs().max()))
            error, cosine = float((theirs - ours).norm() / ours.norm()), float(cosine_similarity(theirs, ours, dim=0))
            found[name] = {"implicit_error": error, "implicit_cosine": cosine}
        return found

    def overhead(self, rounds: int) -> dict[str, float]:
        """Seconds of a weight step of ours, of a batch (an epoch's mean, as its start draws for all), of the logs."""
        search = self.ours[HESSIAN]
        batches = Batches(self.parts[0], BATCH, augment=CIFAR)
        first = replace(one_round(search), number=1)  # of the first round the log has all that it ever has
        log = Log(search)
        with TemporaryFile("w") as file:

            def write() -> None:
                file.write(json.dumps(log.entry(first)) + "\n")
                file.flush()

            def weight_step() -> None:
                assert search.weights is not None
                search.weights.step(search.strategy.mixtures, search.rate())

            runs = {"weight step": weight_step, "epoch": lambda: list(batches.one_epoch()), "logs": write}
            seconds = fastest(runs, max(rounds, 3), lambda _: None)
        seconds["batch"] = seconds.pop("epoch") / len(batches)
        return seconds

    def memory(self, points: list[tuple[str, int, int]]) -> list[dict[str, Any]]:
        """Peak bytes of a round of ours at other T and K."""
        found: list[dict[str, Any]] = []
        for name, inner_steps, terms in points:
            search = self.ours[name]
            before = search.settings
            method = replace(before.hypergradient, terms=terms)
            search.settings = replace(before, inner_steps=inner_steps, hypergradient=method)
            found.append({"who": name, "T": inner_steps, "K": terms, "bytes": peak_bytes(partial(one_round, search))})
            search.settings = before
            say(f"memory: {name}, T = {inner_steps}, K = {terms}: {found[-1]['bytes'] / 2**20:.0f} MiB")
        return found


def one_round(search: Search) -> Round:
    return next(search.rounds())


def growth(rows: list[dict[str, Any]], along: str) -> float:
    """Per cent by which the largest peak exceeds the smallest where only `along` changes; the worst of such groups."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        groups.setdefault(tuple(v for k, v in row.items() if k not in (along, "bytes")), []).append(row["bytes"])
    return 100 * max(max(group) / min(group) - 1 for group in groups.values())


def _flat(vector: Vector) -> Tensor:
    return torch.cat([part.reshape(-1) for part in vector])


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr)


def report(results: dict[str, Any]) -> None:
    """The table and the targets."""
    seconds, overhead = results["seconds"], results["overhead"]
    for name, check in results["agreement"].items():
        error, cosine = 100 * check["implicit_error"], check["implicit_cosine"]
        print(f"{name}: direct part as ours, implicit part {error:.1f} % away from ours (cosine {cosine:.4f})")
    print(f"\n{'one round, T = 4, K = 2':26} {'seconds':>8} {'Hessian faster':>15} {'Gauss–Newton faster':>20}")
    for name, value in seconds.items():
        print(f"{name:26} {value:8.3f} {value / seconds[HESSIAN]:14.2f}× {value / seconds[DEFAULT]:19.2f}×")
    print(f"\n{'peak of one round':26} {'T':>3} {'K':>3} {'MiB':>8}")
    for row in results["memory"]:
        print(f"{row['who']:26} {row['T']:3} {row['K']:3} {row['bytes'] / 2**20:8.0f}")
    ours = [row for row in results["memory"] if row["who"] in (HESSIAN, DEFAULT)]
    print("\nms: " + ", ".join(f"{name} {1000 * value:.2f}" for name, value in overhead.items()))
    # Logs are written once a round, and are charged to one of its steps all the same.
    share = 100 * (overhead["batch"] + overhead["logs"]) / overhead["weight step"]
    print(f"ours is {seconds[PUBLISHED] / seconds[HESSIAN]:.2f}× faster (target ≥ 2.0, aim 2.5)")
    print(f"memory grows by {growth(ours, 'K'):.1f} % from K=1 to 16 (≤ 5 %)")
    print(f"memory grows by {growth(ours, 'T'):.1f} % from T=1 to 4 (≤ 5 %)")
    print(f"data and logging take {share:.2f} % of a weight step (< 3 %)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the fastest counts")
    parser.add_argument("--threads", type=int, default=2, help="threads that torch uses")
    parser.add_argument("--small", action="store_true", help="one cell a stage: a quick check, no result")
    parser.add_argument("--json", type=Path, help="file for the results")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    # On random labels the Hessian is indefinite, so that the series may grow: known, and no matter for the time.
    warnings.simplefilter("ignore", DivergenceWarning)
    agreement = Bench(Skeleton(1, 4, 10, 32)).agreement()  # a matter of mathematics, not of size
    bench = Bench(Skeleton(1 if args.small else 5, 16, 10, 32))
    setting = {"T": T, "K": K, "step": STEP, "batch": BATCH, "small": args.small, "threads": args.threads}
    results: dict[str, Any] = {"setting": setting, "torch": torch.__version__, "agreement": agreement}

    def keep() -> None:
        """What is measured stays, should the rest be stopped."""
        if args.json:
            args.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")

    for search in bench.ours.values():  # the first round measures the largest eigenvalue from nothing
        one_round(search)
    results["seconds"] = fastest(bench.runs(), args.rounds, say)
    say(f"seconds a round: {results['seconds']}")
    results["overhead"] = bench.overhead(args.rounds)
    say(f"overhead: {results['overhead']}")
    keep()
    grid = [(HESSIAN, 4, 1), (HESSIAN, 4, 4), (HESSIAN, 4, 16), (HESSIAN, 1, 1), (DEFAULT, 4, 1), (DEFAULT, 4, 16)]
    published = {"who": PUBLISHED, "T": T, "K": K, "bytes": peak_bytes(bench.published[PUBLISHED].round)}
    results["memory"] = [*bench.memory(grid), published]
    keep()
    report(results)


if __name__ == "__main__":
    main()
