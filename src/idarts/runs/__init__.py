"""A run: some work that goes round by round, in a folder of its own, that can be stopped, killed and gone on with."""

from idarts.runs import checkpoint
from idarts.runs.conduct import Interrupted, Job, Options, Tell, Work, conduct
from idarts.runs.device import device_named
from idarts.runs.folder import named, read_config, read_log

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
