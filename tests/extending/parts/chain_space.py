"""A space of one's own: a chain of two convolutions, each with a kernel of 1 or 3, or none at all."""

import torch
from torch import nn

from idarts import InputError
from idarts.arch import Architecture
from idarts.layers import one_hot
from idarts.spaces import Skeleton, Space, Supernet, softmax

OPTIONS = ("skip", "1", "3")
BLOCKS = ("first", "second")


def check(architecture):
    if set(architecture.choices) != set(BLOCKS) or not set(architecture.choices.values()) <= set(OPTIONS):
        raise InputError(f"chain: expected {' and '.join(BLOCKS)}, each one of {', '.join(OPTIONS)}")


def sample(random):
    return Architecture("chain", choices={block: random.choice(OPTIONS) for block in BLOCKS})


def mutate(architecture, random):
    block = random.choice(BLOCKS)
    other = random.choice([option for option in OPTIONS if option != architecture.choices[block]])
    return Architecture("chain", choices={**architecture.choices, block: other})


def branch(option, channels):
    return nn.Identity() if option == "skip" else nn.Conv2d(channels, channels, int(option), padding=int(option) // 2)


class ChainSupernet(Supernet):
    def __init__(self, skeleton, in_channels=3, relaxation=softmax):
        super().__init__({"blocks": (len(BLOCKS), len(OPTIONS))}, relaxation)
        self.stem = nn.Conv2d(in_channels, skeleton.channels, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.ModuleList(branch(option, skeleton.channels) for option in OPTIONS) for _ in BLOCKS
        )
        self.head = nn.Linear(skeleton.channels, skeleton.classes)

    def mixed(self, images, mixtures):
        x, mixture = self.stem(images), mixtures["blocks"]
        for row, options in enumerate(self.blocks):
            x = sum(
                mixture.weights[row, column] * option(x)
                for column, option in enumerate(options)
                if mixture.runs(row, column)
            )
        return self.head(torch.relu(x).mean(dim=(2, 3)))

    def architecture(self):
        columns = self.alpha["blocks"].argmax(1).tolist()
        return Architecture("chain", choices={b: OPTIONS[column] for b, column in zip(BLOCKS, columns, strict=True)})

    def path(self, architecture):
        columns = [OPTIONS.index(architecture.choices[block]) for block in BLOCKS]
        return {"blocks": one_hot(columns, len(OPTIONS), self.alpha["blocks"])}


def network(architecture, skeleton, in_channels=3):
    return nn.Sequential(
        nn.Conv2d(in_channels, skeleton.channels, 3, padding=1),
        *(branch(architecture.choices[block], skeleton.channels) for block in BLOCKS),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(skeleton.channels, skeleton.classes),
    )


CHAIN = Space(
    name="chain",
    check=check,
    size=len(OPTIONS) ** len(BLOCKS),
    sample=sample,
    mutate=mutate,
    supernet=ChainSupernet,
    network=network,
    skeletons={"tiny": Skeleton(depth=1, channels=4, classes=10, image=8)},
    labels=lambda group, shape: (list(BLOCKS), list(OPTIONS)),
)
