"""The sentence that says who won."""

from pathlib import Path

import pytest

from idarts.arch import parse
from idarts.fitting.judge import verdict
from idarts.fitting.outcome import result_sentence
from idarts.fitting.record import FitResult
from idarts.spaces import space

FOUND, FIXED = parse("nas-bench-201:1462"), space("nas-bench-201").fixed()


@pytest.mark.parametrize(
    ("architecture", "found", "fixed", "start"),
    [
        (FOUND, [True] * 9, [False] * 9, "The found network won: 100.0 %"),
        (FOUND, [False] * 9, [True] * 9, "The fixed network won: 100.0 %"),
        (FOUND, [True] * 9, [True] * 9, "Undecided: the found network has 100.0 %"),
        (FIXED, [True] * 9, [True] * 9, "The search chose the block of the fixed network: both have 100.0 %"),
    ],
)
def test_the_sentence_says_who_won(architecture, found, fixed, start):
    accuracy = {"found": sum(found) / 9, "fixed": sum(fixed) / 9, "random": 0.5}
    judged = verdict(found, fixed)
    interval = dict.fromkeys(accuracy, (0.2, 1.0))
    facts = {"parameters": {}, "winner": judged.winner, "exported": "found", "path": Path()}
    result = FitResult(architecture=architecture, seconds=0.0, accuracy=accuracy, interval=interval, **facts)
    sentence = result_sentence(result, judged, 9, 3)
    assert sentence.startswith(start)
    assert sentence.endswith("The median of 3 random networks has 50.0 % (20.0–100.0).")
