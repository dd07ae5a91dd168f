"""Boosted oblivious trees on yes/no questions, as plain arrays: small to store, quick to load and to ask.

An oblivious tree asks the same question on each of its levels, so its answer is one look-up in 2^depth values
(Prokhorenkova et al. 2018, CatBoost: unbiased boosting with categorical features). scikit-learn's trees would have to
be taken apart through private attributes; these few lines need numpy alone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Answers = NDArray[np.bool_]  # (cells, questions)


@dataclass(frozen=True)
class Trees:
    """`base` plus, from each tree, the value at the place that the answers to its questions name in binary."""

    base: float
    questions: NDArray[np.int16]  # (trees, depth)
    values: Floats  # (trees, 2^depth)

    def __call__(self, answers: Answers) -> Floats:
        """The prediction for each row of answers."""
        columns = np.ascontiguousarray(answers.T).astype(np.int16)
        total = np.full(len(answers), self.base, np.float32)
        for questions, values in zip(self.questions, self.values, strict=True):
            place = columns[questions[0]]
            for level, question in enumerate(questions[1:], start=1):
                place = place + (columns[question] << level)
            total += values[place]
        return total


@dataclass(frozen=True)
class Boosting:
    """How trees are fitted: each on a random share of rows and questions, to what the trees before it leave over."""

    trees: int = 1500
    depth: int = 6
    rate: float = 0.05
    ridge: float = 5.0  # added to the number of rows of a leaf
    rows: float = 0.8
    questions: float = 0.1

    def fit(self, answers: Answers, targets: Floats, seed: int) -> Trees:
        """Trees for the squared error.

        >>> answers = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 8, bool)
        >>> trees = Boosting(trees=200, depth=2, rate=0.3, ridge=0.1, questions=1).fit(answers, answers[:, 0] * 2.0, 0)
        >>> trees(answers[:4]).round(2).tolist()
        [0.0, 0.0, 2.0, 2.0]
        """
        random = np.random.default_rng(seed)
        numbers = answers.astype(np.float32)
        left = (targets - targets.mean()).astype(np.float32)
        count, width = numbers.shape
        questions = np.zeros((self.trees, self.depth), np.int16)
        values = np.zeros((self.trees, 2**self.depth), np.float32)
        for tree in range(self.trees):
            columns = random.permutation(width)[: max(1, round(self.questions * width))]
            rows = np.flatnonzero(random.random(count) < self.rows)
            chosen, leaves = self._grow(numbers[np.ix_(rows, columns)], left[rows])
            questions[tree] = columns[chosen]
            values[tree] = self.rate * leaves
            left -= values[tree][answers[:, questions[tree]] @ (1 << np.arange(self.depth))]
        return Trees(float(targets.mean()), questions, values)

    def _grow(self, numbers: Floats, left: Floats) -> tuple[list[int], Floats]:
        """The questions of one tree, each the one that explains most in all leaves together, and its leaves."""
        chosen: list[int] = []
        leaf = np.zeros(len(left), np.intp)
        for level in range(self.depth):
            leaves = 1 << level
            here = np.zeros((len(left), 2 * leaves), np.float32)  # what is left over and 1, in the row's leaf
            here[np.arange(len(left)), leaf] = left
            here[np.arange(len(left)), leaves + leaf] = 1
            yes, whole = numbers.T @ here, here.sum(axis=0)
            no = whole - yes
            gains = [(side[:, :leaves] ** 2 / (side[:, leaves:] + self.ridge)).sum(axis=1) for side in (yes, no)]
            chosen.append(int((gains[0] + gains[1]).argmax()))
            leaf += leaves * (numbers[:, chosen[-1]] > 0)
        size = 1 << self.depth
        total = np.bincount(leaf, left, size)
        return chosen, (total / (np.bincount(leaf, minlength=size) + self.ridge)).astype(np.float32)
