"""Lossless round trips between the record and each benchmark's own form, and the sizes of the spaces."""

from itertools import combinations, product
from math import prod
from random import Random

import numpy as np
import pytest

from idarts.arch import from_json, parse, sample, to_json
from idarts.errors import InputError
from idarts.spaces import darts, nas_bench_1shot1, nas_bench_101, nas_bench_201


def test_all_nas_bench_201_cells_round_trip():
    seen = set()
    for index in range(nas_bench_201.SIZE):
        cell = nas_bench_201.from_index(index)
        text = nas_bench_201.to_string(cell)
        assert nas_bench_201.from_string(text) == cell
        assert nas_bench_201.to_index(cell) == index
        assert from_json(to_json(cell)) == cell
        seen.add(cell)
    assert len(seen) == 15625


def test_official_indices_without_the_table():
    """What NATS-Bench prints for a few indices: the shuffle must never change."""
    known = {
        0: "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|",
        9: "|avg_pool_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|nor_conv_3x3~2|",
        6111: "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|",
    }
    for index, text in known.items():
        assert nas_bench_201.to_index(nas_bench_201.from_string(text)) == index


def test_official_indices_against_the_table(table):
    strings = table("nasbench201_tss.parquet", "arch_str")["arch_str"]
    assert [nas_bench_201.to_string(nas_bench_201.from_index(index)) for index in range(15625)] == strings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has 1 nodes, expected the 3"),
        ("|none~0|+|none~0|none~1|", "has 2 nodes, expected the 3"),
        ("|none~0|+|none~0|+|none~0|none~1|none~2|", "node 2 has 1 edges, expected 2"),
        ("|none~0|+|none~0|none~1|+|none~0|none~1|none~3|", "edge 'none~3' of node 3, expected an operation and ~2"),
        ("|none~0|+|none~0|none~1|+|none~0|none~1|none~2", "node 3 is"),
        ("|none~0|+|none~0|none~1|+|none~0|none~1|conv~2|", "edge 2→3: unknown operation 'conv'"),
        ("|max_pool_3x3~0|+|none~0|none~1|+|none~0|none~1|none~2|", "unknown operation 'max_pool_3x3'"),
    ],
)
def test_bad_nas_bench_201_strings(text, message):
    with pytest.raises(InputError) as caught:
        nas_bench_201.from_string(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("index", [-1, 15625, True, 1.0, "3"])
def test_bad_nas_bench_201_indices(index):
    with pytest.raises(InputError, match="expected 0 to 15624"):
        nas_bench_201.from_index(index)


def test_1000_random_genotypes_round_trip():
    random = Random(1)
    for _ in range(1000):
        cell = sample("darts", random)
        assert darts.from_genotype(*darts.to_genotype(cell)) == cell
        assert darts.from_text(darts.to_text(cell)) == cell


def test_genotype_text_as_pasted_from_papers():
    """Other spacing, lists for tuples and ranges, positions for names, a name in front, another order of edges."""
    pasted = """
    DARTS_V2 = genotypes.Genotype(
        normal=[('sep_conv_3x3', 1), ['sep_conv_3x3', 0], ('sep_conv_3x3', 0), ('sep_conv_3x3', 1),
                ('sep_conv_3x3', 1), ('skip_connect', 0), ("skip_connect", 0), ('dil_conv_3x3', 2),],
        reduce=(('max_pool_3x3', 0), ('max_pool_3x3', 1), ('skip_connect', 2), ('max_pool_3x3', 1),
                ('max_pool_3x3', 0), ('skip_connect', 2), ('skip_connect', 2), ('max_pool_3x3', 1)),
        normal_concat=[5, 4, 3, 2],  # a comment
        reduce_concat=list(range(2, 6)))
    """
    assert darts.from_text(pasted) == parse("DARTS_V2")
    parts = darts.to_genotype(parse("DARTS_V2"))
    assert darts.from_text(f"Genotype({', '.join(map(repr, parts))})") == parse("DARTS_V2")


PAIR = "[('none', 0), ('none', 1)]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Genotype(", "not a genotype"),
        ("Genotype()", "normal is missing"),
        ("1 + 1", "not a genotype"),
        ("eval('1')", "a call of 'eval'"),
        (f"Genotype(normal={PAIR}, normal_concat=[2], reduce={PAIR})", "reduce_concat is missing"),
        (f"Genotype({PAIR}, [2], {PAIR}, [2], 5)", "too many parts"),
        (f"Genotype({PAIR}, [2], {PAIR}, [2], normal={PAIR})", "unexpected normal"),
        (f"Genotype({PAIR}, [2], {PAIR}, **x)", "unexpected **"),
        (f"Genotype({PAIR}, open('x'), {PAIR}, [2])", "normal_concat is neither a list nor a range"),
        (f"Genotype({PAIR}, range(10**12), {PAIR}, [2])", "normal_concat is neither a list nor a range"),
        (f"Genotype({PAIR}, range(999999999999), {PAIR}, [2])", "output node 0 is not one of the nodes 2 to 2"),
        (f"Genotype({PAIR}, range(2, 9, 0), {PAIR}, [2])", "neither a list nor a range"),
        (f"Genotype({PAIR}, [3], {PAIR}, [2])", "output node 3 is not one of"),
        ("Genotype([('none', 0)], [2], [], [2])", "normal is [('none', 0)], expected two"),
        (f"Genotype({PAIR}, [2], [('none', 0), ('none', 2)], [2])", "reduce: node 2 takes its input from node 2"),
        (f"Genotype({PAIR}, [2], [('none', 0), ('none', -1)], [2])", "expected a predecessor from 0 to 1"),
        (f"Genotype({PAIR}, [2], [('none', 0), ('none', '1')], [2])", "expected a predecessor from 0 to 1"),
        (f"Genotype({PAIR}, [2], [('none', 0), 'none'], [2])", "node 2 has 'none', expected a pair"),
        (f"Genotype({PAIR}, [2], [('none', 0), ('conv', 1)], [2])", "edge 1→2: unknown operation 'conv'"),
        (f"Genotype({PAIR}, 2, {PAIR}, [2])", "normal_concat: output is 2, expected a list"),
    ],
)
def test_bad_genotypes(text, message):
    with pytest.raises(InputError) as caught:
        darts.from_text(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_darts_space_has_as_many_cells_as_enumeration_says():
    wirings = list(product(*(combinations(range(node), 2) for node in range(2, 6))))
    assert len(wirings) == 180 == prod((1, 3, 6, 10))
    assert len(wirings) * (len(darts.OPS) - 1) ** 8 == 1037664180


def test_1000_random_nas_bench_101_cells_round_trip():
    random = Random(2)
    for _ in range(1000):
        cell = sample("nas-bench-101", random)
        matrix, ops = nas_bench_101.to_matrix(cell)
        assert nas_bench_101.from_matrix(matrix, ops) == cell
        assert nas_bench_101.from_matrix(np.array(matrix, dtype=bool), ops[1:-1]) == cell


def test_the_fingerprint_does_not_depend_on_the_numbering():
    random = Random(3)
    for _ in range(200):
        cell = sample("nas-bench-101", random).cell
        order = renumbering(cell, random)
        edges = [(order[edge.source], order[edge.target]) for edge in cell.edges]
        matrix = [[int((x, y) in edges) for y in range(cell.nodes)] for x in range(cell.nodes)]
        ops = [
            op for _, op in sorted(zip([order[vertex + 1] for vertex in range(len(cell.ops))], cell.ops, strict=True))
        ]
        renamed = nas_bench_101.from_matrix(matrix, ops)
        assert nas_bench_101.fingerprint(renamed) == nas_bench_101.fingerprint(nas_bench_101.from_matrix(*plain(cell)))


def renumbering(cell, random):
    """A random topological order of a cell's vertices."""
    placed = []
    while len(placed) < cell.nodes:
        ready = [
            v
            for v in range(cell.nodes)
            if v not in placed and all(edge.source in placed for edge in cell.edges if edge.target == v)
        ]
        inner = [v for v in ready if v != cell.nodes - 1] or ready
        placed.append(random.choice(inner))
    return {vertex: position for position, vertex in enumerate(placed)}


def plain(cell):
    edges = {(edge.source, edge.target) for edge in cell.edges}
    return [[int((x, y) in edges) for y in range(cell.nodes)] for x in range(cell.nodes)], list(cell.ops)


def test_fingerprints_against_the_table(table):
    columns = table("nasbench101_108ep_test.parquet", "hash", "n_vertices", "adj_bits", "ops")
    small = [row for row, vertices in enumerate(columns["n_vertices"]) if vertices < 6]
    rows = Random(0).sample(range(len(columns["hash"])), 2000) + small
    for row in rows:
        vertices, bits = columns["n_vertices"][row], columns["adj_bits"][row]
        matrix = [[int(x < y and bits >> (x + y * (y - 1) // 2) & 1) for y in range(vertices)] for x in range(vertices)]
        cell = nas_bench_101.from_matrix(matrix, [nas_bench_101.OPS[int(op)] for op in columns["ops"][row]])
        assert cell.cell.nodes == vertices  # nothing to prune in the table
        assert nas_bench_101.fingerprint(cell) == columns["hash"][row].hex()
    assert len(small) == 2532


def test_pruning_drops_what_is_on_no_way_from_input_to_output():
    dead_end = [[0, 1, 1, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    no_start = [[0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]]
    ops = ["maxpool3x3", "conv1x1-bn-relu", "conv3x3-bn-relu"]
    for matrix in (dead_end, no_start):
        assert nas_bench_101.to_matrix(nas_bench_101.from_matrix(matrix, ops))[1] == ["input", "maxpool3x3", "output"]


@pytest.mark.parametrize(
    ("matrix", "ops", "message"),
    [
        ([[0, 0], [0, 0]], [], "no path from its input 0 to its output 1"),
        ([[0, 1], [1, 0]], [], "matrix entry 1, 0 closes a cycle"),
        ([[0, 2], [0, 0]], [], "matrix entry 0, 1 is 2, expected 0 or 1"),
        ([[0, 1], [0]], [], "matrix row 1 is [0], expected 2 zeros and ones"),
        ([[0, "1"], [0, 0]], [], "matrix entry 0, 1 is '1'"),
        ("01", [], "matrix is '01'"),
        ([[0]], [], "expected at least two rows"),
        ([[0, 1], [0, 0]], ["maxpool3x3"], "1 operations between input and output, expected 0"),
        ([[0, 1], [0, 0]], 3, "ops is 3"),
        ([[0, 1, 0], [0, 0, 1], [0, 0, 0]], ["pool"], "node 1: unknown operation 'pool'"),
        (np.triu(np.ones((7, 7)), 1), ["maxpool3x3"] * 5, "21 edges, expected at most 9"),
        (np.zeros((2, 2, 2)), [], "matrix entry 0, 0 is [0.0, 0.0]"),
    ],
)
def test_bad_matrices(matrix, ops, message):
    with pytest.raises(InputError) as caught:
        nas_bench_101.from_matrix(matrix, ops)
    assert message in str(caught.value)


@pytest.mark.parametrize("variant", ["S1", "S2", "S3"])
def test_1000_random_1shot1_cells_round_trip_and_reach_nas_bench_101(variant):
    random = Random(variant)
    for _ in range(1000):
        found = sample("nas-bench-1shot1", random, variant)
        parents = nas_bench_1shot1.parents_of(found)
        assert nas_bench_1shot1.from_choices(variant, found.cell.ops, parents) == found
        matrix, ops = nas_bench_1shot1.to_matrix(found)
        assert len(matrix) == len(ops) == 7
        assert sum(map(sum, matrix)) == 9  # every one of the three spaces uses all nine edges
        assert nas_bench_1shot1.to_nas_bench_101(found) == nas_bench_101.from_matrix(matrix, ops)


@pytest.mark.parametrize(("variant", "wirings", "cells"), [("S1", 180, 6240), ("S2", 360, 16632), ("S3", 5400, 363648)])
def test_counts_of_the_1shot1_spaces(variant, wirings, cells):
    """Wirings times the operations that matter: those of nodes that somebody reads.

    Published are 6,240, 29,160 and 363,648; the second counts all four operations, 360·3⁴, also of loose ends.
    """
    choices = list(nas_bench_1shot1.parent_choices(variant))
    assert len(set(choices)) == wirings
    assert sum(3 ** len({parent for parents in wiring for parent in parents} - {0}) for wiring in choices) == cells


def test_1shot1_cells_are_those_the_table_marks(table):
    columns = table("nasbench101_108ep_test.parquet", "hash", "in_1shot1_ss1")
    marked = {name.hex() for name, inside in zip(columns["hash"], columns["in_1shot1_ss1"], strict=True) if inside}
    found = set()
    for wiring in nas_bench_1shot1.parent_choices("S1"):
        read = sorted({parent for parents in wiring for parent in parents} - {0})
        for ops in product(nas_bench_101.OPS, repeat=len(read)):
            chosen = dict(zip(read, ops, strict=True))
            names = [chosen.get(node, nas_bench_101.OPS[0]) for node in range(1, 5)]
            cell = nas_bench_1shot1.to_nas_bench_101(nas_bench_1shot1.from_choices("S1", names, wiring))
            found.add(nas_bench_101.fingerprint(cell))
    assert found == marked


def test_a_form_of_another_space_is_refused_by_name():
    for convert in (nas_bench_201.to_string, nas_bench_101.to_matrix, nas_bench_101.fingerprint):
        with pytest.raises(InputError, match="an architecture of darts is not a NAS-Bench"):
            convert(parse("DARTS_V2"))
    with pytest.raises(InputError, match="an architecture of nas-bench-201 has no DARTS genotype"):
        darts.to_genotype(nas_bench_201.from_index(0))
    with pytest.raises(InputError, match="is not a NAS-Bench-1Shot1 cell"):
        nas_bench_1shot1.to_nas_bench_101(nas_bench_201.from_index(0))


def test_sampling_names_what_it_can_sample():
    with pytest.raises(InputError, match="nas-bench-1shot1: variant is None, expected one of S1, S2, S3"):
        sample("nas-bench-1shot1", Random(0))
