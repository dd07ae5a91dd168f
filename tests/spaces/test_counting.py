"""Exact parameters and multiply-adds, against published numbers, formulas, tables and torch's own counter."""

import os
from pathlib import Path
from random import Random

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from idarts.arch import registry, sample
from idarts.errors import InputError
from idarts.spaces import count, count_module, nas_bench_101, nas_bench_201, network

# name: parameters on CIFAR, with auxiliary head, on ImageNet; multiply-adds on ImageNet, conv+fc and conv+fc+bn
EXACT = {
    "NASNet-A": (3830950, 4288944, 5564320, 604032616, 612349288),
    "AmoebaNet-A": (3145078, 3603072, 4627360, 526747624, 533954152),
    "DARTS_V1": (3169414, 3645840, 4510432, 505865704, 513617896),
    "DARTS_V2": (3349342, 3825768, 4718752, 529912552, 538191592),
    "SETN": (4619206, 5095632, 6314656, 706895848, 715682920),
    "Random_NSAS": (3083014, 3559440, 4484512, 498734440, 505771624),
    "iDARTS": (3758446, 4234872, 5302528, 586144168, 595345192),
}


def test_a_sample_may_be_folded_into_the_batch():
    class Folded(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(8, 8, bias=False)

        def forward(self, x):
            return self.line(x.reshape(-1, 8)).reshape(x.shape)

    assert count_module(Folded(), torch.empty(2, 16, 8)).multiply_adds["conv+fc"] == 16 * 8 * 8
    with pytest.raises(InputError, match="MultiheadAttention cannot be counted"):
        count_module(nn.TransformerEncoderLayer(8, 2, batch_first=True), torch.empty(2, 16, 8))


@pytest.mark.parametrize("name", EXACT)
def test_exact_counts_of_published_cells(name):
    cifar, imagenet = count(name, "cifar"), count(name, "imagenet")
    assert (cifar.params, cifar.params_with_auxiliary, imagenet.params, *imagenet.multiply_adds.values()) == EXACT[name]


@pytest.mark.parametrize("name", ["GDAS_V1", "XNAS", "Random_NSAS", "iDARTS"])
def test_papers_that_count_batch_norms(name):
    """These papers' millions of multiply-adds are ours with two per BatchNorm element, rounded."""
    published = registry.entry(name).provenance["published"]["imagenet_multiply_adds_millions"]
    assert round(count(name, "imagenet").multiply_adds["conv+fc+bn"] / 1e6) == published


@pytest.mark.parametrize(("classes", "size"), [(10, 32), (100, 32), (7, 32)])
def test_nas_bench_201_formulas(classes, size):
    random = Random(classes)
    for _ in range(8):
        cell = sample("nas-bench-201", random)
        ops = nas_bench_201.to_ops(cell)
        small, large = ops.count("nor_conv_1x1"), ops.count("nor_conv_3x3")
        counts = count(cell, classes=classes, image=size)
        assert counts.params == 73306 + 65 * (classes - 10) + 28000 * small + 243040 * large
        assert counts.multiply_adds["conv+fc"] == 7782400 + 65 * classes + 3932160 * small + 35389440 * large


def test_the_largest_nas_bench_201_network():
    counts = count("NB201_all_conv3x3", "cifar10")
    assert counts.params == counts.params_with_auxiliary == 1531546
    assert round(counts.multiply_adds["conv+fc"] / 1e6, 2) == 220.12


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100", "imagenet16"])
def test_nas_bench_201_table(dataset):
    columns = read_table("nasbench201_tss.parquet", f"{dataset}_params", f"{dataset}_flops")
    for index in Random(dataset).sample(range(15625), 10):
        counts = count(nas_bench_201.from_index(index), dataset)
        assert counts.params == columns[f"{dataset}_params"][index]
        assert counts.multiply_adds["conv+fc"] == columns[f"{dataset}_flops"][index]


def test_nas_bench_101_table():
    columns = read_table("nasbench101_108ep_test.parquet", "n_vertices", "adj_bits", "ops", "params")
    rows = Random(0).sample(range(len(columns["params"])), 40)
    rows += [row for row, vertices in enumerate(columns["n_vertices"]) if vertices < 4]
    for row in rows:
        vertices, bits = columns["n_vertices"][row], columns["adj_bits"][row]
        matrix = [[int(x < y and bits >> (x + y * (y - 1) // 2) & 1) for y in range(vertices)] for x in range(vertices)]
        cell = nas_bench_101.from_matrix(matrix, [nas_bench_101.OPS[int(op)] for op in columns["ops"][row]])
        assert count(cell).params == columns["params"][row]


def read_table(name, *columns):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow (idarts[tables])")
    file = Path(os.environ.get("IDARTS_TABLES", "no folder"), name)
    if not file.is_file():
        pytest.skip(f"IDARTS_TABLES names no folder with {name}")
    return parquet.read_table(file, columns=list(columns)).to_pydict()


def test_nas_bench_101_without_the_table():
    assert count("NB101_best_cifar10").params == 32426634


@pytest.mark.parametrize(
    ("name", "skeleton", "size"),
    [("SETN", "cifar", 32), ("AmoebaNet-A", "imagenet", 64), ("NB101_best_cifar10", None, 16)],
)
def test_torch_s_own_counter_agrees(name, skeleton, size):
    """It counts two operations per multiply-add, and no biases; only the classifier has one."""
    net = network(name, skeleton, depth=3, channels=8, classes=6).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        net(torch.randn(1, 3, size, size))
    counts = count(name, skeleton, depth=3, channels=8, classes=6, image=size)
    assert counts.multiply_adds["conv+fc"] == counter.get_total_flops() // 2 + 6
    assert counts.params == sum(weights.numel() for weights in net.parameters())


def test_any_module_can_be_counted():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 2, bias=False))
    counts = count_module(net, torch.empty(5, 3, 8, 8))
    assert counts.params == 3 * 4 * 9 + 4 + 8 + 288
    assert counts.multiply_adds == {"conv+fc": 144 * 28 + 288, "conv+fc+bn": 144 * 28 + 288 + 288}
    assert next(net.parameters()).device.type == "cpu"
    assert net.training
    up = nn.ConvTranspose2d(3, 4, 2, stride=2, groups=1, bias=False)
    assert count_module(up, torch.empty(1, 3, 5, 5)).multiply_adds["conv+fc"] == 3 * 25 * 4 * 4


def test_counting_multiplies_nothing_and_leaves_the_random_state_alone():
    state = torch.get_rng_state()
    with FlopCounterMode(display=False) as done:
        assert count("DARTS_V2", "imagenet", image=2000).multiply_adds["conv+fc"] > 1e10
    assert done.get_total_flops() == 0
    assert torch.equal(torch.get_rng_state(), state)


def test_bad_sizes():
    with pytest.raises(InputError, match="image is 0"):
        count("DARTS_V2", image=0)
