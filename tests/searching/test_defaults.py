"""Defaults that decide: α's rate, the proxy, presets in their spaces, gradients that reach α, verdicts, budgets."""

import json
import os
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import idarts
from idarts import Choice
from idarts.arch import as_text
from idarts.cli import main
from idarts.engine.folder import current_architecture, read_config, read_result, read_rounds, read_run
from idarts.engine.settings import change
from idarts.errors import InputError
from idarts.pages.heat import heat
from idarts.searching import PRESETS, RunConfig, resolved, run, task_of, upgrade
from idarts.searching.automatic import RANGE, alpha_rate
from idarts.searching.reach import unreached
from idarts.searching.round import spread
from idarts.searching.selections.trials import Trial, evaluations, halve, shortened
from idarts.searching.verdict import verdict
from idarts.spaces import ChoiceSupernet, space

TINY = {"rounds": 2, "batch": 8, "channels": 4, "inner_steps": 1, "hypergradient.method": "first-order"}
OPTIONS = [word for name, value in TINY.items() for word in (f"--{name.replace('_', '-')}", str(value))]
FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_1_0"


def tiny(**changes):
    return change(RunConfig(), {**TINY, **changes})


class TestAlphasRate:
    def test_all_rounds_together_move_alpha_by_the_same_range(self):
        assert [round(alpha_rate(rounds) * rounds, 9) for rounds in (30, 100, 1000)] == [RANGE] * 3

    def test_it_follows_the_rounds_also_where_epochs_or_a_limit_make_them(self):
        for changes in ({"rounds": 50}, {"epochs": 0.5}):
            search = task_of(tiny(**changes))[0].search()
            assert search.strategy.rule.rate == alpha_rate(search.total)
        limited = task_of(tiny(rounds=1000, gradient_evaluations=12.0))[0].search()
        rates = [limited.strategy.rule.rate for _ in limited.rounds()]
        assert rates[0] == alpha_rate(1000)
        assert rates[-1] == alpha_rate(len(rates))

    def test_published_settings_name_theirs(self):
        for name in PRESETS:
            rate = resolved([{"preset": name}]).alpha.rate
            assert rate == (
                3e-4 if name.endswith("-paper") else {"cpu": 5e-3, "darts-cpu": "auto", "smoke": 0.01}[name]
            )

    def test_what_was_resolved_is_recorded_and_holds_on_another_machine(self, tmp_path):
        settings = tiny(channels="auto")
        run(settings, tmp_path / "run")
        recorded = read_config(tmp_path / "run")["resolved"]
        assert recorded == {"depth": 1, "channels": 8, "alpha.rate": 0.1}
        assert task_of(settings, {"depth": 2, "channels": 4})[0].sizes == {"depth": 2, "channels": 4}


class TestEarlierSettings:
    def test_a_run_of_an_earlier_version_keeps_its_meaning(self):
        config = upgrade(json.loads((FIXTURES / "search-finished" / "config.json").read_text()))
        before = change(RunConfig(), config)
        assert (before.selection.judge, before.none, before.image) == ("loss", True, None)
        own = task_of(change(RunConfig(), {"depth": None, "channels": None}))[0].sizes
        assert own == {"depth": space("nas-bench-201").skeleton.depth, "channels": 16}

    def test_presets_name_all_that_defaults_no_longer_say(self):
        """What 0.1.0 ran under these names: its defaults, where the preset had none."""
        for name in PRESETS.keys() - {"darts-cpu"}:  # which 0.1.0 did not have
            settings = resolved([{"preset": name}])
            assert settings.none == (name != "cpu")
            assert settings.selection.judge == "loss" or settings.selection.rule != "trials"
            assert "auto" not in (settings.image, settings.channels)
            assert settings.depth != "auto" or name == "smoke"  # one cell in the space that 0.1.0 knew it for


class TestReach:
    def test_one_cell_of_darts_is_a_reduction_cell(self, tmp_path, capsys):
        code = main(["search", *OPTIONS, "--space", "darts", "--depth", "1", "--out", str(tmp_path / "run")])
        assert code == 2
        assert "no gradient reaches α of normal (all 14 rows)" in capsys.readouterr().err
        assert not (tmp_path / "run" / "config.json").exists()

    def test_the_depth_that_is_chosen_trains_both_cells(self):
        assert task_of(tiny(space="darts"))[0].sizes["depth"] == 3

    @pytest.mark.parametrize("method", ["idarts", "gdas", "random-nas", "enas"])
    def test_a_choice_that_forward_leaves_out_is_named(self, method, tmp_path):
        class Forgetful(nn.Module):
            def __init__(self):
                super().__init__()
                self.used = Choice({"a": nn.Linear(4, 1), "b": nn.Linear(4, 1, bias=False)}, name="used")
                self.forgotten = Choice({"a": nn.Linear(4, 1), "b": nn.Linear(4, 1, bias=False)}, name="forgotten")

            def forward(self, x):
                return self.used(x)

        x = torch.randn(32, 4)
        with pytest.raises(InputError, match="no gradient reaches α of forgotten:"):
            idarts.search(Forgetful(), (x, x[:, :1]), method=method, loss=mse_loss, batch=8, out=tmp_path / "run")

    def test_weights_that_start_at_zero_are_no_reason_and_nothing_changes(self):
        model = nn.Sequential(Choice({"a": nn.Linear(4, 3), "b": nn.Linear(4, 3)}, name="one"), nn.Linear(3, 2))
        nn.init.zeros_(model[1].weight)
        net, batch = ChoiceSupernet(model), (torch.randn(8, 4), torch.arange(8) % 2)
        before = {name: value.clone() for name, value in net.state_dict().items()}
        random = torch.get_rng_state()
        assert unreached(net, batch, cross_entropy) == {}
        assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
        assert torch.equal(torch.get_rng_state(), random)


def test_a_preset_does_not_run_in_a_space_that_it_is_not_made_for(tmp_path, capsys):
    assert main(["search", "--space", "darts", "--preset", "cpu", "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "preset cpu is made for nas-bench-201" in error
    assert "use darts-cpu or darts-paper, or no preset" in error


class TestVerdict:
    def test_random_walks_are_rarely_clear_and_a_drift_is(self):
        torch.manual_seed(0)
        noise = torch.randn(100, 200, 4)
        walk = (0.03 * noise).cumsum(0)
        drift = walk + 0.03 * torch.arange(100.0)[:, None, None] * torch.tensor([1.0, 0, 0, 0])
        mask = {"cell": [[True] * 4] * 200}
        chance, clear = (verdict(0.5, 0.2, [{"cell": at.tolist()} for at in path], mask) for path in (walk, drift))
        assert chance.clear < 0.05 * 200
        assert clear.clear > 0.95 * 200
        assert (chance.decided, clear.decided) == (False, True)

    def test_a_uniform_alpha_and_too_few_rounds(self):
        path, mask = [{"cell": [[0.0, 0.001 * number]]} for number in range(20)], {"cell": [[True, True]]}
        assert verdict(1.0, 0.0, path, mask).clear == 1
        assert not verdict(1.0, 0.0, path, mask).decided
        few = verdict(0.5, 0.0, path[:5], mask)
        assert (few.clear, few.decided) == (None, False)
        assert few.sentence == (
            "α did not decide: there were too few rounds to tell its leads from noise; search longer"
        )
        closed = verdict(0.0, 1.0, path, {"cell": [[True, False]]})
        assert (closed.decisions, closed.decided) == (0, False)
        assert "a single option left" in closed.sentence

    def test_a_rule_that_lets_options_leave_is_judged_by_those_that_were_there(self, tmp_path):
        found = run(resolved([TINY, {"method": "xnas", "rounds": 12}]), tmp_path / "run")
        assert {len(row) for row in found.rounds[-1]["alpha"]["cell"]} == {5}
        assert found.rounds[-1]["entropy"] == 0.0  # one option is left
        assert (found.verdict.decisions, found.verdict.decided) == (6, False)
        assert found.verdict.clear is not None

    @pytest.mark.parametrize(("method", "kept"), [("drnas", True), ("p-darts", False)])
    def test_the_path_begins_where_alpha_started_afresh(self, method, kept, tmp_path):
        """Twelve rounds in two or three stages: in the last stage alone they are too few to tell."""
        found = run(resolved([TINY, {"method": method, "rounds": 12}]), tmp_path / "run")
        assert (found.verdict.clear is not None) == kept

    def test_what_takes_no_part_is_in_no_number_and_no_picture(self, tmp_path):
        alpha = torch.randn(6, 5)
        mask = {"cell": [[False, True, True, True, True]] * 6}
        loud = torch.cat([torch.full((6, 1), 9.0), alpha[:, 1:]], dim=1)
        assert spread({"cell": alpha}, mask) == spread({"cell": loud}, mask)
        assert spread({"cell": alpha[:, 1:]}, {"cell": [[True] * 4] * 6}) == pytest.approx(spread({"cell": loud}, mask))
        run(tiny(), tmp_path / "run")
        shown = heat(read_run(tmp_path / "run")).groups[0].decisions[0].options
        assert [option.name for option in shown] == ["skip", "conv 1×1", "conv 3×3", "avg 3×3"]
        assert sum(float(option.share.removesuffix(" %")) for option in shown) == pytest.approx(100, abs=0.3)

    def test_a_search_says_in_the_terminal_that_it_did_not_decide(self, tmp_path, capsys):
        assert main(["search", *OPTIONS, "--alpha.rate", "1e-4", "--out", str(tmp_path / "run")]) == 0
        assert "α did not decide: it is still almost uniform" in capsys.readouterr().out
        assert read_result(tmp_path / "run")["verdict"]["decided"] is False


class TestTime:
    def test_trials_are_shortened_first_in_steps_then_in_candidates(self):
        plans = [shortened(19, 40, most) for most in (1e9, 2000, 500, 100, 5)]
        assert plans[0] == (19, 40)
        assert all(one >= other for one, other in pairwise(plans))
        assert all(evaluations(*plan) <= most for plan, most in zip(plans, (1e9, 2000, 500, 100, 5), strict=True))
        assert (plans[1][0], plans[-1]) == (19, (1, 10))

    def test_minutes_cover_the_selection(self, monkeypatch):
        monkeypatch.setattr(time, "monotonic", time.process_time)  # whatever else the machine does
        settings = tiny(rounds=1000, minutes=0.03, selection={"rule": "trials", "steps": 400})
        search = task_of(settings)[0].search()
        list(search.rounds())
        assert 0.8 <= search.clock.seconds < 60 * 0.03  # the rounds leave half of it, and not more
        search.select()
        assert search.clock.seconds < 2 * 60 * 0.03  # ten minutes without a limit

    def test_when_the_time_is_up_the_best_so_far_is_taken(self):
        class Known(Trial):
            def __call__(self, architecture, steps):
                return {"a": 3.0, "b": 1.0, "c": 2.0}[architecture]

        trial, asked = Known(None, None, [], None, 0.1, 0), iter([False, False, True, True])
        selected = halve(["a", "b", "c"], trial, 10, time_is_up=lambda: next(asked))
        assert selected.architecture == "b"
        assert [one.architecture for one in selected.tried] == ["b", "a"]


def test_a_trial_that_overfits_is_judged_by_the_best_of_its_curve():
    torch.manual_seed(0)
    x, y = torch.randn(12, 40), 3 * torch.randn(12, 1)  # noise: what is learnt about it is wrong elsewhere
    other = [(torch.randn(64, 40), torch.zeros(64, 1))]
    trial = Trial(lambda _: nn.Linear(40, 1), lambda: iter([(x, y)] * 80), other, mse_loss, rate=0.001, seed=0)
    assert replace(trial, best=True, known={})(None, 80) < 0.9 * trial(None, 80)


@pytest.mark.filterwarnings("ignore::idarts.errors.CollapseWarning")  # a few rounds of large steps
class TestUnfinished:
    def test_a_search_is_extended_and_only_that(self, tmp_path):
        out, whole = tmp_path / "run", tiny()
        run(whole, out)
        first = read_rounds(out)
        with pytest.raises(InputError, match="rounds 2; it can only be raised, not to 1"):
            run(replace(whole, rounds=1), out, resume=True)
        with pytest.raises(InputError, match="another batch"):
            run(replace(whole, rounds=4, batch=16), out, resume=True)
        run(replace(whole, rounds=4), out, resume=True)
        assert read_rounds(out)[:2] == first
        assert [entry["number"] for entry in read_rounds(out)] == [1, 2, 3, 4]
        assert read_rounds(out)[-1]["rate"] == pytest.approx(0.001)  # the cosine of the new total has ended
        config = read_config(out)
        assert (config["rounds"], config["history"]) == (4, [{"round": 2, "rounds": [2, 4]}])
        assert read_result(out)["metrics"]["number"] == 4
        assert main(["search", "--resume", "--out", str(out), "--rounds", "5"]) == 0
        assert len(read_config(out)["history"]) == 2

    def test_what_a_stopped_search_stands_for_can_be_trained(self, tmp_path, capsys):
        out = tmp_path / "run"
        run(tiny(rounds=3, checkpoint_rounds=2), out)
        (out / "result.json").unlink()
        (out / "checkpoints" / "00000003.pt").unlink()  # as a kill after the third round leaves it
        assert as_text(current_architecture(out)) == read_rounds(out)[1]["architecture"]
        train = ["train", str(out), "--data", "digits", "--print-config"]
        assert main(["train", str(out), "--data", "digits", "--out", str(tmp_path / "net")]) == 2
        assert "add --now" in capsys.readouterr().err
        assert main([*train, "--now"]) == 0
        assert read_rounds(out)[1]["architecture"] in capsys.readouterr().out

    def test_a_run_finds_its_data_from_any_directory(self, tmp_path, monkeypatch):
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        np.savez("mine.npz", x=np.random.default_rng(0).integers(0, 255, (64, 8, 8), np.uint8), y=np.arange(64) % 2)
        words = ["search", *OPTIONS, "--data", "npz:mine.npz", "--out", "run"]
        assert main(words) == 0
        config = read_config(Path("run"))
        assert (config["data"], config["typed"]) == (f"npz:{Path.cwd() / 'mine.npz'}", {"data": "npz:mine.npz"})
        assert main([*words, "--resume"]) == 0
        monkeypatch.chdir(tmp_path)
        assert main(["search", "--resume", "--out", "here/run", "--rounds", "3"]) == 0
        assert os.listdir(tmp_path) == ["here"]
