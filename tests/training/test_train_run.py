"""Trainings as a user has them: real processes, killed for real, resumed to the bit; every mistake is one line."""

import inspect
import json
import math
import os
import pydoc
import signal
import subprocess
import sys
from contextlib import suppress
from random import Random

import pytest
import torch
from commands import Command
from PIL import Image
from torch import nn

import idarts
from idarts import Choice, InputError, NotFiniteError
from idarts.arch import parse
from idarts.cli import main
from idarts.data import load
from idarts.engine import checkpoint
from idarts.layers.lean import LeanConv2d
from idarts.training import load as load_model
from idarts.training import train

CELL = "|nor_conv_1x1~0|+|none~0|skip_connect~1|+|skip_connect~0|none~1|avg_pool_3x3~2|"
SMALL = [CELL, "--data", "digits", "--depth", "1", "--channels", "4", "--batch", "128", "--epochs", "4"]
TINY = {"depth": 1, "channels": 2, "epochs": 1, "batch": 512, "log_steps": 9}
FAST = [
    "--log-steps",
    "2",
    "--checkpoint-rounds",
    "2",
    "--average",
    "0.9",
    "--crop",
    "1",
    "--cutout",
    "2",
    "--log",
    "tensorboard",
]


def environment():
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    return os.environ | {"OMP_NUM_THREADS": "1", "PATH": path}


def log(out):
    """The log without the time that it took."""
    return [
        {key: value for key, value in json.loads(line).items() if key not in ("seconds", "digest")}
        for line in (out / "metrics.jsonl").read_text().splitlines()
    ]


def logged_steps(out):
    """The steps of the training loss, by TensorBoard's own reader."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(out), size_guidance={accumulator.SCALARS: 0})
    events.Reload()
    return [event.step for event in events.Scalars("loss/train")]


def stop_after(out, rounds, number):
    """Start a training, send it a signal once so many rounds are on record, and wait for its end."""
    process = Command("train", *SMALL, *FAST, "--out", out)
    process.until_rounds(out, rounds)
    process.send(number)
    process.end()
    return process


def same_weights(first, second):
    nets = [load_model(folder).state_dict() for folder in (first, second)]
    return all(torch.equal(nets[0][name], nets[1][name]) for name in nets[1])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    words = [sys.executable, "-m", "idarts", "train", *SMALL, *FAST, "--out", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    assert "test accuracy" in done.stdout
    return out


def test_a_training_leaves_what_it_should(whole):
    result = json.loads((whole / "result.json").read_text())
    assert parse(str(whole)) == parse(CELL)  # a run folder is accepted wherever an architecture is
    assert len(log(whole)) == 4 * 6  # eleven steps in an epoch, two in a round
    assert [line["epoch"] for line in log(whole) if line["valid_accuracy"] is not None] == [1, 2, 3, 4]
    assert result["accuracy"] == result["metrics"]["valid_accuracy"] == result["test"]["accuracy"]
    assert result["macro"] == {"depth": 1, "channels": 4, "classes": 10, "image": 8, "large": False}
    assert set(result["versions"]) >= {"idarts", "python", "torch"}
    assert result["config"]["epochs"] == 4
    net = load_model(whole)
    data = load("digits")
    x = (data.test.images.float() / 255 - data.mean[0]) / data.std[0]
    with torch.no_grad():
        assert (net(x).argmax(dim=1) == data.test.labels).double().mean().item() == pytest.approx(result["accuracy"])


def test_killed_at_a_random_moment_and_resumed_to_the_bit(whole, tmp_path):
    out, rounds = tmp_path / "run", Random().randint(3, 20)
    assert stop_after(out, rounds, signal.SIGKILL).code == -signal.SIGKILL
    assert checkpoint.latest(out / "checkpoints", "train")[0] >= rounds - 2
    assert main(["train", "--resume", "--out", str(out)]) == 0  # the settings are those it began with
    assert log(out) == log(whole)
    assert same_weights(out, whole)
    assert logged_steps(out) == logged_steps(whole) == list(range(1, 25))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_writes_a_checkpoint_and_says_how_to_continue(whole, tmp_path, number):
    out = tmp_path / "run"
    process = stop_after(out, 3, number)
    assert process.code == 130
    assert "Traceback" not in process.errors
    assert checkpoint.latest(out / "checkpoints", "train")[0] == len(log(out)) < len(log(whole))
    line = next(line for line in process.output.splitlines() if "--resume" in line)
    if number == signal.SIGTERM:  # the same from here on
        return
    done = subprocess.run(line.split(), capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    assert log(out) == log(whole)
    assert same_weights(out, whole)


LAZY = """
import sys, warnings
import idarts
from idarts.data import load
warnings.simplefilter("ignore")
data = load(f"folder:{sys.argv[1]}", memory=1, image=8)
sizes = {"depth": 1, "channels": 2, "epochs": 999, "batch": 8, "log_steps": 1, "checkpoint_rounds": 99}
idarts.train("nas-bench-201:0", data, out=sys.argv[2], on_round=lambda *_: print("a round", flush=True), **sizes)
"""


def test_a_signal_to_all_processes_does_not_end_those_that_read_images(tmp_path):
    """`timeout` and Ctrl-C send it to the whole group; the main process must still end after its round."""
    for place in range(20):
        file = tmp_path / "data" / "ab"[place % 2] / f"{place}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (9 * place, 0, 0)).save(file)
    words = [sys.executable, "-c", LAZY, str(tmp_path / "data"), str(tmp_path / "run")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, env=environment(), start_new_session=True, **pipes) as process:
        assert process.stdout.readline() == "a round\n"
        os.killpg(process.pid, signal.SIGTERM)
        try:
            _, errors = process.communicate(timeout=20)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert errors.splitlines()[-1].startswith("idarts.engine.saving.Interrupted")
    assert checkpoint.latest(tmp_path / "run" / "checkpoints", "train")[0] >= 1


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_drop_path_and_lower_precision_resume_to_the_bit(tmp_path, precision):
    """Every round's state goes on to the same end: random numbers, the scaler and all."""
    few = load("digits").train
    few = (few.images[:96].numpy(), few.labels[:96].numpy())
    settings = {"depth": 2, "channels": 2, "batch": 32, "epochs": 2, "log_steps": 1, "drop_path": 0.5, "auxiliary": 0.4}
    settings |= {"precision": precision, "checkpoint_rounds": 1, "average": 0.5}
    first = train("DARTS_V2", few, out=tmp_path / "first", **settings)

    class StoppedError(Exception):
        pass

    def stop(found, _training):
        if found.number == 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        train("DARTS_V2", few, out=tmp_path / "second", on_round=stop, **settings)
    torch.manual_seed(99)  # what others draw meanwhile does not matter
    second = train("DARTS_V2", few, out=tmp_path / "second", resume=True, **settings)
    assert log(tmp_path / "first") == log(tmp_path / "second")
    assert all(map(torch.equal, first.net.state_dict().values(), second.net.state_dict().values()))


def one_line(capsys, arguments, words):
    assert main(["train", *arguments]) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert shown.count("\n") == 1


def test_mistakes_are_one_line(whole, tmp_path, capsys):
    new = ["--out", str(tmp_path / "new")]
    for arguments, words in [
        ([], "no architecture to train"),
        ([CELL, *new], "no data to train on"),
        ([CELL, "--data", "digit", *new], "did you mean digits?"),
        (["DARTS_V3", "--data", "digits", *new], "did you mean DARTS_V2"),
        ([CELL, "--preset", "cifar-papers", *new], "did you mean cifar-paper?"),
        ([CELL, "--data", "digits", "--batches", "3", *new], "did you mean --batch?"),
        ([CELL, "--data", "digits", "--batch", "5000", *new], "larger than the split of 1438 images"),
        ([CELL, "--data", "digits", "--epochs", "0", *new], "--epochs is '0', expected a whole number"),
        ([CELL, "--data", "digits", "--cutout", "9", *new], "images have 8 pixels"),
        ([CELL, "--data", "digits", "--crop", "9", *new], "crop is 9, but images have 8 pixels"),
        ([CELL, "--data", "digits", "--drop-path", "0.2", *new], "has no drop_path; set it to 0"),
        ([CELL, "--data", "digits", "--skeleton", "imagenet", *new], "unknown skeleton 'imagenet'"),
        ([CELL, "--data", "digits", "--weights.schedule", "step", *new], "unknown schedule 'step'"),
        ([CELL, "--data", "digits", "--device", "tpu9", *new], "device is 'tpu9'"),
        ([*SMALL, *FAST, "--out", str(whole)], "continue it with --resume"),
        (["--resume", "--out", str(tmp_path / "none")], "no architecture"),
        ([*SMALL, "--resume", "--out", str(tmp_path / "none")], "holds no run to resume"),
        (["--resume", "--epochs", "5", "--out", str(whole)], "started with another epochs"),
        (["DARTS_V2", "--resume", "--out", str(whole)], "started with another architecture"),
    ]:
        one_line(capsys, arguments, words)
    assert not (tmp_path / "new" / "config.json").exists()


def test_other_files_in_the_model_folder_end_a_training_before_it_starts(tmp_path):
    train(CELL, "digits", out=tmp_path / "run", **TINY)
    (tmp_path / "run" / "model" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"model holds notes.txt, which is not part of a model; move it"):
        train(CELL, "digits", out=tmp_path / "run", overwrite=True, **TINY)
    assert load_model(tmp_path / "run").card.trained["epochs"] == 1


def test_a_search_is_no_training(tmp_path, capsys):
    """Their checkpoints are told apart."""
    (tmp_path / "checkpoints").mkdir()
    checkpoint.save(tmp_path / "checkpoints", 1, {"net": {}}, "search")
    with pytest.raises(InputError, match="not one of a train run"):
        checkpoint.latest(tmp_path / "checkpoints", "train")


def test_transfer_to_other_data(tmp_path):
    """Classes, channels and image size are the data's."""
    torch.manual_seed(0)
    pixels, labels = torch.randint(0, 256, (90, 3, 12, 12), dtype=torch.uint8), torch.arange(90) % 3
    found = train(CELL, (pixels, labels), out=tmp_path / "run", depth=1, channels=4, epochs=1, batch=18, valid=0.25)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert found.net(torch.zeros(1, 3, 12, 12)).shape == (1, 3)
    assert (result["macro"]["classes"], result["macro"]["image"]) == (3, 12)
    assert result["data"]["parts"]["valid"]["size"] == 18
    assert result["test"]["images"] == 18
    assert load_model(tmp_path / "run").card.in_channels == 3


def test_a_mobile_network_that_is_too_large_is_warned_of(tmp_path):
    pixels, labels = torch.randint(0, 256, (20, 3, 64, 64), dtype=torch.uint8), torch.arange(20) % 2
    with pytest.warns(UserWarning, match=r"million multiply-adds .* more than the 1 million"):
        train(
            "DARTS_V2", (pixels, labels), out=tmp_path / "run", preset="imagenet-paper", multiply_adds=1.0,
            depth=2, channels=4, epochs=6, batch=8, evaluate_epochs=6,
        )  # fmt: skip


def module(**more):
    branches = {"line": nn.Linear(64, 10), "deep": nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10))}
    return nn.Sequential(nn.Flatten(), Choice(branches, name="head"), **more)


def test_a_module_with_choices_is_trained_as_derived(tmp_path):
    model = module()
    with torch.no_grad():
        model[1].alpha[0, 0] = 1.0  # α's first value is random
    found = train(model, "digits", out=tmp_path / "run", epochs=2, weights={"rate": 0.1})
    assert found.accuracy > 0.8
    assert not any(isinstance(part, Choice) for part in found.net.modules())
    assert json.loads((tmp_path / "run" / "result.json").read_text())["architecture"]["choices"] == {"head": "line"}
    again = load_model(tmp_path / "run", model=model)
    assert torch.equal(again[1].weight, found.net[1].weight)


def test_slow_convolutions_are_lean_only_during_the_training(tmp_path):
    net = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2, groups=1), nn.Conv2d(8, 8, 5, padding=2, groups=8))
    net = nn.Sequential(*net, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
    seen = set()
    settings = {"average": 0.9, "epochs": 1, "batch": 512}
    result = train(net, "digits", out=tmp_path / "run", on_round=lambda *_: seen.add(type(net[1])), **settings)
    assert seen == {LeanConv2d}
    assert type(result.net[1]) is type(net[1]) is nn.Conv2d


def test_a_module_that_does_not_fit(tmp_path):
    for net, settings, words in [
        (
            nn.Sequential(nn.Flatten(), nn.Linear(64, 7)),
            {},
            r"for two images has the shape \(2, 7\), expected \(2, 10\)",
        ),
        (nn.Conv2d(3, 10, 3), {}, "does not accept images of 1×8×8 pixels"),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), {"drop_path": 0.1}, "has no drop_path"),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), {"epoch": 1}, "did you mean epochs"),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), {"preset": "gpu"}, "unknown preset 'gpu'"),
    ]:
        with pytest.raises(InputError, match=words) as caught:
            train(net, "digits", out=tmp_path / "run", **settings)
        assert "\n" not in str(caught.value)


class Spoilt(nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.calls = nn.Linear(64, 10), 0

    def forward(self, x):
        self.calls += self.training
        return self.line(x.flatten(1)) * (math.nan if self.calls > 6 else 1)


def test_numbers_that_are_not_finite_point_to_the_last_good_checkpoint(tmp_path):
    with (
        pytest.warns(UserWarning, match="not finite"),
        pytest.raises(NotFiniteError, match="last good checkpoint is that of round 3"),
    ):
        train(Spoilt(), "digits", out=tmp_path / "run", epochs=2, log_steps=2, checkpoint_rounds=1)
    assert checkpoint.latest(tmp_path / "run" / "checkpoints", "train")[0] == 3


def test_the_former_name_of_on_round(tmp_path):
    seen = []
    with pytest.warns(DeprecationWarning, match="on_round"):
        train(CELL, "digits", out=tmp_path / "run", watch=lambda record, work: seen.append(record.number), **TINY)
    assert seen == [1]
    train(CELL, "digits", out=tmp_path / "run", overwrite=True, on_round=lambda r, _: seen.append(r.number), **TINY)
    assert seen == [1, 1]


def test_functions_have_real_signatures_and_help():
    names = {
        name: list(inspect.signature(getattr(idarts, name)).parameters)
        for name in ("train", "load", "evaluate", "export", "predict")
    }
    assert names["train"][:6] == ["what", "data", "preset", "out", "resume", "overwrite"]
    assert names["load"] == ["folder", "model", "device"]
    assert names["evaluate"] == ["net", "data", "part", "batch", "bins"]
    assert names["export"] == ["net", "out", "formats", "overwrite"]
    assert names["predict"] == ["net", "files", "top"]
    for name, parameters in names.items():
        shown = pydoc.plain(pydoc.render_doc(getattr(idarts, name)))
        assert f"{name}(" in shown
        assert ">>>" in shown
        assert all(parameter in shown for parameter in parameters)
