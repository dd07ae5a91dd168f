"""The split belongs to the run: folders that grow, files that move, and numbers that count no trained image twice."""

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from idarts import InputError, evaluate, export, load, train
from idarts.data import load as load_data
from idarts.data import read_split
from idarts.data.content import clean, digests, restore, used

SIZES = {"depth": 1, "channels": 4, "batch": 16, "epochs": 1}
FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_1_0"


def add(folder, names, seed):
    """Noisy pictures, dark or bright, one file for each name such as cat/1.png."""
    random = np.random.default_rng(seed)
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 150, (12, 12, 3)) + (0 if "cat" in name else 100)
        Image.fromarray(pixels.astype(np.uint8)).save(file)


@pytest.fixture
def pets(tmp_path):
    folder = tmp_path / "my pets"
    add(folder, [f"{kind}/{place:03}.png" for kind in ("cat", "dog") for place in range(50)], 0)
    return folder


def trained_files(run):
    """The names of the files in the record, by the bytes of the present files."""
    split = read_split(run / "split.safetensors")
    return {int(digest) for digest in split.train}


def all_digests(folder):
    data = load_data(f"folder:{folder}", hold_out=0)
    return dict(zip(data.train.files, digests(data.train).tolist(), strict=True))


def test_a_folder_that_has_grown_is_tested_on_images_never_trained_on(pets, tmp_path, idarts):
    run = tmp_path / "run"
    done = train("nas-bench-201:0", f"folder:{pets}", out=run, **SIZES)
    # New files come before, between and after the old ones, so that a split by seed would be another one.
    add(pets, [f"cat/{place:03}b.png" for place in range(0, 50, 3)] + [f"dog/a{place}.png" for place in range(13)], 1)
    seen, now = trained_files(run), all_digests(pets)
    by_seed = load_data(f"folder:{pets}").test
    assert sum(now[file] in seen for file in by_seed.files) > 5  # what today's seed would have called test images
    asked = idarts("evaluate", run)
    assert (asked.returncode, asked.err) == (0, "")
    found = json.loads((run / "evaluation.json").read_text())
    assert found["data"]["images"] == 20 + 17 + 13  # its own test images, and all new ones
    assert found["data"]["left_out"] == 80
    assert "50 test images of folder:" in asked.out
    assert "80 images that it was trained on were left out." in asked.out
    assert done.accuracy is not None
    everything = json.loads(idarts("evaluate", run, "--part", "all", "--json").out)["data"]
    assert (everything["images"], everything["trained_on"]) == (130, 80)
    again = json.loads(idarts("evaluate", run, "--part", "train", "--json").out)["data"]
    assert again["images"] == 80


def test_an_evaluation_needs_no_split_so_a_class_may_have_one_image(pets, folder, tmp_path, idarts):
    run, new = tmp_path / "run", tmp_path / "new"
    train("nas-bench-201:0", f"folder:{pets}", out=run, **SIZES)
    add(new, ["cat/1.png", *(f"dog/{place}.png" for place in range(4))], 5)
    asked = idarts("evaluate", run, "--data", f"folder:{new}", "--json")
    assert (asked.returncode, asked.err) == (0, "")
    assert [one["images"] for one in json.loads(asked.out)["classes"]] == [1, 4]
    (run / "model" / "split.safetensors").unlink()
    asked = idarts("evaluate", run, "--data", f"folder:{new}", "--json", "--part", "all")
    assert json.loads(asked.out)["data"]["images"] == 5
    asked = idarts("evaluate", run, "--data", f"folder:{new}")  # which images were trained on is not known
    assert "only one image of the class 'cat'" in asked.err


def test_renamed_and_moved_files_are_known_by_their_bytes(pets, tmp_path, idarts):
    run = tmp_path / "run"
    train("nas-bench-201:0", f"folder:{pets}", out=run, **SIZES)
    first = json.loads(idarts("evaluate", run, "--json").out)
    moved = tmp_path / "elsewhere"
    for place, file in enumerate(sorted(pets.rglob("*.png"), reverse=True)):
        target = moved / file.parent.name / "deeper" / f"{place:04}.PNG"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, target)
    gone = idarts("evaluate", run)
    assert gone.returncode == 2
    assert f"the data of {run} cannot be read" in gone.err
    assert gone.err.endswith("give it with --data\n")
    assert gone.err.count("\n") == 1
    second = json.loads(idarts("evaluate", run, "--data", f"folder:{moved}", "--json").out)
    assert second["data"]["images"] == first["data"]["images"] == 20
    assert second["accuracy"] == first["accuracy"]
    assert second["loss"] == pytest.approx(first["loss"], rel=1e-6)


def test_the_accuracy_of_a_training_is_that_of_its_evaluation(pets, tmp_path, monkeypatch, idarts):
    monkeypatch.chdir(tmp_path)
    done = train("nas-bench-201:0", "folder:my pets", out="run", **SIZES)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")  # the data is found from any directory
    found = json.loads(idarts("evaluate", "../run", "--json").out)
    assert found["accuracy"] == pytest.approx(done.accuracy)
    assert found["interval"] == json.loads(Path("../run/result.json").read_text())["test"]["interval"]
    model = json.loads(idarts("evaluate", "../run/model", "--json", "--out", "new/folder").out)
    assert model["accuracy"] == found["accuracy"]


def test_a_copy_of_a_training_image_is_no_test_image(pets, tmp_path):
    for part, kind in (("train", "cat"), ("train", "dog"), ("test", "cat"), ("test", "dog")):
        files = sorted((pets / kind).iterdir())
        for file in files[:30] if part == "train" else files[20:]:  # ten of each class in both
            target = tmp_path / "parts" / part / kind / f"{part}-{file.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    train("nas-bench-201:0", f"folder:{tmp_path / 'parts'}", out=tmp_path / "run", **SIZES)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["test"]["images"] == 40
    assert result["data"]["parts"]["test"]["rule"] == {"left out, as trained on": 20}
    data = load_data(f"folder:{tmp_path / 'parts'}")
    found = evaluate(load(tmp_path / "run"), data)
    assert (found["data"]["images"], found["data"]["left_out"]) == (40, 20)


def test_images_of_the_search_are_no_test_images_of_the_training(pets, tmp_path, idarts):
    sizes = ("--depth", 1, "--channels", 4, "--batch", 8, "--selection.rule", "argmax")
    search = ("search", "--space", "nas-bench-201", "--data", f"folder:{pets}", "--rounds", 1)
    asked = idarts(*search, *sizes, "--out", tmp_path / "search")
    assert asked.returncode == 0, asked.err
    searched = read_split(tmp_path / "search" / "split.safetensors")
    assert (len(searched.train), len(searched.valid)) == (40, 40)
    add(pets, [f"{kind}/{place:03}c.png" for kind in ("cat", "dog") for place in range(30)], 2)
    train(tmp_path / "search", f"folder:{pets}", out=tmp_path / "run", **SIZES)
    split = read_split(tmp_path / "run" / "split.safetensors")
    assert set(split.before) == set(searched.seen)
    assert not set(split.test) & set(searched.seen)
    assert len(split.test) < 32  # by the seed alone it would be a fifth of all 160


def test_a_training_resumes_on_its_own_images_in_a_folder_that_has_grown(pets, tmp_path):
    settings = {**SIZES, "epochs": 3, "log_steps": 2, "valid": 0.25}
    whole = train("nas-bench-201:0", f"folder:{pets}", out=tmp_path / "whole", **settings)

    def stop(record, _):
        if record.number == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train("nas-bench-201:0", f"folder:{pets}", out=tmp_path / "run", on_round=stop, **settings)
    add(pets, [f"cat/{place:03}b.png" for place in range(9)], 3)
    (pets / "dog" / "007.png").rename(pets / "dog" / "zoe.png")
    resumed = train("nas-bench-201:0", f"folder:{pets}", out=tmp_path / "run", resume=True, **settings)
    assert resumed.accuracy == whole.accuracy
    for one, other in zip(whole.net.parameters(), resumed.net.parameters(), strict=True):
        assert torch.equal(one, other)
    splits = [(tmp_path / name / "model" / "split.safetensors").read_bytes() for name in ("whole", "run")]
    assert splits[0] == splits[1]


def test_equal_images_in_different_classes_are_warned_of_and_keep_their_labels(pets, tmp_path):
    for place in range(10):
        shutil.copy(pets / "cat" / f"{place:03}.png", pets / "dog" / f"{place}.png")

    def stop(record, _):
        signal.raise_signal(signal.SIGINT)

    words, settings = ("nas-bench-201:0", f"folder:{pets}"), SIZES | {"out": tmp_path / "run", "valid": 0.5}
    message = r"equal images in different classes: \d, such as .*/cat/00\d.png and .*/dog/\d.png; correct their labels"
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match=message):
        train(*words, on_round=stop, **settings)
    before = read_split(tmp_path / "run" / "split.safetensors")
    add(pets, ["cat/new.png"], 3)
    shutil.copy(pets / "cat" / "020.png", pets / "dog" / "zoe.png")  # what was clear before
    with pytest.warns(UserWarning, match="equal images in different classes"):
        train(*words, resume=True, **settings)  # else the data would count as changed
    restored = restore(load_data(f"folder:{pets}"), before)
    labels = [restored.train.labels, restored.valid.labels, restored.test.labels]
    assert torch.cat(labels).tolist() == before.labels.tolist()


def test_records_without_labels_are_still_read(pets, tmp_path):
    data = load_data(f"folder:{pets}")
    _, now = clean(data, used(data.train))
    (tmp_path / "old").write_bytes(replace(now, labels=now.labels[:0]).to_bytes())
    restored = restore(load_data(f"folder:{pets}", seed=3), read_split(tmp_path / "old"))
    assert torch.equal(restored.train.labels, data.train.labels)
    (tmp_path / "bad").write_bytes(replace(now, labels=now.labels[:-1]).to_bytes())
    with pytest.raises(InputError, match=r"bad is damaged \(labels of other images\)"):
        read_split(tmp_path / "bad")


def test_a_training_whose_images_are_gone_is_not_resumed(pets, tmp_path):
    def stop(record, _):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train("nas-bench-201:0", f"folder:{pets}", out=tmp_path / "run", on_round=stop, **SIZES | {"epochs": 2})
    for file in sorted((pets / "cat").iterdir())[:10]:
        file.unlink()
    with pytest.raises(InputError, match=r"of the 80 train images of the run are gone or changed; put them back"):
        train("nas-bench-201:0", f"folder:{pets}", out=tmp_path / "run", resume=True, **SIZES | {"epochs": 2})


def test_arrays_are_known_by_their_pixels(tmp_path):
    random = np.random.default_rng(0)
    x, y = random.integers(0, 256, (90, 8, 8), dtype=np.uint8), np.arange(90) % 3
    train("nas-bench-201:0", (x[:60], y[:60]), out=tmp_path / "run", **SIZES)
    net, order = load(tmp_path / "run"), random.permutation(90)
    found = evaluate(net, load_data((x[order], y[order])))
    assert (found["data"]["images"], found["data"]["left_out"]) == (12 + 30, 48)
    data = load_data((x, y), hold_out=0)
    kept = np.isin(digests(data.train), net.split.train)
    with pytest.raises(InputError, match="the network was trained on all 48 images of arrays; give --data with other"):
        evaluate(net, load_data((x[kept], y[kept]), hold_out=0))


def test_data_from_python_has_no_address(tmp_path, idarts):
    x, y = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8), np.arange(40) % 2
    train("nas-bench-201:0", (x, y), out=tmp_path / "run", **SIZES)
    asked = idarts("evaluate", tmp_path / "run")
    assert (asked.returncode, asked.err.count("\n")) == (2, 1)
    assert "was trained on data from Python; give --data" in asked.err


def test_an_exported_network_keeps_its_record(pets, tmp_path):
    train("nas-bench-201:0", f"folder:{pets}", out=tmp_path / "run", **SIZES)
    export(load(tmp_path / "run"), tmp_path / "exported")
    found = evaluate(load(tmp_path / "exported"), load_data(f"folder:{pets}", image=32))
    assert (found["data"]["images"], found["data"]["left_out"]) == (20, 80)


def test_images_that_do_not_fit_in_memory_are_known_too(pets, tmp_path):
    lazy = load_data(f"folder:{pets}", memory=1000)
    assert not hasattr(lazy.train, "images")
    train("nas-bench-201:0", lazy, out=tmp_path / "run", **SIZES)
    found = evaluate(load(tmp_path / "run"), load_data(f"folder:{pets}", memory=1000, seed=4))
    assert (found["data"]["images"], found["data"]["left_out"]) == (20, 80)


def test_a_record_of_files_cannot_be_compared_with_arrays(pets, tmp_path):
    train("nas-bench-201:0", f"folder:{pets}", out=tmp_path / "run", **SIZES)
    pixels = load_data(f"folder:{pets}", hold_out=0).train
    arrays = load_data((pixels.images.numpy(), pixels.labels.numpy()), classes=("cat", "dog"))
    with pytest.warns(UserWarning, match="images that it was trained on cannot be recognised"):
        assert evaluate(load(tmp_path / "run"), arrays)["data"]["left_out"] is None


def test_a_damaged_record_is_one_line(tmp_path, folder):
    for content in (b"", b"no record", (folder / "model.safetensors").read_bytes()):
        (folder / "split.safetensors").write_bytes(content)
        with pytest.raises(InputError, match=r"split\.safetensors is damaged") as caught:
            load(folder)
        assert "\n" not in str(caught.value)


def test_fifty_thousand_images_are_a_small_record():
    pixels = np.random.default_rng(0).integers(0, 256, (50_000, 4, 4), dtype=np.uint8)
    data = load_data((pixels, np.arange(50_000) % 10), hold_out=0)
    content = used(data.train).to_bytes()
    assert len(content) < 50_000 * 12 + 1000


def test_networks_of_0_1_0_are_still_evaluated(tmp_path, idarts):
    shutil.copytree(FIXTURES / "train-finished", tmp_path / "old")
    asked = idarts("evaluate", tmp_path / "old", "--json")
    assert asked.returncode == 0, asked.err
    found = json.loads(asked.out)
    assert found["data"]["left_out"] is None
    before = json.loads((tmp_path / "old" / "result.json").read_text())
    assert found["accuracy"] == pytest.approx(before["accuracy"])
