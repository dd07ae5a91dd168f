"""The budget of a search: rounds, minutes, gradient evaluations, whichever is spent first."""

import math
from dataclasses import dataclass, replace
from typing import Any

from idarts.engine.ranks import Clock
from idarts.engine.schedules import learning_rate
from idarts.searching.settings import Config
from idarts.searching.stage import Stage, ends

LATE = 0.5  # of the first stage's budget: a warm-up ends there
MOST_RESERVED = 0.5  # of the minutes, for the selection: it is shortened rather than the rounds


@dataclass
class Spent:
    """What a search has used so far."""

    number: int = 0  # rounds
    weight_steps: int = 0
    gradient_evaluations: float = 0.0  # that the budget limits
    measuring: float = 0.0  # further ones, which only measure: with them and without, a search is the same
    seconds: float = 0.0


@dataclass(frozen=True)
class Budget:
    """`total` rounds, and the limits that the settings name.

    Some of the minutes are for the selection: `used` takes the seconds to reserve for it.

    >>> budget = Budget(Config(minutes=2.0), total=100, weight_steps=400)
    >>> budget.used(Spent(number=10, weight_steps=40, seconds=60)), budget.used(Spent(seconds=60), reserved=20)
    (0.5, 0.6)
    """

    settings: Config
    total: int
    weight_steps: int  # of all rounds and warm-ups; 0 where there are no shared weights

    @property
    def limited(self) -> bool:
        """Whether a limit other than the number of rounds may end the search."""
        return self.settings.minutes is not None or self.settings.gradient_evaluations is not None

    def used(self, spent: Spent, reserved: float = 0.0) -> float:
        """The share of the rounds' budget that is spent, by whichever measure is furthest."""
        rounds = spent.weight_steps / self.weight_steps if self.weight_steps else spent.number / self.total
        shares = [rounds]
        if self.settings.minutes is not None:
            shares.append(spent.seconds / self.seconds(reserved))
        if self.settings.gradient_evaluations is not None:
            shares.append(spent.gradient_evaluations / self.settings.gradient_evaluations)
        return min(max(shares), 1.0)

    def seconds(self, reserved: float) -> float:
        """The seconds for the rounds, where `minutes` are limited."""
        assert self.settings.minutes is not None
        seconds = 60 * self.settings.minutes
        return seconds - min(reserved, MOST_RESERVED * seconds)


@dataclass
class Pace:
    """How many rounds a limited budget allows, judged by the pace since the first call.

    >>> pace = Pace()
    >>> [pace.rounds(done, used, most=100) for done, used in ((0, 0.5), (1, 0.55), (2, 0.6))]  # after a long warm-up
    [100, 10.0, 10.0]
    """

    first: tuple[int, float] | None = None

    def rounds(self, done: int, used: float, most: int) -> float:
        """The rounds of the whole search, after `done` of them and that share of the budget."""
        self.first = self.first or (done, used)
        before, start = self.first
        if done > before and used > start:
            return min(most, round(before + (done - before) * (1 - start) / (used - start), 6))
        return min(most, done / used) if done and used else most


def total_rounds(settings: Config, batches_per_epoch: int) -> int:
    """The rounds of the settings, or as many as their epochs make.

    >>> total_rounds(Config(epochs=2.0), batches_per_epoch=50)  # five batches a round
    20
    """
    if settings.epochs is None:
        return settings.rounds
    steps = settings.epochs * batches_per_epoch * (1 - settings.alpha.rest)
    return max(1, round(steps / settings.batches_per_round))


def budget_of(settings: Config, batches_per_epoch: int, stages: int, shares_weights: bool) -> Budget:
    """The budget of a search of so many stages."""
    total = total_rounds(settings, batches_per_epoch)
    steps = total * settings.inner_steps + settings.weights.warmup * stages
    return Budget(settings, total, math.ceil(steps / (1 - settings.alpha.rest)) if shares_weights else 0)


class Budgeted:
    """How much of its budget a search has spent, what remains, and what follows from that. `Search` builds on it."""

    settings: Config
    budget: Budget
    spent: Spent
    clock: Clock
    stages: list[Stage]
    stage: int  # the current one
    selector: Any
    _pace: Pace

    @property
    def number(self) -> int:
        """The round that the search stands at."""
        return self.spent.number

    @property
    def total(self) -> int:
        """The rounds of the whole search."""
        return self.budget.total

    @property
    def gradient_evaluations(self) -> float:
        """What the search has cost so far; one ∇_w L1 is one."""
        return self.spent.gradient_evaluations + self.spent.measuring

    def used(self) -> float:
        """The share of the rounds' budget that is spent."""
        reserved = self.selection_seconds() if self.settings.minutes is not None else 0.0
        return self.budget.used(replace(self.spent, seconds=self.clock.seconds), reserved)

    def has_spent(self, share: float) -> bool:
        """Whether that share of the budget is spent. Minutes allow one round, on the slowest machine, too."""
        return self.used() >= share and (self.number > 0 or self.settings.minutes is None)

    def late(self) -> bool:
        """Whether the first stage must begin its rounds: half of its minutes or gradient evaluations is spent."""
        settings, share = self.settings, LATE * ends(self.stages)[0]
        if self.stage or self.number:
            return self.stage == 0  # it has begun them
        if settings.minutes and self.clock.seconds > share * self.budget.seconds(self.selection_seconds()):
            return True
        limit = settings.gradient_evaluations
        return limit is not None and self.spent.gradient_evaluations >= share * limit

    def selection_seconds(self) -> float:
        """How long the selection will take, as far as it can tell."""
        estimate = getattr(self.selector, "seconds", None)
        return estimate(self) if estimate else 0.0

    def seconds_per_evaluation(self) -> float:
        """The seconds of one gradient evaluation so far; 0 before the first one."""
        return self.clock.seconds / self.gradient_evaluations if self.gradient_evaluations else 0.0

    def seconds_left(self) -> float:
        """What remains of the settings' minutes; infinite without them."""
        return math.inf if self.settings.minutes is None else 60 * self.settings.minutes - self.clock.seconds

    def alpha_rounds(self) -> float:
        """The α steps that the budget allows for this stage."""
        limited = self.budget.limited and self.number > 0
        rounds = self._pace.rounds(self.number - 1, self.used(), self.total) if limited else self.total
        return rounds * self.stages[self.stage].share

    def rounds_left(self) -> float:
        """The α steps that remain in this stage; while α rests there are none."""
        stepping = self.total * self.settings.inner_steps / self.budget.weight_steps
        return self.alpha_rounds() * (1 - self.stage_part()) / stepping

    def pace_state(self) -> list[Any]:
        """The first call of the pace, for checkpoints, and the budget that it is a share of.

        Empty where minutes are limited: the machine of a resumed run may have another pace.
        """
        if self._pace.first is None or self.settings.minutes is not None:
            return []
        return [*self._pace.first, self.total, self.settings.gradient_evaluations]

    def load_pace_state(self, state: list[Any] | None) -> None:
        """Continue at a saved pace. Earlier versions saved none, and another budget has another one."""
        same = state and state[2:] == [self.total, self.settings.gradient_evaluations]
        self._pace = Pace((state[0], state[1]) if state and same else None)

    def rate(self) -> float:
        """The learning rate of w: a cosine from the first to the last value over the budget of the stage."""
        weights = self.settings.weights
        return learning_rate(weights.rate, weights.last_rate, self.stage_part(), 1.0)

    def stage_part(self) -> float:
        """The share of the current stage's budget that is spent."""
        end = ends(self.stages)[self.stage]
        start = end - self.stages[self.stage].share if len(self.stages) > 1 else 0.0
        return min((self.used() - start) / (end - start), 1.0)
