"""P-DARTS: depth and options of its stages, dropout on skips, and at most M of them in the end."""

import math
from itertools import islice
from pathlib import Path

import pytest
import torch
from tiny import begin
from torch import nn

from idarts import InputError
from idarts.engine.entries import as_alpha
from idarts.engine.folder import Run
from idarts.layers.graph import Fan
from idarts.pages.heat import heat
from idarts.searching.log import Log
from idarts.searching.selections.few_skips import FewSkips
from idarts.searching.settings import Config
from idarts.searching.stage import prune
from idarts.searching.stages.p_darts import p_darts, skip_dropout
from idarts.searching.verdict import verdict
from idarts.spaces.darts import EDGES, OPS


def test_cells_and_options_of_the_stages_are_the_papers():
    stages = p_darts(Config())
    assert [round(5 * stage.deepen) for stage in stages] == [5, 11, 17]
    assert [stage.drop_none for stage in stages] == [False, False, True]
    alphas, mask = {"normal": torch.randn(14, 8)}, {"normal": [[True] * 8] * 14}
    for stage, count in zip(stages[1:], (5, 3), strict=True):
        kept = prune(alphas, mask, stage.keep)
        assert {sum(row) for row in kept["normal"]} == {count}
        assert prune({"normal": alphas["normal"] ** 3 + 2}, mask, stage.keep) == kept  # any growing function
        best = alphas["normal"].topk(count).indices.sort().values.tolist()
        assert [[column for column, on in enumerate(row) if on] for row in kept["normal"]] == best
        mask = kept


def test_a_search_goes_deeper_with_fewer_options_and_fresh_alpha():
    search = begin("p-darts", 6)
    seen = []
    for one in search.rounds():
        cells = sum(hasattr(block, "fans") for block in search.net.body)
        seen.append((one.stage, cells, sum(search.mask["cell"][0])))
    assert seen == [(1, 3, 5), (1, 3, 5), (2, 6, 4), (2, 6, 4), (3, 9, 2), (3, 9, 2)]
    assert not any(row[search.net.none] for row in search.mask["cell"])
    assert search.a[0].abs().max() < 3 * 0.1 + 0.01  # two rounds at a rate of at most 0.1, from 1e-3·randn


def test_the_log_and_its_picture_have_no_alpha_of_dropped_options():
    search = begin("p-darts", 6)
    log = Log(search)
    lines = [log.entry(one) for one in search.rounds()]
    assert [sum(value is None for value in line["alpha"]["cell"][0]) for line in lines] == [0, 0, 1, 1, 3, 3]
    alphas = [{"alpha": as_alpha("", line["alpha"])} for line in lines]
    drawn = heat(
        Run(Path("run"), {"space": "nas-bench-201"}, [one | two for one, two in zip(lines, alphas, strict=True)])
    )
    for decision in drawn.groups[0].decisions:
        left = [float(one.share.removesuffix(" %")) for one in decision.options if one.share != "dropped"]
        assert len(left) == 2
        assert sum(left) == pytest.approx(100, abs=0.2)
        assert sum(one.largest for one in decision.options) == 1
    assert drawn.dropped
    assert not drawn.unknown
    assert verdict(0.5, 0.2, [line["alpha"] for line in lines[-1:] * 20], search.mask).clear == 0


@pytest.mark.parametrize("stopped", [1, 3])
def test_a_search_resumes_in_any_stage_to_the_bit(stopped):
    settings = {"inner_steps": 1, "hypergradient": {"method": "first-order"}}
    whole = begin("p-darts", 6, **settings)
    list(whole.rounds())
    cut = begin("p-darts", 6, **settings)
    list(islice(cut.rounds(), stopped))
    state = cut.state_dict()  # with that of the random generators
    resumed = begin("p-darts", 6, **settings)
    resumed.load_state_dict(state)
    list(resumed.rounds())
    assert resumed.mask == whole.mask
    for one, other in zip((*resumed.a, *resumed.w), (*whole.a, *whole.w), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("epoch", "rate"), [(0, 24 / 25), (9, 15 / 25), (10, 1.0), (11, math.exp(-0.2)), (24, math.exp(-2.8))]
)
def test_dropout_at_named_epochs(epoch, rate):
    assert skip_dropout(0.7, epoch / 25) == pytest.approx(0.7 * rate)
    assert skip_dropout(0.7, (epoch + 0.9) / 25) == pytest.approx(0.7 * rate)


def test_dropout_is_behind_identities_while_training_and_each_edge_has_its_own():
    torch.manual_seed(0)
    fan = Fan({}, {"skip_connect": nn.Identity(), "pool": nn.AvgPool2d(1)})
    fan.skip_dropout = 0.5
    x = torch.ones(1, 2, 30, 30)

    def terms():
        from idarts.layers.graph import NodeInputs
        from idarts.layers.mixture import Mixture

        nodes = [NodeInputs(), NodeInputs()]
        fan(x, Mixture(torch.ones(2, 2)), [0, 1], {"skip_connect": 0, "pool": 1}, nodes)
        return [[term for term, *_ in node.weighted] for node in nodes]

    (skip, pool), (other, _) = terms()
    assert (skip == 0).float().mean().item() == pytest.approx(0.5, abs=0.05)
    assert set(skip.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(skip, other)
    assert torch.equal(pool, x)
    fan.eval()
    assert torch.equal(terms()[0][0], x)


def test_a_stage_sets_the_rate_and_the_selection_takes_none():
    search = begin("p-darts", 3)
    rates = [{fan.skip_dropout for fan in search.net.modules() if isinstance(fan, Fan)} for _ in search.rounds()]
    assert all(len(rate) == 1 and 0 < next(iter(rate)) <= 0.7 for rate in rates)
    search.select()
    assert {fan.skip_dropout for fan in search.net.modules() if isinstance(fan, Fan)} == {0.0}


class TestFewSkips:
    def searched(self):
        search = begin("p-darts", 3, name="darts", stages="single")
        torch.manual_seed(1)
        with torch.no_grad():
            for alpha in search.a:
                alpha.copy_(torch.randn(14, 8))
                alpha[:, OPS.index("skip_connect")] += 2.0
        return search

    def skips(self, architecture, cell="normal"):
        return sum(edge.op == "skip_connect" for edge in architecture.cells[cell].edges)

    def test_at_most_m_in_the_normal_cell_and_any_in_the_other(self):
        search = self.searched()
        plain = search.largest()
        assert self.skips(plain) > 2
        for most in range(9):
            chosen = FewSkips(most)(search).architecture
            assert self.skips(chosen) == min(most, self.skips(plain))
            assert chosen.cells["reduce"] == plain.cells["reduce"]
        assert FewSkips(8)(search).architecture == plain
        assert FewSkips()(search).architecture == FewSkips(2)(search).architecture  # as in the paper

    def test_the_strongest_stay_and_a_second_time_changes_nothing(self):
        search = self.searched()
        values = FewSkips(2).limited(search)
        before = search.living()["normal"].softmax(1)[:, OPS.index("skip_connect")]
        gone = values["normal"][:, OPS.index("skip_connect")].isneginf()
        kept = search.net.path(search.largest(values))["normal"].weights[:, OPS.index("skip_connect")].bool()
        assert before[kept].min() > before[gone].min()
        with torch.no_grad():
            search.net.alpha["normal"].copy_(values["normal"])
        assert FewSkips(2).limited(search)["normal"].equal(values["normal"])

    @pytest.mark.parametrize("fewest", range(5))
    def test_missing_skips_take_the_edges_where_they_are_nearest(self, fewest):
        search, skip = self.searched(), OPS.index("skip_connect")
        with torch.no_grad():
            for alpha in search.a:
                alpha[:, skip] -= 6.0
        plain = search.largest()
        assert self.skips(plain) == 0
        chosen = FewSkips(4, fewest)(search).architecture
        assert self.skips(chosen) == fewest
        assert chosen.cells["reduce"] == plain.cells["reduce"]
        wiring, after = (
            [(edge.source, edge.target) for edge in architecture.cells["normal"].edges]
            for architecture in (plain, chosen)
        )
        assert wiring == after
        shares = search.living()["normal"].softmax(1)[:, skip]
        given = {edge: shares[EDGES.index(edge)].item() for edge in wiring}
        first = sorted(wiring, key=lambda edge: -given[edge])[:fewest]
        assert {(e.source, e.target) for e in chosen.cells["normal"].edges if e.op == "skip_connect"} == set(first)

    def test_an_option_that_has_left_does_not_come_back(self):
        search, skip = self.searched(), OPS.index("skip_connect")
        search.mask = {name: [[column != skip for column in range(8)]] * 14 for name in search.mask}
        assert self.skips(FewSkips(2, 2)(search).architecture) == 0

    def test_bad_input(self):
        with pytest.raises(InputError, match="most is -1"):
            FewSkips(-1)
        with pytest.raises(InputError, match="fewest is 3 and most is 2"):
            FewSkips(2, 3)
