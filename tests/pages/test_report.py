"""The report of runs of every kind: whole, well-formed, escaped, and of a size that can be mailed."""

import json
import re

import pytest
from html_tree import Tree, read, runs_only_our_script
from report_runs import FOUND, NAS_BENCH_201, SHAPES, config, metrics, write_run

from idarts import cli
from idarts.arch import drawing, parse, to_data
from idarts.errors import InputError
from idarts.pages import read_run, write_report
from idarts.pages.template import policy, script
from idarts.searching.verdict import Verdict


@pytest.mark.parametrize("space", SHAPES)
def test_a_finished_run(tmp_path, space):
    found = read(write_run(tmp_path / "run", space, test={"accuracy": 0.975}))
    for shown in (
        "Search finished",
        f"{space} searched by idarts on digits",
        "100 of 100",
        "97.5 %",
        "weights.rate",
        "2.13.0",
    ):
        assert shown in found.text, shown
    for heading in ("Loss", "Accuracy", "Learning rate", "norm", "Implicit share", "Contraction", "Step γ", "Entropy"):
        assert heading in found.text, heading
    pictures = [attributes for tag, attributes in found.tags if tag == "img"]
    assert len(pictures) == sum(rows for rows, _ in SHAPES[space].values())
    assert f"idarts report {tmp_path / 'run'}" in found.text
    assert "--resume" not in found.text  # there is nothing to resume


@pytest.mark.parametrize("space", SHAPES)
def test_nothing_is_loaded_and_everything_has_a_name(tmp_path, space):
    file = write_report(write_run(tmp_path / "run", space))
    text = file.read_text(encoding="utf-8")
    written = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", text).replace(script(), "").replace(policy(), "")
    assert not re.search(r"https?:|//[a-z]|@import|url\(", written)
    for tag, attributes in Tree(text).tags:
        assert tag not in ("link", "iframe")
        assert attributes.get("src", "data:").startswith("data:")
        if tag == "img":
            assert attributes["alt"]
        if tag == "svg" and attributes.get("aria-hidden") != "true":  # the keys of legends are
            assert (attributes["role"], bool(attributes["aria-label"])) == ("img", True)


@pytest.mark.parametrize("space", ["nas-bench-201", "darts", "nas-bench-1shot1-s1"])
def test_the_cell_is_drawn_and_can_be_copied(tmp_path, space):
    pytest.importorskip("pygraphviz", reason="needs pygraphviz (idarts[draw])")
    text = write_report(write_run(tmp_path / "run", space)).read_text(encoding="utf-8")
    assert 'aria-label="The architecture as a graph"' in text
    copied = re.search(r'<pre class="copy"[^>]*>(.*?)</pre>', text, re.DOTALL)[1]
    assert copied.startswith({"nas-bench-201": "|nor_conv", "darts": "Genotype(", "nas-bench-1shot1-s1": "{"}[space])


def test_without_graphviz_it_says_so(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(drawing, "import_module", missing)
    assert "No drawing: drawing needs pygraphviz: pip install 'idarts[draw]'" in read(write_run(tmp_path / "run")).text


def test_a_run_in_progress(tmp_path):
    run = write_run(tmp_path / "my run", rounds=40, finished=False)
    found = read(run)
    assert "Search in progress" in found.text
    assert "40 of 100" in found.text
    assert "time left at this pace" in found.text
    assert f"idarts search --resume --out '{run}'" in found.text
    assert f"idarts arch draw '{NAS_BENCH_201}' -o cell.svg" in found.text


def test_a_killed_run_with_numbers_that_are_not_finite(tmp_path):
    lines = metrics(rounds=30)
    lines[3] |= {"valid_loss": float("nan"), "norm": None, "implicit_share": None, "contraction": None, "step": None}
    lines[5] |= {"train_loss": float("inf"), "contraction": 1.4}
    lines[7]["alpha"]["cell"][2][1] = float("nan")
    run = write_run(tmp_path / "run", finished=False)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run / "metrics.jsonl").write_text(text[:-200])
    found = read(run)
    assert "29 of 100" in found.text
    assert "1 round of 29 had numbers that were not finite" in found.text
    assert "diverged in 1 round" in found.text
    assert "metrics.jsonl is incomplete" in found.text
    assert "grey: not a number" in found.text
    assert "nan" not in found.text.lower()


def test_a_note_says_that_a_cell_is_hardly_decided_or_collapsed(tmp_path):
    skips = "|skip_connect~0|+|skip_connect~0|none~1|+|skip_connect~0|skip_connect~1|nor_conv_3x3~2|"
    run = write_run(tmp_path / "run", architecture=to_data(parse(skips)))
    lines = [line | {"entropy": 0.99} for line in metrics()]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = read(run)
    assert "α is still almost uniform (entropy 0.990 of 1)" in found.text
    assert "5 of the cell’s 6 operations are skip connections or none" in found.text


@pytest.mark.parametrize("today", [True, False])
def test_a_note_says_that_trials_decided_instead(tmp_path, today):
    """Also for a run of an earlier version, whose verdict gives advice and does not know of trials."""
    found = Verdict(0.9, 0.1, 6, clear=1, trials=2 if today else 0)
    trials = [{"architecture": name, "steps": 8, "loss": 2.5} for name in "ab"]
    run = write_run(tmp_path / "run", verdict=found.to_data(), trials=trials)
    text = read(run).text
    assert "α did not decide: only 1 of 6 decisions lead by more than noise; " in text
    assert "decided instead." in text
    assert "search longer" not in text
    assert "little better than a random one" not in text
    alone = write_run(tmp_path / "alone", verdict=Verdict(0.9, 0.1, 6, clear=1).to_data())
    assert "selection.rule trials. The cell may be little better than a random one." in read(alone).text


def test_fields_may_be_missing(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "metrics.jsonl").write_text('{"number": 1, "train_loss": 2.3}')
    found = read(tmp_path)
    assert "own space searched on own data" in found.text
    assert "not recorded an architecture" in found.text
    for heading in ("α over time", "Can the hypergradient", "Other measures", "Trials</h2>", "Settings", "Data"):
        assert heading not in found.text


def test_without_accuracies_the_loss_is_shown(tmp_path):
    run = write_run(tmp_path / "run")
    lines = [line | {"valid_accuracy": None, "train_accuracy": None, "valid_loss": 0.25} for line in metrics()]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = read(run)
    assert "validation loss of the supernet, mean of the last 10 rounds" in found.text
    assert "usually does better" not in found.text


def test_a_selection_is_in_the_totals_and_not_in_the_values_of_a_round(tmp_path):
    """100 rounds of 11 gradient evaluations and 0.21 seconds, then trials of 900 and 9."""
    cost = {"kind": "parameters", "target": 560000.0}
    settings = config() | {"table_measure": "cifar10_test", "cost": cost}
    more = {"gradient_evaluations": 2000.0, "seconds": 30.0, "table_accuracy": 93.456, "cost": {"reached": 559386.0}}
    run = write_run(tmp_path / "run", settings=settings, **more)
    lines = [line | {"table_accuracy": 91.0, "cost": 5.0} for line in metrics()]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = read(run).text.replace("\n", "")
    assert "rounds per second4.76gradient evaluations2,000gradient evaluations per round11gradient" in text
    assert "gradient evaluations per second66.7" in text
    assert "final architecture by the table, cifar10 test93.46 %" in text
    assert "parameters of the final network559,386 (target 560,000)" in text
    assert "Accuracy by the table, in percent: cifar10 test" in text
    assert "Cost of the network in parameters, target 560,000" in text


def test_a_round_that_was_run_again_counts_once(tmp_path):
    run = write_run(tmp_path / "run", rounds=10)
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:8] + lines[5:]))
    assert [line["number"] for line in read_run(run).rounds] == list(range(1, 11))


def test_all_that_comes_from_files_is_escaped(tmp_path):
    evil = "<script>alert(1)</script>\"'&"
    settings = config(method=evil, data=evil, space=evil) | {evil: {evil: evil}}
    run = write_run(tmp_path / "<b>run", settings=settings, data={evil: [evil]}, versions={evil: evil}, device=evil)
    lines = [line | {"alpha": {evil: [[0.0, 1.0]]}, "architecture": evil} for line in metrics(rounds=3)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "result.json").write_text(json.dumps(json.loads((run / "result.json").read_text()) | {"architecture": evil}))
    found = read(run)
    assert runs_only_our_script(found)
    assert found.text.count("<script>") > 10
    assert any(evil in attributes.get("alt", "") for _, attributes in found.tags)


def test_branches_of_a_users_own_model_are_named(tmp_path):
    settings = config("choice", choices={"block1": ["narrow", "wide", "none"], "block2": ["relu", "gelu"]})
    found = read(write_run(tmp_path / "run", "choice", settings=settings))
    assert "narrow" in found.text
    assert "option 1" not in found.text
    assert FOUND["choice"]["choices"]["block2"] in found.text
    assert "arch draw" not in found.text


def test_long_runs_stay_small(tmp_path):
    run = write_run(tmp_path / "run", "darts", rounds=12_000, every=25)
    assert write_report(run).stat().st_size < 400_000


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"config.json": None}, "is not a run folder: it has no config.json"),
        ({"config.json": "{"}, "config.json is damaged .* put it back"),
        ({"config.json": "[]"}, "config.json holds .* expected an object"),
        ({"result.json": '{"a": '}, "result.json is damaged .* delete it"),
        ({"metrics.jsonl": None}, "no rounds yet; wait for the first round, or start it"),
        ({"metrics.jsonl": ""}, "no rounds yet"),
        ({"metrics.jsonl": '{"number": 1'}, "no rounds yet"),
        ({"metrics.jsonl": '{"train_loss": 2}\n'}, "only damaged lines"),
        ({"metrics.jsonl": '{"number": 1, "alpha": {"cell": [[1], [1, 2]]}}\n'}, "line 1: alpha is .* a matrix"),
    ],
)
def test_a_damaged_run_is_one_line_of_error_and_leaves_nothing(tmp_path, capsys, damage, message):
    run = write_run(tmp_path / "run", rounds=3)
    for name, text in damage.items():
        (run / name).unlink() if text is None else (run / name).write_text(text)
    before = sorted(run.iterdir())
    with pytest.raises(InputError, match=message):
        write_report(run)
    assert cli.main(["report", str(run)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert sorted(run.iterdir()) == before


def test_a_damaged_line_is_left_out_and_named(tmp_path):
    run = write_run(tmp_path / "run", rounds=3)
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join([lines[0], lines[1].replace('"number"', '"numbr"'), lines[2]]))
    text = write_report(run).read_text()
    assert "metrics.jsonl has damaged lines, which are left out: 2." in text
    assert "metrics.jsonl lacks rounds: 2." in text


def test_the_command(tmp_path, capsys):
    run = write_run(tmp_path / "run", rounds=3)
    assert cli.main(["report", str(run)]) == 0
    assert cli.main(["report", str(run), "-o", str(tmp_path / "mine.html")]) == 0
    assert capsys.readouterr().out.split() == [str(run / "report.html"), str(tmp_path / "mine.html")]
    assert (tmp_path / "mine.html").read_bytes() == (run / "report.html").read_bytes()
    assert cli.main(["report", str(tmp_path / "none")]) == 2
    assert "does not exist; expected a run folder" in capsys.readouterr().err
    assert cli.main(["report", str(run), "-o", str(tmp_path / "new" / "mine.html")]) == 0  # folders are created
    assert (tmp_path / "new" / "mine.html").exists()
