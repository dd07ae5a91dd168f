"""Modules that run as one against the same modules one by one."""

import pytest
import torch
from torch.autograd import grad

from idarts.layers import parallel
from idarts.layers.parallel import Block, Parallel, ParallelReduce, run_all
from idarts.layers.reading import Reads


def modules(stride):
    """Two pairs that differ in their kernels only, a reduction, and a module that is not depthwise."""
    torch.manual_seed(0)
    chains = [[Block(kernel, stride, separable=True), Block(kernel, separable=True)] for kernel in (3, 5)]
    chains += [[Block(kernel, stride, 2, separable=True)] for kernel in (3, 5)]
    every = [Parallel(3, 2, chain) for chain in [*chains, [Block(3, stride)]]]
    return torch.nn.ModuleList([*every, ParallelReduce(3, 2)] if stride == 2 else every).double()


def results(every, x, scales):
    reads = Reads(x.relu())
    parts = run_all(list(every), reads, scales.unbind())
    return len(parts), reads.total(parts)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("side", [6, 7])
@pytest.mark.parametrize("training", [True, False])
def test_modules_of_one_kind_run_as_one(stride, side, training, monkeypatch):
    alone, joint = modules(stride).train(training), modules(stride).train(training)
    x = torch.randn(4, 3, side, side, dtype=torch.float64, requires_grad=True)
    x = x.contiguous(memory_format=torch.channels_last)
    scales = torch.rand(len(alone), 2, dtype=torch.float64, requires_grad=True)
    values = []
    for every, limit, count in ((alone, 0, len(alone)), (joint, 10**6, len(alone) - 2)):
        monkeypatch.setattr(parallel, "SMALL", limit)
        number, y = results(every, x, scales)
        assert number == count
        inputs = [x, scales, *every.parameters()]
        first = grad(y.square().sum(), inputs, create_graph=True)
        second = grad(sum(part.square().sum() for part in first), inputs)
        values.append([y, *first, *second, *every.buffers()])
    for one, other in zip(*values, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)
