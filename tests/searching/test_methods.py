"""Every method by name: it runs, costs what its file says, and resumes bit for bit, also inside a stage."""

import itertools
import json

import pytest
import torch
from tiny import QUICK, begin

from idarts import InputError
from idarts.cli import main
from idarts.searching import METHODS

NEW = ["drnas", "pc-darts", "p-darts", "snas", "xnas", "parsec", "nsas"]
NEW += ["fair-darts", "sdarts-rs", "darts-minus", "beta-darts", "darts-pt"]
SHARING = [name for name in METHODS if METHODS.entries[name].cost]  # those that train a supernet
OPTIONS = {"darts-pt": {"options": {"tune": 1}}}


@pytest.mark.parametrize("method", SHARING)
def test_a_round_costs_what_the_file_says(method):
    search = begin(method, selection=QUICK | OPTIONS.get(method, {}))
    costs = [(one.gradient_evaluations, one.stage) for one in search.rounds()]
    assert len(costs) == search.total == 4
    steps = [
        after - before for (before, stage), (after, same) in itertools.pairwise(costs) if stage == same
    ]  # a stage begins with a warm-up
    assert steps
    assert steps == pytest.approx([METHODS.entries[method].cost] * len(steps), abs=1e-3)


@pytest.mark.parametrize("method", NEW)
def test_a_killed_search_resumes_bit_for_bit(method):
    """Cut after three of four rounds: in the second stage of those that have several."""
    whole, cut, rest = (begin(method, selection=QUICK | OPTIONS.get(method, {})) for _ in range(3))
    torch.manual_seed(7)
    list(whole.rounds())
    torch.manual_seed(7)
    list(itertools.islice(cut.rounds(), 3))
    state = cut.state_dict()
    assert cut.stage == {"drnas": 1, "p-darts": 1}.get(method, 0)
    torch.manual_seed(99)
    rest.load_state_dict(state)
    list(rest.rounds())
    ends = [search.state_dict() for search in (whole, rest)]
    assert ends[0]["net"].keys() == ends[1]["net"].keys()
    assert all(torch.equal(ends[0]["net"][key], ends[1]["net"][key]) for key in ends[0]["net"])
    assert ends[0]["stage"] == ends[1]["stage"]
    assert ends[0]["counts"] == ends[1]["counts"]
    chosen = []
    for search in (whole, rest):
        torch.manual_seed(11)
        chosen.append(search.select())
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("method", ["drnas", "pc-darts", "darts-minus", "p-darts", "xnas"])
def test_where_a_method_does_not_fit_it_says_why(method):
    """NAS-Bench-1Shot1 has operations on nodes and no skip connections."""
    refused = {"drnas": "operations on edges", "pc-darts": "operations on edges", "darts-minus": "skip connections"}
    if method in refused:
        with pytest.raises(InputError, match=refused[method]):
            begin(method, 1, "nas-bench-1shot1-s2", selection=QUICK)
        assert METHODS.entries[method].needs
        return
    search = begin(method, 3, "nas-bench-1shot1-s2", selection=QUICK | OPTIONS.get(method, {}))
    list(search.rounds())
    search.net.path(search.select())  # is one of the space
    alive = {name: min(map(sum, rows)) for name, rows in search.mask.items()}
    assert all(alive[name] >= count for name, count in search.net.fewest.items())


def test_methods_are_listed_with_axes_papers_costs_and_needs(capsys):
    assert main(["methods", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(NEW) <= rows.keys()
    assert all(rows[name]["paper"] and rows[name]["cost"] for name in NEW)
    assert rows["xnas"]["axes"]["rule"] == "exponentiated"
    assert rows["nsas"]["axes"]["objective"] == "archive"
    assert "operations on edges" in rows["pc-darts"]["needs"]
    assert rows["xnas"]["needs"] == ["supernet"]
    assert main(["methods"]) == 0
    assert "10.7 gradient evaluations a round" in capsys.readouterr().out


def test_options_that_a_part_does_not_have_are_refused_in_one_line():
    for changes, message in [
        ({"strategy_options": {"path": 3}}, "strategy importance has no option 'path'; did you mean paths"),
        ({"strategy_options": {"paths": 1}}, "one path alone teaches nothing"),
        ({"weights": {"objective_options": {"paths": 0}}}, "paths is 0"),
    ]:
        with pytest.raises(InputError, match=message):
            begin("parsec", **changes)
    with pytest.raises(InputError, match="`bound`, a positive number"):
        begin("xnas", alpha={"options": {"bound": 0}})
    with pytest.raises(InputError, match="trains single paths"):
        list(begin("nsas", relaxation="softmax").rounds())
