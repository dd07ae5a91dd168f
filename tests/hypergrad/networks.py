"""A small CNN with BatchNorm, optional dropout, and a mixture of operations weighted by α."""

import torch
from torch import nn

from idarts.hypergrad import lift


class Mixture(nn.Module):
    """Two convolutions and a skip connection mixed by softmax(α), BatchNorm on each branch, a linear head."""

    def __init__(self, channels: int = 3, dropout: float = 0.0, tracked: bool = True, affine: bool = True) -> None:
        super().__init__()

        def norm() -> nn.Module:  # torch.func, which the oracles use, refuses running statistics
            return nn.BatchNorm2d(channels, affine=affine, track_running_stats=tracked)

        self.stem = nn.Sequential(nn.Conv2d(2, channels, 3, padding=1, bias=False), norm())
        self.branches = nn.ModuleList(
            [nn.Sequential(nn.GELU(), nn.Conv2d(channels, channels, k, padding=k // 2), norm()) for k in (1, 3)]
            + [nn.Identity()]
        )
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(channels, 3)
        self.alpha = nn.Parameter(torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = sum(a * branch(x) for a, branch in zip(self.alpha.softmax(0), self.branches, strict=True))
        return self.head(self.dropout(x).mean((2, 3)))


def mixture_problem(dtype=torch.float64, seed: int = 0, **options):
    """The model, w, a, and losses on two different batches."""
    torch.manual_seed(seed)
    model = Mixture(**options).to(dtype)
    with torch.no_grad():
        model.alpha.copy_(torch.tensor([0.3, -0.2, 0.1]))
    a = (model.alpha,)
    w = tuple(p for p in model.parameters() if p is not model.alpha)
    make = torch.Generator().manual_seed(seed + 1)
    batches = [
        (torch.randn(6, 2, 5, 5, generator=make).to(dtype), torch.randint(3, (6,), generator=make)) for _ in range(2)
    ]
    inner, outer = (lift(model, nn.functional.cross_entropy, batch, w, a) for batch in batches)
    return model, inner, outer, w, a, batches
