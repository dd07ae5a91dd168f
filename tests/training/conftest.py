"""Tiny networks of every space, with weights and statistics that matter, and their model folders."""

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from idarts.arch import Architecture, parse, sample
from idarts.cli import main
from idarts.data import Batches
from idarts.data import load as load_data
from idarts.spaces import Choice, Skeleton, network
from idarts.training import Card, card_for, save
from idarts.training.metrics import calibration, class_scores

ARCHITECTURES = {
    "nas-bench-201": parse("|nor_conv_3x3~0|+|skip_connect~0|nor_conv_1x1~1|+|avg_pool_3x3~0|none~1|skip_connect~2|"),
    "nas-bench-101": sample("nas-bench-101", Random(3)),
    "nas-bench-1shot1": sample("nas-bench-1shot1", Random(1), "S1"),
    "darts": parse("DARTS_V2"),
}


def stir(net):
    """Weights, biases and running statistics as different from their first values as a training leaves them."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.3, generator=generator)
                module.running_var.uniform_(0.3, 2.0, generator=generator)
                module.weight.uniform_(0.5, 1.5, generator=generator)
                module.bias.normal_(0, 0.3, generator=generator)
                module.num_batches_tracked.fill_(7)
    return net.eval()


def make(space, channels=3, classes=4, image=8, auxiliary=False):
    """A network and its card."""
    torch.manual_seed(1)
    architecture = ARCHITECTURES[space]
    macro = Skeleton(depth=2 if space == "darts" else 1, channels=4, classes=classes, image=image)
    net = stir(network(architecture, macro, in_channels=channels, auxiliary=auxiliary))
    mean, std = (0.4, 0.5, 0.6)[:channels], (0.2, 0.25, 0.3)[:channels]
    labels = tuple(f"class {place}" for place in range(classes))
    return net, Card(architecture, macro, channels, (image, image), mean, std, labels, {"data": "noise"})


class Own(nn.Module):
    """A user's module with a Choice, a weight that two layers share, and a buffer."""

    def __init__(self):
        super().__init__()
        self.body = Choice({"wide": nn.Conv2d(3, 5, 3, padding=1), "narrow": nn.Conv2d(3, 5, 1)}, name="body")
        self.norm = nn.BatchNorm2d(5)
        self.mixed, self.again = nn.Linear(5, 5), nn.Linear(5, 5)
        self.again.weight = self.mixed.weight
        self.head = nn.Linear(5, 4)

    def forward(self, x):
        x = torch.relu(self.norm(self.body(x))).mean(dim=(2, 3))
        return self.head(torch.relu(self.again(torch.relu(self.mixed(x)))))


@pytest.fixture
def own():
    """A user's module, as a class, and the card of its narrow branch."""
    chosen = Architecture("choice", choices={"body": "narrow"})
    return Own, Card(chosen, None, 3, (8, 8), (0.4,) * 3, (0.2,) * 3, ("a", "b", "c", "d"))


@pytest.fixture
def tiny():
    return make


@pytest.fixture(params=[*ARCHITECTURES])
def made(request):
    return make(request.param)


@pytest.fixture
def folder(tmp_path):
    """A model folder of a network of NAS-Bench-201 for RGB images of 8 × 8."""
    return save(tmp_path / "model", *make("nas-bench-201"))


@pytest.fixture(scope="session")
def digits_network():
    """A network that knows some of the digits, and its card."""
    data = load_data("digits")
    net, card = make("nas-bench-201", channels=1, classes=10)
    optimizer = torch.optim.SGD(net.train().parameters(), 0.1, 0.9)
    for images, labels in Batches(data.train, 64).one_epoch():
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()
    return net.eval(), card_for(data, card.architecture, card.macro)


@pytest.fixture
def digits_folder(tmp_path, digits_network):
    return save(tmp_path / "digits", *digits_network)


@pytest.fixture
def pictures(tmp_path):
    """Image files of all kinds, larger and smaller than the network's images."""
    random = np.random.default_rng(0)
    noise = random.integers(0, 256, (40, 30, 4), dtype=np.uint8)
    colour = Image.fromarray(noise[..., :3])
    folder = tmp_path / "pictures"
    folder.mkdir()
    colour.save(folder / "rgb.png")
    colour.save(folder / "rgb.jpg", quality=90)
    colour.convert("L").save(folder / "grey.png")
    colour.convert("P").save(folder / "palette.gif")
    Image.fromarray(noise).save(folder / "rgba.png")
    Image.fromarray(random.integers(0, 65536, (5, 6), dtype=np.uint16)).save(folder / "deep.png")
    colour.resize((8, 8)).save(folder / "fits.png")
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was held upright
    colour.save(folder / "turned.jpg", exif=turned)
    return sorted(folder.iterdir())


@pytest.fixture
def facts():
    """An evaluation as any network of so many classes might get it."""

    def invent(classes, label="class {}"):
        random = np.random.default_rng(classes)
        matrix = torch.from_numpy(
            random.integers(0, 3, (classes, classes)) + np.diag(random.integers(20, 5000, classes))
        )
        names = [label.format(place) for place in range(classes)]
        error, bins = calibration(torch.linspace(0.1, 1, 300), torch.arange(300) % 3 > 0)
        images = int(matrix.sum())
        return {
            "architecture": {"schema": 1, "space": "choice", "choices": {"body": "<i>wide</i>"}},
            "data": {"source": "folder:pets & co" + "/deep" * 40, "part": "test", "images": images, "image": [8, 8]},
            "accuracy": float(matrix.trace() / matrix.sum()),
            "top5": 1.0,
            "loss": 0.5,
            "calibration": {"error": error, "bins": [vars(one) for one in bins]},
            "classes": [vars(score) for score in class_scores(matrix, names)],
            "confusion": matrix.tolist(),
            "versions": {"torch": "2"},
        }

    return invent


@pytest.fixture
def idarts(capsys):
    """The command in this process: exit code, and what it wrote."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return SimpleNamespace(returncode=code, **capsys.readouterr()._asdict())

    return run
