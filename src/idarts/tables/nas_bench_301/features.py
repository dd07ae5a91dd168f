"""What the surrogate sees of a cell: small whole numbers, computed for many cells at once."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from idarts.spaces import darts
from idarts.tables.nas_bench_301.codes import EDGES, OPS

Numbers = NDArray[np.uint8]
# Convolutions that a path through an operation meets: separable ones apply theirs twice, dilated ones once.
_LAYERS = np.array([2 if op.startswith("sep") else 1 if op.startswith("dil") else 0 for op in OPS], np.uint8)
_NUMBER = {edge: number for number, edge in enumerate(darts.EDGES)}


def features(codes: NDArray[np.uint64]) -> Numbers:
    """One row of numbers for each pair of codes (n, 2).

    >>> from idarts.tables.nas_bench_301.codes import encode
    >>> features(np.array([encode("DARTS_V1"), encode("DARTS_V2")], np.uint64)).shape
    (2, 515)
    """
    shifts = np.arange(6 * (EDGES - 1), -1, -6, dtype=np.uint64)
    edges = codes[:, :, None] >> shifts  # (n, cells, edges)
    sources, ops = (edges >> np.uint64(3) & np.uint64(7)).astype(np.intp), (edges & np.uint64(7)).astype(np.intp)
    blocks = [block for cell in range(2) for block in _cell(sources[:, cell], ops[:, cell])]
    both = (_counts(ops.reshape(len(codes), -1), len(OPS)),)
    return np.concatenate([*blocks, *both], axis=1)


def _cell(sources: NDArray[np.intp], ops: NDArray[np.intp]) -> Iterator[Numbers]:
    """The numbers of one cell: which edges, which operations, how they follow each other, how deep the nodes are."""
    n, kinds = len(ops), len(OPS)
    targets = darts.INPUTS + np.arange(EDGES) // 2
    places = np.array(
        [[_NUMBER.get((source, target), 0) for source in range(darts.NODES)] for target in targets.tolist()]
    )
    chosen = places[np.arange(EDGES), sources]
    yield _counts(chosen * kinds + ops, len(darts.EDGES) * kinds)  # the operation on every edge
    yield _counts(ops, kinds)
    yield _counts(np.minimum(sources, darts.INPUTS) * kinds + ops, (darts.INPUTS + 1) * kinds)  # by kind of input
    yield _counts(sources, darts.NODES)  # readers of every node
    first, second = np.sort(ops.reshape(n, -1, 2), axis=2).transpose(2, 0, 1)
    yield _counts(first * kinds + second, kinds**2)  # operations that meet in a node
    yield _sequences(sources, ops)
    yield from _depths(sources, ops)


def _sequences(sources: NDArray[np.intp], ops: NDArray[np.intp]) -> Numbers:
    """How often one operation follows another."""
    n, kinds = len(ops), len(OPS)
    total = np.zeros((n, kinds**2 + 1), np.uint8)  # the last column takes what does not count
    for edge in range(EDGES):
        node = sources[:, edge] - darts.INPUTS
        for before in range(2):
            place = np.where(node >= 0, 2 * node + before, 0)
            pair = ops[np.arange(n), place] * kinds + ops[:, edge]
            np.add.at(total, (np.arange(n), np.where(node >= 0, pair, kinds**2)), 1)
    return total[:, :-1]


def _depths(sources: NDArray[np.intp], ops: NDArray[np.intp]) -> Iterator[Numbers]:
    """Of every node: longest and shortest path in edges and in convolutions, and the number of paths."""
    n = len(ops)
    rows, layers = np.arange(n), _LAYERS[ops]
    steps = np.ones_like(layers)
    for added, combine in ((steps, np.maximum), (steps, np.minimum), (layers, np.maximum), (layers, np.minimum)):
        depth = np.zeros((n, darts.NODES), np.uint8)
        for node in range(darts.INPUTS, darts.NODES):
            left, right = (depth[rows, sources[:, edge]] + added[:, edge] for edge in (2 * node - 4, 2 * node - 3))
            depth[:, node] = combine(left, right)
        inner = depth[:, darts.INPUTS :]
        yield np.concatenate([inner, inner.sum(axis=1, keepdims=True, dtype=np.uint8)], axis=1)
    paths = np.ones((n, darts.NODES), np.uint8)
    for node in range(darts.INPUTS, darts.NODES):
        paths[:, node] = paths[rows, sources[:, 2 * node - 4]] + paths[rows, sources[:, 2 * node - 3]]
    yield paths[:, darts.INPUTS :]


def _counts(kinds: NDArray[np.intp], size: int) -> Numbers:
    """How often each kind occurs in a row."""
    n = len(kinds)
    flat = (np.arange(n)[:, None] * size + kinds).ravel()
    return np.bincount(flat, minlength=n * size).reshape(n, size).astype(np.uint8)
