"""The mobile space end to end, as a user has it: search, select, resume, report, train, export, within a budget."""

import json

import onnxruntime
import pytest
import torch

import idarts
from idarts.arch import as_text, parse, space_of
from idarts.cli import main
from idarts.searching import RunConfig, config, run
from idarts.spaces import count, measure_latency

TINY = ["--space", "mobile", "--preset", "smoke", "--rounds", "3", "--batch", "8", "--channels", "4"]
FIRST_ORDER = [*TINY, "--method", "darts-first-order", "--inner-steps", "1"]


def log(folder):
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [{key: value for key, value in line.items() if key not in ("seconds", "digest")} for line in lines]


def test_search_report_and_resume(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    settings = RunConfig(
        space="mobile",
        data="digits",
        depth=2,
        channels=4,
        rounds=3,
        batch=8,
        inner_steps=1,
        checkpoint_rounds=1,
        hypergradient=config("darts-first-order").hypergradient,
    )
    architecture = run(settings, whole).architecture
    assert space_of(architecture).name == "mobile"
    assert len(architecture.choices) == 10
    assert main(["report", str(whole)]) == 0
    page = (whole / "report.html").read_text()
    assert all(word in page for word in ("First block of each stage", "stage 2, block 2", "7×7 e6"))

    def fail(finished, _search):
        if finished.number == 2:
            raise RuntimeError("the machine stops here")

    with pytest.raises(RuntimeError, match="the machine stops here"):
        run(settings, cut, on_round=fail)
    assert main(["search", "--resume", "--out", str(cut)]) == 0
    assert parse(cut) == architecture
    assert log(cut) == log(whole)


def test_train_export_and_profile(tmp_path, capsys):
    architecture, out = parse("mobile:k3e6-skip+k5e3-k3e3+k7e3-skip+k3e3-k5e6+k3e3-skip"), tmp_path / "train"
    trained = idarts.train(architecture, "digits", out=out, epochs=1, batch=512, channels=8)
    assert len(trained.net.blocks) == sum(option != "skip" for option in architecture.choices.values())
    assert main(["export", str(out), "--format", "onnx", "--out", str(tmp_path / "onnx")]) == 0
    session = onnxruntime.InferenceSession(tmp_path / "onnx" / "model.onnx", providers=["CPUExecutionProvider"])
    images = torch.randn(3, 1, 8, 8)
    with torch.no_grad():
        logits = idarts.load(out)(images)
    exported = torch.from_numpy(session.run(["logits"], {"images": images.numpy()})[0])
    torch.testing.assert_close(exported, logits, rtol=1e-4, atol=1e-4)
    assert main(["profile", str(out), "--seconds", "0", "--batches", "1", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts["macro"]["depth"] == 2
    assert facts["params"] == count(architecture, "cifar", channels=8, classes=10, image=8, in_channels=1).params


def test_a_smoke_search(tmp_path, capsys):
    """The preset as it is, with the paper's hypergradient, but for fewer rounds."""
    assert main(["search", "--space", "mobile", "--preset", "smoke", "--rounds", "2", "--out", str(tmp_path)]) == 0
    assert f"architecture: {as_text(parse(tmp_path))}" in capsys.readouterr().out


@pytest.mark.parametrize("rule", ["best-of", "perturbation", "trials"])
def test_every_selection(tmp_path, rule):
    small = ["--selection.samples", "2", "--selection.batches", "1", "--selection.steps", "1"]
    used = {"perturbation": small[2:4], "best-of": small[:4]}.get(rule, small)
    assert main(["search", *FIRST_ORDER, "--selection.rule", rule, *used, "--out", str(tmp_path / "run")]) == 0
    assert len(parse(tmp_path / "run").choices) == 5


@pytest.mark.parametrize(("kind", "target"), [("parameters", 450_000.0), ("multiply_adds", 25e6), ("latency", 3.0)])
def test_a_search_keeps_to_its_budget(tmp_path, kind, target):
    wanted = ["--cost.kind", kind, "--cost.target", str(target)]
    if kind == "latency":
        table = measure_latency("mobile", space_of(parse("mobile:k3e3+k3e3+k3e3+k3e3+k3e3")).skeleton, seconds=0)
        table |= {"base": 1.0, "first": [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]] * 5}
        (tmp_path / "table.json").write_text(json.dumps(table))
        wanted += ["--cost.table", str(tmp_path / "table.json")]
    assert main(["search", *FIRST_ORDER, *wanted, "--out", str(tmp_path / "run")]) == 0
    cost = json.loads((tmp_path / "run" / "result.json").read_text())["cost"]
    assert abs(cost["deviation"]) <= 0.05
    counts = count(parse(tmp_path / "run"))
    exact = {"parameters": counts.params, "multiply_adds": counts.multiply_adds["conv+fc"]}
    assert cost["reached"] == pytest.approx(exact.get(kind, cost["reached"]))
    assert abs(cost["reached"] / target - 1) <= 0.05
