"""A run: some work that goes round by round, in a folder of its own, that can be stopped, killed and gone on with."""

from idarts.engine import checkpoint
from idarts.engine.device import device_named
from idarts.engine.folder import named, read_config, read_log
from idarts.engine.run import Interrupted, Job, Options, Tell, Work, conduct

__all__ = [
    "Interrupted",
    "Job",
    "Options",
    "Tell",
    "Work",
    "checkpoint",
    "conduct",
    "device_named",
    "named",
    "read_config",
    "read_log",
]
