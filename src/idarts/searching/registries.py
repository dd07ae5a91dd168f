"""The axes of a search: one registry for each, filled by the files of its folder."""

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

from idarts.errors import InputError, nearest
from idarts.registry import Registry

EVALUATORS: Registry[Any] = Registry("evaluator", "idarts.searching.evaluators")
RELAXATIONS: Registry[Any] = Registry("relaxation", "idarts.searching.relaxations")
RULES: Registry[Any] = Registry("rule for α", "idarts.searching.rules")
OBJECTIVES: Registry[Any] = Registry("objective", "idarts.searching.objectives")
PENALTIES: Registry[Any] = Registry("penalty", "idarts.searching.penalties")
SCHEDULES: Registry[Any] = Registry("schedule of stages", "idarts.searching.stages")
SELECTIONS: Registry[Any] = Registry("selection", "idarts.searching.selections")
STRATEGIES: Registry[Any] = Registry("strategy", "idarts.searching.strategies")


def build_part(registry: Registry[Any], name: str, options: Mapping[str, Any]) -> Any:
    """The part of a name with its options: a class is made with them, a function gets them as keywords.

    >>> build_part(RELAXATIONS, "gumbel", {"last": 0.5}).last
    0.5
    >>> build_part(RELAXATIONS, "gumbel", {"lats": 0.5})
    Traceback (most recent call last):
    idarts.errors.InputError: relaxation gumbel has no option 'lats'; did you mean last?
    """
    part = registry[name]
    require_options(registry, name, options)
    if isinstance(part, type):
        return part(**options)
    return partial(part, **options) if options else part


def require_options(registry: Registry[Any], name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that a part does not have: they are its keywords with a default."""
    if not options:
        return
    parameters = inspect.signature(registry[name]).parameters.items()
    known = [name for name, kind in parameters if kind.default is not kind.empty]
    for option in options:
        if option not in known:
            hint = nearest(option, known, f"it has {', '.join(known)}" if known else "it has none")
            raise InputError(f"{registry.kind} {name} has no option {option!r}; {hint}")
