"""From images to a network in one call, on generated pictures (`make demo`): search, train, compare, export.

Ten kinds of small grey pictures (disc, ring, square, …) at random places, sizes and angles, under strong noise. They
are drawn here, so the demo needs no download, and there are enough test images to tell two networks apart.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

import idarts
from idarts.cli.fit import Line

KINDS = ("disc", "ring", "square", "frame", "triangle", "cross", "bar", "two bars", "stripes", "checks")


def pictures(count: int, seed: int, side: int = 16) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pictures (count, 1, side, side) and their kinds."""
    random = np.random.default_rng(seed)
    kinds = np.arange(count) % len(KINDS)
    y, x = np.mgrid[:side, :side]
    images = np.empty((count, 1, side, side), np.uint8)
    for place, kind in enumerate(kinds):
        size = random.uniform(0.25, 0.45) * side
        middle = random.uniform(0.35, 0.65, 2) * side
        angle = random.uniform(0, 2 * np.pi)
        u = ((x - middle[0]) * np.cos(angle) + (y - middle[1]) * np.sin(angle)) / size
        v = ((y - middle[1]) * np.cos(angle) - (x - middle[0]) * np.sin(angle)) / size
        contrast = random.uniform(50, 90) * random.choice((-1, 1))
        picture = 128 + contrast * _shape(KINDS[kind], u, v) + random.normal(0, 45, (side, side))
        images[place, 0] = np.clip(picture, 0, 255)
    return images, kinds.astype(np.int64)


def _shape(kind: str, u: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where a shape of size 1 is, in its own coordinates."""
    radius, reach = np.hypot(u, v), np.maximum(abs(u), abs(v))
    shapes = {
        "disc": radius < 1,
        "ring": (radius < 1) & (radius > 0.6),
        "square": reach < 0.85,
        "frame": (reach < 0.9) & (reach > 0.5),
        "triangle": (v > -0.6) & (v + 1.8 * abs(u) < 1),
        "cross": (np.minimum(abs(u), abs(v)) < 0.3) & (reach < 1),
        "bar": (abs(u) < 0.35) & (abs(v) < 1.1),
        "two bars": (abs(abs(u) - 0.6) < 0.25) & (abs(v) < 1.1),
        "stripes": (reach < 1) & (np.sin(6 * u) > 0),
        "checks": (reach < 1) & (np.sin(5 * u) * np.sin(5 * v) > 0),
    }
    return np.asarray(shapes[kind])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.5, help="time for everything (default: 1.5)")
    parser.add_argument("--out", default="runs/demo", help="folder to write (default: runs/demo)")
    args = parser.parse_args()
    result = idarts.fit(
        (pictures(6000, seed=1), pictures(3000, seed=2)),
        minutes=args.minutes,
        out=args.out,
        space="nas-bench-201",  # the default space needs some minutes more, until short trainings tell its blocks apart
        overwrite=True,
        on_plan=lambda look, plan: print("\n".join([*look.lines(), *plan.lines()]), flush=True),
        on_status=Line(),
    )
    print(result.sentence)
    print(f"report: {result.path / 'report.html'}")
    print(f"use it: .venv/bin/idarts predict {result.path} IMAGE")


if __name__ == "__main__":
    main()
