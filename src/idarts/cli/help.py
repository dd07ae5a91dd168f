"""What `--help` says: defaults once, no types, and of every setting what stands below it in its class."""

import ast
import inspect
from argparse import SUPPRESS, Action
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any

from jsonargparse import ArgumentParser, DefaultHelpFormatter


class Help(DefaultHelpFormatter):
    """An option's help, and its default where there is one to tell."""

    def _get_help_string(self, action: Action) -> str:
        told = action.help or ""
        silent = action.default in (None, "", SUPPRESS) or action.nargs == 0 or "default:" in told
        return told if silent else f"{told} (default: %(default)s)"


def explain(parser: ArgumentParser, kind: type, prefix: str = "") -> None:
    """Give every setting its explanation, and every group of them its name and what its class says.

    >>> from idarts.training.settings import Weights
    >>> parser = ArgumentParser()
    >>> _ = parser.add_class_arguments(Weights, as_group=False)
    >>> explain(parser, Weights)
    >>> parser._option_string_actions["--clip"].help
    'largest norm of the gradient; 0: no clipping'
    """
    told = _explanations(kind)
    for field in fields(kind):
        action = parser._option_string_actions[f"--{prefix}{field.name}"]
        action.help = told.get(field.name)
        group: Any = field.default_factory
        section = (parser.groups or {}).get(field.name)
        if section:
            action.help = SUPPRESS  # a file for this group alone
            section.title, section.description = field.name, inspect.getdoc(group)
            explain(parser, group, f"{field.name}.")


def _explanations(kind: type) -> dict[str, str]:
    """Of a class and those above it: the text below a field. Where the source is not at hand, there is none."""
    found: dict[str, str] = {}
    for part in kind.__mro__:
        module = inspect.getmodule(part)
        found |= _by_class(module).get(part.__name__, {}) if module and is_dataclass(part) else {}
    return found


@cache
def _by_class(module: ModuleType) -> dict[str, dict[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(module))
    except OSError:
        return {}
    return {node.name: _below_fields(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _below_fields(node: ast.ClassDef) -> dict[str, str]:
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(node.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }
