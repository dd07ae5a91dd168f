"""The budget of a search: rounds, minutes, gradient evaluations, whichever is spent first."""

from dataclasses import dataclass

from idarts.searching.settings import Config


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

    >>> Budget(Config(minutes=2.0), total=100, weight_steps=400).used(Spent(number=10, weight_steps=40, seconds=60))
    0.5
    """

    settings: Config
    total: int
    weight_steps: int  # of all rounds and warm-ups; 0 where there are no shared weights

    def used(self, spent: Spent) -> float:
        """The share of the budget that is spent, by whichever measure is furthest."""
        rounds = spent.weight_steps / self.weight_steps if self.weight_steps else spent.number / self.total
        shares = [rounds]
        if self.settings.minutes is not None:
            shares.append(spent.seconds / (60 * self.settings.minutes))
        if self.settings.gradient_evaluations is not None:
            shares.append(spent.gradient_evaluations / self.settings.gradient_evaluations)
        return min(max(shares), 1.0)


def total_rounds(settings: Config, batches_per_epoch: int) -> int:
    """The rounds of the settings, or as many as their epochs make.

    >>> total_rounds(Config(epochs=2.0), batches_per_epoch=50)  # five batches a round
    20
    """
    if settings.epochs is None:
        return settings.rounds
    return max(1, round(settings.epochs * batches_per_epoch / settings.batches_per_round))
