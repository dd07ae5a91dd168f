"""From a folder of images to a network in one call: look, plan, search, train, compare, export."""

from idarts.fitting.judge import Verdict, mcnemar, verdict
from idarts.fitting.look import Look, look
from idarts.fitting.outcome import to_data
from idarts.fitting.plan import Plan, make_plan
from idarts.fitting.planning import plan
from idarts.fitting.record import FitResult
from idarts.fitting.run import Status, fit

__all__ = [
    "FitResult",
    "Look",
    "Plan",
    "Status",
    "Verdict",
    "fit",
    "look",
    "make_plan",
    "mcnemar",
    "plan",
    "to_data",
    "verdict",
]
