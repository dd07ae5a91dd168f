"""A space from outside the package, as one record: every function on spaces and architectures works with it."""

import re
from random import Random

import pytest
import torch
from torch import nn

import idarts
from idarts.arch import (
    SPACES,
    Absent,
    Architecture,
    Cell,
    Skeleton,
    Space,
    Style,
    as_text,
    convert,
    draw,
    from_json,
    lazy,
    mutate,
    parse,
    sample,
    space_of,
    to_json,
)
from idarts.arch.drawing import to_dot
from idarts.arch.forms import described_forms, form_names
from idarts.data import load
from idarts.errors import InputError
from idarts.layers.mixture import one_hot
from idarts.pages.labels import names, title
from idarts.spaces import Supernet, count, network
from idarts.spaces.prices import Prices, prices

KERNELS = ("1", "3", "5")
LAYERS = ("first", "second")


def chain(*kernels):
    return Architecture("chain", choices=dict(zip(LAYERS, kernels, strict=True)))


def kernels_of(architecture):
    return [architecture.choices[layer] for layer in LAYERS]


def check(architecture):
    if architecture.cells or tuple(architecture.choices) != LAYERS:
        raise InputError("chain: expected the choices first and second")
    for layer, kernel in architecture.choices.items():
        if kernel not in KERNELS:
            raise InputError(f"chain: {layer} is {kernel!r}, expected one of {', '.join(KERNELS)}")


def read(form):
    match = re.fullmatch(r"chain:(\d)-(\d)", form) if isinstance(form, str) else None
    return chain(*match.groups()) if match else None


def mutated(architecture, random):
    kernels = kernels_of(architecture)
    layer = random.randrange(len(kernels))
    kernels[layer] = random.choice([kernel for kernel in KERNELS if kernel != kernels[layer]])
    return chain(*kernels)


def convolution(kernel, channels):
    return nn.Conv2d(channels, channels, int(kernel), padding=int(kernel) // 2)


class Ends(nn.Module):
    def __init__(self, skeleton, in_channels):
        super().__init__()
        self.stem = nn.Conv2d(in_channels, skeleton.channels, 3, padding=1)
        self.classifier = nn.Linear(skeleton.channels, skeleton.classes)


class ChainNetwork(Ends):
    def __init__(self, architecture, skeleton, in_channels):
        super().__init__(skeleton, in_channels)
        self.layers = nn.Sequential(*(convolution(kernel, skeleton.channels) for kernel in kernels_of(architecture)))

    def forward(self, images):
        return self.classifier(self.layers(self.stem(images)).mean(dim=(2, 3)))


class ChainSupernet(Supernet):
    def __init__(self, skeleton, in_channels=3, relaxation=None):
        super().__init__({"layers": (len(LAYERS), len(KERNELS))}, relaxation or idarts.spaces.softmax)
        self.ends = Ends(skeleton, in_channels)
        self.layers = nn.ModuleList(
            nn.ModuleList(convolution(kernel, skeleton.channels) for kernel in KERNELS) for _ in LAYERS
        )

    def mixed(self, images, mixtures):
        x = self.ends.stem(images)
        for weights, options in zip(mixtures["layers"].weights, self.layers, strict=True):
            x = sum(weight * option(x) for weight, option in zip(weights, options, strict=True))
        return self.ends.classifier(x.mean(dim=(2, 3)))

    def architecture(self):
        return chain(*(KERNELS[column] for column in self.alpha["layers"].argmax(1).tolist()))

    def path(self, architecture):
        columns = [KERNELS.index(kernel) for kernel in kernels_of(architecture)]
        return {"layers": one_hot(columns, len(KERNELS), self.alpha["layers"])}


def priced(whole, _net):
    base = whole(chain("1", "1"))
    rows = [[whole(chain(kernel, "1")) - base for kernel in KERNELS], [whole(chain("1", k)) - base for k in KERNELS]]
    return Prices(base, {"layers": rows}, whole)


CHAIN = Space(
    name="chain",
    check=check,
    parse=read,
    reads="chain:KERNEL-KERNEL",
    forms={"kernels": lambda architecture: f"chain:{'-'.join(kernels_of(architecture))}"},
    text_form="kernels",
    style=Style(
        cells=lambda a: {"chain": Cell(3, [(i, i + 1, kernel) for i, kernel in enumerate(kernels_of(a))], [2])},
        label=lambda kernel: f"conv {kernel}×{kernel}",
    ),
    labels=lambda group, shape: (list(LAYERS), [f"{kernel}×{kernel}" for kernel in KERNELS]),
    size=len(KERNELS) ** len(LAYERS),
    sample=lambda random: chain(*random.choices(KERNELS, k=len(LAYERS))),
    mutate=mutated,
    supernet=ChainSupernet,
    network=ChainNetwork,
    skeletons={"digits": Skeleton(depth=1, channels=4, classes=10, image=8)},
    prices=priced,
)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(SPACES, "_own", {})  # forget the space after the test
    assert SPACES.own(CHAIN, CHAIN.name) == "chain"


def test_without_registration_the_error_lists_the_spaces(monkeypatch):
    monkeypatch.setattr(SPACES, "_own", {})
    with pytest.raises(InputError, match=r"unknown space 'chain': expected one of choice, darts, .*nas-bench-101"):
        chain("1", "3")
    with pytest.raises(InputError, match=r"unknown space 'chain'; there are darts, .*nas-bench-1shot1-s1"):
        idarts.space("chain")


def test_something_else_than_a_space_is_refused_and_breaks_nothing():
    assert SPACES.load("json:dumps") == "json:dumps"
    with pytest.raises(InputError, match="the space json:dumps is a function, not a Space; there are darts"):
        idarts.space("json:dumps")
    assert parse("chain:1-3") == chain("1", "3")


def test_records_and_texts(tmp_path):
    a = chain("1", "3")
    assert space_of(a) is CHAIN
    assert from_json(to_json(a)) == parse(to_json(a)) == parse("chain:1-3") == parse(as_text(a)) == a
    (tmp_path / "cell.txt").write_text("chain:1-3\n")
    assert parse(tmp_path / "cell.txt") == a
    assert convert(a, "kernels") == "chain:1-3"
    assert "kernels" in form_names()
    assert "chain:KERNEL-KERNEL" in described_forms()
    with pytest.raises(InputError, match="chain: second is '7', expected one of 1, 3, 5"):
        parse("chain:1-7")
    with pytest.raises(InputError, match="an architecture of darts has no form 'kernels', expected json or genotype"):
        convert("DARTS_V2", "kernels")
    with pytest.raises(InputError, match="chain: variant is 'S1', expected none"):
        Architecture("chain", choices=dict(a.choices), variant="S1")


def test_drawing(tmp_path):
    dot = to_dot(chain("1", "5"))
    assert "conv 1×1" in dot
    assert "conv 5×5" in dot
    assert draw("chain:1-5", tmp_path / "chain.dot").read_text() == dot


def test_random_architectures():
    assert {sample("chain", Random(seed)) for seed in range(60)} == {chain(a, b) for a in KERNELS for b in KERNELS}
    a = chain("1", "1")
    for seed in range(20):
        changed = mutate(a, Random(seed))
        assert sum(x != y for x, y in zip(kernels_of(a), kernels_of(changed), strict=True)) == 1
        a = changed


def test_networks_and_counts():
    net = network("chain:1-3", in_channels=1)
    assert net(torch.zeros(2, 1, 8, 8)).shape == (2, 10)
    assert (
        count("chain:1-3", channels=4, in_channels=1).params
        == 40 + 20 + 148 + 50
        == sum(map(torch.numel, net.parameters()))
    )
    with pytest.raises(InputError, match="a network of chain has no auxiliary head"):
        network("chain:1-3", auxiliary=True)
    with pytest.raises(InputError, match="unknown skeleton 'cifar' of chain, expected digits"):
        network("chain:1-3", "cifar")


def test_labels_of_a_report():
    assert names({"space": "chain"}, "layers", (2, 3)) == (["first", "second"], ["1×1", "3×3", "5×5"])
    assert names({"space": "chain"}, "other", (1, 2))[0] == ["other"]
    assert title({"space": "chain"}, "layers") == ""


def test_prices_sum_to_what_is_counted():
    net = idarts.space("chain").supernet(CHAIN.skeleton)
    known = prices(net, "multiply_adds")
    for a in map(chain, KERNELS, reversed(KERNELS)):
        rows = [row[KERNELS.index(kernel)] for row, kernel in zip(known.options["layers"], kernels_of(a), strict=True)]
        assert known.base + sum(rows) == known.whole(a) == count(a).multiply_adds["conv+fc"]
    with pytest.raises(InputError, match=r"the space chain has no 'latency'; spaces with it: .*nas-bench-201"):
        idarts.spaces.measure_latency("chain")


def test_a_search_and_a_training(tmp_path):
    part = load("digits").train
    result = idarts.search("chain", part, out=tmp_path / "search", rounds=2, batch=8)
    assert space_of(result.architecture) is CHAIN
    assert parse(tmp_path / "search") == result.architecture
    trained = idarts.train(result.architecture, "digits", out=tmp_path / "train", epochs=1, batch=512)
    assert isinstance(trained.net, ChainNetwork)


def test_parts_that_a_space_does_not_have():
    bare = Space(name="bare", check=lambda architecture: None, prices=Absent("nobody counted"))
    SPACES.own(bare, "bare")
    a = Architecture("bare", choices={"any": "thing"})
    assert as_text(a) == to_json(a)
    for use, message in (
        (lambda: mutate(a, Random(0)), "the space bare has no 'mutate'; spaces with it: chain, darts"),
        (lambda: sample("bare", Random(0)), "the space bare has no 'sample'"),
        (lambda: network(a), "the space bare has no 'network'; spaces with it: chain, darts"),
        (bare.prices, r"has no 'prices' \(nobody counted\); spaces with it: chain, choice, darts"),
        (lambda: idarts.space("bare"), "the space bare has no supernet to search; there are darts, .*nas-bench"),
        (lambda: bare.skeleton, "the space bare has no skeleton"),
        (lambda: draw(a, "cell.dot"), "an architecture of bare has no cells to draw"),
    ):
        with pytest.raises(InputError, match=message):
            use()


def test_a_user_can_replace_a_space_by_a_variant_of_it():
    wide = Skeleton(depth=1, channels=32, classes=10, image=8)
    SPACES.own(
        Space(name="wide-chain", record="chain", variant="wide", check=check, skeletons={"w": wide}), "wide-chain"
    )
    a = Architecture("chain", choices={"first": "1", "second": "3"}, variant="wide")
    assert space_of(a).name == "wide-chain"
    assert space_of(chain("1", "3")) is CHAIN
    assert space_of(from_json(to_json(a))).skeleton == wide


def test_the_old_name_of_the_skeleton_warns():
    with pytest.warns(DeprecationWarning, match="use Space.skeleton"):
        assert idarts.space("chain").macro == CHAIN.skeleton


def test_a_lazy_part_is_imported_when_it_is_called():
    assert lazy("json:loads")("[1]") == [1]
    with pytest.raises(ModuleNotFoundError):
        lazy("no_such_module:part")()
