"""One run on many devices: processes started by `torchrun`, each with a share of every batch. Alone it is all idle."""

from idarts.engine.ranks.agree import any_of, gathered, on_first, require_same, wait_for_all
from idarts.engine.ranks.clock import Clock
from idarts.engine.ranks.collectives import (
    Traffic,
    all_mean,
    all_sum,
    begin_alike,
    joint_statistics,
    mean_buffers,
    mean_gradients,
    traffic,
)
from idarts.engine.ranks.group import joined, local_rank, rank, restarted, said_by_first, share, world

__all__ = [
    "Clock",
    "Traffic",
    "all_mean",
    "all_sum",
    "any_of",
    "begin_alike",
    "gathered",
    "joined",
    "joint_statistics",
    "local_rank",
    "mean_buffers",
    "mean_gradients",
    "on_first",
    "rank",
    "require_same",
    "restarted",
    "said_by_first",
    "share",
    "traffic",
    "wait_for_all",
    "world",
]
