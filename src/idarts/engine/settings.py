"""Settings as frozen records: pydantic checks every value at its field, groups nest, layers change them by name.

The constraint of a setting stands in its type (`rounds: Count = 100`), its explanation in the docstring below it.
Errors and `--help` are made from both, so neither is written twice.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, wraps
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

import pydantic.dataclasses
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema

from idarts.engine.wording import expected, marks_of, members, reason, sentence
from idarts.errors import InputError, require_known
from idarts.registry import Registry

Record = TypeVar("Record")

Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**62)]  # torch's generators take twice that, and streams use 2·seed + 1
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Pair = Annotated[tuple[Share, Share], Field(strict=False)]  # a file has lists only

# Settings that searches and trainings share.
Precision = Literal["float32", "bfloat16", "float16"]
Joint = Literal["local", "synchronised"]


@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def validated(kind: type[Record]) -> type[Record]:
    """Make a class a frozen dataclass whose values are checked; a wrong one raises an `InputError` of one line.

    Values are not converted: a number in quotes or `true` for a number is refused, and so are infinity and NaN.

    >>> @validated
    ... class Weights:
    ...     rate: Positive = 0.025
    >>> Weights(rate=-1.0)
    Traceback (most recent call last):
    idarts.errors.InputError: rate is -1.0, expected a positive number
    """
    config = ConfigDict(strict=True, allow_inf_nan=False, extra="forbid", use_attribute_docstrings=True)
    record: Any = pydantic.dataclasses.dataclass(frozen=True, config=config)(kind)
    validate = record.__init__

    @wraps(validate)
    def init(self: object, *values: Any, **named: Any) -> None:
        try:
            validate(self, *values, **named)
        except ValidationError as error:
            raise InputError(sentence(kind, error, {**dict(enumerate(values)), **named})) from None

    record.__init__ = init
    made: type[Record] = record
    return made


@dataclass(frozen=True)
class PartOf:
    """Marks a setting that names a part: `relaxation: Annotated[str, PartOf(lambda: RELAXATIONS)]`."""

    registry: Callable[[], Registry[Any]]

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, name: str) -> str:
        self.registry()[name]  # raises an InputError that names the nearest part
        return name


def change(record: Record, changes: Mapping[str, Any]) -> Record:
    """A record with some settings changed; a group's changes come as a mapping, or by dotted names.

    >>> from idarts.searching import Config
    >>> change(Config(), {"rounds": 7, "alpha": {"rate": 0.5}}).alpha.rate
    0.5
    >>> change(Config(), {"runds": 7})
    Traceback (most recent call last):
    idarts.errors.InputError: unknown setting 'runds'; did you mean rounds?
    """
    made: Record = _change(record, nested(changes), "")
    return made


def _change(record: Any, changes: Mapping[str, Any], prefix: str) -> Any:
    names = [part.name for part in fields(record)]
    values: dict[str, Any] = {}
    for name, value in changes.items():
        require_known("setting", f"{prefix}{name}", [f"{prefix}{known}" for known in names])
        group = getattr(record, name)
        if is_dataclass(group) and isinstance(value, Mapping):
            values[name] = _change(group, value, f"{prefix}{name}.")
        else:
            values[name] = value
    try:
        return replace(record, **values)
    except InputError as error:
        raise InputError(
            f"{prefix}{error}" if prefix and str(error).split(" ")[0].rstrip(":") in names else str(error)
        ) from None


def dotted(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Groups as dotted names.

    >>> dotted({"batch": 8, "weights": {"rate": 0.1}})
    {'batch': 8, 'weights.rate': 0.1}
    """
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= dotted(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names as groups: the reverse of `dotted`.

    >>> nested({"batch": 8, "weights.rate": 0.1})
    {'batch': 8, 'weights': {'rate': 0.1}}
    """
    tree: dict[str, Any] = {}
    for name, value in settings.items():
        group, dot, rest = name.partition(".")
        inner = {rest: value} if dot else value
        tree[group] = _merge(tree.get(group), nested(inner) if isinstance(inner, Mapping) else inner)
    return tree


def _merge(below: Any, above: Any) -> Any:
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{name: _merge(below.get(name), value) for name, value in above.items()}}


def adopt_parts(kind: type, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in which a user's own objects are replaced by names, under which their registries now know them.

    >>> from idarts.searching import Config
    >>> adopt_parts(Config, {"rounds": 3, "relaxation": len})
    {'rounds': 3, 'relaxation': 'builtins:len'}
    """
    registries = {setting.name: setting.registry for setting in settings_of(kind)}
    named: dict[str, Any] = {}
    for name, value in dotted(changes).items():
        registry = registries.get(name)
        named[name] = value if registry is None or value is None or isinstance(value, str) else registry.own(value)
    return named


Layer = Mapping[str, Any]


def resolve(
    default: Record, sources: Sequence[Layer], presets: Mapping[str, Layer], methods: Mapping[str, Layer] | None = None
) -> Record:
    """The settings that some sources describe: files first, the command line last. This is the rule of precedence.

    1. A later source overrides an earlier one.
    2. Within a source, single settings override its `method`, and its method overrides its `preset`.
    3. The method is that of the last source which names one. A preset never changes what a method is: its values for
       the settings that define the method do not count.
    4. What a file repeats from its own method does not count when a later source names another method.
    5. Options belong to a part: what overrides the name of a part also removes the options of the part before.

    Only the result has to be consistent: a file may need what the command line adds.
    """
    methods, parts = methods or {}, _parts(type(default))  # type: ignore[arg-type] # mypy: a class is not Hashable
    flat = [dotted(source) for source in sources]
    below = [_named("preset", source, presets) for source in flat]
    theirs = [_named("method", source, methods) for source in flat]
    names = [layer["method"] for layer in (*flat[::-1], *below[::-1]) if layer.get("method") is not None]
    method = names[0] if names else getattr(default, "method", None)
    own = dotted(methods.get(method, {})) if method is not None else {}
    changes = dict(own)
    for source, preset, their in zip(flat, below, theirs, strict=True):
        kept = _without_options(preset, own, parts)
        changes = _over(changes, {name: value for name, value in kept.items() if name not in own}, parts)
        again = source.get("method") == method
        changes = _over(changes, own if again else {}, parts)
        single = {name: value for name, value in source.items() if again or their.get(name, ...) != value}
        changes = _over(changes, single, parts)
    changes = {name: value for name, value in changes.items() if name not in ("preset", "method")}
    return change(default, {**changes, "method": method} if names else changes)


@dataclass(frozen=True)
class _Part:
    """A setting that names a part: its name, that of the setting with the part's options, and the default part."""

    name: str
    options: str
    default: Any


@cache
def _parts(kind: type) -> tuple[_Part, ...]:
    settings = {setting.name: setting for setting in settings_of(kind)}
    parts = []
    for name, setting in settings.items():
        candidates = f"{name}_options", f"{name.rpartition('.')[0]}.options"
        options = next((candidate for candidate in candidates if candidate in settings), None)
        if setting.registry is not None and options is not None:
            parts.append(_Part(name, options, setting.default))
    return tuple(parts)


def _over(below: Layer, above: Layer, parts: Sequence[_Part]) -> dict[str, Any]:
    """A layer above another."""
    return {**_without_options(below, above, parts), **above}


def _without_options(below: Layer, above: Layer, parts: Sequence[_Part]) -> dict[str, Any]:
    """A layer without the options of those parts in whose place the layer above has others."""
    others = [part for part in parts if above.get(part.name, ...) not in (..., below.get(part.name, part.default))]
    gone = tuple(f"{part.options}." for part in others)
    return {name: value for name, value in below.items() if not name.startswith(gone)}


def _named(what: str, source: Layer, known: Mapping[str, Layer]) -> dict[str, Any]:
    """The settings of the preset or method that a source names."""
    name = source.get(what)
    if name is None:
        return {}
    require_known(what, name, known)
    return dotted(known[name])


@dataclass(frozen=True)
class Setting:
    """One setting of a record, as `--help` and the command line need it."""

    name: str  # dotted
    kind: Any  # its annotation
    default: Any
    help: str
    group: tuple[str, str] | None = None  # name and explanation of its group

    @property
    def registry(self) -> Registry[Any] | None:
        """The registry that its value names a part of, or None."""
        marks = [mark for kind in members(self.kind) for mark in marks_of(kind) if isinstance(mark, PartOf)]
        return marks[0].registry() if marks else None

    @property
    def names(self) -> tuple[str, ...]:
        """The names that can be its value, for completion in a shell.

        >>> Setting("step", Positive | Literal["auto", "rate"], "auto", "").names
        ('auto', 'rate')
        """
        if self.registry is not None:
            return tuple(self.registry)
        literals = [member for member in members(self.kind) if get_origin(member) is Literal]
        truth = ("true", "false") if bool in members(self.kind) else ()
        return (*truth, *(str(value) for member in literals for value in get_args(member)))

    def read(self, text: str) -> Any:
        """The value of a text that was typed on the command line.

        >>> Setting("rounds", Count, 100, "").read("1e3")
        Traceback (most recent call last):
        idarts.errors.InputError: rounds is '1e3', expected a whole number of at least 1
        >>> Setting("step", Positive | Literal["auto"], "auto", "").read("1e-3")
        0.001
        """
        try:
            return self.check(_literal(text))
        except InputError:
            return self.check(text)

    def check(self, value: Any) -> Any:
        """The value, if the setting's type allows it; a list becomes a tuple where one is expected.

        >>> Setting("rounds", Count, 100, "").check("3")
        Traceback (most recent call last):
        idarts.errors.InputError: rounds is '3', expected a whole number of at least 1
        """
        try:
            return TypeAdapter(self.kind, config=ConfigDict(strict=True, allow_inf_nan=False)).validate_python(value)
        except ValidationError as error:
            message = reason(self.name, error) or f"{self.name} is {value!r}, expected {expected(self.kind)}"
            raise InputError(message) from None


def settings_of(kind: type, prefix: str = "", group: tuple[str, str] | None = None) -> Iterator[Setting]:
    """Every setting of a record and of its groups.

    >>> from idarts.searching import Config
    >>> next(iter(settings_of(Config))).name
    'rounds'
    """
    described = {
        name: info.description
        for base in reversed(kind.__mro__)
        for name, info in base.__dict__.get("__pydantic_fields__", {}).items()
        if info.description
    }
    hints = get_type_hints(kind, include_extras=True)
    for part in fields(kind):
        make: Any = part.default_factory
        if isinstance(make, type) and is_dataclass(make):
            yield from settings_of(make, f"{prefix}{part.name}.", (part.name, " ".join((make.__doc__ or "").split())))
            continue
        text = described.get(part.name, "")
        default = make() if callable(make) else part.default
        yield Setting(f"{prefix}{part.name}", hints[part.name], default, " ".join(text.split()), group)


def _literal(text: str) -> Any:
    """A typed text as a number, a truth value, a list or nothing; else the text."""
    lowered = text.strip().lower()
    if lowered in ("none", "null", "true", "false"):
        return {"none": None, "null": None, "true": True, "false": False}[lowered]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
