"""The package's own errors: one sentence that says what was wrong, where, and what to do.

The command line turns an `InputError` into exit code 2 (the user can fix it) and any other failure into 1.
"""


class IdartsError(Exception):
    """Base of every error the package raises on purpose."""


class InputError(IdartsError, ValueError):
    """Something the caller gave cannot be used as it is."""


class NotFiniteError(IdartsError, RuntimeError):
    """A loss or a gradient became infinite or NaN."""


class NotDifferentiableError(IdartsError, RuntimeError):
    """A loss has an operation that cannot be differentiated as often as the method needs."""


class SingularCurvatureError(IdartsError, RuntimeError):
    """The inner curvature has no inverse."""


class DivergenceWarning(UserWarning):
    """A Neumann series grows instead of converging."""


class CollapseWarning(UserWarning):
    """A search drifts to skip connections."""
