"""A run that is followed while it is written shows the same page as one that is read at the end, and is read once."""

import json
import random

import numpy as np
import pytest
from report_runs import NAS_BENCH_201, SHAPES, config, metrics, write_run

from idarts.engine.folder import read_run
from idarts.engine.following import CHUNK, Follower, Log
from idarts.pages import page
from idarts.pages.chart import KEPT, chart, thinned
from idarts.pages.watch.feed import Feed


def followed(folder, content, draw):
    """Write a log in pieces that end anywhere, and look after each."""
    follower = Follower(folder)
    (folder / "metrics.jsonl").write_bytes(b"")
    while content:
        size = draw.randrange(1, 4000)
        with (folder / "metrics.jsonl").open("ab") as file:
            file.write(content[:size])
        content = content[size:]
        follower.look()
    return follower


@pytest.mark.parametrize("space", SHAPES)
def test_it_shows_what_the_report_shows(tmp_path, space):
    run = write_run(tmp_path / "run", space, rounds=30)
    follower = followed(run, (run / "metrics.jsonl").read_bytes(), random.Random(1))
    assert follower.problem == ""
    assert page(follower.run) == page(read_run(run))


def test_a_training_shows_what_its_report_shows(tmp_path):
    settings = {"architecture": NAS_BENCH_201, "data": "digits", "epochs": 4, "checkpoint_rounds": 1}
    run = write_run(tmp_path / "run", rounds=20, finished=False, settings=settings)
    lines = [{**line, "epoch": line["number"] / 5, "skipped": 1, "drop_path": 0.0} for line in metrics(rounds=20)]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    follower = followed(run, content, random.Random(4))
    assert page(follower.run) == page(read_run(run))
    assert "20 steps had a loss" in page(follower.run)


def test_numbers_that_are_missing_null_infinite_or_odd(tmp_path):
    run = write_run(tmp_path / "run", finished=False, rounds=9)
    lines = metrics(rounds=9)
    lines[1] |= {"norm": None, "valid_loss": None, "own": "text"}
    lines[2] |= {"norm": None, "train_loss": 1e300, "own": 3}
    del lines[3]["norm"], lines[4]["valid_loss"]
    lines[5] |= {"train_accuracy": True, "own": 10**400, "skipped": 2}
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    follower = followed(run, content, random.Random(2))
    assert page(follower.run) == page(read_run(run))
    assert "1 round of 9 had numbers that were not finite" in page(follower.run)


def test_a_round_that_ran_again_replaces_what_followed(tmp_path):
    run = write_run(tmp_path / "run", rounds=40)
    lines = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    for cut in (7, 25):
        content = b"".join(lines[:30] + lines[cut:])
        follower = followed(run, content, random.Random(3))
        assert page(follower.run) == page(read_run(run))


def read_bytes():
    """How many bytes this process has read from files."""
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])


def test_only_new_bytes_are_read(tmp_path):
    run = write_run(tmp_path / "run", rounds=3000, finished=False)
    log = run / "metrics.jsonl"
    follower = Follower(run)
    looks = 1
    while follower.look():
        looks += 1
    assert looks == -(-log.stat().st_size // CHUNK) > 3
    with log.open("a") as file:
        file.write(json.dumps({"number": 3001, "train_loss": 0.5}) + "\n")
    before = read_bytes()
    follower.look()
    assert read_bytes() - before < 5000
    assert (follower.run.number, follower.run.last("train_loss")) == (3001, 0.5)


def test_a_log_that_is_rewritten_in_place_is_read_anew(tmp_path):
    run = write_run(tmp_path / "run", rounds=20, finished=False)
    follower = Follower(run)
    follower.look()
    (run / "metrics.jsonl").write_text(
        "".join(json.dumps({"number": n, "train_loss": 2.0}) + "\n" for n in range(1, 999))
    )
    follower.look()
    assert follower.run.number == 998
    assert set(follower.run.series("train_loss")) == {2.0}


def test_a_line_without_end_is_skipped(tmp_path):
    run = write_run(tmp_path / "run", rounds=3, finished=False)
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b"x" * (2 * CHUNK + 5) + b'\n{"number": 4, "train_loss": 0.25}\n')
    follower = Follower(run)
    while follower.look():
        pass
    assert follower.run.number == 4
    assert "is damaged" in follower.problem


def test_long_runs_take_little_memory():
    log = Log()
    for start in range(1, 50_000, 500):
        log.add([{"number": n, **dict.fromkeys("abcdefghij", 0.5)} for n in range(start, start + 500)])
    assert log.count == 50_000
    assert sum(column.nbytes for column in log._columns.values()) < 11 * 8 * 2.1 * 50_000


@pytest.mark.parametrize(
    "counts", [[1, 2, 3], [KEPT - 1, KEPT, KEPT + 1, 2 * KEPT + 1], [900, 40, 41], [5000, 5001, 5100]]
)
def test_a_browser_that_joins_the_news_has_the_whole_curve(counts):
    values = np.random.default_rng(0).normal(size=6000)
    values[3::7] = np.nan
    feed, seen, tick = Feed(), [], 0
    for count in counts:
        made = chart("a", "Any", ("rounds", ""), [thinned("a", np.arange(count) + 1.0, values[:count])])
        feed.put({}, {"a": made})
        (news,) = feed.since(tick)["charts"]["a"]["curves"]
        seen = seen[: news["from"]] + list(zip(news["x"], news["y"], strict=True))
        (whole,) = json.loads(made.json)["curves"]
        assert seen == list(zip(whole["x"], whole["y"], strict=True))
        tick = feed.tick
    assert feed.since(tick) == {}


def test_settings_that_change_are_another_run(tmp_path):
    run = write_run(tmp_path / "run", rounds=5, finished=False)
    follower = Follower(run)
    follower.look()
    (run / "config.json").write_text(json.dumps(config("darts")))
    follower.look()
    assert (follower.run.config["space"], follower.run.number) == ("darts", 5)
