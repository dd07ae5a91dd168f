"""A search space as one record, and the registry of these records.

A space is one folder in `idarts.spaces`, whose `__init__.py` adds its record to `SPACES`. That file is imported when
the first architecture is made, so it must not import torch; `lazy` names the parts that need it. A user's own space is
added with `SPACES.own(space, space.name)`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from random import Random
from reprlib import repr as short
from typing import TYPE_CHECKING, Any
from warnings import warn

from idarts.arch.skeleton import Skeleton
from idarts.arch.style import Style
from idarts.errors import InputError
from idarts.registry import Registry

if TYPE_CHECKING:
    from idarts.arch.growth import Growth
    from idarts.arch.record import Architecture

SPACES: Registry["Space"] = Registry("space", "idarts.spaces", folders=True)


@dataclass(frozen=True)
class Absent:
    """The place of a part that a space does not have; calling it raises an InputError, which may give a reason.

    >>> Space(name="mine", check=print, size=3).latency()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    idarts.errors.InputError: the space mine has no 'latency'; spaces with it: ...nas-bench-201...
    """

    reason: str = ""
    space: str = ""
    part: str = ""

    def __call__(self, *_: Any, **__: Any) -> Any:
        others = [space.name for space in all_spaces() if space.has(self.part)]
        reason = f" ({self.reason})" if self.reason else ""
        raise InputError(f"the space {self.space} has no {self.part!r}{reason}; spaces with it: {', '.join(others)}")


def lazy(reference: str) -> Callable[..., Any]:
    """A function or class that is imported when it is first called.

    >>> lazy("json:dumps")([1, 2])
    '[1, 2]'
    """
    module, _, name = reference.partition(":")

    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*arguments, **named)

    return call


def _not_mine(_form: Any) -> None:
    """The `parse` of a space without its own text form: its architectures are written as JSON."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Space:
    """All that is particular to a search space. Only `name` and `check` are required.

    >>> from idarts.arch import Architecture
    >>> def check(architecture):
    ...     if set(architecture.choices) != {"kernel"}:
    ...         raise InputError("expected one choice, called 'kernel'")
    >>> _ = SPACES.own(Space(name="one-layer", check=check), "one-layer")
    >>> Architecture("one-layer", choices={"kernel": "3"}).choices["kernel"]
    '3'
    >>> Architecture("one-layer", choices={"width": "3"})
    Traceback (most recent call last):
    idarts.errors.InputError: expected one choice, called 'kernel'
    """

    name: str
    """what a search calls the space"""
    check: Callable[["Architecture"], None]
    """raises an InputError that says what the space does not allow; `idarts.arch.rules.CellRules` for cells"""
    record: str = ""
    """what its architectures call the space, where that is not `name`: several spaces may share one"""
    variant: str | None = None
    """which of the spaces that share `record` this is"""

    parse: Callable[[Any], "Architecture | None"] = _not_mine
    """the architecture that a text or a mapping from JSON describes, or None if it is in no form of this space"""
    reads: str = ""
    """the texts that `parse` reads, in a few words"""
    forms: Mapping[str, Callable[["Architecture"], str]] = field(default_factory=dict)
    """functions that write an architecture as text, by the names that `idarts arch convert --to` gives them"""
    text_form: str = "json"
    """the form that users of the space know"""
    style: Style = field(default_factory=Style)
    """names and words for drawings"""
    labels: Callable[[str, tuple[int, ...]], tuple[list[str], list[str]]] = Absent()
    """names for the rows and columns of an α, from its name and shape"""

    size: int | None = None
    """how many architectures the space describes; different ones may be the same network"""
    identity: Callable[["Architecture"], str] = str
    """a text that is the same for architectures that are the same network"""
    sample: Callable[[Random], "Architecture"] = Absent()
    """a random architecture"""
    mutate: Callable[["Architecture", Random], "Architecture"] = Absent()
    """the architecture with one decision changed"""
    fixed: Callable[[], "Architecture"] = Absent()
    """a well-known block, made by hand, which `idarts fit` compares its network with"""
    growth: "Callable[[], Growth]" = Absent()
    """how its cells grow node by node, for strategies that build them so"""

    supernet: Callable[..., Any] = Absent()
    """builds a `Supernet` from (skeleton, in_channels=…, relaxation=…)"""
    network: Callable[..., Any] = Absent()
    """builds a module from (architecture, skeleton, in_channels=…, and what the next two flags allow)"""
    has_auxiliary: bool = False
    """`network` also takes auxiliary=…, which gives the module an auxiliary head called `auxiliary`"""
    has_drop_path: bool = False
    """`network` also takes drop_path=…, an attribute of the module that may change at any time"""
    skeletons: Mapping[str, Skeleton] = field(default_factory=dict)
    """published skeletons by name; the first is the default"""
    depth_of: "Callable[[Architecture], int] | None" = None
    """the depth of an architecture, in a space where every block is a decision: a network has it in any skeleton"""
    search_skeleton: Skeleton | None = None
    """the skeleton of the supernet, where that is not the default"""

    prices: Callable[..., Any] = Absent()
    """`idarts.spaces.prices.Prices` from (whole, supernet): `whole` gives the cost of an architecture's network"""
    latency: Callable[..., Any] = Absent()
    """measures what `latency_prices` needs, as a mapping for JSON, with (skeleton, milliseconds)"""
    latency_prices: Callable[..., Any] = Absent()
    """`Prices` from (a mapping that `latency` made, supernet)"""

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # the dataclass is frozen for everyone else
        set_field(self, "record", self.record or self.name)
        for part, value in list(vars(self).items()):
            if isinstance(value, Absent):
                set_field(self, part, replace(value, space=self.name, part=part))

    def has(self, part: str) -> bool:
        """Whether the space has an optional part, such as `supernet`.

        >>> [SPACES[name].has("supernet") for name in ("darts", "nas-bench-101")]
        [True, False]
        """
        return not isinstance(getattr(self, part), Absent)

    @property
    def skeleton(self) -> Skeleton:
        """The skeleton in which the space is searched."""
        return self.search_skeleton or self.resolve()

    @property
    def macro(self) -> Skeleton:
        """Deprecated: the name of `skeleton` in version 0.1."""
        warn("Space.macro is deprecated; use Space.skeleton", DeprecationWarning, stacklevel=2)
        return self.skeleton

    def resolve(self, skeleton: str | Skeleton | None = None, **changes: int | None) -> Skeleton:
        """A skeleton, or the published one of that name (the default for None), with changes.

        >>> SPACES["darts"].resolve("cifar", depth=8).channels
        36
        >>> SPACES["darts"].resolve("mnist")
        Traceback (most recent call last):
        idarts.errors.InputError: unknown skeleton 'mnist' of darts, expected one of cifar, imagenet
        """
        if not isinstance(skeleton, Skeleton):
            if not self.skeletons:
                raise InputError(f"the space {self.name} has no skeleton: its architectures are only parts of a model")
            if skeleton is not None and skeleton not in self.skeletons:
                raise InputError(
                    f"unknown skeleton {short(skeleton)} of {self.record}, expected {_one_of(self.skeletons)}"
                )
            skeleton = self.skeletons[skeleton or next(iter(self.skeletons))]
        return skeleton.changed(**changes)


def all_spaces() -> list[Space]:
    """All spaces, a user's own included, by name.

    >>> names = [space.name for space in all_spaces()]
    >>> names == sorted(names)
    True
    """
    spaces = (part for part in SPACES.parts().values() if isinstance(part, Space))  # anything may have been typed
    return sorted(spaces, key=lambda space: space.name)


def space_of(architecture: "Architecture") -> Space:
    """The space of an architecture.

    >>> from idarts.arch import parse
    >>> space_of(parse("DARTS_V2")).name
    'darts'
    """
    return _named(architecture.space, architecture.variant)


def sample(space: str, random: Random, variant: str | None = None) -> "Architecture":
    """A random architecture of a space: uniform over the decisions of a search in it.

    >>> sample("darts", Random(0)) == sample("darts", Random(0))
    True
    """
    return (SPACES[space] if variant is None and space in SPACES else _named(space, variant)).sample(random)


def mutate(architecture: "Architecture", random: Random) -> "Architecture":
    """The architecture with one decision changed at random, as regularised evolution needs it.

    >>> from idarts.arch import parse
    >>> mutate(parse("DARTS_V2"), Random(0)) == parse("DARTS_V2")
    False
    """
    return space_of(architecture).mutate(architecture, random)


def _named(record: Any, variant: Any) -> Space:
    for space in SPACES.parts().values():
        if isinstance(space, Space) and space.record == record and space.variant == variant:
            return space
    variants = [space.variant or "none" for space in all_spaces() if space.record == record]
    if not variants:
        raise InputError(f"unknown space {short(record)}: expected {_one_of(space.record for space in all_spaces())}")
    raise InputError(f"{record}: variant is {short(variant)}, expected {_one_of(variants)}")


def _one_of(names: Iterable[str]) -> str:
    different = list(dict.fromkeys(names))
    return different[0] if len(different) == 1 else f"one of {', '.join(different)}"
