"""Algorithm 1: against a hand-written loop, against DARTS step by step, resumed to the bit, with numbers that fail."""

import math
from copy import deepcopy
from dataclasses import replace
from itertools import islice, product

import pytest
import torch
from tiny import same
from torch.nn.functional import cross_entropy

from idarts import InputError, NotFiniteError
from idarts.arch import parse
from idarts.data import Batches, load, split
from idarts.engine import checkpoint
from idarts.searching import Task, config
from idarts.searching.judge import look
from idarts.spaces import space


@pytest.fixture(scope="module")
def parts():
    return split(load("digits").train, 0.5, seed=0)


def begin(parts, method="idarts", **changes):
    torch.manual_seed(3)
    chosen = space("nas-bench-201")
    net = chosen.supernet(chosen.skeleton.changed(depth=1, channels=4), in_channels=1)
    train, valid = (Batches(part, 16, seed=seed) for seed, part in enumerate(parts))
    return Task(net, train, valid, config(method, **changes)).search()


def give(search, **streams):
    """Replace a stream or the loss of a search."""
    search.task = replace(search.task, **streams)
    if search.weights is not None:
        search.weights.task = search.task


def state_of(search):
    """All of it but the time that it took."""
    return {key: value for key, value in search.state_dict().items() if key != "seconds"}


def by_hand(search):
    """Algorithm 1 by autograd alone: T SGD steps, then Adam on ∇_α L2 − γ ∇_w L2 Σ_{k≤K} (I − γH)^k ∂²L1/∂α∂w.

    With T = 1 and K = 0 this is second-order DARTS; γ is the weights' learning rate.
    """
    net, a, w, settings = search.net, search.a, search.w, search.settings
    weights, alpha = settings.weights, settings.alpha
    total = settings.rounds * settings.inner_steps

    def rate(step):
        return weights.last_rate + (weights.rate - weights.last_rate) * 0.5 * (1 + math.cos(math.pi * step / total))

    step, buffers, m, v = 0, None, torch.zeros_like(a[0]), torch.zeros_like(a[0])
    for number in range(1, settings.rounds + 1):
        for _ in range(settings.inner_steps):
            images, labels = next(search.task.train)
            grads = torch.autograd.grad(cross_entropy(net(images), labels), w)
            shrink = min(1.0, weights.clip / (torch.sqrt(sum((g**2).sum() for g in grads)).item() + 1e-6))
            grads = [g * shrink + weights.decay * p.detach() for g, p in zip(grads, w, strict=True)]
            buffers = [weights.momentum * b + g for b, g in zip(buffers, grads, strict=True)] if buffers else grads
            with torch.no_grad():
                for p, g, b in zip(w, grads, buffers, strict=True):
                    p.sub_(rate(step) * (g + weights.momentum * b))
            step += 1
        statistics = {name: buffer.clone() for name, buffer in net.named_buffers()}
        (xt, yt), (xv, yv) = next(search.task.train), next(search.task.valid)
        *term, direct = torch.autograd.grad(cross_entropy(net(xv), yv), (*w, *a))
        inner = torch.autograd.grad(cross_entropy(net(xt), yt), w, create_graph=True)
        total_term = term
        for _ in range(settings.hypergradient.terms):
            bent = torch.autograd.grad(inner, w, term, retain_graph=True)
            term = [t - rate(step) * b for t, b in zip(term, bent, strict=True)]
            total_term = [s + t for s, t in zip(total_term, term, strict=True)]
        (mixed,) = torch.autograd.grad(inner, a, total_term)
        for name, buffer in net.named_buffers():
            buffer.copy_(statistics[name])
        g = direct - rate(step) * mixed + alpha.decay * a[0].detach()
        m, v = alpha.betas[0] * m + (1 - alpha.betas[0]) * g, alpha.betas[1] * v + (1 - alpha.betas[1]) * g**2
        mean, spread = m / (1 - alpha.betas[0] ** number), v / (1 - alpha.betas[1] ** number)
        with torch.no_grad():
            a[0].sub_(alpha.rate * mean / (spread.sqrt() + 1e-8))


@pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")
@pytest.mark.parametrize(("inner_steps", "terms", "rounds"), [(1, 0, 1), (1, 0, 2), (1, 0, 4), (2, 1, 2), (4, 2, 3)])
def test_the_loop_is_algorithm_1_by_hand_and_with_one_step_and_no_terms_darts(parts, inner_steps, terms, rounds):
    changes = {
        "rounds": rounds,
        "none": True,
        "inner_steps": inner_steps,
        "alpha": {"rate": 0.01},
        "hypergradient": {"terms": terms, "step": "rate", "curvature": "hessian"},
    }
    ours, reference = begin(parts, **changes), begin(parts, **changes)
    list(ours.rounds())
    by_hand(reference)
    torch.testing.assert_close(ours.a[0], reference.a[0], rtol=1e-4, atol=2e-6)
    for one, other in zip(ours.w, reference.w, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_weights_learn_and_alpha_moves(parts):
    search = begin(parts, rounds=24, alpha={"rate": 0.05}, weights={"rate": 0.1})
    start = search.a[0].detach().clone()
    rounds = list(search.rounds())
    assert sum(r.train_loss for r in rounds[-5:]) < 0.7 * sum(r.train_loss for r in rounds[:5])
    assert (search.a[0] - start).abs().max() > 0.1
    assert rounds[-1].entropy < rounds[0].entropy
    assert [r.gradient_evaluations for r in rounds] == sorted(r.gradient_evaluations for r in rounds)
    assert rounds[-1].rate == pytest.approx(0.001, rel=0.1)


def test_the_same_seed_gives_the_same_bits(parts):
    states = []
    for _ in range(2):
        search = begin(parts, rounds=3)
        list(search.rounds())
        states.append(state_of(search))
    assert same(*states)


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_resuming_is_bit_exact(parts, tmp_path, stop):
    """45 batches to an epoch, five a round: none of these stops is at the end of one."""
    changes = {"rounds": 7, "weights": {"warmup": 3}, "hypergradient": {"step": "auto"}}
    whole = begin(parts, **changes)
    log = list(whole.rounds())
    first = begin(parts, **changes)
    part = list(islice(first.rounds(), stop))
    checkpoint.save(tmp_path, first.number, first.state_dict())
    torch.manual_seed(999)
    resumed = begin(parts, **changes)
    number, state, problems = checkpoint.latest(tmp_path)
    assert (number, problems) == (stop, [])
    resumed.load_state_dict(state)
    assert part + list(resumed.rounds()) == log
    assert same(state_of(resumed), state_of(whole))


class Spoilt:
    """A stream in which some batches, by their number from 1 on, are NaN."""

    def __init__(self, good, bad):
        self.good, self.bad, self.taken = good, bad, 0

    def __next__(self):
        self.taken += 1
        images, labels = next(self.good)
        return images * (math.nan if self.bad(self.taken) else 1.0), labels


@pytest.mark.filterwarnings("ignore:a loss or the hypergradient was not finite")
def test_rounds_that_are_not_finite_are_skipped_then_end_the_search(parts):
    search = begin(parts, rounds=20)
    give(search, valid=Spoilt(search.task.valid, lambda taken: taken > 2))
    rounds = search.rounds()
    assert all("norm" in one.measures for one in islice(rounds, 2))
    settled = search.a[0].detach().clone()
    assert all("norm" not in one.measures for one in islice(rounds, 4))
    with pytest.raises(NotFiniteError, match=r"5 rounds in a row.*round 7"):
        next(rounds)
    assert torch.equal(search.a[0], settled)


@pytest.mark.filterwarnings("ignore:a loss or the hypergradient was not finite")
@pytest.mark.parametrize("method", ["random-nas", "enas"])
def test_methods_without_hypergradients_end_as_well(parts, method):
    search = begin(parts, method=method, rounds=20, controller={"samples": 2})
    good = search.task.valid

    class Bad:
        def __next__(self):
            images, labels = next(good)
            return images * math.nan, labels

    give(search, valid=Bad())
    with pytest.raises(NotFiniteError, match="5 rounds in a row"):
        list(search.rounds())
    assert not search.healthy
    kept = search.strategy.controller.parameters() if method == "enas" else search.a
    assert all(parameter.isfinite().all() for parameter in kept)


@pytest.mark.filterwarnings("ignore:a loss or the hypergradient was not finite")
def test_bad_rounds_count_only_in_a_row(parts):
    search = begin(parts, "darts-first-order", rounds=9)
    give(search, valid=Spoilt(search.task.valid, lambda taken: taken % 3 != 0))
    healthy = []
    assert search.healthy
    for one in search.rounds():
        healthy.append(search.healthy)
        assert search.healthy == math.isfinite(one.valid_loss) == (one.valid_accuracy is not None)
    assert healthy == [False, False, True] * 3  # six bad ones in all


def test_weights_do_not_draw_what_the_hypergradient_drew(parts):
    """It puts the random state back, so without a draw after it the next path would be the same."""
    search = begin(parts, "gdas", rounds=2)
    before = torch.get_rng_state()
    drawn = search.strategy.mixtures()["cell"].weights
    torch.set_rng_state(before)
    search.strategy.step()
    assert not torch.equal(torch.get_rng_state(), before)
    with torch.no_grad():
        search.a[0].zero_()
    assert not torch.equal(search.strategy.mixtures()["cell"].weights, drawn)


def test_a_resumed_search_has_the_minutes_that_were_left(parts):
    first = begin(parts, rounds=10**6, minutes=1.0)
    first.clock.seconds = 45.0
    resumed = begin(parts, rounds=10**6, minutes=1.0)
    resumed.load_state_dict(first.state_dict())
    assert (resumed.used(), resumed.seconds_left()) == (0.75, 15.0)


@pytest.mark.parametrize("limit", [60.0, 90.0])
def test_a_resumed_search_keeps_the_pace_of_its_gradient_evaluations(parts, limit):
    """The automatic rate of α follows from the rounds that the pace allows; a larger budget measures it anew."""

    def start(evaluations):
        return begin(parts, "darts-first-order", rounds=1000, gradient_evaluations=evaluations, weights={"warmup": 20})

    rounds = (whole := start(60.0)).rounds()
    for _ in range(4):
        next(rounds)
    state = deepcopy(whole.state_dict())
    list(rounds)
    resumed = start(limit)
    resumed.load_state_dict(state)
    list(resumed.rounds())
    assert torch.equal(resumed.a[0], whole.a[0]) == (limit == 60.0)
    state.pop("pace")
    (old := start(60.0)).load_state_dict(state)
    list(old.rounds())
    assert not torch.equal(old.a[0], whole.a[0])  # as earlier versions resumed


def test_what_is_not_in_the_relaxation_is_not_selected(parts):
    search = begin(parts, rounds=1, none=False)
    with torch.no_grad():
        search.a[0][:, search.net.none] = 9.0
    assert "none" not in str(search.current())
    assert "none" not in str(search.select())


def test_a_bad_training_batch_moves_nothing(parts):
    search = begin(parts, rounds=3, weights={"decay": 0.0, "momentum": 0.0, "nesterov": False})
    good, before = search.task.train, [p.detach().clone() for p in search.w]

    class Bad:
        def __next__(self):
            images, labels = next(good)
            return images * math.nan, labels

    give(search, train=Bad())
    search.net.train()
    search._train_weights(1)
    assert all(torch.equal(one, other) for one, other in zip(before, search.w, strict=True))


def test_a_gradient_that_is_not_finite_is_left_out_too(parts):
    search = begin(parts, "darts-first-order", rounds=4)
    plain, calls = search.task.loss, []

    def spoilt(outputs, targets):
        calls.append(1)
        steep = (outputs - outputs.detach()).abs().sum().sqrt()  # 0, with a gradient that is not finite
        return plain(outputs, targets) + (steep if len(calls) == 1 else 0.0)

    give(search, loss=spoilt)
    assert all(math.isfinite(found.train_loss) for found in search.rounds())
    assert all(parameter.isfinite().all() for parameter in search.w)


def test_going_back_forgets_the_curvature_that_was_seen_since(parts):
    search = begin(parts, rounds=1)
    state = search.state_dict()
    assert len(list(search.rounds())) == 1
    assert search.strategy.state is not None
    search.load_state_dict(state)
    assert search.strategy.state is None


def test_a_learning_rate_that_ends_at_zero_is_no_error(parts):
    found = list(begin(parts, "darts-one-step", rounds=3, weights={"last_rate": 0.0}).rounds())
    assert found[-1].rate == 0.0
    assert [bool(one.measures["implicit_share"]) for one in found] == [True, True, False]


def test_first_order_has_no_implicit_share(parts):
    (found,) = begin(parts, "darts-first-order", rounds=1).rounds()
    assert found.measures["implicit_share"] is None


def test_a_budget_that_ends_in_the_warm_up_finds_nothing(parts):
    search = begin(parts, weights={"warmup": 60}, gradient_evaluations=1.0)
    with pytest.raises(InputError, match="before the first step on α"):
        list(search.rounds())
    assert search.spent.weight_steps == 1


def test_a_warm_up_that_is_too_long_for_the_evaluations_leaves_half_of_them_to_the_rounds(parts):
    """A weight step on eight paths costs eight evaluations, so ten of them are half of 160."""
    search = begin(parts, "parsec", rounds=100, weights={"warmup": 60}, gradient_evaluations=160.0)
    steps = []
    for one in search.rounds():
        steps.append(search.spent.weight_steps)
        assert one.gradient_evaluations >= 80
    assert steps[0] == 10 + 1
    assert len(steps) > 1


def test_minutes_allow_one_round_on_the_slowest_machine(parts):
    search = begin(parts, weights={"warmup": 60}, rounds=100, minutes=1e-9)
    assert [one.number for one in search.rounds()] == [1]


def test_a_search_in_one_stage_names_no_stage(parts):
    assert [one.stage for one in begin(parts, rounds=2).rounds()] == [None, None]


def test_a_warm_up_that_is_too_long_for_the_minutes_leaves_half_of_them_to_the_rounds(parts):
    search = begin(parts, weights={"warmup": 10**6}, rounds=10**6, minutes=0.05)
    rounds = list(search.rounds())
    assert len(rounds) > 1  # the warm-up does not continue after the first one
    assert 0 < search.spent.weight_steps - len(rounds) * search.settings.inner_steps < 10**6


@pytest.mark.parametrize(
    "method", ["idarts", "darts", "darts-one-step", "darts-first-order", "gdas", "setn", "random-nas", "enas"]
)
def test_an_epoch_is_an_epoch_and_no_batch_is_drawn_in_vain(parts, method):
    drawn = []

    class Counted(Batches):
        def __next__(self):
            drawn.append(1)
            return super().__next__()

    chosen = space("nas-bench-201")
    net = chosen.supernet(chosen.skeleton.changed(depth=1, channels=4), in_channels=1)
    settings = config(method, epochs=1.0, controller={"samples": 1})
    search = Task(net, Counted(parts[0], 64), Batches(parts[1], 64), settings).search()  # 11 batches
    rounds = len(list(search.rounds()))
    assert len(drawn) == rounds * settings.batches_per_round
    assert len(drawn) == pytest.approx(11, abs=2)
    second_order = method in ("idarts", "darts", "darts-one-step")
    assert search.spent.weight_steps == len(drawn) - (rounds if second_order else 0)


def test_a_weight_step_reports_the_mean_of_all_mixtures_that_it_looked_at(parts):
    search = begin(parts)
    paths = [search.net.path(parse(f"nas-bench-201:{cell}")) for cell in (0, 1462)]
    start = search.task.train.state_dict()

    def step(*chosen):
        """On the first batch, and at a rate of 0."""
        search.task.train.load_state_dict(start)
        search.weights.objective = lambda _, evaluate: sum(map(evaluate, chosen))
        return search.weights.step(dict, 0.0)

    one, other = map(step, paths)
    assert not torch.equal(one, other)
    torch.testing.assert_close(step(*paths), (one + other) / 2)
    assert search.weights.evaluations == 2


def test_none_is_selected_only_if_it_takes_part_and_may_be_selected(parts):
    for part, choice in product((True, False), repeat=2):
        search = begin(parts, none=part, selection={"none": choice})
        search.a[0].data[:, search.net.none] = 5.0
        ops = {edge.op for edge in search.pick().cell.edges}
        assert ("none" in ops) == (part and choice), (part, choice)


@pytest.mark.parametrize("cell", ["nas-bench-201:0", "nas-bench-201:1462"])
def test_a_look_is_at_the_mixtures_that_are_given(parts, cell):
    """Not at what the supernet mixes by itself; on the next validation batch."""
    search, twin = begin(parts), begin(parts)
    found = look(search, search.net.path(parse(cell)))
    inputs, labels = next(twin.task.valid)
    with torch.no_grad():
        outputs = twin.net(inputs, mixtures=twin.net.path(parse(cell)))
    assert found.loss == pytest.approx(cross_entropy(outputs, labels).item(), rel=1e-5)
    assert found.accuracy == pytest.approx((outputs.argmax(1) == labels).double().mean().item())


class TestCheckpoints:
    def test_those_of_a_future_that_was_gone_back_from_are_forgotten(self, tmp_path):
        for number in (20, 40):
            checkpoint.save(tmp_path, number, {"x": torch.tensor(number)})
        (tmp_path / "00000040.pt").write_bytes(b"damaged")
        checkpoint.save(tmp_path, 25, {"x": torch.tensor(25)})
        assert sorted(path.name for path in tmp_path.iterdir()) == ["00000020.pt", "00000025.pt"]

    def test_the_last_two_are_kept(self, tmp_path):
        for number in (1, 2, 3, 10):
            checkpoint.save(tmp_path, number, {"x": torch.tensor(number)})
        assert sorted(p.name for p in tmp_path.iterdir()) == ["00000003.pt", "00000010.pt"]
        assert checkpoint.latest(tmp_path)[0] == 10
        assert checkpoint.latest(tmp_path / "nothing") is None

    def test_what_a_kill_left_half_written_goes_with_the_next(self, tmp_path):
        (tmp_path / ".00000001.pt.0123abcd").write_bytes(b"half")
        checkpoint.save(tmp_path, 2, {"x": torch.zeros(2)})
        assert [p.name for p in tmp_path.iterdir()] == ["00000002.pt"]

    @pytest.mark.parametrize("damage", [b"", b"not a checkpoint", None])
    def test_a_damaged_one_falls_back_to_the_one_before(self, tmp_path, damage):
        for number in (1, 2):
            path = checkpoint.save(tmp_path, number, {"x": torch.tensor(number)})
        path.write_bytes(path.read_bytes()[:200] if damage is None else damage)
        number, state, problems = checkpoint.latest(tmp_path)
        assert (number, state["x"].item(), len(problems)) == (1, 1, 1)
        assert "is damaged, or not written by idarts" in problems[0]

    def test_a_digest_that_does_not_match_is_damage(self, tmp_path):
        """The rest of the file is whole, and torch would read it."""
        path = checkpoint.save(tmp_path, 1, {"x": torch.zeros(2)})
        content = path.read_bytes()
        path.write_bytes(content[:-1] + (b"1" if content.endswith(b"0") else b"0"))
        with pytest.raises(InputError, match="is damaged, or not written by idarts"):
            checkpoint.load(path)

    def test_without_a_digest_the_archives_checksums_count(self, tmp_path):
        """0.1.0 wrote none."""
        path = checkpoint.save(tmp_path, 1, {"x": torch.full((64,), 3.0)})
        archive = path.read_bytes()[: -len("sha256:") - 64]
        path.write_bytes(archive)
        assert checkpoint.load(path)[1]["x"].sum() == 192
        place = archive.index(torch.full((64,), 3.0).numpy().tobytes())
        path.write_bytes(archive[:place] + b"\x01" + archive[place + 1 :])
        with pytest.raises(InputError, match="is damaged, or not written by idarts"):
            checkpoint.load(path)

    def test_nothing_in_a_foreign_file_runs(self, tmp_path):
        class Evil:
            def __reduce__(self):
                return (open, (str(tmp_path / "ran"), "w"))

        torch.save({"format": checkpoint.FORMAT, "number": 1, "state": Evil()}, tmp_path / "00000001.pt")
        with pytest.raises(InputError, match=r"no checkpoint .* can be used"):
            checkpoint.latest(tmp_path)
        assert not (tmp_path / "ran").exists()

    def test_another_kind_of_file(self, tmp_path):
        torch.save({"weights": torch.zeros(2)}, tmp_path / "00000001.pt")
        with pytest.raises(InputError, match="not one of a search run by this version"):
            checkpoint.load(tmp_path / "00000001.pt")

    def test_a_full_disk_leaves_the_old_one_and_nothing_else(self, tmp_path, monkeypatch):
        checkpoint.save(tmp_path, 1, {"x": torch.zeros(2)})

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            checkpoint.save(tmp_path, 2, {"x": torch.zeros(2)})
        assert [p.name for p in tmp_path.iterdir()] == ["00000001.pt"]


def test_settings_by_name():
    assert config("darts").inner_steps == 1
    assert config("darts-first-order").hypergradient.method == "first-order"
    with pytest.raises(InputError, match="unknown method 'dart'"):
        config("dart")
    with pytest.raises(InputError, match="unknown setting 'roundz'"):
        config(roundz=3)
    with pytest.raises(InputError, match=r"unknown setting 'alpha\.rat'"):
        config(alpha={"rat": 3})
    with pytest.raises(InputError, match="rounds is 0"):
        config(rounds=0)


class TestBudgets:
    def test_epochs_become_rounds(self, parts):
        search = begin(parts, epochs=1.0)  # 44 batches, five a round
        assert len(search.task.train) == 44
        assert len(list(search.rounds())) == 9

    def test_gradient_evaluations_end_it(self, parts):
        search = begin(parts, rounds=1000, gradient_evaluations=60.0, hypergradient={"step": 0.01})
        rounds = list(search.rounds())
        assert 60 <= rounds[-1].gradient_evaluations < 60 + 4 + 2 + 3 * 4 / 3
        assert rounds[-1].rate == pytest.approx(0.001)

    def test_minutes_end_it(self, parts):
        search = begin(parts, rounds=1000, minutes=0.02)
        assert len(list(search.rounds())) < 50
        assert search.clock.seconds >= 1.2

    def test_no_more_than_all_is_used(self, parts):
        search = begin(parts, rounds=10**6, minutes=1.0)
        search.clock.seconds = 90.0
        assert (search.used(), search.stage_part(), search.seconds_left()) == (1.0, 1.0, -30.0)

    def test_none_of_them_may_be_zero(self):
        with pytest.raises(InputError, match="minutes is 0"):
            config(minutes=0)
