"""Relaxation × hypergradient × selection: any combination runs, and each point does what its paper says."""

import json
import math
import time

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import idarts
from idarts import InputError
from idarts.arch import SPACES, Architecture, Skeleton, parse
from idarts.data import Batches, load, split
from idarts.pages import write_report
from idarts.searching import METHODS, STRATEGIES, Task, config
from idarts.searching.candidates import different, draws, neighbours
from idarts.searching.judge import largest
from idarts.searching.relaxations.gumbel import Gumbel
from idarts.searching.selections.best_of import BestOf
from idarts.searching.selections.evolution import Evolution, draw
from idarts.searching.selections.perturbation import Perturbation
from idarts.searching.selections.trials import Trial, Trials, halve, shortened
from idarts.searching.settings import Controller as ControllerSettings
from idarts.searching.settings import Selection
from idarts.searching.stage import Restricted
from idarts.searching.strategies.controller import Controller, shapes_of
from idarts.searching.strategy import Selected
from idarts.spaces import Choice, ChoiceSupernet, nas_bench_1shot1, nas_bench_201, space
from idarts.spaces.nas_bench_201 import OPS
from idarts.spaces.relaxation import softmax


@pytest.fixture(scope="module")
def parts():
    return split(load("digits").train, 0.5, seed=0)


def supernet(name="nas-bench-201"):
    torch.manual_seed(3)
    chosen = space(name)
    return chosen.supernet(chosen.skeleton.changed(depth=3 if name == "darts" else 1, channels=4), in_channels=1)


def begin(parts, method="idarts", name="nas-bench-201", **changes):
    train, valid = (Batches(part, 8, seed=seed) for seed, part in enumerate(parts))
    return Task(supernet(name), train, valid, config(method, **{"rounds": 2, **changes})).search()


def begin_on(net, batches, loss=cross_entropy, minutes=None, **selection):
    """A search on a given supernet, whose validation batches are given."""

    class Repeated:
        def __init__(self):
            self.place = 0

        def __next__(self):
            self.place += 1
            return batches[(self.place - 1) % len(batches)]

        def __len__(self):
            return len(batches)

        def state_dict(self):
            return {"place": self.place}

        def load_state_dict(self, state):
            self.place = state["place"]

    settings = config(rounds=1, minutes=minutes, none=True, selection={"batches": len(batches), **selection})
    return Task(net, Repeated(), Repeated(), settings, loss).search()


def interrupt(_message):
    raise KeyboardInterrupt


QUICK = {"samples": 3, "batches": 1}


SHARING = [name for name in METHODS if STRATEGIES[config(name).strategy].shares_weights]


# Those that need something of a space are in test_methods.py. DARTS' space is slow; these two draw paths in two ways.
ANYWHERE = [name for name in SHARING if not METHODS.entries[name].needs]
IN_SPACES = {"nas-bench-201": ANYWHERE, "nas-bench-1shot1-s2": ANYWHERE, "darts": ["gdas", "enas"]}


@pytest.mark.parametrize(("name", "method"), [(name, method) for name in IN_SPACES for method in IN_SPACES[name]])
def test_every_method_in_every_space(parts, method, name):
    search = begin(parts, method, name, rounds=1, inner_steps=1, selection=QUICK, controller={"samples": 2})
    assert [found.number for found in search.rounds()] == [1]
    found = search.select()
    search.net.path(found)  # is one of the space


@pytest.mark.parametrize("method", ["gdas", "enas", "setn", "mdenas", "en2as"])
def test_what_is_drawn_is_the_same_after_a_resume(parts, method):
    sizes = {"rounds": 4, "inner_steps": 1, "controller": {"samples": 2}, "population": {"size": 2}}
    whole, cut, rest = (begin(parts, method, **sizes) for _ in range(3))
    torch.manual_seed(7)
    list(whole.rounds())
    torch.manual_seed(7)
    rounds = cut.rounds()
    next(rounds), next(rounds)
    state = cut.state_dict()
    torch.manual_seed(99)
    rest.load_state_dict(state)
    list(rest.rounds())
    ends = [search.state_dict()["net"] for search in (whole, rest)]
    assert all(torch.equal(one, other) for one, other in zip(ends[0].values(), ends[1].values(), strict=True))
    found = []
    for search in (whole, rest):
        torch.manual_seed(11)
        found.append(search.select())
    assert found[0] == found[1]


class TestRelaxation:
    def test_gdas_cools_down_and_runs_one_path(self, parts):
        search = begin(parts, "gdas")
        assert [search.relaxation.at(used).temperature for used in (0.0, 1.0)] == pytest.approx([10.0, 0.1])
        mixture = search.strategy.mixtures()["cell"]
        assert [sum(row) for row in mixture.active] == [1] * 6
        torch.testing.assert_close(mixture.weights.sum(dim=1), torch.ones(6))

    def test_gumbel_draws_by_the_softmax(self):
        torch.manual_seed(0)
        alpha = torch.tensor([[0.0, 1.0, 2.0]]).log1p().repeat(6000, 1)
        shares = torch.tensor(Gumbel(1.0)(alpha).active).float().mean(dim=0)
        torch.testing.assert_close(shares, torch.tensor([1 / 6, 2 / 6, 3 / 6]), atol=0.03, rtol=0)

    def test_gumbels_gradient_is_the_softmax_ones(self):
        alpha = torch.randn(2, 3, requires_grad=True)
        value = torch.randn(2, 3)
        torch.manual_seed(5)
        (straight,) = torch.autograd.grad((Gumbel(0.7)(alpha).weights * value).sum(), alpha)
        torch.manual_seed(5)
        noise = torch.empty(2, 3).exponential_().log().neg()
        (soft,) = torch.autograd.grad((((alpha + noise) / 0.7).softmax(1) * value).sum(), alpha)
        torch.testing.assert_close(straight, soft)

    def test_without_none_it_takes_no_part(self, parts):
        search = begin(parts, none=False)
        list(search.rounds())
        none = search.net.none
        weights = search.strategy.mixtures()["cell"].weights
        assert not weights[:, none].any()
        torch.testing.assert_close(weights.sum(dim=1), torch.ones(6))
        restricted = Restricted(softmax, [[False] + [True] * 4])(torch.zeros(1, 5))
        torch.testing.assert_close(restricted.weights, torch.tensor([[0.0] + [0.25] * 4]))

    def test_setn_trains_paths_and_steps_alpha_on_the_mixture(self, parts):
        search = begin(parts, "setn")
        assert [sum(row) for row in search.strategy.mixtures()["cell"].active] == [1] * 6
        list(search.rounds())
        assert search.net.mixtures()["cell"].active is None

    def test_random_nas_never_moves_alpha(self, parts):
        search = begin(parts, "random-nas")
        before = [tensor.clone() for tensor in (*search.a, *search.w)]
        list(search.rounds())
        moved = [not torch.equal(one, other) for one, other in zip(before, (*search.a, *search.w), strict=True)]
        assert not moved[0]
        assert any(moved[1:])


class TestSelection:
    def test_largest_with_and_without_none_leaves_alpha_alone(self):
        net = supernet()
        with torch.no_grad():
            net.alpha["cell"][:, OPS.index("none")] = 5.0
            net.alpha["cell"][:, OPS.index("avg_pool_3x3")] = 4.0
        before = net.alpha["cell"].clone()
        assert nas_bench_201.to_ops(largest(net, Selection())) == ("none",) * 6
        assert nas_bench_201.to_ops(largest(net, Selection(none=False))) == ("avg_pool_3x3",) * 6
        assert torch.equal(before, net.alpha["cell"])

    def test_samples_follow_the_softmax_of_alpha(self):
        torch.manual_seed(0)
        search = begin_on(supernet(), [(torch.zeros(2, 1, 8, 8), torch.zeros(2).long())])
        with torch.no_grad():
            search.a[0].zero_()[:, OPS.index("nor_conv_3x3")] = math.log(4.0)  # half of the mass
        for sample in (search.strategy.sample, lambda: search.pick(draw(search))):  # `draw` is that of evolution
            ops = [op for _ in range(300) for op in nas_bench_201.to_ops(sample())]
            assert ops.count("nor_conv_3x3") / len(ops) == pytest.approx(0.5, abs=0.04)
            assert ops.count("none") / len(ops) == pytest.approx(0.125, abs=0.03)

    def test_best_of_is_the_best_by_its_own_weights_and_leaves_no_trace(self, parts):
        stream = Batches(parts[1], 32, seed=1)
        batches = [next(stream) for _ in range(2)]
        candidates = [parse(f"nas-bench-201:{index}") for index in (0, 77, 4321, 9999, 77)]
        search = begin_on(supernet(), batches, samples=5)
        search.net.train()
        buffers = {name: buffer.clone() for name, buffer in search.net.named_buffers()}
        search.strategy.sample = iter(candidates).__next__
        selected = BestOf()(search)
        for name, buffer in search.net.named_buffers():
            assert torch.equal(buffer, buffers[name])
        with torch.no_grad():
            right = [
                sum((search.net(x, mixtures=search.net.path(c)).argmax(1) == y).sum().item() for x, y in batches)
                for c in candidates
            ]
        assert right[candidates.index(selected.architecture)] == max(right)
        assert selected.gradient_evaluations == pytest.approx(4 * 2 / 3)  # four different ones, two forward passes each

    def test_perturbation_keeps_what_is_missed_most_whatever_alpha_says(self):
        right, wrong = nn.Linear(3, 1), nn.Linear(3, 1)
        with torch.no_grad():
            for parameter in wrong.parameters():
                parameter.zero_()
        net = ChoiceSupernet(Choice({"right": right, "wrong": wrong}, name="block"))
        with torch.no_grad():
            net.alpha["block"].copy_(torch.tensor([[0.0, 1.0]]))
        x = torch.randn(32, 3)
        search = begin_on(net, [(x, right(x).detach())], mse_loss)
        assert net.architecture().choices == {"block": "wrong"}
        assert Perturbation()(search).architecture.choices == {"block": "right"}
        assert net.architecture().choices == {"block": "wrong"}

    @pytest.mark.parametrize("none", [True, False])
    def test_perturbation_leaves_out_what_took_no_part_in_the_training(self, none):
        search = begin_on(supernet(), [(torch.zeros(2, 1, 8, 8), torch.zeros(2).long())], none=none)
        net, weights = search.net, []

        class Watched(type(net)):
            def forward(self, images, *, mixtures=None):
                weights.append(mixtures["cell"].weights[:, self.none])
                return super().forward(images, mixtures=mixtures)

        net.__class__ = Watched
        Perturbation()(search)
        assert weights[0].min() > 0 if none else torch.stack(weights).abs().max() == 0

    def test_perturbation_judges_each_decision_with_those_before_it_fixed(self):
        torch.manual_seed(0)
        search = begin_on(supernet(), [(torch.randn(8, 1, 8, 8), torch.arange(8))])
        net, seen = search.net, []

        class Watched(type(net)):
            def forward(self, images, *, mixtures=None):
                seen.append(mixtures["cell"].weights)
                return super().forward(images, mixtures=mixtures)

        net.__class__ = Watched
        ops = nas_bench_201.to_ops(Perturbation()(search).architecture)
        fixed = nn.functional.one_hot(torch.tensor([OPS.index(op) for op in ops]), len(OPS)).float()
        options = len(OPS) - 1  # `none` is not a candidate
        assert len(seen) == options * len(ops)
        for place, weights in enumerate(seen):
            row = place // options
            assert torch.equal(weights[:row], fixed[:row])
            assert (weights[row:] > 0).sum() == (len(ops) - row) * len(OPS) - 1  # one option is away, the rest is open

    def test_selections_estimate_their_time_by_the_pace_of_the_rounds(self):
        batches = [(torch.zeros(2, 1, 8, 8), torch.zeros(2).long())] * 2
        search = begin_on(supernet(), batches, samples=7, steps=5)
        search.clock.seconds, search.spent.gradient_evaluations = 12.0, 4.0  # 3 s each
        assert BestOf().seconds(search) == pytest.approx(3 * 7 * 2 / 3)  # a forward pass is a third
        assert Perturbation().seconds(search) == pytest.approx(3 * 30 * 2 / 3)  # 6 decisions of 5 options
        assert Perturbation(tune=4).seconds(search) == pytest.approx(3 * (30 * 2 / 3 + 4 * 6))
        assert Evolution(4).seconds(search) == pytest.approx(3 * 7 * 5 * 2 / 3)  # the first ones and four generations
        trials = Trials()
        trials.step_seconds = 0.5
        assert trials.seconds(search) == 0.5 * (7 * 5 + 3 * 10)  # seven of the 25 neighbours
        search.mask = {"cell": [[True, True, False, False, False]] * 2 + [[True] + [False] * 4] * 4}
        assert trials.seconds(search) == 0.5 * 3 * 5  # α's own, and one for each of the two that are open

    @pytest.mark.parametrize("rule", [BestOf(), Evolution(2), Perturbation(), Perturbation(tune=10**6)])
    def test_selections_end_with_the_minutes_and_can_be_stopped_on_the_way(self, rule):
        """Each message takes 25 s here, so there is time for three candidates or decisions of a minute."""
        batches = [(torch.randn(2, 1, 8, 8), torch.zeros(2).long())]
        search, messages = begin_on(supernet(), batches, minutes=1.0, samples=30), []
        search.spent.gradient_evaluations = 1.0  # of one second
        search.clock.seconds = 1.0

        def on_message(text):
            messages.append(text)
            search.clock.seconds += 25.0

        search.on_message = on_message
        before = search.net.state_dict()["alpha.cell"].clone()
        search.weights.evaluations, steps = 1, []
        search.weights.step = lambda _draw, _rate: steps.append(1)
        selected = rule(search)
        assert len(messages) == 3
        assert all(text.startswith(("selection: best-of, ", "selection: evol", "selection: pert")) for text in messages)
        assert selected.gradient_evaluations <= 3 * 4 * 2 / 3 + len(steps)
        assert len(steps) <= 60
        assert torch.equal(before, search.net.alpha["cell"])
        search.on_message = interrupt
        search.clock.seconds = 1.0
        with pytest.raises(KeyboardInterrupt):
            rule(search)

    def test_decisions_without_time_are_those_of_alpha(self):
        search = begin_on(supernet(), [(torch.randn(2, 1, 8, 8), torch.zeros(2).long())], minutes=1.0)
        search.clock.seconds = 61.0
        selected = Perturbation(tune=3)(search)
        assert selected == Selected(search.pick(), 0.0)

    def test_rules_that_need_shared_weights_are_refused_without_them(self):
        with pytest.raises(InputError, match=r"selection.rule perturbation needs shared weights, which strategy"):
            idarts.search(
                "nas-bench-201", "digits", method="random-search", rounds=1, selection={"rule": "perturbation"}
            )


class TestTrials:
    def test_neighbours_are_one_decision_away_the_nearest_first(self):
        search = begin_on(supernet(), [(torch.zeros(2, 1, 8, 8), torch.zeros(2).long())], none=False)
        with torch.no_grad():
            search.a[0].copy_(torch.tensor([[0.0, 1.0, 2.0, 3.0, 0.5]] * 6))
            search.a[0][4, 2] = 2.9
        first, second, *others = neighbours(search)
        assert nas_bench_201.to_ops(first) == ("nor_conv_3x3",) * 6
        changed = [nas_bench_201.to_ops(other) for other in (second, *others)]
        assert len(changed) == len(set(changed)) == 18
        assert all(sum(op != "nor_conv_3x3" for op in ops) == 1 and "none" not in ops for ops in changed)
        assert changed[0][4] == "nor_conv_1x1"

    def test_candidates_that_are_the_same_network_are_tried_once(self):
        chosen = SPACES["nas-bench-1shot1-s3"]
        ops, loose = ["conv3x3-bn-relu"] * 5, ["conv3x3-bn-relu"] * 4 + ["maxpool3x3"]
        parents = [[0], [1], [2], [0, 1], [0, 2], [0, 3]]  # nothing reads nodes 4 and 5
        cell, same = (nas_bench_1shot1.from_choices("S3", row, parents) for row in (ops, loose))
        other = nas_bench_1shot1.from_choices("S3", ["maxpool3x3", *ops[1:]], parents)
        assert different([cell, same, other, cell]) == [cell, other]
        assert chosen.identity(cell) == chosen.identity(same) != chosen.identity(other)
        nets = [chosen.network(one, Skeleton(1, 4, 10, 8)) for one in (cell, same)]
        assert [p.shape for p in nets[0].parameters()] == [p.shape for p in nets[1].parameters()]

    def test_draws_are_different_and_follow_alpha(self):
        search = begin_on(supernet(), [(torch.zeros(2, 1, 8, 8), torch.zeros(2).long())], none=False, samples=60)
        with torch.no_grad():
            search.a[0].copy_(torch.tensor([[0.0, 0.0, 0.0, 1.0, 0.0]] * 6))
        state = torch.get_rng_state()
        first, *others = drawn = [nas_bench_201.to_ops(one) for one in draws(search)]
        assert first == ("nor_conv_3x3",) * 6
        assert len(set(drawn)) == 60
        assert not any("none" in ops for ops in drawn)
        share = sum(ops.count("nor_conv_3x3") for ops in others) / (6 * len(others))
        assert 0.5 < share < 0.9  # a quarter by chance
        assert drawn == [nas_bench_201.to_ops(one) for one in draws(search)]  # so a search that resumes has the same
        assert torch.equal(state, torch.get_rng_state())

    def test_draws_end_where_a_space_has_no_more(self):
        search = begin_on(supernet(), [(torch.zeros(2, 1, 8, 8), torch.zeros(2).long())], none=False, samples=60)
        search.mask = {"cell": [[False, True, True, False, False]] * 2 + [[False, True, False, False, False]] * 4}
        assert len(draws(search)) == 4

    def test_the_one_that_learns_is_taken_and_nothing_is_left_behind(self):
        torch.manual_seed(0)
        x = torch.randn(64, 4)
        batches = [(x, x.sum(1, keepdim=True))] * 20

        def build(architecture):
            return (
                nn.Linear(4, 1)
                if architecture.choices["layer"] == "learns"
                else nn.Sequential(nn.Linear(4, 1), nn.ReLU())
            )

        candidates = [Architecture("choice", choices={"layer": name}) for name in ("cannot", "learns")]
        state = torch.get_rng_state()
        trial = Trial(build, lambda: iter(batches), batches[:3], mse_loss, rate=0.05, seed=1)
        selected = halve(candidates, trial, 20)
        assert selected.architecture.choices == {"layer": "learns"}
        assert selected.gradient_evaluations == pytest.approx(2 * (20 + 3 / 3))
        assert [one.architecture.choices["layer"] for one in selected.tried] == ["learns", "cannot"]
        assert selected.tried[0].loss < selected.tried[1].loss
        assert torch.equal(state, torch.get_rng_state())
        assert trial(candidates[0], 5) == trial(candidates[0], 5)  # the same for all, and every time

    def test_candidates_start_alike_and_longer_trials_from_other_weights(self):
        """A lucky draw must not win twice."""
        x, starts = torch.randn(8, 4), []

        def build(_):
            net = nn.Linear(4, 1)
            starts.append(net.weight.detach().clone())
            return net

        trial = Trial(build, lambda: iter([(x, x[:, :1])] * 4), [(x, x[:, :1])], mse_loss, rate=0.05, seed=1)
        candidates = [Architecture("choice", choices={"layer": name}) for name in "ab"]
        for steps in (2, 4):
            for candidate in candidates:
                trial(candidate, steps)
        assert torch.equal(starts[0], starts[1])
        assert torch.equal(starts[2], starts[3])
        assert not torch.equal(starts[0], starts[2])

    @pytest.mark.parametrize("best", [False, True])
    def test_a_trial_is_sgd_by_hand(self, best):
        """Nesterov's momentum, weight decay, and a cosine to 0; judged at the end, or at the best of its looks."""
        torch.manual_seed(0)
        batches = [(torch.randn(6, 4).double(), torch.randn(6, 1).double()) for _ in range(9)]
        valid, rate, steps = batches[-1], 0.2, 8
        build = lambda _: nn.Linear(4, 1).double()  # noqa: E731
        trial = Trial(build, lambda: iter(batches), [valid], mse_loss, rate=rate, seed=1, best=best)
        torch.manual_seed(1 + steps)
        net, losses = build(None), []
        sgd = torch.optim.SGD(net.parameters(), rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
        for step, (x, y) in enumerate(batches[:steps]):
            sgd.param_groups[0]["lr"] = rate * 0.5 * (1 + math.cos(math.pi * step / steps))
            sgd.zero_grad()
            mse_loss(net(x), y).backward()
            sgd.step()
            losses.append(mse_loss(net(valid[0]), valid[1]).item())
        expected = min(losses) if best else losses[-1]
        assert trial(Architecture("choice", choices={"layer": "a"}), steps) == pytest.approx(expected, rel=1e-12)
        assert min(losses) != losses[-1]

    def test_the_time_of_a_step_is_that_of_the_second(self):
        seen = []

        def loss(outputs, targets):
            seen.append(time.monotonic())
            time.sleep(0.05 if len(seen) == 2 else 0.3)
            return mse_loss(outputs, targets)

        x, before = torch.randn(8, 4), torch.get_rng_state()
        trial = Trial(lambda _: nn.Linear(4, 1), iter, [], loss, rate=0.05, seed=1)
        assert 0.05 <= trial.step_seconds(None, (x, x[:, :1])) < 0.3
        assert len(seen) == 2
        assert torch.equal(torch.get_rng_state(), before)

    def test_a_budget_that_is_met_exactly_shortens_nothing_more(self):
        assert shortened(4, 40, most=320) == (4, 40)
        assert shortened(4, 40, most=80) == (4, 10)
        assert shortened(4, 40, most=79) == (3, 10)

    def test_the_better_half_is_tried_again_twice_as_long(self):
        asked = []

        class Counting(Trial):
            def __call__(self, architecture, steps):
                asked.append((architecture, steps))
                return -architecture if steps == 3 else architecture  # the last word is the long trial's

        trial = Counting(None, iter, [None] * 3, mse_loss, rate=0.05, seed=1)
        selected = halve(list(range(9)), trial, 3)
        assert [steps for _, steps in asked] == [3] * 9 + [6] * 4 + [12] * 2
        assert [architecture for architecture, _ in asked[9:]] == [8, 7, 6, 5, 5, 6]
        assert selected.architecture == 5
        assert selected.gradient_evaluations == pytest.approx(9 * 4 + 4 * 7 + 2 * 13)
        assert [(one.architecture, one.steps) for one in selected.tried[9:]] == [
            (5, 6),
            (6, 6),
            (7, 6),
            (8, 6),
            (5, 12),
            (6, 12),
        ]

    def test_a_search_ends_in_trials(self, tmp_path):
        x, y = load("digits").train.images[:96], load("digits").train.labels[:96]
        result = idarts.search(
            "nas-bench-201", (x, y), batch=8, rounds=1, depth=1, channels=4, out=tmp_path / "run",
            selection={"rule": "trials", "samples": 3, "steps": 2, "batches": 1},
        )  # fmt: skip
        found = json.loads((tmp_path / "run" / "result.json").read_text())
        assert parse(found["architecture"]) == result.architecture
        pairs = zip(*map(nas_bench_201.to_ops, (result.architecture, parse(found["argmax"]))), strict=True)
        assert sum(a != b for a, b in pairs) <= 1
        assert [one["steps"] for one in found["trials"]] == [2, 2, 2]
        assert parse(found["trials"][0]["architecture"]) == result.architecture
        page = write_report(tmp_path / "run").read_text()
        assert "Trials</h2>" in page
        assert f"{found['trials'][-1]['loss']:.3f} after 2 steps" in page

    def test_no_networks_no_trials(self, tmp_path):
        model = Choice({"line": nn.Linear(4, 1), "nothing": nn.Linear(4, 1, bias=False)}, name="layer")
        x = torch.randn(32, 4)
        with pytest.raises(idarts.InputError, match="none can be built from this model"):
            idarts.search(
                model,
                (x, x[:, :1]),
                loss=mse_loss,
                batch=8,
                rounds=1,
                selection={"rule": "trials"},
                out=tmp_path / "run",
            )


class TestController:
    def test_likelihoods_of_all_paths_sum_to_one(self):
        model = nn.Sequential(
            *(Choice({"a": nn.Identity(), "b": nn.ReLU(), "c": nn.Tanh()}, name=f"c{i}") for i in range(2))
        )
        torch.manual_seed(0)
        controller = Controller(shapes_of(ChoiceSupernet(model)))
        likely = {}
        for _ in range(400):
            choices, log_likelihood, entropy, _ = controller.sample()
            likely[str(choices)] = log_likelihood.exp().item()
        assert len(likely) == 9
        assert sum(likely.values()) == pytest.approx(1.0, abs=1e-5)
        assert 0 < entropy.item() <= 2 * math.log(3) + 1e-6

    def test_its_loss_is_reinforce_with_a_moving_baseline_less_the_entropy(self):
        controller = Controller({"cell": (1, 2)}, settings=ControllerSettings(baseline=0.75, entropy=0.5))
        likelihood, entropy = torch.tensor(-2.0), torch.tensor(3.0)
        first, second = (controller.loss(torch.tensor(reward), likelihood, entropy).item() for reward in (0.5, 1.0))
        assert first == -0.5 * 3.0  # the first reward is the baseline
        assert second == (1.0 - 0.625) * 2.0 - 0.5 * 3.0

    def test_it_learns_what_is_rewarded(self):
        torch.manual_seed(0)
        controller = Controller(shapes_of(supernet()))
        optimizer = torch.optim.Adam(controller.parameters(), 0.02)
        for _ in range(150):
            loss = []
            for _ in range(5):
                choices, log_likelihood, entropy, _ = controller.sample()
                reward = torch.tensor(sum(pick == 3 for pick in choices["cell"]) / 6)
                loss.append(controller.loss(reward, log_likelihood, entropy))
            optimizer.zero_grad()
            torch.stack(loss).mean().backward()
            optimizer.step()
        assert controller.sample(greedy=True)[0]["cell"].count(3) >= 5

    def test_alpha_shows_its_greedy_path(self, parts):
        search = begin(parts, "enas", controller={"samples": 2})
        list(search.rounds())
        choices = search.strategy.controller.sample(greedy=True)[0]["cell"]
        assert search.net.alpha["cell"].argmax(dim=1).tolist() == choices


def test_a_model_of_ones_own_by_every_method(tmp_path):
    x = torch.randn(48, 4)
    for method in SHARING:
        model = Choice({"line": nn.Linear(4, 1), "nothing": nn.Linear(4, 1, bias=False)}, name="layer")
        how = {"method": method, "loss": mse_loss, "batch": 8, "rounds": 2, "out": tmp_path / method}
        if METHODS.entries[method].needs:  # edges, or a size that can change: a model of Choices has neither
            with pytest.raises(InputError, match=r"search a space by name|skip connections on edges"):
                idarts.search(model, (x, x.sum(1, keepdim=True)), **how)
            continue
        result = idarts.search(model, (x, x.sum(1, keepdim=True)), **how)
        assert set(result.architecture.choices) == {"layer"}, method
