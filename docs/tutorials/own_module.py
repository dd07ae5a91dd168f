"""
Your own module with Choice
===========================

Any ``nn.Module`` becomes a search space: put a ``Choice`` where there are alternatives.
The task can be anything that has a loss; here it is a regression.
"""

# %%
# The middle layer can be a line, a small network, or nothing. The data need the
# network: y = sin(3x).
import tempfile

import torch
from torch import nn

import idarts
from idarts import Choice, derive

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        bend = nn.Sequential(nn.Linear(16, 16), nn.Tanh())
        self.first = nn.Linear(1, 16)
        self.block = Choice(
            {"bend": bend, "line": nn.Linear(16, 16), "skip": nn.Identity()},
            name="block",
        )
        self.last = nn.Linear(16, 1)

    def forward(self, x):
        return self.last(self.block(self.first(x)))


x = torch.rand(512, 1) * 4 - 2
y = torch.sin(3 * x)

# %%
# ``search`` splits the data: one half trains the weights w, the other half decides on
# α. Each round takes T weight steps and one step on α by the implicit hypergradient.
model = Model()
result = idarts.search(
    model,
    (x, y),
    loss=nn.functional.mse_loss,
    out=tempfile.mkdtemp(),
    overwrite=True,
    batch=64,
    rounds=60,
    alpha={"rate": 0.05},
)
print(result.architecture.choices)

# %%
# ``derive`` returns the plain module, with the chosen branch and its weights in place
# of each ``Choice``.
net = derive(model, result.architecture)
print(net.block)
