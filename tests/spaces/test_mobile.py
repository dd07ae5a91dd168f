"""The mobile space: texts, random chains, networks by closed formulas and torch's own counter, prices, drawings."""

import json
from collections import Counter
from random import Random

import pytest
import torch
from counts import counted_parameters
from hypothesis import given
from hypothesis import strategies as st

from idarts import InputError
from idarts.arch import SPACES, Architecture, as_text, from_json, mutate, parse, sample, to_json
from idarts.arch.drawing import to_dot
from idarts.arch.forms import described_forms
from idarts.searching.cost import CostTarget
from idarts.searching.settings import Cost, Selection
from idarts.spaces import Skeleton, count, measure_latency, network
from idarts.spaces.mobile.chain import CHAIN, SHAPES
from idarts.spaces.mobile.network import places
from idarts.spaces.prices import prices

MOBILE = SPACES["mobile"]
SMALL = Skeleton(depth=2, channels=8, classes=7, image=16)
ALL_K3E6 = CHAIN.from_blocks([["k3e6"] * 4] * 5)


@st.composite
def chains(draw):
    depth = draw(st.integers(1, 11))
    further = st.lists(st.sampled_from(CHAIN.further), min_size=depth - 1, max_size=depth - 1)
    return [[draw(st.sampled_from(CHAIN.first)), *draw(further)] for _ in range(5)]


@given(chains())
def test_texts_and_json_come_back(blocks):
    architecture = CHAIN.from_blocks(blocks)
    text = as_text(architecture)
    assert text == "mobile:" + "+".join("-".join(stage) for stage in blocks)
    assert parse(text) == parse(f" {text.upper()}\n") == from_json(to_json(architecture)) == architecture
    assert CHAIN.to_blocks(architecture) == blocks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mobile:k3e6", "the blocks of its 1 stage are 1, expected 5 stages with the same number of blocks"),
        ("mobile:k3e6+k3e6-skip+k3e6+k3e6+k3e6", "the blocks of its 5 stages are 1, 2, 1, 1, 1, expected 5 stages"),
        ("mobile:skip+k3e6+k3e6+k3e6+k3e6", r"stage1.block1: it is 'skip' \(the first block of a stage changes the"),
        ("mobile:k3e6+k3e6+k9e6+k3e6+k3e6", "stage3.block1: it is 'k9e6', expected one of k3e3, k3e6, k5e3"),
        ("mobile:", "the blocks of its 1 stage are 1"),
        ("mobile:++++", "stage1.block1: it is '', expected one of k3e3"),
    ],
)
def test_wrong_texts_are_one_line(text, message):
    with pytest.raises(InputError, match=message) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_wrong_records_are_refused():
    choices = dict(ALL_K3E6.choices)
    for wrong, message in (
        ({**choices, "stage6.block1": "k3e3"}, "unknown block 'stage6.block1'; expected 5 stages"),
        ({key: choices[key] for key in list(choices)[:-1]}, "the block stage5.block4 is missing; expected 5"),
        ({key: option for key, option in choices.items() if "4" not in key}, "the block stage4.block1 is missing"),
        ({}, "the block stage1.block1 is missing"),
    ):
        with pytest.raises(InputError, match=message):
            Architecture("mobile", choices=wrong)
    with pytest.raises(InputError, match="it has cells, expected only choices"):
        Architecture("mobile", parse("DARTS_V2").cells, choices)


def test_samples_are_uniform_over_the_options_of_every_decision():
    draws, random = 3000, Random(0)
    seen = {key: Counter() for key in ALL_K3E6.choices}
    for _ in range(draws):
        for key, option in sample("mobile", random).choices.items():
            seen[key][option] += 1
    for key, counts in seen.items():
        options = CHAIN.first if key.endswith("block1") else CHAIN.further
        assert set(counts) == set(options)
        mean = draws / len(options)  # the statistic has len(options) - 1 degrees: 30 is beyond one in 20,000
        assert sum((number - mean) ** 2 / mean for number in counts.values()) < 30


def test_a_mutation_changes_one_decision_and_reaches_all():
    start, reached = CHAIN.from_blocks([["k3e3", "skip"]] * 5), set()
    for seed in range(1000):
        changed = mutate(start, Random(seed)).choices
        different = [(key, option) for key, option in changed.items() if option != start.choices[key]]
        assert len(different) == 1
        reached.add(different[0])
    assert len(reached) == 5 * 5 + 5 * 6


def widths(skeleton):
    """The usual rule, written with fractions of 16 channels."""
    result = []
    for ratio in (1.5, 2.5, 5, 7, 10):
        exact = ratio * skeleton.channels
        below, above = exact // 8 * 8, exact // 8 * 8 + 8
        result.append(int(max(8, below if exact - below < 4 and below >= 0.9 * exact else above)))
    return result


def parameters(architecture, skeleton, in_channels=3):
    """The closed formula: convolutions, and two for each channel of a BatchNorm."""
    c = skeleton.channels
    total, inputs = 9 * in_channels * c + 2 * c + 9 * c + 2 * c + c * c + 2 * c, c
    for outputs, options in zip(widths(skeleton), CHAIN.to_blocks(architecture), strict=True):
        for option in options:
            if option != "skip":
                kernel, expansion = SHAPES[option]
                wide = expansion * inputs
                total += wide * (inputs + 2 + kernel**2 + 2 + outputs) + 2 * outputs
            inputs = outputs
    return total + 6 * inputs * (inputs + 2) + (6 * inputs + 1) * skeleton.classes


@pytest.mark.parametrize("name", ["cifar", "imagenet", None])
def test_parameters_by_the_closed_formula_and_multiply_adds_by_torch(name):
    skeleton = SMALL if name is None else MOBILE.skeletons[name]
    for seed in range(2):
        architecture = sample("mobile", Random(seed))
        assert counted_parameters(architecture, skeleton) == parameters(architecture, skeleton)


def test_the_skeletons_are_as_large_as_mobile_networks_are():
    """MobileNetV2 has 3.5 million parameters and 300 million multiply-adds; the largest chain here has some more."""
    counted = count(ALL_K3E6, "imagenet")
    assert (counted.params, counted.multiply_adds["conv+fc"]) == (3_238_056, 429_089_288)
    assert count(CHAIN.from_blocks([["k3e3", "skip", "skip", "skip"]] * 5), "imagenet").multiply_adds["conv+fc"] < 70e6


@pytest.mark.parametrize("channels", [1, 4, 8, 11, 16, 24, 32])
def test_widths_are_multiples_of_eight_near_the_exact_ones(channels):
    skeleton = SMALL.changed(channels=channels)
    found = [first.outputs for first, _ in places(skeleton)]
    assert found == widths(skeleton)
    assert all(width % 8 == 0 for width in found)


@pytest.mark.parametrize(
    ("image", "large", "sides"),
    [
        (3, False, [3, 3, 3, 3, 3]),
        (8, False, [8, 4, 4, 4, 4]),
        (16, False, [16, 8, 4, 4, 4]),
        (32, False, [32, 16, 8, 8, 4]),
        (64, False, [64, 32, 16, 16, 8]),
        (64, True, [16, 8, 4, 4, 4]),
        (224, True, [56, 28, 14, 14, 7]),
    ],
)
def test_images_are_halved_while_pixels_last(image, large, sides):
    skeleton = Skeleton(1, 8, 3, image, large)
    assert [further.side for _, further in places(skeleton)] == sides
    net, seen = network("mobile:k3e3+k5e3+k7e3+k3e3+k3e3", skeleton), []
    for block in net.blocks:
        block.register_forward_hook(lambda _module, _inputs, output: seen.append(output.shape[2]))
    assert net(torch.zeros(2, 3, image, image)).shape == (2, 3)
    assert seen == sides


def test_an_architecture_has_its_own_depth_in_every_skeleton():
    text = "mobile:k3e3-k3e3+k5e3-skip+k7e3-skip+k3e3-k5e6+k3e3-skip"
    assert len(network(text, depth=4).blocks) == 7
    assert count(text, "cifar", depth=1) == count(text, "cifar", depth=9)


def supernet(depth=2, scale=1.0):
    torch.manual_seed(0)
    net = MOBILE.supernet(SMALL.changed(depth=depth), in_channels=1)
    for alpha in net.alpha.values():
        torch.nn.init.normal_(alpha, std=scale)
    return net


@pytest.mark.parametrize(("depth", "kind"), [(1, "parameters"), (3, "multiply_adds")])
def test_prices_sum_to_what_is_counted(depth, kind):
    net, random = supernet(depth), Random(0)
    limit = CostTarget(net, prices(net, kind, "imagenet"), Cost(kind, target=1.0))
    assert all(price >= 0 for rows in limit.prices.options.values() for row in rows for price in row)
    for _ in range(5):
        architecture = CHAIN.from_blocks(
            [[random.choice(CHAIN.further if block else CHAIN.first) for block in range(depth)] for _ in range(5)]
        )
        counted = count(architecture, "imagenet")
        exact = counted.params if kind == "parameters" else counted.multiply_adds["conv+fc"]
        assert limit.cost(architecture) == limit.prices.whole(architecture) == exact


def test_a_sharp_alpha_costs_what_its_network_does_and_the_selection_meets_the_target():
    net = supernet(scale=50.0)
    wanted = Cost("multiply_adds", target=40e6, tolerance=0.02)
    limit = CostTarget(net, prices(net, "multiply_adds"), wanted)
    exact = count(net.architecture()).multiply_adds["conv+fc"]
    assert limit.expected(0.01).item() == pytest.approx(exact, rel=1e-6)
    assert abs(exact / 40e6 - 1) > 0.02
    assert count(limit.pick(net, Selection())).multiply_adds["conv+fc"] == pytest.approx(40e6, rel=0.02)


def test_latency_is_measured_and_priced(tmp_path):
    table = measure_latency("mobile", SMALL, seconds=0)
    assert [len(table[group]) for group in ("first", "further")] == [5, 5]
    assert all(row[-1] == 0 and min(row[:-1]) > 0 for row in table["further"])
    table |= {"base": 1.0, "first": [[0.5] * 6] * 5, "further": [[stage] * 6 + [0.0] for stage in range(5)]}
    path = tmp_path / "latency.json"
    path.write_text(json.dumps(table))
    for depth in (1, 2, 3):
        net = supernet(depth)
        known = prices(net, "latency", table=str(path))
        assert {name: (len(rows), len(rows[0])) for name, rows in known.options.items()} == {
            name: tuple(alpha.shape) for name, alpha in net.alpha.items()
        }
    architecture = CHAIN.from_blocks([["k3e3", "k5e6", "skip"]] * 5)
    limit = CostTarget(net, known, Cost("latency", target=1.0))
    assert limit.cost(architecture) == known.whole(architecture) == 1 + 5 * 0.5 + 0 + 1 + 2 + 3 + 4
    path.write_text(json.dumps(table | {"first": table["first"][:4]}))
    with pytest.raises(InputError, match="is not a table of"):
        prices(net, "latency", table=str(path))


def test_drawings_labels_and_help():
    dot = to_dot(parse("mobile:k3e6-skip+k5e3-k3e3+k7e3-skip+k3e3-skip+k3e3-skip"))
    assert all(word in dot for word in ("stage 1", "stage 5", "5×5 e3", "skip"))
    for group, alpha in supernet(depth=3).alpha.items():
        rows, columns = MOBILE.labels(group, tuple(alpha.shape))
        assert (len(set(rows)), len(set(columns))) == tuple(alpha.shape)
    assert "mobile:BLOCK-BLOCK+BLOCK-…" in described_forms()
