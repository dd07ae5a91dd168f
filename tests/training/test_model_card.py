"""The model card, and what an ONNX file says of itself."""

import json
from statistics import NormalDist

import numpy as np
import pytest
import yaml
from PIL import Image

from idarts import export, load, predict, train
from idarts.engine.intervals import wilson
from idarts.training import save
from idarts.training.readme import readme


def parts(text):
    """The metadata and the body of a model card, as the hub separates them."""
    assert text.startswith("---\n")
    _, metadata, body = text.split("---\n", 2)
    return yaml.safe_load(metadata), body


def test_the_card_has_the_metadata_of_the_hub_and_what_a_person_needs(tmp_path):
    done = train("nas-bench-201:0", "digits", out=tmp_path / "run", depth=1, channels=4, epochs=1)
    text = (tmp_path / "run" / "model" / "README.md").read_text()
    metadata, body = parts(text)
    assert metadata["library_name"] == "idarts"
    assert metadata["pipeline_tag"] == "image-classification"
    assert "license" not in metadata  # the author's to choose
    [index] = metadata["model-index"]
    [result] = index["results"]
    assert result["task"]["type"] == "image-classification"
    assert result["dataset"] == {"type": "digits", "name": "digits"}
    assert result["metrics"][0]["type"] == "accuracy"
    assert result["metrics"][0]["value"] == pytest.approx(done.accuracy, abs=1e-4)
    low, high = wilson(round(done.accuracy * 359), 359)
    assert f"95 % interval {100 * low:.1f} % to {100 * high:.1f} %" in body
    assert "359, none of them used for training" in body
    assert "8 × 8 pixels, grey" in body
    assert "`0`, `1`, `2`" in body
    code = body.partition("```python\n")[2].partition("```")[0]
    assert code.count("\n") == 3
    Image.new("L", (9, 9)).save(tmp_path / "photo.jpg")
    ran = code.replace("path/to/this/folder", str(tmp_path / "run" / "model"))
    exec(ran.replace("photo.jpg", str(tmp_path / "photo.jpg")), {})


def test_names_cannot_break_the_card(tiny):
    _, card = tiny("nas-bench-201")
    evil = 'x"\n---\nlicense: mit\n`<script>alert(1)</script>|\x1b[31m\x85{}'
    bad = type(card)(
        card.architecture, card.macro, card.in_channels, card.image, card.mean, card.std,
        tuple(evil.format(place) for place in range(4)),
        {"data": evil, "test": {"accuracy": 0.5, "interval": [0.4, 0.6], "images": 8}},
    )  # fmt: skip
    metadata, body = parts(readme(bad))
    assert "license" not in metadata
    assert metadata["model-index"][0]["results"][0]["metrics"][0]["value"] == 0.5
    assert "<script" not in body
    assert "\x1b" not in body
    for trained in ({}, {"test": None}, {"test": {"interval": "ab", "accuracy": None}}, {"data": 5, "images": "x"}):
        parts(readme(type(card)(**{**vars(card), "trained": trained})))  # cards of other versions


def test_an_onnx_file_can_be_used_with_nothing_but_itself(tmp_path, tiny):
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    net = load(save(tmp_path / "model", *tiny("nas-bench-201")))
    export(net, tmp_path / "out", ["onnx"])
    random = np.random.default_rng(0)
    Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(tmp_path / "a.png")
    [expected] = predict(net, [tmp_path / "a.png"])

    facts = {entry.key: entry.value for entry in onnx.load(tmp_path / "out" / "model.onnx").metadata_props}
    height, width = json.loads(facts["image"])
    mean, std, labels = (json.loads(facts[key]) for key in ("mean", "std", "labels"))
    picture = Image.open(tmp_path / "a.png").convert({"RGB": "RGB", "grey": "L"}[facts["colour"]])
    pixels = np.asarray(picture.resize((width, height)), np.float32).reshape(height, width, -1)
    x = ((pixels / 255 - np.array(mean)) / np.array(std)).transpose(2, 0, 1)[None].astype(np.float32)
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx", providers=["CPUExecutionProvider"])
    [logits] = session.run(None, {session.get_inputs()[0].name: x})[0]
    shares = np.exp(logits) / np.exp(logits).sum()
    assert dict(zip(labels, shares, strict=True)) == pytest.approx(dict(expected.classes), abs=1e-5)


@pytest.mark.parametrize(("right", "total"), [(0, 5), (5, 5), (1, 3), (37, 50), (999, 1000)])
def test_wilsons_interval_solves_its_equation(right, total):
    """Its limits are the shares p for which the observed share is 1.96 deviations of p away."""
    z = NormalDist().inv_cdf(0.975)
    low, high = wilson(right, total)
    assert 0 <= low <= right / total <= high <= 1
    for limit in (low, high):
        distance = abs(right / total - limit)
        assert distance == pytest.approx(z * (limit * (1 - limit) / total) ** 0.5, abs=1e-9)
