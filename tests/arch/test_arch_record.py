"""Records: equal by content, canonical, immutable, and valid from birth; JSON in and out."""

import copy
import dataclasses
import json
import pickle
from random import Random

import pytest

from idarts.arch import Architecture, Cell, Edge, from_data, from_json, parse, sample, to_data, to_json
from idarts.errors import InputError
from idarts.spaces import nas_bench_201

SPACES = [
    ("nas-bench-201", None),
    ("darts", None),
    ("nas-bench-101", None),
    ("nas-bench-1shot1", "S1"),
    ("nas-bench-1shot1", "S2"),
    ("nas-bench-1shot1", "S3"),
]


def test_the_order_in_which_edges_are_given_does_not_matter():
    cell = parse("DARTS_V2").cells["normal"]
    shuffled = Cell(cell.nodes, reversed(cell.edges), reversed(cell.output))
    assert shuffled == cell
    assert hash(shuffled) == hash(cell)
    assert Architecture("darts", {"reduce": cell, "normal": cell}) == Architecture(
        "darts", {"normal": shuffled, "reduce": shuffled}
    )


def test_two_equal_edges_stay_two():
    assert parse("NASNet-A").cells["normal"].edges.count(Edge(0, 5, "avg_pool_3x3")) == 2


def test_a_record_cannot_be_changed():
    a = parse("DARTS_V2")
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.space = "darts2"
    with pytest.raises(TypeError):
        a.cells["normal"] = a.cells["reduce"]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_copies_are_equal(duplicate):
    a = parse("iDARTS")
    assert duplicate(a) == a
    assert hash(duplicate(a)) == hash(a)


@pytest.mark.parametrize(("space", "variant"), SPACES)
def test_json_round_trip_of_1000_random_architectures(space, variant):
    random = Random(space)
    cells = [sample(space, random, variant) for _ in range(1000)]
    assert [from_json(to_json(a)) for a in cells] == cells
    assert len(set(cells)) > 300  # and they are not all the same


def test_json_of_choices():
    a = Architecture("choice", choices={"ä": "β", "block1": "conv3"})
    assert from_json(to_json(a)) == a


def test_a_space_with_two_cells_has_no_single_one():
    with pytest.raises(InputError, match="no single cell, only normal, reduce"):
        _ = parse("DARTS_V2").cell


def nb201(**changes):
    return to_data(nas_bench_201.from_ops(["none"] * 6)) | changes


def nb201_cell(**changes):
    data = nb201()
    return data | {"cells": {"cell": data["cells"]["cell"] | changes}}


def darts_cell(name="normal", **changes):
    data = to_data(parse("DARTS_V2"))
    return data | {"cells": data["cells"] | {name: data["cells"][name] | changes}}


def nb101_cell(nodes, edges, ops, output=None):
    cell = {"nodes": nodes, "edges": edges, "ops": ops, "output": output or [nodes - 1]}
    return {"schema": 1, "space": "nas-bench-101", "cells": {"cell": cell}}


DARTS_EDGES = to_data(parse("DARTS_V2"))["cells"]["normal"]["edges"]
MAX, CONV = "maxpool3x3", "conv3x3-bn-relu"

BAD = [
    ([], "the architecture is [], expected an object"),
    ({"space": "darts"}, "lacks the key 'schema'"),
    (nb201(schema=2), "schema is 2, expected 1"),
    (nb201(schema=True), "schema is True, expected 1"),
    (nb201(schema="1"), "schema is '1', expected 1"),
    (nb201(extra=1), "unknown key 'extra'"),
    (nb201(space="nas-bench-301"), "unknown space 'nas-bench-301': expected one of choice, darts, "),
    (nb201(space=[]), "unknown space []"),
    (nb201(variant="S1"), "variant is 'S1', expected none"),
    (nb201(cells=[1]), "cells is [1], expected an object"),
    (nb201(cells={"cell": 3}), "cells.cell is 3, expected an object"),
    (nb201(cells={"zelle": nb201()["cells"]["cell"]}), "cells are 'zelle', expected 'cell'"),
    (nb201(choices={"a": "b"}), "it has choices"),
    (nb201(choices=7), "choices is 7, expected names"),
    (nb201_cell(steps=3), "cells.cell has the unknown key 'steps'"),
    (nb201_cell(nodes="4"), "cells.cell: nodes is '4', expected a count"),
    (nb201_cell(nodes=5), "5 nodes, expected 4"),
    (nb201_cell(nodes=10**30), "nodes, expected 4"),
    (nb201_cell(edges="none"), "edges is 'none', expected a list"),
    (nb201_cell(edges=[[0, 1, "none"]]), "1 edge, expected the 6 edges"),
    (nb201_cell(edges=[[0, 1]] * 6), "edge 0→1: unknown operation None"),
    (nb201_cell(edges=[[0, 1, "none"]] * 6), "each once"),
    (nb201_cell(edges=[[0, 1, "conv9"]]), "edge 0→1: unknown operation 'conv9', expected one of none, skip_connect"),
    (nb201_cell(edges=[[2, 1, "none"]]), "edge 2→1 closes a cycle, expected a source below 1"),
    (nb201_cell(edges=[[1, 1, "none"]]), "edge 1→1 closes a cycle"),
    (nb201_cell(edges=[[0, 9, "none"]]), "there is no node 9, nodes are 0 to 3"),
    (nb201_cell(edges=[[0, True, "none"]]), "expected source, target and operation"),
    (nb201_cell(edges=[[0]]), "edge [0]: expected source, target and operation"),
    (nb201_cell(output=[2]), "output [2], expected [3]"),
    (nb201_cell(ops=[MAX]), "operation 'maxpool3x3' on a node"),
    (darts_cell(edges=DARTS_EDGES[1:]), "darts normal cell: 7 edges, expected 8 (two into each node)"),
    (darts_cell(edges=[[0, 3, "none"], *DARTS_EDGES[1:]]), "1 edge into node 2, expected 2"),
    (darts_cell(nodes=10**12), "edges, expected 1999999999996"),
    (darts_cell(edges=[[0, 1, "none"]]), "edge 0→1 enters an input"),
    (darts_cell(output=[4, 5]), "node 3 dangles: it is neither in the output [4, 5] nor an input of a later node"),
    (darts_cell(output=[1, 5]), "output node 1 is not one of the nodes 2 to 5"),
    (darts_cell(output=[5, 5]), "names a node twice"),
    (darts_cell(output=[]), "no output"),
    (darts_cell("reduce", output=["5"]), "cells.reduce: output holds '5', expected a node number"),
    (darts_cell(nodes=2, edges=[], output=[]), "2 nodes, expected more than its 2 inputs"),
    (to_data(parse("DARTS_V2")) | {"cells": {"normal": {}}}, "cells.normal lacks the key 'edges'"),
    (nb101_cell(3, [[0, 1, MAX]], [MAX]), "carries 'maxpool3x3', expected operations on nodes"),
    (nb101_cell(4, [[0, 1], [1, 3], [0, 2]], [MAX, MAX]), "node 2 dangles"),
    (nb101_cell(4, [[0, 1], [1, 3], [2, 3]], [MAX, MAX]), "node 2 dangles"),
    (nb101_cell(3, [[0, 1], [1, 2], [1, 2]], [MAX]), "edge 1→2 occurs twice"),
    (nb101_cell(3, [[0, 1], [1, 2]], []), "0 operations on its nodes, expected 1"),
    (nb101_cell(3, [[0, 1], [1, 2]], ["max"]), "node 1: unknown operation 'max'"),
    (nb101_cell(8, [[i, i + 1] for i in range(7)], [MAX] * 6), "8 nodes, expected 2 to 7"),
    (nb101_cell(1, [], []), "1 node, expected more than its 1 input"),
    (nb101_cell(5, [[i, j] for j in range(5) for i in range(j)], [MAX] * 3), "10 edges, expected at most 9"),
    (nb101_cell(3, [[0, 1], [1, 2]], [MAX], [1]), "output [1], expected [2]"),
    ({"schema": 1, "space": "nas-bench-1shot1", "cells": {}}, "variant is None, expected one of S1, S2, S3"),
    ({"schema": 1, "space": "choice"}, "no choices"),
    ({"schema": 1, "space": "choice", "choices": {"a": 1}}, "choice 'a': branch is 1"),
    ({"schema": 1, "space": "choice", "choices": {"a": "b"}, "cells": nb201()["cells"]}, "it has cells"),
]


@pytest.mark.parametrize(("data", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_data_gives_one_line_that_names_the_part(data, message):
    for build in (from_data, lambda data: from_json(json.dumps(data))):
        with pytest.raises(InputError) as caught:
            build(data)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("variant", "parents", "message"),
    [
        ("S1", [[0], [0], [0, 1], [0, 1], [1, 2]], "node 2 has 1 parent, expected 2 in S1"),
        ("S2", [[0], [0], [0, 1], [0, 1], [1, 2]], "node 5 has 2 parents, expected 3 in S2"),
        ("S3", [[0], [0, 1], [0, 1], [0, 1], [1, 2]], "6 nodes, expected 7 in S3"),
        ("S4", [[0], [0, 1], [0, 1], [0, 1], [1, 2]], "variant is 'S4'"),
        ("S1", [[0], [0, 0], [0, 1], [0, 1], [1, 2]], "edge 0→2 occurs twice"),
        ("S1", [[0], [0, 2], [0, 1], [0, 1], [1, 2]], "edge 2→2 closes a cycle"),
    ],
)
def test_bad_1shot1_cells(variant, parents, message):
    from idarts.spaces import nas_bench_1shot1

    with pytest.raises(InputError, match=message):
        nas_bench_1shot1.from_choices(variant, [CONV] * 4, parents)


def test_a_cell_that_is_no_cell():
    with pytest.raises(InputError, match="it is 3, expected a Cell"):
        Architecture("nas-bench-201", {"cell": 3})
