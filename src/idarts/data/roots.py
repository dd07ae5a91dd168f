"""The data root: the folder that a person names, or the one in IDARTS_DATA."""

import os
from collections.abc import Sequence
from pathlib import Path

from idarts.errors import InputError

VARIABLE = "IDARTS_DATA"


def locate(
    patterns: Sequence[str],
    root: "str | os.PathLike[str] | None",
    what: str,
    expected: str,
    fallback: Sequence[str] = (),
) -> Path:
    """The first file or folder that matches one of `patterns` (globs), in the root or in the `fallback` folders.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "cifar10.npz").touch()
    ...     locate(["cifar10", "cifar10*.npz"], folder, "cifar10", "cifar10.npz").name
    'cifar10.npz'
    """
    named = root if root is not None else os.environ.get(VARIABLE)
    if named is not None and not Path(named).is_dir():
        raise InputError(f"the data root {named} does not exist; correct --data-root or {VARIABLE}")
    folders = [Path(named)] if named is not None else []
    for folder in [*folders, *map(Path, fallback)]:
        for pattern in patterns:
            files = sorted(folder.glob(pattern))
            if len(files) > 1:
                names = ", ".join(file.name for file in files[:4])
                raise InputError(f"{folder} holds several files for {what} ({names}); name one with npz:PATH")
            if files:
                return files[0]
    if named is None:
        raise InputError(
            f"{what} needs its files; give their folder with --data-root or {VARIABLE}; expected there: {expected}"
        )
    raise InputError(f"{what} is not in {named}; expected there: {expected}")
