"""Parts by name: one registry for each kind of part, filled by the files that hold them, open to a user's own.

A registry belongs to a package. The first look-up imports the package's modules, and each module adds its part, so a
new part is one new file. A user's own part comes as an object from Python, or as `package.module:name` typed on the
command line. A name with a colon is imported only by `load`: nothing that a file says is ever imported.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, TypeVar

from idarts.errors import InputError, nearest

Part = TypeVar("Part")


class Registry(Generic[Part]):
    """The parts of one kind, such as relaxations, by their names.

    >>> colours: Registry[int] = Registry("colour")
    >>> colours.add("red", 0xFF0000)
    16711680
    >>> list(colours), colours["red"] == 0xFF0000
    (['red'], True)
    >>> colours["redd"]
    Traceback (most recent call last):
    idarts.errors.InputError: unknown colour 'redd'; did you mean red?
    """

    def __init__(self, kind: str, package: str | None = None, *, folders: bool = False) -> None:
        """`folders`: only the package's folders hold parts; the files beside them are not imported."""
        self.kind, self.package, self.folders = kind, package, folders
        self._parts: dict[str, Part] = {}
        self._own: dict[str, Part] = {}
        self._complete = package is None

    def add(self, name: str, part: Part) -> Part:
        """Add a part of this package; two parts cannot share a name."""
        if self._parts.get(name, part) is not part:
            raise InputError(f"there are two {self.kind}s called {name!r}; rename one")
        self._parts[name] = part
        return part

    def register(self, name: str) -> Callable[[Part], Part]:
        """`add` as a decorator.

        >>> steps: Registry[object] = Registry("step")
        >>> @steps.register("nothing")
        ... def nothing() -> None: ...
        >>> steps["nothing"] is nothing
        True
        """
        return lambda part: self.add(name, part)

    def own(self, part: Part, name: str | None = None) -> str:
        """Take a user's own part for the rest of this process, and return the name that settings give it.

        >>> steps: Registry[object] = Registry("step")
        >>> steps.own(len)
        'builtins:len'
        """
        label = name or f"{getattr(part, '__module__', type(part).__module__)}:{_qualified(part)}"
        self._own[label] = part
        return label

    def load(self, reference: str) -> str:
        """Import a user's own part, written `package.module:name`, and return its name. For what a person typed only.

        >>> steps: Registry[object] = Registry("step")
        >>> steps.load("json:dumps")
        'json:dumps'
        >>> steps.load("json:dupms")
        Traceback (most recent call last):
        idarts.errors.InputError: step json:dupms: the module json has no 'dupms'; did you mean dumps?
        """
        if reference in self._own:
            return reference
        module_name, _, attribute = reference.partition(":")
        try:
            module = import_module(module_name)
        except Exception as error:  # whatever a user's module raises when it is imported
            reason = " ".join(str(error).split()) or type(error).__name__
            raise InputError(
                f"{self.kind} {reference}: {module_name} cannot be imported ({reason}); is it on PYTHONPATH?"
            ) from error
        if not hasattr(module, attribute):
            raise InputError(
                f"{self.kind} {reference}: the module {module_name} has no {attribute!r}; "
                f"{nearest(attribute, dir(module), 'write package.module:name')}"
            )
        self._own[reference] = getattr(module, attribute)
        return reference

    def name_of(self, part: Part) -> str | None:
        """The name of a part that is known here, or None."""
        return next((name for name, known in self.parts().items() if known is part), None)

    def parts(self) -> dict[str, Part]:
        """All parts by their names, a user's own included."""
        self._discover()
        return {**self._parts, **self._own}

    def __getitem__(self, name: str) -> Part:
        self._discover()
        if name in self._own:
            return self._own[name]
        if name not in self._parts:
            raise InputError(self.unknown(name))
        return self._parts[name]

    def unknown(self, name: object) -> str:
        """What to say of a name that is not here."""
        self._discover()
        if isinstance(name, str) and ":" in name:
            return f"the {self.kind} {name} is not loaded; name it on the command line, or pass the object from Python"
        return f"unknown {self.kind} {name!r}; {nearest(name, sorted(self._parts))}"

    def __contains__(self, name: object) -> bool:
        self._discover()
        return name in self._parts or name in self._own

    def __iter__(self) -> Iterator[str]:
        """The names of the parts that this package ships, sorted."""
        self._discover()
        return iter(sorted(self._parts))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _discover(self) -> None:
        """Import the package's modules, each of which adds its parts."""
        if self._complete or self.package is None:
            return
        self._complete = True  # before the imports: a module may look a part up while it is imported
        try:
            for module in sorted(iter_modules(import_module(self.package).__path__), key=lambda info: info.name):
                if not module.name.startswith("_") and (module.ispkg or not self.folders):
                    import_module(f"{self.package}.{module.name}")
        except BaseException:
            self._complete = False  # the next look-up fails in the same way, rather than with parts missing
            raise


def _qualified(part: object) -> str:
    return str(getattr(part, "__qualname__", getattr(part, "name", type(part).__qualname__)))
