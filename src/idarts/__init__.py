"""Gradient-based neural architecture search that a person can run, read and trust.

>>> import idarts
>>> idarts.__version__
'0.1.0'
"""

from idarts._version import __version__
from idarts.errors import IdartsError, InputError, NotDifferentiableError, NotFiniteError

__all__ = ["IdartsError", "InputError", "NotDifferentiableError", "NotFiniteError", "__version__"]
