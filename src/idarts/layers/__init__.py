"""Layers with a cheap double backward, and the pieces that fused supernets are built of."""

from idarts.layers.graph import Fan, FusedGraph, complete_edges
from idarts.layers.lean import batch_norm, conv2d, lean, relu, statistics_by
from idarts.layers.mixing import mix
from idarts.layers.mixture import Mixture, chosen, one_hot
from idarts.layers.parallel import Block, Parallel, ParallelNorm, ParallelReduce
from idarts.layers.pooling import max_pool2d

__all__ = [
    "Block",
    "Fan",
    "FusedGraph",
    "Mixture",
    "Parallel",
    "ParallelNorm",
    "ParallelReduce",
    "batch_norm",
    "chosen",
    "complete_edges",
    "conv2d",
    "lean",
    "max_pool2d",
    "mix",
    "one_hot",
    "relu",
    "statistics_by",
]
