"""Settings as records: changed by name, written with dots, checked when they are made."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, get_args, get_origin

from idarts.errors import InputError, require_known

# What searches and trainings can be told alike.
Precision = Literal["float32", "bfloat16", "float16"]
Joint = Literal["local", "synchronised"]


def changed(settings: Any, changes: dict[str, Any]) -> Any:
    """Settings with some of them changed; an unknown name's nearest neighbour is named.

    >>> from idarts.search import Config
    >>> changed(Config(), {"rounds": 7}).rounds
    7
    """
    values: dict[str, Any] = {}
    for name, value in changes.items():
        require_known("setting", name, settings.__dataclass_fields__)
        group = getattr(settings, name)
        values[name] = changed(group, value) if isinstance(value, dict) and is_dataclass(group) else value
    return replace(settings, **values)


def dotted(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Groups as dotted names.

    >>> dotted({"batch": 8, "weights": {"rate": 0.1}})
    {'batch': 8, 'weights.rate': 0.1}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= dotted(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


# What is expected → whether a value is so, and which settings must be.
Rules = Mapping[str, tuple[Callable[[Any], bool], str]]


_KINDS: dict[Any, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: (int | float, "a number"),
    str: (str, "text"),
}


def check(settings: Any, rules: Rules, prefix: str = "") -> None:
    """Refuse a value that breaks a rule, or is none of those that a setting can have; groups are looked at, too.

    >>> from idarts.search.settings import Selection
    >>> check(Selection("best"), {})
    Traceback (most recent call last):
    idarts.errors.InputError: rule is 'best', expected one of argmax, best-of, perturbation, trials
    """
    for part in fields(settings):
        name, value = f"{prefix}{part.name}", getattr(settings, part.name)
        if is_dataclass(value):
            check(value, rules, f"{name}.")
        expected = [rule for rule, (good, names) in rules.items() if name in names.split() and not good(value)]
        if get_origin(part.type) is Literal and value not in get_args(part.type):
            expected.append(f"one of {', '.join(get_args(part.type))}")
        if is_dataclass(part.type) and not is_dataclass(value):
            expected.append("a group of settings such as {'rate': 0.01}")
        if part.type in _KINDS and not (isinstance(value, _KINDS[part.type][0]) and _is_bool(value, part.type)):
            expected.append(_KINDS[part.type][1])
        if expected:
            raise InputError(f"{name} is {value!r}, expected {expected[0]}")


def _is_bool(value: Any, kind: Any) -> bool:
    """Whether a value is of Python's true and false just where it should be: they count as numbers, too."""
    return isinstance(value, bool) == (kind is bool)


def at_least(bound: float, kind: type = float) -> Callable[[Any], bool]:
    """Whether a value is a number, or a whole one, and not below a bound."""
    allowed = (int,) if kind is int else (int, float)
    return lambda value: isinstance(value, allowed) and not isinstance(value, bool) and value >= bound


def is_share(value: Any) -> bool:
    """A number from 0 to below 1."""
    return at_least(0)(value) and value < 1


def or_none(good: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The same rule for a setting that can be left out."""
    return lambda value: value is None or good(value)


def positive(value: Any) -> bool:
    """A number above 0."""
    return at_least(0)(value) and value > 0
