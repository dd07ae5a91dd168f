"""The package's own errors: one sentence that says what was wrong, where, and what to do.

The command line turns an `InputError` into exit code 2 (the user can fix it) and any other failure into 1.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class IdartsError(Exception):
    """Base of every error the package raises on purpose."""


class InputError(IdartsError, ValueError):
    """Something the caller gave cannot be used as it is."""


class WriteError(InputError):
    """A file cannot be written."""


class NotFiniteError(IdartsError, RuntimeError):
    """A loss or a gradient became infinite or NaN."""


class NotDifferentiableError(IdartsError, RuntimeError):
    """A loss has an operation that cannot be differentiated as often as the method needs."""


class SingularCurvatureError(IdartsError, RuntimeError):
    """The inner curvature has no inverse."""


def require_known(what: str, name: object, names: Iterable[str]) -> None:
    """Refuse a name that is none of these.

    >>> require_known("preset", "smok", ["smoke", "cpu"])
    Traceback (most recent call last):
    idarts.errors.InputError: unknown preset 'smok'; did you mean smoke?
    """
    names = list(names)
    if name not in names:
        raise InputError(f"unknown {what} {name!r}; {nearest(name, names)}")


def nearest(name: object, names: Iterable[str], otherwise: str | None = None) -> str:
    """A hint for a name that is none of these: the one that was probably meant, or else all of them.

    >>> nearest("smok", ["smoke", "cpu"]), nearest("gpu", ["smoke", "cpu"])
    ('did you mean smoke?', 'there are smoke, cpu')
    """
    names = list(names)
    close = get_close_matches(str(name)[:100], names, n=1, cutoff=0.7)
    return f"did you mean {close[0]}?" if close else otherwise or f"there are {', '.join(names)}"


def command(*words: object) -> str:
    """A command of idarts to be printed, so that it can be pasted into a shell, with any names in it.

    >>> command("report", "my runs/1")
    "idarts report 'my runs/1'"
    """
    import shlex  # noqa: PLC0415 (importing idarts must cost little)

    return shlex.join(["idarts", *map(str, words)])


class DivergenceWarning(UserWarning):
    """A Neumann series grows instead of converging."""


class CurvatureWarning(UserWarning):
    """The inner curvature is not what a method needs: it is negative, or its products are wrong."""


class CollapseWarning(UserWarning):
    """A search drifts to skip connections."""
