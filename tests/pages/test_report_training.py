"""The report of a training, as `idarts train` leaves it and as a kill left it."""

import json
import re
import shutil

import pytest

from idarts.cli import main
from idarts.pages import write_report
from idarts.training import train

CELL = "|nor_conv_1x1~0|+|none~0|skip_connect~1|+|skip_connect~0|none~1|avg_pool_3x3~2|"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("training") / "run"
    train(CELL, "digits", out=out, depth=1, channels=4, batch=128, epochs=3, log_steps=3)
    return out


def text_of(html):
    return re.sub(r"\s+", " ", re.sub(r"<(style|script)>.*?</\1>|<[^>]+>", " ", html, flags=re.DOTALL))


def test_a_finished_training(run, capsys):
    assert main(["report", str(run)]) == 0
    html = (run / "report.html").read_text()
    text, accuracy = text_of(html), json.loads((run / "result.json").read_text())["accuracy"]
    assert capsys.readouterr().out.strip() == str(run / "report.html")
    for words in (
        "Training finished",
        "trained from scratch on digits",
        "3 of 3",
        "time per epoch",
        f"{100 * accuracy:.1f} %",
        CELL,
    ):
        assert words in text
    assert f"idarts predict {run}" in text
    assert "Accuracy on digits over epochs 0.273 to 3:" in html
    assert "α" not in text
    assert "hypergradient" not in text.lower()


def test_held_out_accuracies_are_joined_by_a_line(run):
    """They are known at the end of epochs only."""
    html = (write_report(run)).read_text()
    figure = next(part for part in html.split("<figure") if "<h3>Accuracy on digits</h3>" in part)
    lines = re.findall(r'class="line s2" d="([^"]+)"', figure.partition("</figcaption>")[2])
    assert len(lines) == 1
    assert lines[0].count("L") == 2  # three epochs


def test_a_training_that_was_killed(run, tmp_path):
    out = tmp_path / "my run"
    shutil.copytree(run, out)
    (out / "result.json").unlink()
    lines = (out / "metrics.jsonl").read_text().splitlines()
    (out / "metrics.jsonl").write_text("\n".join([*lines[:5], lines[5][:20]]))
    text = text_of(write_report(out).read_text())
    assert "Training in progress nas-bench-201 trained from scratch on digits" in text
    assert "The trained architecture" in text
    assert CELL in text
    assert "metrics.jsonl is incomplete" in text
    assert "time left at this pace" in text
    assert "idarts train --resume --out &#39;" in text or "idarts train --resume --out '" in text
    assert "idarts predict" not in text


def test_the_held_out_accuracy_of_an_unfinished_training_has_its_interval(run, tmp_path):
    """Logs of earlier versions do not say how many images it was measured on."""
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["valid_images"] == 359
    text = text_of(write_report(tmp_path / "run").read_text())
    assert f"held-out accuracy, with its 95 % interval {100 * last['valid_accuracy']:.1f} % (" in text
    assert re.search(r"% \(\d+\.\d–\d+\.\d %\)", text)
    old = {name: value for name, value in last.items() if name not in ("valid_images", "digest")}
    (tmp_path / "run" / "metrics.jsonl").write_text(json.dumps(old) + "\n")
    text = text_of(write_report(tmp_path / "run").read_text())
    assert f"held-out accuracy {100 * last['valid_accuracy']:.1f} % " in text
    assert "interval" not in text
