"""One run on many devices: processes started by `torchrun`, each with a share of every batch.

Without `torchrun` there is one rank, and all of these functions return what they were given.
"""

from idarts.engine.ranks.agree import any_of, gather, on_first, require_equal, require_same, wait_for_all
from idarts.engine.ranks.clock import Clock
from idarts.engine.ranks.collectives import (
    Traffic,
    all_mean,
    all_sum,
    average_buffers,
    average_gradients,
    copy_from_first,
    joint_statistics,
    traffic,
)
from idarts.engine.ranks.group import local_rank, process_group, rank, reported_by_first, restarted, share, world

__all__ = [
    "Clock",
    "Traffic",
    "all_mean",
    "all_sum",
    "any_of",
    "average_buffers",
    "average_gradients",
    "copy_from_first",
    "gather",
    "joint_statistics",
    "local_rank",
    "on_first",
    "process_group",
    "rank",
    "reported_by_first",
    "require_equal",
    "require_same",
    "restarted",
    "share",
    "traffic",
    "wait_for_all",
    "world",
]
