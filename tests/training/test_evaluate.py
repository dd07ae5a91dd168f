"""`idarts evaluate`: the numbers, the files it leaves, the page, and every mistake a user can make."""

import base64
import io
import json
import os
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, top_k_accuracy_score

from idarts import InputError
from idarts.data import load as load_data
from idarts.data.raw import Raw
from idarts.engine.intervals import wilson
from idarts.pages.evaluation import page
from idarts.pages.watch.site import Site
from idarts.training import card_for, data_for, evaluate, load, save
from idarts.training.evaluation import MISTAKES, Mistake, examine


def by_hand(net, part):
    """Probabilities from the stored pixels, with numpy."""
    x = (part.images.numpy() / 255 - np.reshape(net.card.mean, (1, -1, 1, 1))) / np.reshape(net.card.std, (1, -1, 1, 1))
    with torch.no_grad():
        return torch.softmax(net(torch.from_numpy(x).float()).double(), dim=1).numpy()


@pytest.mark.parametrize("part", ["test", "train"])
def test_the_numbers_are_scikit_learns(digits_folder, part):
    net = load(digits_folder)
    data = load_data("digits")
    found = evaluate(net, data, part, batch=77)
    chosen = getattr(data, part)
    probabilities, labels = by_hand(net, chosen), chosen.labels.numpy()
    predicted = probabilities.argmax(axis=1)
    assert 0.2 < found["accuracy"] < 0.99  # otherwise hardly anything is compared
    about = {"source": "digits", "part": part, "images": len(labels), "image": [8, 8]}
    assert found["data"] == {**about, "left_out": None, "trained_on": None}  # it was saved without a record
    assert found["accuracy"] == accuracy_score(labels, predicted)
    assert found["top5"] == pytest.approx(top_k_accuracy_score(labels, probabilities, k=5))
    assert found["loss"] == pytest.approx(log_loss(labels, probabilities), rel=1e-5)
    assert found["confusion"] == confusion_matrix(labels, predicted, labels=range(10)).tolist()
    assert sum(one["count"] for one in found["calibration"]["bins"]) == len(labels)
    assert sum(one["images"] for one in found["classes"]) == len(labels)
    json.dumps(found, allow_nan=False)


def test_the_images_of_mistakes_are_those_of_the_data_the_most_confident_first(digits_folder):
    net, part = load(digits_folder), load_data("digits").test
    probabilities, labels = by_hand(net, part), part.labels.numpy()
    wrong = np.flatnonzero(probabilities.argmax(axis=1) != labels)
    ranked = wrong[np.argsort(-probabilities[wrong].max(axis=1), kind="stable")][:MISTAKES]
    _, mistakes = examine(net, load_data("digits"), batch=77)
    assert len(mistakes) == len(ranked) > 3
    for one, place in zip(mistakes, ranked, strict=True):
        assert torch.equal(one.image, part.images[place])
        assert (one.label, one.predicted) == (str(labels[place]), str(probabilities[place].argmax()))
        assert one.confidence == pytest.approx(probabilities[place].max(), rel=1e-4)


def test_images_of_another_size_are_refused(digits_folder):
    """They would pass through the network, and images of its training would count as test images."""
    expected = r"digits has images of 16 × 16, but the network needs 8 × 8; load it with load\(…, image=8\)"
    with pytest.raises(InputError, match=expected):
        evaluate(load(digits_folder), load_data("digits", image=16))


def test_mistakes_are_shown_as_pictures(facts):
    images = torch.randint(256, (3, 3, 20, 30), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    html = page(facts(3), "model", [Mistake(image, "<cat>", "dog", 0.987) for image in images])
    alt = "An image of &lt;cat&gt;, predicted as dog"
    shown = re.findall(rf'<img src="data:image/png;base64,([^"]+)" alt="{alt}">', html)
    for image, text in zip(images, shown, strict=True):
        pixels = np.array(Image.open(io.BytesIO(base64.b64decode(text))))
        assert np.array_equal(pixels, image.permute(1, 2, 0).numpy())
    assert "98.7 %</span>" in html


def test_images_are_normalised_as_in_training_not_as_the_data_say(tmp_path, digits_folder):
    """Other statistics on the card, other outputs: those of the data must not be used."""
    data = load_data("digits")
    net = load(digits_folder)
    other = load(digits_folder)
    other.card = replace(net.card, mean=(0.0,), std=(1.0,))
    assert evaluate(net, data)["loss"] != pytest.approx(evaluate(other, data)["loss"], rel=1e-3)


def test_the_command_leaves_results_and_a_page(idarts, digits_folder, tmp_path):
    done = idarts("evaluate", digits_folder, "--data", "digits")
    assert (done.returncode, done.err) == (0, "")
    found = json.loads((digits_folder / "evaluation.json").read_text())
    assert found == json.loads(json.dumps(evaluate(load(digits_folder), load_data("digits"))))
    assert f"accuracy {100 * found['accuracy']:.1f} %" in done.out
    assert f"calibration error {100 * found['calibration']['error']:.1f} %" in done.out
    html = (digits_folder / "evaluation.html").read_text()
    assert f"{100 * found['accuracy']:.1f} %" in html
    assert html.count("<tr>") >= 10 + 10
    for row in found["confusion"]:
        for count in row:
            assert count == 0 or f">{count}</td>" in html
    elsewhere = tmp_path / "not" / "there yet"
    again = idarts("evaluate", digits_folder, "--data", "digits", "--json", "--out", elsewhere)
    assert json.loads(again.out) == found
    assert {file.name for file in elsewhere.iterdir()} == {"evaluation.json", "evaluation.html"}


def test_a_runs_folder_gets_the_results_itself(idarts, tiny, tmp_path):
    net, card = tiny("nas-bench-201", channels=1, classes=10)
    save(tmp_path / "run" / "model", net, card_for(load_data("digits"), card.architecture, card.macro))
    assert idarts("evaluate", tmp_path / "run", "--data", "digits").returncode == 0
    assert {file.name for file in (tmp_path / "run").iterdir()} == {"model", "evaluation.json", "evaluation.html"}


def noise_data(classes, channels=3, names=None, size=8):
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (3 * classes, size, size, channels), dtype=np.uint8)
    return (x, np.arange(3 * classes) % classes), names


def test_data_that_do_not_fit(tiny, tmp_path):
    net, card = tiny("nas-bench-201")
    for arguments, message in (
        ((5,), "arrays has 5 classes, but the network knows 4; use data with the classes of its training"),
        ((4, 1), "arrays has images of 1 channel, but the network needs 3"),
    ):
        source, _ = noise_data(*arguments)
        with pytest.raises(InputError, match=re.escape(message)):
            data_for(card, source)
    with pytest.raises(InputError, match="arrays has images of 8 × 8, but the network needs 6 × 10"):
        data_for(replace(card, image=(6, 10)), noise_data(4)[0])
    with pytest.warns(UserWarning, match=r"other names than the network's \('0' for 'class 0'\)"):
        assert data_for(card, noise_data(4)[0]).train.shape == (3, 8, 8)
    with pytest.warns(UserWarning, match="other names"):
        assert data_for(card, noise_data(4, size=20)[0]).train.shape == (3, 8, 8)  # resized
    net.card = replace(card, macro=None, labels=("one", "two"))
    with pytest.raises(InputError, match="4 outputs for 2 labels"):
        evaluate(net, load_data(noise_data(4)[0]))


@pytest.mark.filterwarnings("error")
def test_classes_are_matched_by_name_whatever_its_case(tiny):
    _, card = tiny("nas-bench-201")
    card = replace(card, labels=("coarse", "\u00e9tage", "fine", "wide"))  # é is one character
    names = ("Wide", "coarse", "e\u0301tage", "fine")  # é is two characters, as on a Mac
    x, y = noise_data(4)[0]
    data = data_for(card, Raw({"train": (x, y), "test": (x, y)}, names))
    assert data.classes == card.labels
    assert data.train.labels.tolist() == data.test.labels.tolist() == [3, 0, 1, 2] * 3


def test_the_commands_mistakes_are_one_line(idarts, folder, digits_folder, tmp_path):
    labels = tmp_path / "unlabelled.npz"
    np.savez(labels, x_train=np.zeros((6, 8, 8), dtype=np.uint8))
    for arguments, message in (
        ((folder, "--data", "digits"), "has images of 1 channel, but the network needs 3"),
        ((digits_folder, "--data", "cifar11"), "there is no folder, file or data source 'cifar11'"),
        ((digits_folder, "--data", f"npz:{labels}"), "unlabelled.npz"),
        ((digits_folder, "--data", "cifar10", "--data-root", tmp_path / "no"), "does not exist"),
        ((digits_folder, "--data", "digits", "--part", "valid"), "digits has no valid images, only test and train"),
        ((digits_folder, "--data", "digits", "--out", labels), "is not a folder that can be written to"),
        ((digits_folder, "--data", "digits", "--batch", 0), "batch size is 0"),
        ((digits_folder, "--data", "digits", "--device", "warp"), "device is 'warp'"),
        ((tmp_path / "no", "--data", "digits"), "is not a folder"),
        ((digits_folder,), "does not say where its data is; give --data"),
        ((), "missing RUN"),
    ):
        done = idarts("evaluate", *arguments)
        assert done.returncode == 2, done
        assert message in done.err
        assert done.err.count("\n") == 1
    assert not (digits_folder / "evaluation.json").exists()


def test_the_page_escapes_what_users_named_and_needs_nothing_from_outside(facts):
    html = page(facts(3, "<script>{}</script>"), "runs/my model")
    assert html.count("<script") == 1  # that of all pages
    assert "&lt;script&gt;0&lt;/script&gt;" in html
    assert "&lt;i&gt;wide" in html
    assert "idarts predict &#39;runs/my model&#39; image.png" in html
    assert "-o &#39;my model-onnx&#39; --format onnx" in html
    assert not re.search(r"(?:src|href)=\"(?!data:)", html)


@pytest.mark.parametrize(("classes", "table"), [(2, True), (20, True), (21, False), (200, False)])
def test_few_classes_are_a_table_and_many_a_picture(facts, classes, table):
    html = page(facts(classes), "model")
    assert ('class="matrix"' in html) == table
    assert ("data:image/png" in html) != table
    assert len(html) < 200_000


def test_a_faultless_network_has_no_mistakes_to_show(facts):
    found = facts(3)
    found["confusion"] = [[5, 0, 0], [0, 5, 0], [0, 0, 5]]
    assert "No mistakes." in page(found, "model")


def test_the_page_is_named_after_the_data_and_not_after_its_folders(facts):
    html = page(facts(3), "model")
    assert "<title>deep · choice evaluated</title>" in html


def test_every_accuracy_has_its_interval(idarts, digits_folder):
    found = json.loads(idarts("evaluate", digits_folder, "--data", "digits", "--json").out)
    assert found["interval"] == [pytest.approx(limit) for limit in wilson(round(found["accuracy"] * 359), 359)]
    shown = idarts("evaluate", digits_folder, "--data", "digits").out
    low, high = found["interval"]
    assert f"(95 % interval {100 * low:.1f}–{100 * high:.1f} %)" in shown
    assert shown.count("95 % interval") == 3  # of the whole, of the classes, of the bins


def test_names_that_are_not_utf8(idarts, tmp_path):
    """Such as those from an old zip file, in Latin-1: of a class, of the data, of the run."""
    data, run = (tmp_path / os.fsdecode(name) for name in (b"v\xe9lo", b"r\xe9sultat"))
    cafe = os.fsdecode(b"caf\xe9")
    for place in range(10):
        file = data / (cafe, "bar")[place % 2] / f"{place}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 20 * place, np.uint8)).save(file)
    sizes = ("--image", 8, "--depth", 1, "--channels", 2, "--epochs", 1, "--batch", 4, "--checkpoint-rounds", 9)
    for words in (
        ("train", "nas-bench-201:0", "--data", f"folder:{data}", *sizes, "--out", run),
        ("report", run),
        ("evaluate", run),
        ("predict", run, data, "--jsonl", tmp_path / "classes.jsonl"),
    ):
        done = idarts(*words)
        assert done.returncode == 0, done.err
    assert load(run).card.labels == ("bar", cafe)
    assert json.loads((run / "evaluation.json").read_text())["classes"][1]["label"] == cafe
    assert "caf\\udce9" in (run / "evaluation.html").read_text()
    assert "v\\udce9lo" in (run / "report.html").read_text()
    assert b"v\\udce9lo" in Site([run]).news(0)
