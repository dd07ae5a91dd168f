"""Random architectures of each space, for baselines and tests."""

from random import Random

from idarts.arch import darts, nas_bench_1shot1, nas_bench_101, nas_bench_201
from idarts.arch.record import Architecture
from idarts.arch.rules import DARTS_OPS, NAS_BENCH_101_OPS, NAS_BENCH_101_VERTICES
from idarts.arch.rules import NAS_BENCH_1SHOT1_PARENTS as PARENTS
from idarts.errors import InputError


def sample(space: str, random: Random, variant: str | None = None) -> Architecture:
    """A random architecture: uniform over the choices a search in that space makes.

    In `darts` two different predecessors and operations other than none; in `nas-bench-101` random matrices and
    operations until one is a valid cell, as the benchmark's authors sample.

    >>> sample("nas-bench-201", Random(0)) == sample("nas-bench-201", Random(0))
    True
    """
    if space == nas_bench_201.SPACE:
        return nas_bench_201.from_index(random.randrange(nas_bench_201.SIZE))
    if space == darts.SPACE:
        return darts.from_genotype(_pairs(random), range(2, 6), _pairs(random), range(2, 6))
    if space == nas_bench_1shot1.SPACE and variant in PARENTS:
        counts = PARENTS[variant]
        parents = [sorted(random.sample(range(node), count)) for node, count in enumerate(counts, start=1)]
        return nas_bench_1shot1.from_choices(variant, random.choices(NAS_BENCH_101_OPS, k=len(counts) - 1), parents)
    if space == nas_bench_101.SPACE:
        return _nas_bench_101(random)
    expected = (
        f"{nas_bench_201.SPACE}, {darts.SPACE}, {nas_bench_101.SPACE}, {nas_bench_1shot1.SPACE} with S1, S2 or S3"
    )
    raise InputError(f"cannot sample from {space!r} (variant {variant!r}), expected {expected}")


def _pairs(random: Random) -> list[tuple[str, int]]:
    ops = [op for op in DARTS_OPS if op != "none"]
    return [(random.choice(ops), source) for node in range(2, 6) for source in random.sample(range(node), 2)]


def _nas_bench_101(random: Random) -> Architecture:
    size = NAS_BENCH_101_VERTICES
    while True:
        matrix = [[random.getrandbits(1) if column > row else 0 for column in range(size)] for row in range(size)]
        ops = random.choices(NAS_BENCH_101_OPS, k=size - 2)
        try:
            return nas_bench_101.from_matrix(matrix, ops)
        except InputError:  # no way through, or more than nine edges
            continue
