"""The methods, one file each, by name. A new method is one new file that adds itself to `SOLVERS`."""

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from inspect import signature
from typing import Any

from idarts.errors import InputError, nearest
from idarts.hypergrad.method import Method
from idarts.registry import Registry

SOLVERS: Registry[type[Method] | Method] = Registry("hypergradient method", __name__)


def make_method(name: str, options: Mapping[str, Any] | None = None) -> Method:
    """Build a method from its registered name and plain options.

    A user's own method works here after `SOLVERS.own(part)` or `SOLVERS.load("package.module:name")`. The part is a
    class, which takes the options as keywords, or an object, of which the options replace fields.

    >>> make_method("one-step", {"step": 0.1}).step
    0.1
    >>> make_method("first-order", {"step": 0.1})
    Traceback (most recent call last):
    idarts.errors.InputError: first-order has no option 'step'; it has none
    """
    part, options = SOLVERS[name], options or {}
    own_class = part if isinstance(part, type) else type(part)
    if not issubclass(own_class, Method):
        raise InputError(f"{name} is not a method; give a class or an object derived from idarts.hypergrad.Method")
    parameters = signature(own_class).parameters if part is own_class or is_dataclass(part) else {}
    for option in options:
        if option not in parameters:
            choices = f"it has {', '.join(parameters) or 'none'}"
            raise InputError(f"{name} has no option {option!r}; {nearest(option, parameters, choices)}")
    if isinstance(part, Method):
        return replace(part, **options) if options and is_dataclass(part) else part
    missing = [key for key, value in parameters.items() if value.default is value.empty and key not in options]
    if missing:
        raise InputError(f"{name} needs a value for {' and '.join(missing)}")
    return part(**options)
