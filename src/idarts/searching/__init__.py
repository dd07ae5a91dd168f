"""The search: its loop, its axes, its settings, its runs."""

from idarts.searching.api import search
from idarts.searching.catalogue import METHODS, PRESETS
from idarts.searching.evaluator import Evaluation, Evaluator
from idarts.searching.legacy import FACTS, upgrade
from idarts.searching.loop import Search
from idarts.searching.registries import (
    EVALUATORS,
    OBJECTIVES,
    PENALTIES,
    RELAXATIONS,
    RULES,
    SCHEDULES,
    SELECTIONS,
    STRATEGIES,
)
from idarts.searching.round import Round, Step
from idarts.searching.run import SearchResult, run, task_of
from idarts.searching.settings import Config, RunConfig, config, resolved
from idarts.searching.stage import Stage
from idarts.searching.strategy import Selected, Strategy, Tried
from idarts.searching.streams import Stream
from idarts.searching.task import Task

__all__ = [
    "EVALUATORS",
    "FACTS",
    "METHODS",
    "OBJECTIVES",
    "PENALTIES",
    "PRESETS",
    "RELAXATIONS",
    "RULES",
    "SCHEDULES",
    "SELECTIONS",
    "STRATEGIES",
    "Config",
    "Evaluation",
    "Evaluator",
    "Round",
    "RunConfig",
    "Search",
    "SearchResult",
    "Selected",
    "Stage",
    "Step",
    "Strategy",
    "Stream",
    "Task",
    "Tried",
    "config",
    "resolved",
    "run",
    "search",
    "task_of",
    "upgrade",
]
