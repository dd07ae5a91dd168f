"""The budget of a search: rounds, minutes, gradient evaluations, whichever is spent first."""

from dataclasses import dataclass

from idarts.searching.settings import Config

MOST_RESERVED = 0.5  # of the minutes, for the selection: it is shortened rather than the rounds


@dataclass
class Spent:
    """What a search has used so far."""

    number: int = 0  # rounds
    weight_steps: int = 0
    gradient_evaluations: float = 0.0
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
            seconds = 60 * self.settings.minutes
            shares.append(spent.seconds / (seconds - min(reserved, MOST_RESERVED * seconds)))
        if self.settings.gradient_evaluations is not None:
            shares.append(spent.gradient_evaluations / self.settings.gradient_evaluations)
        return min(max(shares), 1.0)


@dataclass
class Pace:
    """How many rounds a limited budget allows, judged by the pace since the first call: a resumed run has another.

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
