"""Which charts a report has, and how each is read."""

from idarts.engine.folder import Floats, Run
from idarts.pages.chart import Chart, chart


def curves(run: Run) -> list[Chart]:
    """How the training went.

    >>> from pathlib import Path
    >>> [found.title for found in curves(Run(Path("run"), {}, [{"number": 1, "train_loss": 2.3}]))]
    ['Loss']
    """
    losses = _series(run, training="train_loss", validation="valid_loss")
    accuracies = _series(run, training="train_accuracy", validation="valid_accuracy")
    drawn = [
        chart(
            "Loss",
            _numbers(run),
            losses,
            "Both should fall. If validation rises while training falls, the weights overfit, and α is fitted to that.",
        ),
        chart(
            "Accuracy",
            _numbers(run),
            accuracies,
            "Of the supernet, all options mixed. The found network, trained by itself, usually does better.",
            percent=True,
        ),
        chart(
            "Learning rate of the weights",
            _numbers(run),
            _series(run, rate="rate"),
            "Falls by a cosine over the budget: a run that was stopped early has not seen its small rates.",
        ),
    ]
    return [found for found in drawn if found]


def diagnostics(run: Run) -> list[Chart]:
    """Whether the hypergradient can be trusted.

    >>> from pathlib import Path
    >>> [found.title for found in diagnostics(Run(Path("run"), {}, [{"number": 1, "norm": 0.1, "entropy": 1.0}]))]
    ['Hypergradient norm', 'Entropy of α']
    """
    drawn = [
        chart(
            "Hypergradient norm",
            _numbers(run),
            _series(run, norm="norm"),
            "How hard the validation loss pulls at α. Steady or slowly falling is well; "
            "spikes come from single batches, and steady growth from a series that diverges.",
        ),
        chart(
            "Implicit share",
            _numbers(run),
            _series(run, share="implicit_share"),
            "How much of the hypergradient comes through the weights. Near 0, first order would have done; "
            "the larger it is, the more the implicit term decides.",
            percent=True,
        ),
        chart(
            "Contraction ‖I − γH‖",
            _numbers(run),
            _series(run, contraction="contraction"),
            "Below the dashed line at 1 the Neumann series converges, the faster the lower. "
            "Above it every further term makes the estimate worse: lower γ.",
            limit=1.0,
        ),
        chart(
            "Step γ of the series",
            _numbers(run),
            _series(run, γ="step"),
            "Set by hand, tied to the learning rate, or (auto) as large as the curvature allows: "
            "it falls where the loss surface becomes steeper.",
        ),
        chart(
            "Entropy of α",
            _numbers(run),
            _series(run, entropy="entropy"),
            "1: all options weigh the same. 0: every decision is made. "
            "A search that ends near 1 has hardly decided, and its cell may be chance.",
        ),
    ]
    return [found for found in drawn if found]


def _series(run: Run, **fields: str) -> dict[str, Floats]:
    return {name: run.series(field) for name, field in fields.items()}


def _numbers(run: Run) -> list[int]:
    return [found["number"] for found in run.rounds]
