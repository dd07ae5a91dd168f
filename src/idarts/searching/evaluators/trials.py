"""Short real trainings: the network of an architecture, from scratch, for a few steps."""

from typing import TYPE_CHECKING, ClassVar

from idarts.arch import Architecture
from idarts.errors import InputError
from idarts.searching.evaluator import Evaluation, Evaluator
from idarts.searching.registries import EVALUATORS
from idarts.searching.selections.trials import Trial
from idarts.searching.streams import replay

if TYPE_CHECKING:
    from idarts.searching.loop import Search
    from idarts.searching.settings import Evaluator as Settings


@EVALUATORS.register("trials")
class TrialEvaluator(Evaluator):
    """The accuracy after `evaluator.steps` steps: same seed, same training and validation batches for every one."""

    needs: ClassVar[tuple[str, ...]] = ("network",)

    def __init__(self, search: "Search") -> None:
        task, settings = search.task, search.settings
        if task.network is None:
            raise InputError(
                "evaluator.kind trials trains networks, but none can be built from this model; "
                "use --evaluator.kind shared-weights"
            )
        self.steps = settings.evaluator.steps
        valid = [next(task.valid) for _ in range(settings.evaluator.batches)]
        train, rate = replay(task.train), settings.evaluator.rate
        self.trial = Trial(task.network, train, valid, task.loss, rate, settings.seed)

    @staticmethod
    def batches(settings: "Settings") -> int:
        return settings.steps

    def __call__(self, architecture: Architecture) -> Evaluation:
        return Evaluation.of(*self.trial.measure(architecture, self.steps), self.trial.cost(self.steps))
