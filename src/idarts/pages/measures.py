"""The measures that runs log: which charts a report has, and how each is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from idarts.engine.folder import Run
from idarts.pages.about import amount, cost_target, data_name, table_measure
from idarts.pages.chart import Chart, chart, thinned

MOST_OTHERS = 24  # charts of measures that only the run's own code knows; more would make a page slow


@dataclass(frozen=True)
class Measure:
    """One chart: the name of each line with its field in the log, and how to read it."""

    title: str
    fields: dict[str, str]
    reading: str = ""
    with_alpha: str = ""  # a further sentence for runs that have α
    percent: bool = False
    of: Callable[[Run], str] = lambda run: ""  # the end of the title: what it is measured on, or in
    limit: float | None = None
    sparse: tuple[str, ...] = ()  # fields that are measured only now and then: their lines have no gaps
    unless_zero: bool = False  # no chart of zeros alone: an earlier version logged them for what it did not compute


def _on_data(run: Run) -> str:
    return f" on {_brief(data_name(run))}"


def _by_table(run: Run) -> str:
    return f": {known}" if (known := table_measure(run)) else ""


def _in_units(run: Run) -> str:
    unit, target = cost_target(run)
    return f" in {unit}, target {amount(target)}" if unit else ""


SEARCH = (
    Measure(
        "Loss",
        {"training": "train_loss", "validation": "valid_loss"},
        "Both should fall. If validation rises while training falls, the weights overfit and mislead the search.",
    ),
    Measure(
        "Accuracy",
        {"training": "train_accuracy", "validation": "valid_accuracy"},
        with_alpha="These are accuracies of the supernet; the final network, trained by itself, usually does better.",
        percent=True,
        of=_on_data,
    ),
    Measure(
        "Accuracy by the table, in percent",
        {"architecture of the round": "table_accuracy"},
        "What the benchmark's table says about the architecture of each round.",
        with_alpha="It is the one that α selects at that round; a selection at the end may return another one.",
        of=_by_table,
        sparse=("table_accuracy",),
    ),
    Measure(
        "Cost of the network",
        {"expected": "expected_cost", "architecture of the round": "cost"},
        "The expected cost is what the penalty lowers; the other is that of the architecture that α selects at that "
        "round.",
        of=_in_units,
    ),
    Measure(
        "Learning rate of the weights",
        {"rate": "rate"},
        "Follows a cosine over the budget: a run that stops early does not reach the small rates.",
    ),
)
ALPHA = (
    Measure(
        "Entropy of α",
        {"entropy": "entropy"},
        "1: all options have the same weight. 0: every decision is made. "
        "A search that ends near 1 has hardly decided, and its cell may be a random one.",
    ),
    Measure(
        "Margin of α",
        {"margin": "margin"},
        "The weight of the best option minus that of the second best, mean over decisions.",
    ),
)
HYPERGRADIENT = (
    Measure(
        "Hypergradient norm",
        {"norm": "norm"},
        "The size of the gradient that moves α. Steady or slowly falling is good; "
        "spikes come from single batches, steady growth from a series that diverges.",
    ),
    Measure(
        "Implicit share",
        {"share": "implicit_share"},
        "How much of the hypergradient comes through the weights. Near 0, first order would be enough; "
        "the larger it is, the more the implicit part matters.",
        percent=True,
        unless_zero=True,
    ),
    Measure(
        "Contraction ‖I − γH‖",
        {"contraction": "contraction"},
        "Below the dashed line at 1 the Neumann series converges, the faster the lower. "
        "Above it every further term makes the estimate worse: lower γ.",
        limit=1.0,
    ),
    Measure(
        "Step γ of the series",
        {"γ": "step"},
        "Set by hand, equal to the learning rate, or (auto) as large as the curvature allows: "
        "it falls where the loss surface becomes steeper.",
    ),
)
TRAINING = (
    Measure(
        "Loss",
        {"training": "train_loss", "held out": "valid_loss"},
        "The training loss includes what the settings add: smoothed labels, the auxiliary head, dropped paths. "
        "Both should fall; if the held-out loss rises for long, the network overfits.",
        sparse=("valid_loss",),
    ),
    Measure(
        "Accuracy",
        {"training": "train_accuracy", "held out": "valid_accuracy"},
        "Held-out images are not augmented, so their accuracy may be higher than that of the training images. "
        "The gap at the end shows how far the network overfits.",
        percent=True,
        of=_on_data,
        sparse=("valid_accuracy",),
    ),
    Measure(
        "Learning rate",
        {"rate": "rate"},
        "Most of the accuracy is gained while it is small, in the last third.",
    ),
    Measure(
        "Drop-path",
        {"probability": "drop_path"},
        "With this probability an operation's output is left out for an image; it rises with the epochs.",
    ),
)
_LONGEST = 30  # letters of the data's name in a title
_WITHOUT_CHART = {"number", "epoch", "seconds", "gradient_evaluations", "skipped", "valid_images"}


def charts(run: Run, measures: Sequence[Measure]) -> list[Chart]:
    """The charts of those measures that the run has logged.

    >>> from pathlib import Path
    >>> [made.title for made in charts(Run(Path("run"), {}, [{"number": 1, "train_loss": 2.3}]), SEARCH)]
    ['Loss']
    """
    across, x = "rounds", run.series("number")
    if run.trains and run.last("epoch") is not None:
        across, x = "epochs", run.series("epoch")
    made = [
        chart(
            next(iter(measure.fields.values())),
            f"{measure.title}{measure.of(run)}",
            (across, ""),
            [thinned(name, x, run.series(key), key not in measure.sparse) for name, key in measure.fields.items()],
            f"{measure.reading} {measure.with_alpha if run.alphas() else ''}".strip(),
            log_y=None,
            limit=measure.limit,
            percent=measure.percent,
            ends=True,
        )
        for measure in measures
        if not (measure.unless_zero and all((run.series(key) == 0).all() for key in measure.fields.values()))
    ]
    return [one for one in made if one.curves]


def _brief(name: str) -> str:
    """The end of a long name, such as that of a folder."""
    return name if len(name) <= _LONGEST else f"…{name[-_LONGEST:]}"


def others(run: Run) -> list[Measure]:
    """The numbers that a run logs beyond those above, e.g. a temperature of a user's own method.

    >>> from pathlib import Path
    >>> [one.title for one in others(Run(Path("run"), {}, [{"number": 1, "norm": 0.1, "own_temperature": 5.0}]))]
    ['Own temperature']
    """
    known = {key for one in (*SEARCH, *ALPHA, *HYPERGRADIENT, *TRAINING) for key in one.fields.values()}
    return [
        Measure(key[:1].upper() + key[1:].replace("_", " "), {key: key}, sparse=(key,))
        for key in run.fields()
        if key not in known | _WITHOUT_CHART
    ]
