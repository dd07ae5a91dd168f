"""From images to a network in one call, on generated pictures (`make demo`): search, train, compare, export.

Twenty textures: noise that is filtered, with another 5×5 filter for each texture, under further noise. They are made
here, so the demo needs no download, and there are enough test images to tell two networks apart. Telling textures apart
takes many features, so it matters which blocks a network of a given size has.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

import idarts
from idarts.cli.fit import Line

TEXTURES, FILTER = 20, 5  # how many textures, and the side of their filters


def pictures(count: int, seed: int, side: int = 12) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pictures (count, 1, side, side) and their textures."""
    random, filters = np.random.default_rng(seed), _filters()
    textures = np.arange(count) % TEXTURES
    noise = random.normal(size=(count, side + FILTER - 1, side + FILTER - 1))
    windows = np.lib.stride_tricks.sliding_window_view(noise, (FILTER, FILTER), axis=(1, 2))
    filtered = np.einsum("nyxij,nij->nyx", windows, filters[textures])
    contrast = random.uniform(0.5, 1.0, (count, 1, 1))
    values = contrast * filtered + random.normal(0, 0.3, filtered.shape)
    return np.clip(128 + 45 * values, 0, 255).astype(np.uint8)[:, None], textures


def _filters() -> NDArray[np.float64]:
    """A filter for each texture: random, but the same in every call; of mean 0 and norm 1."""
    drawn = np.random.default_rng(0).normal(size=(TEXTURES, FILTER, FILTER))
    drawn -= drawn.mean(axis=(1, 2), keepdims=True)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=(1, 2), keepdims=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.5, help="time for everything (default: 1.5)")
    parser.add_argument("--seed", type=int, default=0, help="of the search and the trainings (default: 0)")
    parser.add_argument("--out", default="runs/demo", help="folder to write (default: runs/demo)")
    args = parser.parse_args()
    result = idarts.fit(
        (pictures(20_000, seed=1), pictures(3000, seed=2)),
        minutes=args.minutes,
        seed=args.seed,
        out=args.out,
        overwrite=True,
        on_plan=lambda look, plan: print("\n".join([*look.lines(), *plan.lines()]), flush=True),
        on_status=Line(),
    )
    print(result.sentence)
    print(f"report: {result.path / 'report.html'}")
    print(f"use it: .venv/bin/idarts predict {result.path} IMAGE")


if __name__ == "__main__":
    main()
