"""Networks of equal size."""

from random import Random

import pytest

from idarts.fitting.sizes import TOLERANCE, equal_sizes, parameters, random_architectures, resized
from idarts.spaces import Skeleton, network, space

SPACES = [
    name for name in ("nas-bench-201", "mobile", "residual-blocks") if name in __import__("idarts.arch").arch.SPACES
]


@pytest.mark.parametrize("skeleton", [Skeleton(1, 8, 2, 8), Skeleton(1, 16, 10, 16), Skeleton(2, 24, 100, 32)])
@pytest.mark.parametrize("name", SPACES)
def test_two_networks_have_equal_parameters_within_five_percent(name, skeleton):
    chosen = space(name)
    fixed, size = chosen.fixed(), chosen.resolve().changed(**{k: getattr(skeleton, k) for k in ("channels", "classes")})
    size = size.changed(depth=skeleton.depth, image=skeleton.image)
    target = parameters(fixed, size, 3)
    for found in [chosen.sample(Random(seed)) for seed in range(4)]:
        ours, theirs = equal_sizes(found, fixed, size, target, 3)
        counts = [
            sum(w.numel() for w in network(what, size, in_channels=3).parameters())
            for what, size in ((found, ours), (fixed, theirs))
        ]
        assert abs(counts[0] / counts[1] - 1) <= TOLERANCE
        assert 0.5 < counts[1] / target < 2.0  # mobile rounds its widths to multiples of 8


def test_the_nearest_number_of_channels_is_taken():
    cell, size = random_architectures("nas-bench-201", 1, 3)[0], Skeleton(1, 16, 10, 16)
    best = resized(cell, size, 100_000, 3).channels
    off = [abs(parameters(cell, size.changed(channels=c), 3) - 100_000) for c in (best - 1, best, best + 1)]
    assert min(off) == off[1]


def test_random_architectures_let_something_through():
    cells = random_architectures("nas-bench-201", 20, seed=1)
    assert all(edge.op != "none" for cell in cells for edge in cell.cell.edges)
    assert len(set(cells)) > 15
