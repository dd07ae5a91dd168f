"""Exported files compute what the network computes, for any number of images, and nothing is overwritten unasked."""

import json
import os
import re

import onnx
import onnxruntime
import pytest
import torch

from idarts import IdartsError, InputError, derive
from idarts.training import FORMATS, export, load, save


def noise(count):
    return torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(count))


def onnx_runner(folder):
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    return lambda x: torch.from_numpy(session.run(["logits"], {"images": x.numpy()})[0])


RUNNERS = {
    "safetensors": load,
    "onnx": onnx_runner,
    "torch-export": lambda folder: torch.export.load(folder / "model.pt2").module(),
}


@torch.no_grad()
def largest_difference(net, folder, name):
    other = RUNNERS[name](folder)
    return max(float((other(noise(count)) - net(noise(count))).abs().max()) for count in (1, 2, 5))


@pytest.mark.parametrize("space", ["nas-bench-201", "nas-bench-1shot1", "darts"])
def test_every_format_of_every_space_computes_the_same(tmp_path, tiny, space):
    net, card = tiny(space)
    net = load(save(tmp_path / "model", net, card))
    with torch.no_grad():
        assert float(net(noise(2)).std()) > 0.02  # something to differ in
    found = export(net, tmp_path / "out", [*FORMATS])
    assert [*found] == ["safetensors", "onnx", "torch-export"]
    for name, difference in found.items():
        assert difference <= 1e-4
        assert largest_difference(net, tmp_path / "out", name) <= 1e-4
    written = json.loads((tmp_path / "out" / "config.json").read_text())
    assert written.pop("digest").startswith("sha256:")
    assert written == card.to_data()
    files = {"README.md", "config.json", "model.safetensors", "model.onnx", "model.pt2"}
    assert {file.name for file in (tmp_path / "out").iterdir()} == files
    model = onnx.load(tmp_path / "out" / "model.onnx")
    onnx.checker.check_model(model)
    batch = model.graph.input[0].type.tensor_type.shape.dim[0]
    assert batch.dim_param  # a name, not a number


def test_a_module_of_ones_own_in_every_format(tmp_path, own):
    build, card = own
    net = derive(build(), card.architecture).eval()
    net = load(save(tmp_path / "model", net, card), model=build())
    made = tmp_path / os.fsdecode(b"mod\xe8le")  # a folder may have any name
    assert all(difference <= 1e-4 for difference in export(net, made, [*FORMATS]).values())
    made.rename(tmp_path / "out")
    for name in ("onnx", "torch-export"):
        assert largest_difference(net, tmp_path / "out", name) <= 1e-4


def test_one_format_alone_brings_its_configuration(tmp_path, folder):
    export(load(folder), tmp_path / "out", ["torch-export"])
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"README.md", "config.json", "model.pt2"}
    with pytest.raises(InputError, match=r"holds no model.safetensors, only model.pt2; export it with --format safe"):
        load(tmp_path / "out")


def test_nothing_is_overwritten_unasked_and_nothing_half_written(tmp_path, folder, monkeypatch):
    net = load(folder)
    export(net, tmp_path / "out")
    before = (tmp_path / "out" / "model.safetensors").read_bytes()
    with pytest.raises(InputError, match="replace it with --overwrite"):
        export(net, tmp_path / "out", ["torch-export"])
    monkeypatch.setattr("idarts.training.formats.TOLERANCE", -1.0)  # no file is good enough
    with pytest.raises(IdartsError, match=r"model\.pt2 differs from the network by \d"):
        export(net, tmp_path / "out", ["torch-export"], overwrite=True)
    with pytest.raises(IdartsError, match="differs"):
        export(net, tmp_path / "new", ["safetensors", "torch-export"])
    assert {file.name for file in tmp_path.iterdir()} == {"model", "out"}
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == before


def test_bad_requests(tmp_path, folder, tiny, monkeypatch):
    net = load(folder)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for name in (".", "..", "/"):
        with pytest.raises(InputError, match="has no name of its own; name a new folder"):
            export(net, name, overwrite=True)
    with pytest.raises(InputError, match="unknown format 'tflite'; there are safetensors, onnx, torch-export"):
        export(load(folder), tmp_path / "out", ["tflite"])
    with pytest.raises(InputError, match="the network has no card"):
        export(tiny("darts")[0], tmp_path / "out")


def test_a_model_that_cannot_be_traced_gets_one_line(tmp_path, own):
    class Odd(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(192, 4)

        def forward(self, x):
            return self.head(x.flatten(1)) if x.sum() > 0 else -self.head(x.flatten(1))

    net = Odd().eval()
    net.card = own[1]
    with pytest.raises(IdartsError, match="the network cannot be exported: ") as caught:
        export(net, tmp_path / "out", ["torch-export"])
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_what_is_missing_is_named(tmp_path, folder, monkeypatch):
    net = load(folder)
    without = "onnxscript"
    monkeypatch.setattr("idarts.training.formats.find_spec", lambda name: None if name == without else True)
    with pytest.raises(InputError, match=r"ONNX needs onnxscript: pip install 'idarts\[export\]'"):
        export(net, tmp_path / "out", ["onnx"])
    assert not (tmp_path / "out").exists()


def test_the_command(idarts, tmp_path, folder):
    done = idarts("export", folder, "-o", tmp_path / "out", "--format", "torch-export", "safetensors")
    assert (done.returncode, done.err) == (0, "")
    assert re.search(r"torch-export: written, within \d\.\de[+-]\d\d of the network's outputs", done.out)
    assert largest_difference(load(folder), tmp_path / "out", "torch-export") <= 1e-4
    again = idarts("export", folder, "-o", tmp_path / "out")
    assert again.returncode == 2
    assert again.err.count("\n") == 1
    assert "--overwrite" in again.err
