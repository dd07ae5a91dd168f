"""Data sources by name. One source is one file here, which adds itself to `SOURCES`.

A source is a function of the text after the colon of its name and of the data root. It returns a `Raw`, or anything
else that `idarts.data.load` takes from Python: `(x, y)`, `((x, y), (x_test, y_test))`, or torch Datasets.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from idarts.errors import InputError
from idarts.registry import Registry

Root: TypeAlias = "str | os.PathLike[str] | None"
Read: TypeAlias = Callable[[str, Root], Any]


@dataclass(frozen=True)
class Source:
    """A source of the package. `path` says what follows the colon of its name, if anything does.

    >>> Source(lambda path, root: path.upper(), path="TEXT")("a", None)
    'A'
    """

    read: Read
    path: str = ""
    where: Callable[[], str] | None = None  # where its files are, or the InputError of `read`: for `idarts doctor`

    def __call__(self, path: str, root: Root) -> Any:
        return self.read(path, root)


SOURCES: Registry[Read] = Registry("data source", "idarts.data.sources")


def source_names() -> list[str]:
    """All sources of the package, as a person writes them.

    >>> source_names()[-2:]
    ['folder:PATH', 'npz:PATH']
    """
    return [f"{name}:{path}" if (path := _path(name)) else name for name in sorted(SOURCES)]


def read_source(text: str, root: Root) -> Any:
    """What the source with this name returns.

    >>> read_source("folder:", None)
    Traceback (most recent call last):
    idarts.errors.InputError: the data source 'folder:' has no path; write folder:PATH
    """
    name, path = parted(text)
    return SOURCES[name](path, root)


def parted(text: str) -> tuple[str, str]:
    """The name of a known source, and the path after its colon.

    >>> parted("npz:a.npz"), parted("digits")
    (('npz', 'a.npz'), ('digits', ''))
    >>> parted("fotos")
    Traceback (most recent call last):
    idarts.errors.InputError: there is no folder, file or data source 'fotos'; the sources are cifar10, cifar100, ...
    """
    # A user's own name has a colon itself, as in package.module:name. The names of the package come first.
    words = text.split(":")
    for count in (1, 2):
        name, path = ":".join(words[:count]), ":".join(words[count:])
        if name in SOURCES and (not path or _path(name) != ""):
            if _path(name) and not path.strip():
                raise InputError(f"the data source {text!r} has no path; write {name}:{_path(name)}")
            return name, path
    raise InputError(_unknown(text))


def load_typed(text: str) -> None:
    """Import a user's own source that was typed as `package.module:name`. The names of the package come first.

    >>> load_typed("npz:a.npz")
    """
    module, colon, rest = text.partition(":")
    if colon and module not in SOURCES:
        try:
            SOURCES.load(f"{module}:{rest.partition(':')[0]}")
        except InputError as error:
            raise InputError(f"{error} {_nearest(text)}") from None


def absolute(text: str) -> str:
    """The same source, to be read from any directory.

    >>> absolute("digits"), absolute("folder:/pets"), absolute("npz:a.npz") == f"npz:{Path.cwd()}/a.npz"
    ('digits', 'folder:/pets', True)
    """
    name, _, path = text.partition(":")
    if name not in SOURCES or not _path(name) or not path.strip():
        return text
    return f"{name}:{Path(path).expanduser().absolute()}"


def short_name(text: str) -> str:
    """The name of a source for titles: without the folders above it.

    >>> short_name("folder:photos/pets"), short_name("npz:a.npz"), short_name("cifar10")
    ('pets', 'a.npz', 'cifar10')
    """
    name, _, path = text.partition(":")
    return Path(path).name or text if name in SOURCES and _path(name) else text


def _path(name: str) -> str | None:
    """What must follow the colon of a name: nothing if empty; None for a user's own source, which decides itself."""
    source = SOURCES[name]
    return source.path if isinstance(source, Source) else None


def _unknown(text: str) -> str:
    path = Path(text).expanduser()
    if text.strip() and path.is_dir():
        hint = f"for the folder of that name, write folder:{text}"
    elif path.is_file():
        hint = f"for the file of that name, write npz:{text}"
    elif ":" in text:
        hint = f"{_nearest(text)} (type your own on the command line, or pass it from Python)"
    elif "/" in text:
        return f"there is no folder or file {text!r}; correct its path"
    else:
        return f"there is no folder, file or data source {text!r}; {_nearest(text)}"
    return f"unknown data source {text!r}; {hint}"


def _nearest(text: str) -> str:
    """The source that a person may mean, or all of them."""
    written = {name.partition(":")[0]: name for name in source_names()}
    close = get_close_matches(text.partition(":")[0].lower()[:100], written, n=1, cutoff=0.7)
    return f"did you mean {written[close[0]]}?" if close else f"the sources are {', '.join(written.values())}"
