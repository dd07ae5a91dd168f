"""Counts of a network, by our counter and independently of it."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from idarts.spaces import count, network


def counted_parameters(architecture, skeleton):
    """The parameters by our counter, after a check of it by the network itself and by torch's counter."""
    net = network(architecture, skeleton)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        net.eval()(torch.zeros(1, 3, skeleton.image, skeleton.image))
    counted = count(architecture, skeleton)
    assert counted.params == sum(p.numel() for p in net.parameters())
    biases = skeleton.classes  # ours counts them, torch's does not
    assert counted.multiply_adds["conv+fc"] == counter.get_total_flops() // 2 + biases
    return counted.params
