"""`idarts methods`: the search methods by name, each a point on the axes."""

import json
from argparse import Namespace
from dataclasses import asdict
from textwrap import fill
from typing import Any

from idarts.cli.console import say
from idarts.cli.parser import Parser
from idarts.searching import EVALUATORS, METHODS, SELECTIONS, STRATEGIES, Config, config


def add_arguments(parser: Parser) -> None:
    """The form of the answer."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> None:
    """Print every method with its axes, its paper, what a round costs and what it needs."""
    rows = [_row(name) for name in METHODS]
    if args.json:
        say(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        shown = {axis: part for axis in _SHOWN if (part := row["axes"][axis]) not in (None, _USUAL.get(axis))}
        axes = ", ".join(f"{axis} {part}" for axis, part in shown.items())
        say(row["name"])
        say(fill(row["summary"], 100, initial_indent="  ", subsequent_indent="  "))
        say(f"  {axes}")
        cost = f"{row['cost']:.3g} gradient evaluations a round" if row["cost"] else "cost depends on the settings"
        say(f"  {cost}{'; needs a space with: ' + ', '.join(row['needs']) if row['needs'] else ''}")
    say("\nUse a method with `idarts search --method NAME`; --json also prints papers and settings.")


_SHOWN = ("strategy", "evaluator", "relaxation", "hypergradient", "rule", "objective", "penalty", "stages", "selection")
_USUAL = {"objective": "single", "penalty": "none", "stages": "single", "rule": "adam"}


def _row(name: str) -> dict[str, Any]:
    entry, settings = METHODS.entries[name], config(name)
    gradient = settings.strategy == "gradient"
    strategy = STRATEGIES[settings.strategy]
    return {
        **asdict(entry),
        "axes": {
            "strategy": settings.strategy,
            "evaluator": settings.evaluator.kind if strategy.evaluates else None,
            "relaxation": settings.relaxation if strategy.shares_weights else None,
            "hypergradient": settings.hypergradient.method if gradient else None,
            "rule": settings.alpha.rule if strategy.steps_alpha else None,
            "objective": settings.weights.objective if strategy.shares_weights else None,
            "weights_relaxation": settings.weights.relaxation,
            "penalty": settings.alpha.penalty if strategy.steps_alpha else None,
            "stages": settings.stages,
            "selection": settings.selection.rule,
        },
        "batches_per_round": settings.batches_per_round,
        "needs": [*entry.needs, *_needs(settings)],
    }


def _needs(settings: Config) -> list[str]:
    """The parts of a space that a method needs, and `table` if it reads one."""
    strategy, selection = STRATEGIES[settings.strategy], SELECTIONS[settings.selection.rule]
    needs = [*strategy.needs, *(EVALUATORS[settings.evaluator.kind].needs if strategy.evaluates else ())]
    needs += ["network"] if getattr(selection, "needs_network", False) else []
    return list(dict.fromkeys(needs))
