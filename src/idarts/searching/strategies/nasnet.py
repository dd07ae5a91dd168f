"""NASNet (Zoph et al. 2018, Learning Transferable Architectures for Scalable Image Recognition; PPO: Schulman 2017).

An LSTM decides node by node which inputs enter it and which operation each of them gets; every child is evaluated, and
after `controller.samples` children the LSTM is stepped `controller.passes` times along the gradient of

    mean min(r·A, clip(r, 1 ± ε)·A) + entropy bonus,   r = π(child)/π_old(child),   A = R − b,

where b is the moving average of the rewards before (with the correction for its start). The first pass has r = 1 and is
REINFORCE. The paper: 100 units, children trained for 20 epochs, 20,000 of them, the best 250 trained longer; here the
LSTM is ENAS' (32 units), and the selection `trials` trains the best few again.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from idarts.arch import Architecture, Block, Growth
from idarts.searching.proposing import Member, Proposing, growth_of
from idarts.searching.registries import STRATEGIES
from idarts.searching.strategies.controller import Controller

if TYPE_CHECKING:
    from idarts.searching.loop import Search

Choices = dict[str, list[int]]


def ppo_loss(new: Tensor, old: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """−mean min(r·A, clip(r, 1 ± ε)·A) for log-likelihoods, new and old (Schulman et al. 2017, Eq. 7).

    >>> ppo_loss(torch.zeros(2), torch.zeros(2), torch.tensor([1.0, 2.0]), clip=0.2)
    tensor(-1.5000)
    """
    ratio = (new - old).exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()


@dataclass
class MovingMean:
    """An exponential moving average, divided by the weight that it has gathered.

    >>> mean = MovingMean(0.95)
    >>> mean.add(3.0)
    >>> round(mean.value, 9)
    3.0
    """

    decay: float
    total: float = 0.0
    weight: float = 0.0

    def add(self, value: float) -> None:
        """Move towards a value."""
        self.total = self.decay * self.total + (1 - self.decay) * value
        self.weight = self.decay * self.weight + 1 - self.decay

    @property
    def value(self) -> float:
        """The mean; there must be a value."""
        return self.total / self.weight


@STRATEGIES.register("nasnet")
class NasNet(Proposing):
    """The controller proposes, the evaluator rewards, PPO steps the controller; the best child is the result."""

    needs: ClassVar[tuple[str, ...]] = ("sample", "growth")

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        self.settings = search.settings.controller
        self.growth = growth_of(search)
        self.controller = Controller(shapes(self.growth), settings=self.settings)
        self.optimizer = torch.optim.Adam(self.controller.parameters(), self.settings.rate)
        self.baseline = MovingMean(self.settings.baseline)
        self.drawn: Choices = {}
        self.batch: list[tuple[Choices, float]] = []  # children since the last step, with their rewards

    @torch.no_grad()
    def propose(self) -> Architecture:
        self.drawn = self.controller.sample()[0]
        return architecture(self.growth, self.drawn)

    def learn(self, member: Member) -> None:
        self.batch.append((self.drawn, member.reward))
        if len(self.batch) == self.settings.samples:
            self._step_controller()
            self.batch = []

    def _step_controller(self) -> None:
        finite = [(choices, reward) for choices, reward in self.batch if abs(reward) < torch.inf]
        if not finite:
            return
        rewards = torch.tensor([reward for _, reward in finite])
        baseline = self.baseline.value if self.baseline.weight else rewards.mean().item()
        self.baseline.add(rewards.mean().item())
        old: Tensor | None = None
        for _ in range(self.settings.passes):
            looked = [self.controller.sample(given_choices=choices) for choices, _ in finite]
            new, entropy = torch.stack([one[1] for one in looked]), torch.stack([one[2] for one in looked])
            old = new.detach() if old is None else old
            loss = ppo_loss(new, old, rewards - baseline, self.settings.clip) - self.settings.entropy * entropy.mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "controller": self.controller.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "baseline": [self.baseline.total, self.baseline.weight],
            "batch": [[choices, reward] for choices, reward in self.batch],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.controller.load_state_dict(state["controller"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.baseline.total, self.baseline.weight = state["baseline"]
        self.batch = [(choices, reward) for choices, reward in state["batch"]]


def shapes(growth: Growth) -> dict[str, tuple[int, int]]:
    """The controller's decisions: for every node of every cell its inputs, where there is a choice, and operations.

    >>> from idarts.arch import SPACES
    >>> shapes(SPACES["nas-bench-201"].growth())
    {'cell node 0 operations': (1, 5), 'cell node 1 operations': (2, 5), 'cell node 2 operations': (3, 5)}
    """
    decisions: dict[str, tuple[int, int]] = {}
    for cell in growth.cells:
        for node, inputs in enumerate(growth.inputs):
            if len(inputs) > 1:
                decisions[f"{cell} node {node} inputs"] = (1, len(inputs))
            decisions[f"{cell} node {node} operations"] = (len(inputs[0]), len(growth.ops))
    return decisions


def architecture(growth: Growth, choices: Choices) -> Architecture:
    """The architecture of the controller's choices."""
    return growth.build(
        {cell: [_block(growth, choices, cell, node) for node in range(growth.nodes)] for cell in growth.cells}
    )


def _block(growth: Growth, choices: Choices, cell: str, node: int) -> Block:
    (inputs,) = choices.get(f"{cell} node {node} inputs", [0])
    ops = [growth.ops[column] for column in choices[f"{cell} node {node} operations"]]
    return tuple(zip(growth.inputs[node][inputs], ops, strict=True))
