"""The spaces by name: their sizes against enumeration, and supernets that run."""

from itertools import combinations, product

import pytest
import torch

from idarts import InputError
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


@pytest.mark.parametrize("name", [name for name in SPACES if SPACES[name].has("supernet")])
def test_every_space_makes_a_supernet_and_derives_an_architecture(name):
    found = space(name)
    net = found.supernet(
        found.skeleton.changed(depth=1 if name != "darts" else 3, channels=8, classes=4), in_channels=1
    )
    assert net(torch.randn(2, 1, 16, 16)).shape == (2, 4)
    architecture = net.architecture()
    assert net(torch.randn(2, 1, 16, 16), mixtures=net.path(architecture)).shape == (2, 4)


def test_unknown_space():
    with pytest.raises(InputError, match="did you mean darts"):
        space("dart")
    with pytest.raises(InputError, match="there are darts, nas-bench-1shot1-s1"):
        space("x")
