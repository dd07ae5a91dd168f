"""An MLP, a small CNN and a small transformer, each as one hypergradient: a log weight decay for every tensor of w."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from idarts.layers.lean import lean
from peers import Task

Tensors = tuple[Tensor, ...]
Batch = tuple[Tensor, Tensor]


class Attention(nn.Module):
    """One head, by softmax: torch's fused kernel has no second derivative."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.inputs(x).chunk(3, -1)
        weights = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1)
        result: Tensor = self.output(weights @ v)
        return result


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        result: Tensor = x + self.mlp(self.second(x))
        return result


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.blocks = nn.Embedding(64, 64), nn.Sequential(Block(64), Block(64))
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(self.blocks(self.embed(x)).mean(1))
        return result


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(100, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10))


def cnn() -> nn.Module:
    """Without BatchNorm's statistics, which some peers would change on the side."""

    def layer(before: int, after: int) -> list[nn.Module]:
        norm = nn.BatchNorm2d(after, track_running_stats=False)
        return [nn.Conv2d(before, after, 3, padding=1, bias=False), norm, nn.ReLU()]

    layers = [*layer(3, 16), *layer(16, 32), nn.AvgPool2d(2), *layer(32, 32)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {  # and the inputs of a batch
    "MLP": (mlp, lambda: torch.randn(64, 100)),
    "CNN": (cnn, lambda: torch.randn(32, 3, 16, 16)),
    "CNN, lean": (lambda: lean(cnn()), lambda: torch.randn(32, 3, 16, 16)),
    "transformer": (Transformer, lambda: torch.randint(64, (32, 32))),
}


@dataclass(frozen=True)
class Decays:
    """L1 is cross-entropy plus a decay for every tensor, whose logarithms are α; L2 is cross-entropy."""

    net: nn.Module
    train: Batch
    valid: Batch
    names: tuple[str, ...]
    w: Tensors
    alpha: Tensor

    @classmethod
    def of(cls, name: str) -> "Decays":
        torch.manual_seed(0)
        make, inputs = MODELS[name]
        net = make()
        train, valid = ((x, torch.randint(10, (len(x),))) for x in (inputs(), inputs()))
        names, w = zip(*net.named_parameters(), strict=True)
        return cls(net, train, valid, names, w, torch.zeros(len(w), requires_grad=True))

    def inner(self, w: Tensors, a: Tensors) -> Tensor:
        decay = torch.stack([(t**2).sum() for t in w])
        return self._cross_entropy(self.train, w) + 1e-3 * (a[0].exp() * decay).sum()

    def outer(self, w: Tensors, a: Tensors) -> Tensor:
        return self._cross_entropy(self.valid, w)

    def _cross_entropy(self, batch: Batch, w: Tensors) -> Tensor:
        return cross_entropy(functional_call(self.net, dict(zip(self.names, w, strict=True)), (batch[0],)), batch[1])

    def task(self, terms: int, step: float) -> Task:
        """Peers want functions of α, at the weights as they are, and an L2 that depends on α: 0·α is enough."""

        def inner(alpha: Tensor) -> Tensor:
            return self.inner(self.w, (alpha,))

        def outer(alpha: Tensor) -> Tensor:
            return self.outer(self.w, (alpha,)) + 0 * alpha.sum()

        def pure_outer(w: Tensors, a: Tensors) -> Tensor:
            return self.outer(w, a) + 0 * a[0].sum()

        return Task(self.net, self.w, self.alpha, inner, outer, self.inner, pure_outer, terms, step)
