"""Layers with a cheap double backward, and the parts of fused supernets. Other packages import from here."""

from idarts.layers.fallback import must_fall_back
from idarts.layers.functions import Linear
from idarts.layers.graph import Fan, FusedGraph, complete_edges
from idarts.layers.lean import avg_pool2d, batch_norm, conv2d, lean, lean_depthwise, relu, statistics_by, unlean
from idarts.layers.mixing import mix
from idarts.layers.mixture import Mixture, multi_hot, one_hot
from idarts.layers.parallel import Block, Parallel, ParallelNorm, ParallelReduce
from idarts.layers.pooling import max_pool2d

__all__ = [
    "Block",
    "Fan",
    "FusedGraph",
    "Linear",
    "Mixture",
    "Parallel",
    "ParallelNorm",
    "ParallelReduce",
    "avg_pool2d",
    "batch_norm",
    "complete_edges",
    "conv2d",
    "lean",
    "lean_depthwise",
    "max_pool2d",
    "mix",
    "multi_hot",
    "must_fall_back",
    "one_hot",
    "relu",
    "statistics_by",
    "unlean",
]
