"""The variants of DARTS' space in which DARTS collapses: fewer operations, noise, ordinary records."""

import json
from random import Random

import pytest
import torch

from idarts import InputError
from idarts.arch import SPACES, Architecture, Cell, Edge, as_text, parse, sample, space_of
from idarts.cli import main
from idarts.engine.folder import METRICS
from idarts.spaces import Skeleton, count, darts, network, space
from idarts.spaces.operations import operation
from idarts.spaces.prices import prices
from idarts.tables import TABLES
from idarts.tables.nas_bench_301.codes import encode

ALLOWED = {
    "darts-s2": {"skip_connect", "sep_conv_3x3"},
    "darts-s3": {"skip_connect", "sep_conv_3x3"},
    "darts-s4": {"noise", "sep_conv_3x3"},
}


def ops(architecture):
    return {edge.op for cell in architecture.cells.values() for edge in cell.edges}


def supernet(name, **changes):
    return space(name).supernet(Skeleton(3, 4, 5, 8), in_channels=1, **changes)


def noisy():
    """A pair of cells with noise on every second edge."""
    edges = [Edge(source, node, ("noise", "sep_conv_3x3")[source]) for node in range(2, 6) for source in (0, 1)]
    cell = Cell(6, edges, range(2, 6))
    return Architecture("darts", {"normal": cell, "reduce": cell})


@pytest.mark.parametrize("name", ALLOWED)
def test_random_cells_and_their_mutations_stay_inside(name):
    random, seen = Random(0), set()
    architecture = SPACES[name].sample(random)
    for _ in range(300):
        architecture = SPACES[name].mutate(architecture, random)
        seen |= ops(architecture)
        assert ops(sample(name, random)) <= ALLOWED[name]
    assert seen == ALLOWED[name]
    assert {op for node in range(4) for block in SPACES[name].growth().blocks(node) for _, op in block} == seen


@pytest.mark.parametrize("name", ALLOWED)
def test_architectures_are_ordinary_records_of_darts(name):
    net = supernet(name)
    architecture = net.architecture()
    assert (architecture.space, architecture.variant) == ("darts", None)
    assert space_of(architecture) is SPACES["darts"]
    assert parse(as_text(architecture)) == architecture
    assert net.alpha["normal"].shape == (14, len(darts.VARIANTS[name]))
    rows, columns = SPACES[name].labels("normal", (14, len(darts.VARIANTS[name])))
    assert (len(rows), len(columns)) == net.alpha["normal"].shape


@pytest.mark.parametrize("name", ALLOWED)
def test_another_operation_is_refused_in_one_line(name):
    foreign, known = with_op("sep_conv_5x5"), ", ".join(darts.VARIANTS[name])
    with pytest.raises(InputError) as error:
        supernet(name).path(foreign)
    assert str(error.value) == (
        f"the normal cell has 'sep_conv_5x5' on 2→5 of 6 nodes, which the supernet of 6 nodes with {known} does not"
    )
    with pytest.raises(InputError) as error:
        Architecture("darts", foreign.cells, variant=SPACES[name].variant)
    expected = f"darts normal cell: edge 2→5: unknown operation 'sep_conv_5x5', expected one of {known}"
    assert str(error.value) == expected


def with_op(op):
    """A normal cell of separable convolutions, but for one edge."""
    edges = [Edge(source, node, "sep_conv_3x3") for node in range(2, 6) for source in (1, node - 1 if node > 2 else 0)]
    cell = Cell(6, edges, range(2, 6))
    other = Cell(6, [*(edge for edge in edges if edge[:2] != (1, 5)), Edge(2, 5, op)], range(2, 6))
    return Architecture("darts", {"normal": other, "reduce": cell})


class TestNoise:
    def test_it_has_the_shape_and_nothing_else_of_its_input(self):
        torch.manual_seed(0)
        module = operation("noise", 8, stride=2)
        assert not list(module.parameters())
        images = torch.full((64, 8, 15, 15), float("nan"), requires_grad=True)
        result = module(images)
        assert result.shape == (64, 8, 8, 8)
        assert not result.requires_grad
        assert abs(result.mean()) < 0.02
        assert abs(result.std() - 1) < 0.02

    def test_each_call_draws_again_from_the_global_generator(self):
        module, images = operation("noise", 4).eval(), torch.zeros(2, 4, 6, 6)
        torch.manual_seed(0)
        first, second = module(images), module(images)
        torch.manual_seed(0)
        assert torch.equal(first, module(images.contiguous(memory_format=torch.channels_last)))
        assert not torch.equal(first, second)

    def test_every_edge_of_a_supernet_has_its_own(self):
        """With weights of noise alone, nodes that read the same source differ."""
        torch.manual_seed(0)
        net = supernet("darts-s4")
        with torch.no_grad():
            for alpha in net.alpha.values():
                alpha.copy_(torch.tensor([9.0, -99.0]).expand(14, 2))
        states = net.cells[0].graph([torch.zeros(2, 4, 8, 8)] * 2, net.mixtures()["normal"])
        # Five independent terms; if the edges of a source shared their noise, only that of 2→3 would be left.
        assert (states[2] - states[3]).std().item() == pytest.approx(5**0.5, abs=0.4)

    def test_a_network_trains_with_it_and_counts_nothing_for_it(self):
        torch.manual_seed(0)
        net = network(noisy(), depth=3, channels=8, classes=5)
        net(torch.randn(2, 3, 16, 16)).square().sum().backward()
        assert all(weights.grad is None or weights.grad.isfinite().all() for weights in net.parameters())
        pooled = {
            name: Cell(6, [e._replace(op="avg_pool_3x3") if e.op == "noise" else e for e in cell.edges], cell.output)
            for name, cell in noisy().cells.items()
        }
        assert count(noisy()).params == count(Architecture("darts", pooled)).params

    def test_the_benchmark_does_not_describe_it(self):
        with pytest.raises(InputError, match="NAS-Bench-301 has no operation noise; it has max_pool_3x3, "):
            encode(noisy())


def test_the_benchmark_of_darts_answers_where_it_can():
    assert TABLES["darts-s2"] is TABLES["darts-s3"] is TABLES["darts"]
    assert "darts-s4" not in TABLES
    for name in ("darts-s2", "darts-s3"):
        encode(sample(name, Random(0)))  # and it describes their cells


@pytest.mark.parametrize("name", ALLOWED)
def test_prices_have_the_columns_of_alpha(name):
    net = supernet(name)
    priced = prices(net, "parameters")
    assert {group: (len(rows), len(rows[0])) for group, rows in priced.options.items()} == dict.fromkeys(
        ("normal", "reduce"), tuple(net.alpha["normal"].shape)
    )
    architecture = sample(name, Random(1))
    taken = net.path(architecture)
    added = sum((torch.tensor(rows) * taken[group].weights).sum() for group, rows in priced.options.items())
    assert priced.base + added.item() == count(architecture).params


SMALL = ["--preset", "smoke", "--rounds", "2", "--batch", "8", "--channels", "4", "--device", "cpu"]


@pytest.mark.parametrize("name", ALLOWED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_search_by_name(name, tmp_path, capsys):
    trials = ["--selection.rule", "trials", "--selection.steps", "2", "--selection.samples", "2"]
    assert main(["search", "--space", name, *SMALL, *trials, "--out", str(tmp_path / "run")]) == 0, capsys.readouterr()
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert ops(parse(result["architecture"])) <= ALLOWED[name]
    assert len((tmp_path / "run" / METRICS).read_text().splitlines()) == 2
