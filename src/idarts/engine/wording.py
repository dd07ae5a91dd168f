"""The types of settings in words: what a setting allows, and what was wrong with a value."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import annotated_types as limits
from pydantic import ValidationError

from idarts.errors import InputError, require_known


def expected(kind: Any) -> str:
    """The values that a type allows, in words.

    >>> from idarts.engine.settings import Count, Positive
    >>> expected(Count), expected(Positive | Literal["auto", "rate"] | None)
    ('a whole number of at least 1', 'a positive number, auto, rate or none')
    """
    phrases = [phrase for member in members(kind) for phrase in _phrases(member)]
    listed = [phrase for phrase in dict.fromkeys(phrases) if phrase != "none"]
    listed += ["none"] if "none" in phrases else []
    if all(get_origin(member) is Literal for member in members(kind)) and len(listed) > 1:
        return f"one of {', '.join(listed)}"
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def members(kind: Any) -> tuple[Any, ...]:
    """The members of a union, or the type itself."""
    if get_origin(kind) is Annotated and get_origin(get_args(kind)[0]) in (Union, UnionType):
        return members(get_args(kind)[0])
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def marks_of(kind: Any) -> tuple[Any, ...]:
    """What an annotated type carries besides the type itself."""
    return get_args(kind)[1:] if get_origin(kind) is Annotated else ()


_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "none",
}


def _phrases(kind: Any) -> list[str]:
    base, marks = (get_args(kind)[0], marks_of(kind)) if get_origin(kind) is Annotated else (kind, ())
    if get_origin(base) is Literal:
        return [str(value) for value in get_args(base)]
    if get_origin(base) is tuple:
        parts = get_args(base)
        return [f"{len(parts)} values, each {expected(parts[0])}"]
    if is_dataclass(base):
        return ["a group of settings such as {'rate': 0.01}"]
    return [_bounded(_WORDS.get(base, str(getattr(base, "__name__", base))), marks)]


def _bounded(word: str, marks: Sequence[Any]) -> str:
    """A type's word with the bounds of its field, such as `a number from 0 to below 1`."""
    bounds = [bound for mark in marks for bound in getattr(mark, "metadata", [])]
    low = next((bound.ge for bound in bounds if isinstance(bound, limits.Ge)), None)
    high = next((bound.lt for bound in bounds if isinstance(bound, limits.Lt)), None)
    if any(isinstance(bound, limits.Gt) and bound.gt == 0 for bound in bounds):
        word = word.replace("a ", "a positive ", 1)
        return word if high is None else f"{word} below {_plain(high)}"
    if low is None:
        return word
    return f"{word} of at least {_plain(low)}" if high is None else f"{word} from {_plain(low)} to below {_plain(high)}"


def _plain(number: Any) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"


def reason(name: str, error: ValidationError) -> str | None:
    """The message of an `InputError` that a check of ours raised, or None for one of pydantic's own."""
    raised = (one.get("ctx", {}).get("error") for one in error.errors())
    own = next((problem for problem in raised if isinstance(problem, InputError)), None)
    if own is None:
        return None
    return f"{name}: {own}" if name else str(own)


def sentence(kind: type, error: ValidationError, given: Mapping[Any, Any]) -> str:
    """pydantic's first complaint as one line: what was wrong, and what is expected."""
    first = error.errors()[0]
    if first["type"] == "unexpected_keyword_argument":
        try:
            require_known("setting", first["loc"][0], [part.name for part in fields(kind)])
        except InputError as unknown:
            return str(unknown)
    place = first["loc"][0] if first["loc"] else None  # a name, or the place of a value without a name
    names = [part.name for part in fields(kind)]
    name = names[place] if isinstance(place, int) and place < len(names) else place
    if place not in given or name not in names:  # a check of the whole record, or a value too few or too many
        return reason("", error) or f"{kind.__name__} {'' if name is None else name}: {first['msg']}"
    hint = get_type_hints(kind, include_extras=True)[str(name)]
    return reason(str(name), error) or f"{name} is {given[place]!r}, expected {expected(hint)}"
