"""`idarts.search` from Python: a space on arrays, a user's own module on a task without images, streams, mistakes."""

import json
import warnings
from copy import deepcopy
from dataclasses import asdict

import pytest
import torch
from torch import nn
from torch.nn.functional import l1_loss, mse_loss
from torch.utils.data import DataLoader, TensorDataset

import idarts
from idarts import Choice, InputError, derive
from idarts.data import load
from idarts.engine.folder import read_config
from idarts.searching import Task, config, resolved
from idarts.searching.streams import TensorBatches
from idarts.spaces import ChoiceSupernet


class Sequence(nn.Module):
    """Predicts the sum of what came so far: a recurrent layer can, the others cannot."""

    def __init__(self):
        super().__init__()
        self.layer = Choice(
            {"recurrent": Recurrent(), "pointwise": nn.Linear(1, 8), "nothing": Nothing()},
            name="layer",
        )
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.layer(x))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(1, 8)

    def forward(self, x):
        return self.step(x).cumsum(dim=1)


class Nothing(nn.Module):
    def forward(self, x):
        return x.new_zeros(*x.shape[:2], 8)


def sums(count):
    x = torch.randn(count, 6, 1, generator=torch.Generator().manual_seed(0))
    return x, x.cumsum(dim=1)


def test_a_users_module_on_sequences_end_to_end(tmp_path):
    torch.manual_seed(0)
    model = Sequence()
    result = idarts.search(
        model,
        sums(400),
        loss=mse_loss,
        out=tmp_path / "run",
        rounds=60,
        batch=32,
        weights={"rate": 0.05, "clip": 1.0},
        alpha={"rate": 0.05},
    )
    assert result.architecture.choices == {"layer": "recurrent"}
    assert result.rounds[-1]["valid_loss"] < 0.5 * result.rounds[0]["valid_loss"]
    assert result.rounds[-1]["valid_accuracy"] is None
    plain = derive(model, result.architecture)
    assert not any("alpha" in name for name, _ in plain.named_parameters())
    assert isinstance(plain.layer, Recurrent)


def test_a_space_on_arrays(tmp_path):
    digits = load("digits")
    images, labels = digits.train.images[:200], digits.train.labels[:200]
    result = idarts.search(
        "nas-bench-201", (images, labels), out=tmp_path / "run", rounds=2, batch=16, depth=1, channels=4, seed=1
    )
    assert result.architecture.space == "nas-bench-201"
    assert len(result.rounds) == 2
    again = idarts.search(
        "nas-bench-201", (images, labels), out=tmp_path / "again", rounds=2, batch=16, depth=1, channels=4, seed=1
    )
    assert [r["alpha"] for r in again.rounds] == [r["alpha"] for r in result.rounds]


def test_streams_are_taken_as_they_are(tmp_path):
    x, y = sums(64)
    streams = TensorBatches(x, y, 8, seed=0), TensorBatches(x, y, 8, seed=1)
    result = idarts.search(Sequence(), *streams, loss=mse_loss, out=tmp_path / "run", rounds=1)
    assert streams[0].position == 5  # four weight steps and the hypergradient's batch
    assert len(result.rounds) == 1


def frozen(model):
    """All but the last layer, α included."""
    model.requires_grad_(False)
    list(model.children())[-1].requires_grad_(True)
    return model


def each(outputs, targets):
    return mse_loss(outputs, targets, reduction="none")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda out: idarts.search(nn.Linear(2, 2), sums(40), out=out), "Choice"),
        (lambda out: idarts.search(Sequence(), sums(40), method="magic", out=out), "unknown method 'magic'"),
        (lambda out: idarts.search(Sequence(), sums(40), rouds=3, out=out), "did you mean rounds"),
        (lambda out: idarts.search(Sequence(), sums(40), preset="smoke", out=out), "presets are for the command line"),
        (lambda out: idarts.search(Sequence(), sums(40), batch=1000, out=out), "a batch of 1000 from 20"),
        (lambda out: idarts.search("nas-bench-2001", sums(40), out=out), "unknown space"),
        (
            lambda out: idarts.search(Sequence(), sums(40), augment=True, batch=8, out=out),
            "for your own batches, remove it",
        ),
        (lambda out: idarts.search(Sequence(), sums(40), "official", out=out), "'official' needs data by name"),
        (
            lambda out: idarts.search(Sequence(), sums(40), 1.5, out=out),
            "valid is 1.5, expected",
        ),
        (
            lambda out: idarts.search(Sequence(), DataLoader(TensorDataset(*sums(8)), collate_fn=list), out=out),
            "with its own collate_fn cannot be resumed",
        ),
        (lambda out: idarts.search(Sequence(), sums(8)[0], out=out), "cannot be searched on"),
        (lambda out: idarts.search(Sequence(), iter([]), iter([]), out=out), "a stream of batches without __len__"),
        (lambda out: idarts.search(Sequence(), sums(1), batch=1, out=out), "there are no examples"),
        (lambda out: idarts.search(Sequence(), sums(40), alpha=0.01, out=out), "alpha is 0.01, expected a group of"),
        (lambda out: idarts.search(Sequence(), sums(40), rounds={"a": 1}, out=out), "rounds is {'a': 1}, expected a"),
        (lambda out: idarts.search(Sequence(), sums(40), seed="a", out=out), "seed is 'a', expected a whole number"),
        (lambda out: idarts.search(Sequence(), sums(40), none="false", out=out), "expected true or false"),
        (
            lambda out: idarts.search(Sequence(), sums(40), cost={"kind": "parameters", "target": "5M"}, out=out),
            "cost.target is '5M', expected a positive number or none",
        ),
        (
            lambda out: idarts.search(Sequence(), sums(40), batch=8, relaxation="partial-channels", out=out),
            "partial-channels are built into a supernet",
        ),
        (
            lambda out: idarts.search(Sequence().requires_grad_(False), sums(40), batch=8, out=out),
            "no weights to train",
        ),
        (
            lambda out: idarts.search(frozen(Sequence()), sums(40), loss=mse_loss, batch=8, out=out),
            r"α of \w+ is frozen, so no gradient can step it",
        ),
        (
            lambda out: idarts.search(Sequence(), sums(40), loss=each, batch=8, out=out),
            r"the validation loss must return a tensor with one number, but it returned \(8, 6, 1\)",
        ),
        (
            lambda out: idarts.search(
                Sequence(), sums(40), loss=mse_loss, batch=8, alpha={"options": {"b": 1}}, out=out
            ),
            "but the rule adam has none",
        ),
        (
            lambda out: idarts.search(Sequence(), sums(40), weights={"relaxation_options": {"b": 1}}, out=out),
            "weights.relaxation names none",
        ),
        (lambda out: idarts.search(Sequence(), (sums(40)[0], sums(30)[1]), out=out), "40 inputs with 30 targets"),
        (
            lambda out: idarts.search(Sequence(), sums(40), device="cuda:7", out=out),
            "`device` has no effect",
        ),
        (
            lambda out: idarts.search("nas-bench-201", sums(40), image=16, out=out),
            "`image` has no effect",
        ),
        (
            lambda out: idarts.search(Sequence(), sums(40), batch=8, selection={"rule": "trials"}, out=out),
            "none can be built from this model",
        ),
    ],
)
def test_mistakes(tmp_path, call, words):
    with pytest.raises(InputError, match=words):
        call(tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.mark.parametrize(
    "data", [TensorDataset(*sums(40)), tuple(part.numpy() for part in sums(40)), list(sums(40))], ids=type
)
def test_data_of_many_kinds_are_the_same_search(data, tmp_path):
    found = []
    for number, train in enumerate((sums(40), data)):
        torch.manual_seed(0)
        model = Sequence()
        idarts.search(model, train, 0.3, loss=mse_loss, batch=8, rounds=1, out=tmp_path / str(number))
        found.append([parameter.detach().clone() for parameter in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


class Pair(nn.Module):
    """Two inputs, two outputs, a frozen layer, and a Choice without a choice."""

    def __init__(self):
        super().__init__()
        self.below = nn.Linear(3, 4).requires_grad_(False)
        self.only = Choice({"line": nn.Linear(4, 1)}, name="only")

    def forward(self, a, b):
        return self.only(self.below(a)), b


class Pairs(TensorBatches):
    def __next__(self):
        x, y = super().__next__()
        return (x, x + 1), y


@pytest.mark.parametrize("method", ["idarts", "darts-first-order", "random-nas", "enas"])
def test_several_inputs_and_outputs_frozen_weights_and_one_branch(method, tmp_path):
    x = torch.randn(40, 3)
    model = Pair()
    before = model.below.weight.clone()

    def loss(outputs, target):
        return mse_loss(outputs[0], target).reshape(1) + 0 * outputs[1].sum()

    streams = (Pairs(x, x.sum(1, keepdim=True), 8, seed=seed) for seed in (0, 1))
    rule = {"rule": "best-of", "samples": 2}
    result = idarts.search(
        model, *streams, method=method, loss=loss, rounds=2, selection=rule, out=tmp_path / "run",
        hypergradient={"curvature": "hessian"},
        controller={"samples": 2},
    )  # fmt: skip
    assert result.architecture.choices == {"only": "line"}
    assert torch.equal(model.below.weight, before)


def test_two_parts_have_one_scale_and_all_of_their_classes(tmp_path):
    x = torch.randint(0, 255, (40, 1, 8, 8), dtype=torch.uint8)
    y = torch.arange(40) % 4
    sizes = {"batch": 8, "rounds": 1, "depth": 1, "channels": 4, "selection": {"rule": "argmax"}}
    seen = []

    def on_round(_, search):
        seen.extend((search.task.train.part, search.task.valid.part, search.net))

    idarts.search("nas-bench-201", (x, y), (x // 2, y), out=tmp_path / "a", on_round=on_round, **sizes)
    assert (seen[0].mean, seen[0].std) == (seen[1].mean, seen[1].std)
    tail = torch.cat([y[:-3], torch.tensor([4, 5, 6])])  # classes that one half may lack
    idarts.search("nas-bench-201", (x, tail), out=tmp_path / "b", on_round=on_round, **sizes)
    assert seen[-1](torch.zeros(2, 1, 8, 8)).shape == (2, 7)


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("p-darts", {"selection": {"rule": "trials"}}),
        ("drnas", {"relaxation": "softmax"}),
        ("pc-darts", {"relaxation": "softmax"}),
        ("darts-pt", {"selection": {"rule": "trials"}}),
        ("parsec", {"strategy": "gradient", "relaxation": "softmax", "weights": {"objective": "single"}}),
    ],
)
def test_a_part_of_another_method_comes_without_its_options(method, changes, tmp_path):
    """As on the command line: `--method p-darts --selection.rule trials`."""
    images = torch.randint(255, (48, 8, 8, 1), dtype=torch.uint8), torch.arange(48) % 3
    small = {"selection": {"samples": 2, "steps": 1, **changes.pop("selection", {})}, "depth": 1, "channels": 4}
    typed = resolved([{"method": method, **small, **changes}])
    out = tmp_path / "run"
    idarts.search("nas-bench-201", images, method=method, batch=8, rounds=2, **small, **changes, out=out)
    settings = read_config(out)
    for part in (settings["selection"]["options"], settings["relaxation_options"], settings["strategy_options"]):
        assert part == {}
    for name in ("relaxation", "relaxation_options", "stages", "selection", "hypergradient", "weights"):
        assert settings[name] == json.loads(json.dumps(asdict(typed)))[name]
    assert settings["method"] == method


def test_a_device_that_the_machine_lacks_is_refused(tmp_path):
    images = load("digits").train.images[:64], load("digits").train.labels[:64]
    with pytest.raises(InputError, match="cuda:7"):
        idarts.search("nas-bench-201", images, device="cuda:7", out=tmp_path / "run", rounds=1, channels=4, depth=1)


class Named(Sequence):
    """Its output is a dict, as those of many language models are."""

    def forward(self, x):
        return {"logits": super().forward(x)}


def test_outputs_that_gauss_newton_cannot_take_name_the_remedy(tmp_path):
    def loss(outputs, targets):
        return mse_loss(outputs["logits"], targets)

    with pytest.raises(InputError, match=r"the model returns a dict, .*; use hypergradient.curvature hessian"):
        idarts.search(Named(), sums(40), loss=loss, batch=8, rounds=1, out=tmp_path / "default")
    hessian = {"hypergradient": {"curvature": "hessian"}}
    idarts.search(Named(), sums(40), loss=loss, batch=8, rounds=1, **hessian, out=tmp_path / "hessian")


def test_a_loss_without_curvature_steps_alpha_by_the_learning_rate(tmp_path):
    """The series is then K + 1 equal terms: its implicit part is K + 1 times that of K = 0."""
    implicit = []
    for terms, step in ((2, "auto"), (2, "rate"), (0, "rate")):
        torch.manual_seed(0)
        seen, settings = [], {"terms": terms, "step": step}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            idarts.search(
                Sequence(),
                sums(80),
                loss=l1_loss,
                batch=8,
                rounds=1,
                hypergradient=settings,
                out=tmp_path / f"{terms}{step}",
                on_round=lambda _, search, seen=seen: seen.append(search.a[0].detach().clone()),
            )
        assert ["no curvature here" in str(one.message) for one in caught] == [True] * (step == "auto")
        implicit.append(seen[0])
    assert torch.equal(implicit[0], implicit[1])
    assert not torch.equal(implicit[1], implicit[2])


def test_a_search_without_curvature_resumes_to_the_bit():
    x, y = sums(80)

    def start():
        torch.manual_seed(0)
        streams = (TensorBatches(x, y, 8, seed) for seed in (0, 1))
        return Task(ChoiceSupernet(Sequence()), *streams, config(rounds=30, weights={"warmup": 2}), l1_loss).search()

    whole, resumed = start(), start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rounds = whole.rounds()
        for _ in range(7):
            next(rounds)
        state = deepcopy(whole.state_dict())
        list(rounds)
        resumed.load_state_dict(state)
        list(resumed.rounds())
    assert torch.equal(whole.a[0], resumed.a[0])
    assert whole.gradient_evaluations == resumed.gradient_evaluations


def test_a_curvature_that_stays_singular_is_called_so(tmp_path):
    settings = {"hypergradient": {"method": "exact"}, "rounds": 9}
    with (
        pytest.warns(UserWarning, match="the curvature of the training loss was singular"),
        pytest.raises(InputError, match=r"was singular in round 5, .* give hypergradient.damping"),
    ):
        idarts.search(Sequence(), sums(80), loss=l1_loss, batch=8, **settings, out=tmp_path / "run")
