"""Prediction from real image files: the same pixels, the same normalisation, the same classes as by hand."""

import csv
import json
import math
import os
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch
from PIL import Image

from idarts import InputError
from idarts.data import Batches
from idarts.data import load as load_data
from idarts.data.pictures import read_picture
from idarts.training import Card, load, predict, save
from idarts.training.prediction import read_image


def triangles(old, new):
    """The matrix that brings a line of `old` pixels to `new` ones: a triangle around each new pixel's centre."""
    width = max(old / new, 1)
    centres = (np.arange(new)[:, None] + 0.5) * old / new
    weights = np.maximum(0, 1 - np.abs(np.arange(old) + 0.5 - centres) / width)
    return weights / weights.sum(axis=1, keepdims=True)


def by_hand(net, file):
    """Probabilities from Pillow and numpy alone: stretch, scale, normalise, softmax."""
    card = net.card
    with Image.open(file) as picture:
        pixels = np.asarray(picture.convert("RGB"), dtype=np.float64)
    rows, columns = (triangles(*sides) for sides in zip(pixels.shape, card.image, strict=False))
    rgb = Image.fromarray(np.einsum("ih,jw,hwc->ijc", rows, columns, pixels).round().astype(np.uint8))
    grey = card.in_channels == 1
    pixels = np.asarray(rgb.convert("L") if grey else rgb, dtype=np.float64).reshape(*card.image, -1)
    x = (pixels / 255 - np.array(card.mean)) / np.array(card.std)
    with torch.no_grad():
        values = net(torch.from_numpy(x.transpose(2, 0, 1)[None]).float())[0].tolist()
    powers = [math.exp(value) for value in values]
    return {label: power / sum(powers) for label, power in zip(card.labels, powers, strict=True)}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", ["rgb.png", "grey.png", "palette.gif", "fits.png"])
def test_probabilities_are_those_by_hand(tmp_path, tiny, pictures, name, channels):
    net = load(save(tmp_path / "model", *tiny("darts", channels=channels)))
    file = next(path for path in pictures if path.name == name)
    [found] = predict(net, [file], top=4)
    expected = by_hand(net, file)
    assert found.problem is None
    assert [label for label, _ in found.classes] == sorted(expected, key=expected.get, reverse=True)
    for label, share in found.classes:
        assert share == pytest.approx(expected[label], abs=1e-5)
    assert sum(share for _, share in found.classes) == pytest.approx(1, abs=1e-6)


def test_files_are_read_as_those_of_a_folder_of_training_images(tiny, pictures):
    _, card = tiny("darts")
    assert len(pictures) == 8
    for file in pictures:
        assert torch.equal(read_image(file, card), read_picture(file, 8)), file.name


@pytest.mark.parametrize("channels", [1, 3])
def test_files_are_read_as_the_same_pixels_in_an_array(tmp_path, tiny, channels):
    """So that `predict` and `evaluate` see the same where images are resized."""
    pixels = np.random.default_rng(1).integers(0, 256, (6, 13, 13, channels), dtype=np.uint8)
    data = load_data((pixels, np.arange(6) % 2), image=8, hold_out=0)
    _, card = tiny("darts", channels=channels)
    for place, one in enumerate(pixels):
        Image.fromarray(one.squeeze()).save(tmp_path / "one.png")
        assert torch.equal(read_image(tmp_path / "one.png", card), data.train.images[place])


def test_an_image_of_training_is_seen_as_in_training(tmp_path, tiny, pictures):
    """Through files and a folder of classes, as a person keeps them, with statistics of its own."""
    for place, file in enumerate(pictures):
        target = tmp_path / "data" / "train" / ("ab"[place % 2]) / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    data = load_data(f"folder:{tmp_path / 'data'}", image=8, hold_out=0)
    net, plain = tiny("nas-bench-201", classes=2)
    card = Card(plain.architecture, plain.macro, 3, (8, 8), data.mean, data.std, data.classes)
    net = load(save(tmp_path / "model", net, card))
    x, _ = next(Batches(data.train, len(data.train), shuffle=False))
    with torch.no_grad():
        expected = torch.softmax(net(x), dim=1)
    files = sorted((tmp_path / "data").rglob("*.*"))
    found = [dict(one.classes) for one in predict(net, files)]
    assert [[shares["a"], shares["b"]] for shares in found] == expected.tolist()


def test_transparent_pixels_are_white_and_turned_photos_upright(tmp_path, tiny):
    _, card = tiny("darts")
    Image.new("RGBA", (9, 9), (10, 20, 30, 0)).save(tmp_path / "clear.png")
    assert read_image(tmp_path / "clear.png", card).unique().tolist() == [255]
    wide = np.zeros((16, 32, 3), dtype=np.uint8)
    wide[:, :16] = 255  # white on the left
    turned = Image.Exif()
    turned[0x0112] = 6  # to be shown turned clockwise: white on top
    Image.fromarray(wide).save(tmp_path / "turned.jpg", exif=turned, quality=100)
    seen = read_image(tmp_path / "turned.jpg", card)
    assert int(seen[:, :3].min()) > 200
    assert int(seen[:, 5:].max()) < 50


def test_images_that_are_not_square(tmp_path, tiny):
    net, plain = tiny("darts")
    card = Card(plain.architecture, plain.macro, 3, (6, 10), plain.mean, plain.std, plain.labels)
    net = load(save(tmp_path / "model", net, card))
    Image.fromarray(np.arange(60 * 3, dtype=np.uint8).reshape(6, 10, 3)).save(tmp_path / "wide.png")
    assert read_image(tmp_path / "wide.png", card).shape == (3, 6, 10)
    [found] = predict(net, [tmp_path / "wide.png"], top=4)
    assert dict(found.classes) == pytest.approx(by_hand(net, tmp_path / "wide.png"), abs=1e-5)


def test_many_images_keep_their_order(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr("idarts.training.prediction.BATCH", 3)
    net = load(save(tmp_path / "model", *tiny("darts")))
    files = []
    for place in range(8):
        files.append(tmp_path / f"{place}.png")
        Image.new("RGB", (8, 8), (30 * place, 255 - 30 * place, 7)).save(files[-1])
    files.insert(4, tmp_path / "missing.png")
    together = list(predict(net, files))
    assert [one.file for one in together] == files
    assert together[4].problem == f"{tmp_path / 'missing.png'} does not exist"
    for one in together[:4] + together[5:]:
        [alone] = predict(net, [one.file])
        assert dict(one.classes) == pytest.approx(dict(alone.classes), abs=1e-6)


DAMAGED = {
    "empty.png": b"",
    "text.jpg": b"no image at all",
    "cut.png": None,  # made from a whole one
    "header.jpg": b"\xff\xd8\xff\xe0nonsense",
}


@pytest.mark.parametrize("name", [*DAMAGED])
def test_a_corrupt_image_is_named_in_one_line_and_the_others_go_on(tmp_path, folder, pictures, name):
    content = DAMAGED[name]
    whole = next(path for path in pictures if path.name == "rgb.png")
    bad = tmp_path / name
    bad.write_bytes(whole.read_bytes()[:300] if content is None else content)
    first, second, third = predict(load(folder), [whole, bad, whole])
    assert first.classes == third.classes != ()
    assert second.classes == ()
    assert second.problem.startswith(f"{bad} cannot be read as an image (")
    assert "\n" not in second.problem


def test_bad_requests(tmp_path, folder, tiny):
    with pytest.raises(InputError, match="top is 0"):
        list(predict(load(folder), ["x.png"], top=0))
    net, plain = tiny("darts", channels=2)
    net.card = plain
    with pytest.raises(InputError, match="images of 2 channels, which no image file has"):
        list(predict(net, ["x.png"]))


def test_the_command(idarts, folder, pictures, tmp_path):
    rgb, grey = (next(path for path in pictures if path.name == name) for name in ("rgb.png", "grey.png"))
    done = idarts("predict", folder, rgb, grey, "--top", 2)
    assert (done.returncode, done.err) == (0, "")
    first, second = done.out.splitlines()
    assert first.startswith(f"{rgb}  class ")
    assert second.startswith(f"{grey} ")
    assert second.count(" %") == 2
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"\x89PNG")
    mixed = idarts("predict", folder, bad, rgb, "--json", "--top", 9)
    assert mixed.returncode == 2
    lines = [json.loads(line) for line in mixed.out.splitlines()]
    assert lines[0]["error"].startswith(f"{bad} cannot be read")
    shares = {one["label"]: one["probability"] for one in lines[1]["classes"]}
    assert shares == pytest.approx(by_hand(load(folder), rgb), abs=1e-5)
    problem, summary = mixed.err.splitlines()
    assert problem.startswith(f"idarts: {bad} cannot be read as an image")
    assert summary == "idarts: 1 of 2 images could not be read; the others were classified"
    lost = idarts("predict", tmp_path / "lost", rgb)
    assert (lost.returncode, lost.err.count("\n")) == (2, 1)


def test_folders_and_patterns_stand_for_their_images(idarts, folder, pictures, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures" / "notes.txt").write_text("no image")
    deeper = tmp_path / "pictures" / "more [1]"
    deeper.mkdir()
    Image.new("RGB", (9, 9)).save(deeper / "z.png")
    in_folder = [json.loads(line)["file"] for line in idarts("predict", folder, "pictures", "--json").out.splitlines()]
    assert in_folder == sorted([f"pictures/{file.name}" for file in pictures] + ["pictures/more [1]/z.png"])
    matched = idarts("predict", folder, "pictures/r*.png", "pictures/**/z.png", "--json").out.splitlines()
    assert [json.loads(line)["file"] for line in matched] == [
        "pictures/rgb.png", "pictures/rgba.png", "pictures/more [1]/z.png",
    ]  # fmt: skip
    everything = idarts("predict", folder, "pictures/**", "pictures", "--json")  # each file once, and no other files
    assert everything.returncode == 0
    assert sorted(json.loads(line)["file"] for line in everything.out.splitlines()) == in_folder
    assert "notes.txt cannot be read" in idarts("predict", folder, "pictures/notes.txt").err  # it was asked for
    named = idarts("predict", folder, "pictures/more [1]/z.png")  # a name with a pattern's characters
    assert named.returncode == 0
    (tmp_path / "empty").mkdir()
    for name, message in (("*.webp", "no image file matches *.webp"), ("empty", "the folder empty holds no images")):
        done = idarts("predict", folder, name)
        assert (done.returncode, done.err.count("\n"), done.out) == (2, 1, "")
        assert message in done.err


def test_tables_and_json_lines_are_written_whole(idarts, folder, pictures, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rgb = next(path for path in pictures if path.name == "rgb.png")
    for name in ("=cmd()", "-x", "@a", "+1", 'with, "quotes"', "\x1b]0;evil\x07"):
        (tmp_path / f"{name}.png").write_bytes(rgb.read_bytes())
    (tmp_path / "bad.png").write_bytes(b"")
    files = ["./bad.png", *sorted(p.name for p in tmp_path.glob("*.png") if p.name != "bad.png")]
    asked = idarts("predict", folder, "--csv", "new/a.csv", "--jsonl", "new/a.jsonl", "--top", 2, "--", *files)
    assert asked.returncode == 2
    assert asked.err.startswith("idarts: bad.png cannot be read")
    assert asked.out == "written: new/a.csv\nwritten: new/a.jsonl\n"
    with (tmp_path / "new" / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = [json.loads(line) for line in (tmp_path / "new" / "a.jsonl").read_text().splitlines()]
    assert len(rows) == len(lines) == len(files)
    assert list(rows[0]) == ["file", "label", "probability", "label_2", "probability_2", "error"]
    assert "cannot be read" in rows[0]["error"]
    for row, line, name in zip(rows[1:], lines[1:], files[1:], strict=True):
        assert not row["file"].startswith(("=", "+", "-", "@"))
        assert row["file"].removeprefix("'") == line["file"] == name
        assert row["label"] == line["classes"][0]["label"]
        assert float(row["probability_2"]) == pytest.approx(line["classes"][1]["probability"], abs=1e-6)
    assert {file.name for file in (tmp_path / "new").iterdir()} == {"a.csv", "a.jsonl"}
    refused = idarts("predict", folder, rgb, "--csv", tmp_path / "new")
    assert (refused.returncode, refused.err.count("\n")) == (2, 1)


def test_what_is_no_file_is_written_into_and_a_link_stays_a_link(idarts, folder, pictures, tmp_path):
    pipe, link, stream = tmp_path / "pipe", tmp_path / "link", tmp_path / "stream"
    os.mkfifo(pipe)
    link.symlink_to(Path("new", "real.jsonl"))
    stream.symlink_to("/dev/null")
    received = []
    reader = Thread(target=lambda: received.append(pipe.read_text()), daemon=True)
    reader.start()
    assert idarts("predict", folder, pictures[0], "--csv", pipe, "--jsonl", link).returncode == 0
    reader.join(timeout=10)
    assert received[0].startswith("file,label,")
    assert link.is_symlink()
    assert json.loads((tmp_path / "new" / "real.jsonl").read_text())["file"] == str(pictures[0])
    assert idarts("predict", folder, pictures[0], "--csv", stream, "--jsonl", link).returncode == 0
    assert stream.is_symlink()
    assert link.is_symlink()


def test_no_name_speaks_to_the_terminal(idarts, folder, pictures, tmp_path):
    rgb = next(path for path in pictures if path.name == "rgb.png")
    names = [tmp_path / name for name in ("\x1b[2Jgone.png", "\udcffbytes.png", "\x9b31m.png")]
    for file in names[:2]:
        file.write_bytes(rgb.read_bytes())
    names[2].write_bytes(b"damaged")
    done = idarts("predict", folder, *names)
    assert done.returncode == 2
    assert not {"\x1b", "\x9b", "\udcff"} & set(done.out + done.err)
    assert "\\x1b[2Jgone.png" in done.out
    as_json = idarts("predict", folder, tmp_path / "\udcffbytes.png", "--json")
    assert json.loads(as_json.out)["file"] == str(tmp_path / "\udcffbytes.png")
