"""How much of one minibatch's hypergradient is signal, in the cpu preset's search.

Run `python benchmarks/noise.py`, with IDARTS_DATA set; about five minutes on one core. At two points of a search the
hypergradient of many pairs of batches is taken by several methods. `agreement` is the cosine of one pair's to the mean
of all others'; `to first order` is the cosine of the methods' means; `ranked` is how often one pair's hypergradient
would raise, on an edge, the operation that the mean of all others raises most.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from idarts.engine.settings import change
from idarts.hypergrad import FirstOrder, Method, Neumann, hypergradient, lift
from idarts.searching import Search
from idarts.searching.presets import PRESETS
from idarts.searching.relaxations import relaxed
from idarts.searching.run import RunConfig, _prepare

METHODS: dict[str, Method] = {
    "first order": FirstOrder(),
    "γ = 0.01, K = 2, Hessian": Neumann(2, 0.01),
    "γ = 1/λ_max, K = 0, Gauss–Newton": Neumann(0, "auto", curvature="gauss_newton"),
    "γ = 1/λ_max, K = 2, Gauss–Newton": Neumann(2, "auto", curvature="gauss_newton"),
    "γ = 1/λ_max, K = 8, Gauss–Newton": Neumann(8, "auto", curvature="gauss_newton"),
}


def taken(search: Search, pairs: int) -> dict[str, Tensor]:
    """Hypergradients (pairs, edges, operations) by each method, of the same batches."""
    search.net.relaxation = relaxed(search.net, search.settings, None, search.used())
    found: dict[str, list[Tensor]] = {name: [] for name in METHODS}
    states: dict[str, Any] = dict.fromkeys(METHODS)
    for _ in range(pairs):
        inner, outer = (
            lift(search.net, search.loss, next(stream), search.w, search.a) for stream in (search.train, search.valid)
        )
        for name, method in METHODS.items():
            estimate = hypergradient(inner, outer, search.w, search.a, method, state=states[name])
            states[name] = estimate.state
            found[name].append(estimate.grads[0])
    return {name: torch.stack(grads) for name, grads in found.items()}


def judged(grads: Tensor, none: int | None) -> dict[str, float]:
    """What one pair of batches tells of the mean of the others."""
    others = (grads.sum(dim=0) - grads) / (len(grads) - 1)
    agreement = cosine_similarity(grads.flatten(1), others.flatten(1))
    options = [column for column in range(grads.shape[2]) if column != none]
    ranked = grads[..., options].argmin(dim=2) == others[..., options].argmin(dim=2)
    return {"agreement": agreement.mean().item(), "ranked": ranked.float().mean().item()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    settings: RunConfig = change(change(RunConfig(), PRESETS["cpu"]), {"seed": args.seed})
    search, _ = _prepare(settings)
    rounds, report = search.rounds(), []
    for number in (1, 75):
        while search.number < number:
            next(rounds)
        grads = taken(search, args.pairs)
        first = grads["first order"].mean(dim=0).flatten()
        for name, found in grads.items():
            to_first = cosine_similarity(found.mean(dim=0).flatten(), first, dim=0).item()
            facts = {**judged(found, search.net.none), "to_first_order": to_first}
            report.append({"round": number, "method": name, **{key: round(value, 3) for key, value in facts.items()}})
            print(*report[-1].values(), sep="  ", flush=True)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
