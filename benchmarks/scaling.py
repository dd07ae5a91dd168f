"""One search on several ranks: what it sends, how fast it goes, a model on paper, and hypergradients in half precision.

Run `python benchmarks/scaling.py`; it starts its own ranks on this machine (`--part measured`, `model` or `precision`
for one part alone). Both modes take their rounds in turn in the same processes, and the fastest round counts. Bytes are
those handed to collectives, counted where they are called; a ring sends 2(N − 1)/N times as many from each rank. Ranks
have a thread each, so a second one gains a core, where there is one. Pieces of 8 × 8 pixels are so small that hardly
anything is gained by halving them. The model on paper is for machines that we do not have, from stated numbers.
"""

import argparse
import json
import math
import os
import socket
import subprocess
import sys
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from idarts.data import Batches, load, split
from idarts.data.record import Images
from idarts.engine.ranks import process_group, rank, share, traffic
from idarts.hypergrad import Neumann, hypergradient, lift
from idarts.searching import Search, Task, config
from idarts.spaces import Supernet, space
from measure import fastest

T, K, BATCH = 4, 2, 64
ROUNDS = 10  # of each mode, of which the fastest counts: less than twenty, after which γ is measured again
MODES = ("local", "synchronised")
IMAGES = (8, 32)
Batch = tuple[Tensor, Tensor]


def prepared(mode: str = "synchronised", rounds: int = 10, image: int = 8, **more: Any) -> Search:
    """A small supernet on the digits, enlarged, a piece of every batch for each rank."""
    torch.manual_seed(0)
    found = space("nas-bench-201")
    net = found.supernet(found.skeleton.changed(depth=1, channels=8, classes=10, image=image), in_channels=1)
    digits = load("digits").train
    assert isinstance(digits, Images)
    large = digits.images.repeat_interleave(image // 8, dim=2).repeat_interleave(image // 8, dim=3)
    parts = split(replace(digits, images=large), 0.5, seed=0)
    train, valid = (Batches(part, BATCH, seed=seed, share=share(BATCH)) for seed, part in enumerate(parts))
    settings = config(rounds=rounds, inner_steps=T, hypergradient={"terms": K}, distributed=mode, **more)
    return Task(net, train, valid, settings).search()


def rounds_of_both(image: int) -> dict[str, dict[str, float]]:
    """The time of the fastest round, and what a round sends; none of them measures an eigenvalue."""
    searches = {mode: prepared(mode, 2 + ROUNDS, image) for mode in MODES}
    runs = {mode: partial(next, search.rounds()) for mode, search in searches.items()}
    for run in runs.values():  # a first round does
        run()
    seconds = fastest(runs, ROUNDS, lambda _: None)
    found = {}
    for mode, run in runs.items():
        with traffic() as counted:
            run()
        found[mode] = {
            "seconds": seconds[mode],
            "images_per_second": BATCH * (T + 2) / seconds[mode],  # T weight steps, two batches for α
            "bytes": counted.bytes,
            "calls": counted.calls,
            "weights": sum(parameter.numel() for parameter in searches[mode].w),
        }
    return found


def as_rank() -> None:
    """What each of several processes does; the first one tells."""
    torch.set_num_threads(1)
    with process_group():
        found = {image: rounds_of_both(image) for image in IMAGES}
        if rank() == 0:
            print(json.dumps(found))


def measured() -> dict[str, Any]:
    """Rounds by one rank and by two."""
    found: dict[str, Any] = {}
    for ranks in (1, 2):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            group = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
        jobs = [
            subprocess.Popen(
                [sys.executable, __file__, "--part", "rank"],
                env=os.environ | group | {"RANK": str(place), "LOCAL_RANK": str(place), "OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                text=True,
            )
            for place in range(ranks)
        ]
        shown = [job.communicate()[0] for job in jobs]
        found[str(ranks)] = json.loads(shown[0])
        for image, mode in product(found[str(ranks)], MODES):
            row = found[str(ranks)][image][mode]
            print(
                f"{ranks} rank(s)  {image:>2} px  {mode:13}  {row['seconds']:6.3f} s a round  "
                f"{row['images_per_second']:6.0f} images/s  {row['bytes'] / 1e6:6.3f} MB in {row['calls']:2} "
                f"collectives a round ({row['weights']:,} weights)"
            )
    return found


@dataclass(frozen=True)
class Machine:
    """What is assumed of one: bytes a second that a rank sends in a ring, and the delay of one hop."""

    name: str
    ranks: int
    bandwidth: float
    latency: float

    def all_reduce(self, size: float) -> float:
        """A ring's bandwidth with a tree's delay, as NCCL mixes them."""
        hops = 2 * math.ceil(math.log2(self.ranks))
        return 2 * (self.ranks - 1) / self.ranks * size / self.bandwidth + hops * self.latency


MACHINES = (
    Machine("8 GPUs, NVLink", 8, 200e9, 5e-6),
    Machine("64 GPUs, InfiniBand 200 Gb/s a node", 64, 25e9, 10e-6),
    Machine("64 GPUs, Ethernet 25 Gb/s a node", 64, 3e9, 30e-6),
)
GRADIENT = 0.040  # seconds of a gradient evaluation on a rank's share, assumed; the share is the same on any number
SMALL = 6  # collectives of some numbers in a round: statistics, digest, time, accuracy, flags, and γ's contraction


def communication(machine: Machine, mode: str, weights: int) -> float:
    """Seconds of a round, in which nothing is hidden behind computing."""
    vectors = T + (K + 1 if mode == "synchronised" else 0)  # ∂L2/∂w and K products
    measured_again = (2 if mode == "synchronised" else 1) / 20  # for the eigenvalue, every twenty rounds
    return (vectors + measured_again) * machine.all_reduce(4 * weights) + (1 + SMALL) * machine.all_reduce(1e3)


def model() -> list[dict[str, Any]]:
    """Both modes at 8 and 64 GPUs."""
    rows = []
    computing = (T + 2 + (K + 1) * 4 / 3) * GRADIENT  # of α: two gradients, K products and the mixed one
    for name in ("nas-bench-201", "darts"):
        found = space(name)
        weights = sum(p.numel() for p in found.supernet(found.skeleton).weight_parameters())
        for machine in MACHINES:
            times = {mode: communication(machine, mode, weights) for mode in MODES}
            rows.append({"space": name, "weights": weights, "machine": machine.name, **times, "computing": computing})
            shown = "  ".join(f"{mode} {1e3 * t:7.2f} ms ({t / (t + computing):5.1%})" for mode, t in times.items())
            print(f"{name:14} {weights / 1e6:5.2f} M weights  {machine.name:36} {shown}")
    print(f"beside {1e3 * computing:.0f} ms of computing a round, {1e3 * GRADIENT:.0f} ms a gradient evaluation")
    return rows


def in_autocast(
    net: Supernet, inner: Batch, outer: Batch, step: float, kind: torch.dtype | None, scale: float = 1.0
) -> Tensor:
    """Neumann's hypergradient with everything under autocast, second derivatives too: what we do not do."""
    w, a = net.weight_parameters(), net.architecture_parameters()
    with torch.autocast("cpu", kind, kind is not None):
        loss = cross_entropy(net(outer[0]), outer[1])
        grads = torch.autograd.grad(scale * loss, [*w, *a])
        v, direct = [step * g / scale for g in grads[: len(w)]], grads[len(w) :]
        first = torch.autograd.grad(scale * cross_entropy(net(inner[0]), inner[1]), w, create_graph=True)
        total = v
        for _ in range(K):
            product = torch.autograd.grad(first, w, v, retain_graph=True)
            v = [x - step * y / scale for x, y in zip(v, product, strict=True)]
            total = [x + y for x, y in zip(total, v, strict=True)]
        mixed = torch.autograd.grad(first, a, total)
    return torch.cat([((d - m) / scale).reshape(-1) for d, m in zip(direct, mixed, strict=True)])


def ours(net: Supernet, inner: Batch, outer: Batch, step: float, first: torch.dtype | None = None) -> Tensor:
    """`hypergradient`; called under autocast, ∂L2/∂w and ∂L2/∂α are taken in that precision, all else in full."""
    w, a = net.weight_parameters(), net.architecture_parameters()
    losses = [lift(net, cross_entropy, batch, w, a) for batch in (inner, outer)]
    with torch.autocast("cpu", first, first is not None):
        found = hypergradient(losses[0], losses[1], w, a, Neumann(K, step))
    return torch.cat([grad.reshape(-1) for grad in found.grads])


def precision() -> dict[str, Any]:
    """Errors of one hypergradient against float64, and how far short searches end from that in float32."""
    work = prepared()
    start = work.a[0].detach().clone()
    rounds = list(work.rounds())
    net, step = work.net, 0.5 * (rounds[-1].measures["step"] or 0.1)
    inner, outer = next(work.task.train), next(work.task.valid)
    wide = deepcopy(net).double()
    exact = ours(wide, (inner[0].double(), inner[1]), (outer[0].double(), outer[1]), step)
    bf16, fp16 = torch.bfloat16, torch.float16
    estimates = {
        "float32": ours(net, inner, outer, step),
        "bfloat16 first order, float32 second order": ours(net, inner, outer, step, bf16),
        "float16 first order, float32 second order": ours(net, inner, outer, step, fp16),
        "everything bfloat16": in_autocast(net, inner, outer, step, bf16),
        "everything float16, losses scaled by 1024": in_autocast(net, inner, outer, step, fp16, 1024.0),
    }
    found: dict[str, Any] = {}
    for name, estimate in estimates.items():
        error = ((estimate.double() - exact).norm() / exact.norm()).item()
        cosine = cosine_similarity(estimate.double(), exact, dim=0).item()
        found[name] = {"error": error, "cosine": cosine}
        print(f"{name:44} relative error {error:8.1e}  cosine {cosine:.6f}")
    moved = (work.a[0] - start).detach()
    for name, more in (("bfloat16", {}), ("float16", {}), ("float32, from weights changed by 0.1 %", {"noise": 1e-3})):
        other = prepared(precision=name.partition(",")[0])
        for parameter in other.w:
            parameter.data.mul_(1 + more.get("noise", 0.0) * torch.randn_like(parameter))
        list(other.rounds())
        cosine = cosine_similarity((other.a[0] - start).reshape(-1), moved.reshape(-1), dim=0).item()
        found[f"search, weight steps in {name}"] = {"cosine": cosine}
        print(f"ten rounds, weight steps in {name}: cosine of α's way to that in float32 {cosine:.3f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["measured", "model", "precision", "rank"], help="one part alone")
    parser.add_argument("--json", type=Path, help="file for the results")
    arguments = parser.parse_args()
    if arguments.part == "rank":
        as_rank()
        return
    parts = {"measured": measured, "model": model, "precision": precision}
    found = {name: part() for name, part in parts.items() if arguments.part in (None, name)}
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
