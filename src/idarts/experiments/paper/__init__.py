"""The paper's tables, figures and theorems as experiments, with the published values beside the measured ones."""

from idarts.experiments.experiment import Experiment
from idarts.registry import Registry

EXPERIMENTS: Registry[Experiment] = Registry("experiment", __name__)


def add(experiment: Experiment) -> Experiment:
    """Add an experiment under its own name."""
    return EXPERIMENTS.add(experiment.name, experiment)
