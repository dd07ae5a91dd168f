"""The spaces by name: their sizes against enumeration, and supernets that run."""

import subprocess
import sys
from itertools import combinations, product
from random import Random

import pytest
import torch

from idarts import InputError
from idarts.arch import mutate, registry, space_of
from idarts.spaces import SPACES, nas_bench_1shot1, nas_bench_201, space


def test_sizes_against_enumeration():
    strings = {nas_bench_201.to_string(nas_bench_201.from_index(i)) for i in range(nas_bench_201.SIZE)}
    assert len(strings) == SPACES["nas-bench-201"].size == 15_625
    for variant, nodes in (("S1", 4), ("S2", 4), ("S3", 5)):
        parents = sum(1 for _ in nas_bench_1shot1.parent_choices(variant))
        assert SPACES[f"nas-bench-1shot1-{variant.lower()}"].size == parents * 3**nodes
    per_node = [sum(1 for _ in product(combinations(range(n), 2), range(7), range(7))) for n in range(2, 6)]
    cell = per_node[0] * per_node[1] * per_node[2] * per_node[3]
    assert SPACES["darts"].size == cell**2
    for name in ("darts-s2", "darts-s3", "darts-s4"):  # of two operations: none is not selected
        per_node = [sum(1 for _ in product(combinations(range(n), 2), range(2), range(2))) for n in range(2, 6)]
        assert SPACES[name].size == (per_node[0] * per_node[1] * per_node[2] * per_node[3]) ** 2


@pytest.mark.parametrize("name", [name for name in SPACES if SPACES[name].has("supernet")])
def test_every_space_makes_a_supernet_and_derives_an_architecture(name):
    found = space(name)
    net = found.supernet(
        found.skeleton.changed(depth=3 if found.record == "darts" else 1, channels=8, classes=4), in_channels=1
    )
    assert net(torch.randn(2, 1, 16, 16)).shape == (2, 4)
    architecture = net.architecture()
    assert net(torch.randn(2, 1, 16, 16), mixtures=net.path(architecture)).shape == (2, 4)


def test_unknown_space():
    with pytest.raises(InputError, match="did you mean darts"):
        space("dart")
    with pytest.raises(InputError, match=r"there are darts, .*nas-bench-1shot1-s1"):
        space("x")


LIGHT = """
import sys
import idarts.arch
assert "idarts.spaces" not in sys.modules
from random import Random
from idarts.arch import SPACES, as_text, convert, from_json, mutate, parse, registry, sample, to_json
from idarts.arch.drawing import to_dot
for name in SPACES:
    if SPACES[name].has("sample"):
        architecture = sample(name, Random(0))
        assert parse(as_text(architecture)) == from_json(to_json(architecture)) == architecture
        [convert(architecture, form) for form in SPACES[name].forms], to_dot(architecture)
        SPACES[name].has("mutate") and mutate(architecture, Random(0))
        SPACES[name].has("labels") and SPACES[name].labels("ops", (1, 1))
registry.names()
print(*({"torch", "numpy"} & set(sys.modules)))
"""


def test_records_need_neither_torch_nor_numpy():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.parametrize("name", [name for name in SPACES if SPACES[name].has("mutate")])
def test_a_mutation_changes_one_decision(name):
    """Decisions as choices, edges and operations on nodes: one of them, or both ends of one, never back to the same."""
    random = Random(name)
    seen = set()
    architecture = SPACES[name].sample(random)
    for _ in range(200):
        changed = SPACES[name].mutate(architecture, random)
        assert space_of(changed).record == SPACES[name].record
        differences = [
            len(set(cell.edges) ^ set(changed.cells[key].edges)) / 2
            + sum(a != b for a, b in zip(cell.ops, changed.cells[key].ops, strict=True))
            for key, cell in architecture.cells.items()
        ]
        differences += [changed.choices[key] != option for key, option in architecture.choices.items()]
        assert sum(differences) == 1
        seen.add(changed)
        architecture = changed
    assert len(seen) > 150


def test_mutations_of_published_cells_stay_valid():
    """Also of cells with other shapes than a search has: more nodes, not all of them in the output."""
    for name in registry.names():
        architecture = registry.entry(name).architecture
        if space_of(architecture).has("mutate"):
            assert len({mutate(architecture, Random(seed)) for seed in range(20)} - {architecture}) > 10


def test_spaces_that_cannot_be_searched():
    for name in ("choice", "nas-bench-101"):
        with pytest.raises(InputError, match=f"the space {name} has no supernet to search; there are darts, "):
            space(name)
    with pytest.raises(InputError, match="no_module:part is not loaded"):
        space("no_module:part")
