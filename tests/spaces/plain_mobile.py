"""The mobile supernet option by option: every option is the block of a discrete network, run alone on its weights."""

import torch
from torch import nn
from torch.func import functional_call

from idarts.spaces.chains import SKIP
from idarts.spaces.mobile.chain import CHAIN, SHAPES
from idarts.spaces.mobile.network import InvertedResidual


class PlainMobile(nn.Module):
    """Has the parameters of a fused supernet, and running statistics of its own for each BatchNorm of each option."""

    def __init__(self, net):
        super().__init__()
        self.net, self.alpha = net, net.alpha
        self.statistics = [
            {option: part(block, option, "running_mean") | part(block, option, "running_var") for option in SHAPES}
            for block in net.blocks
        ]

    def forward(self, images, weights=None):
        """`weights` by group, in place of α's softmax; an option with weight None does not run."""
        if weights is None:
            weights = {group: alpha.softmax(1) for group, alpha in self.alpha.items()}
        x, rows = self.net.stem(images), {"first": iter(weights["first"]), "further": iter(weights.get("further", ()))}
        for number, block in enumerate(self.net.blocks):
            options = CHAIN.further if block.place.further else CHAIN.first
            row = next(rows["further" if block.place.further else "first"])
            x = sum(
                weight * (x if option == SKIP else self.option(number, option, x))
                for option, weight in zip(options, row, strict=True)
                if weight is not None
            )
        return self.net.classifier(self.net.head(x).mean(dim=(2, 3)))

    def option(self, number, option, x):
        block = self.net.blocks[number]
        with torch.device("meta"):
            alone = InvertedResidual(block.place, *SHAPES[option]).train(self.training)
        for norm in (alone.layers[i] for i in (1, 4, 7)):
            norm.weight = norm.bias = norm.num_batches_tracked = None  # the supernet's have none
        return functional_call(alone, weights_of(block, option) | self.statistics[number][option], (x,))


def weights_of(block, option):
    """The convolutions of one option, under the names that the discrete block gives them."""
    kernel, expansion = SHAPES[option]
    wide, filters = expansion * block.place.inputs, block.kernels[str(kernel)]
    return {
        "layers.0.weight": block.expand[:wide],
        "layers.3.weight": filters.weight[:wide],
        "layers.6.weight": filters.narrow[str(expansion)],
    }


def part(block, option, name):
    """Copies of one option's running statistics."""
    kernel, expansion = SHAPES[option]
    wide, filters = expansion * block.place.inputs, block.kernels[str(kernel)]
    values = {1: getattr(block.norm, name)[:wide], 4: getattr(filters.norm, name)[:wide]}
    values[7] = getattr(filters.norms[str(expansion)], name)
    return {f"layers.{layer}.{name}": value.clone() for layer, value in values.items()}
