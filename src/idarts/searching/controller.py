"""ENAS: an LSTM draws a path, decision by decision, and learns from what the path scores (REINFORCE)."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from idarts.layers.mixture import one_hot
from idarts.spaces import Mixture, Supernet

HIDDEN, RATE, ENTROPY, DECAY = 32, 1e-3, 1e-4, 0.99  # width, Adam's rate, bonus for entropy, of the moving baseline


class Controller(nn.Module):
    """Draws one option for every decision of a supernet; what was drawn before enters the next draw.

    >>> from idarts.spaces import space
    >>> found = space("nas-bench-201")
    >>> controller = Controller(found.supernet(found.skeleton.changed(depth=1, channels=4)))
    >>> choices, log_likelihood, entropy, _ = controller.draw()
    >>> len(choices["cell"]), bool(log_likelihood < 0)
    (6, True)
    """

    baseline: Tensor

    def __init__(self, net: Supernet, without: int | None = None) -> None:
        super().__init__()
        self.without = without  # a column that is never drawn, as that of `none`
        self.shapes = {name: tuple(alpha.shape) for name, alpha in net.alpha.items()}
        self.cell = nn.LSTMCell(HIDDEN, HIDDEN)
        self.start = nn.Parameter(0.1 * torch.randn(1, HIDDEN))
        self.read = nn.ModuleDict({name: nn.Linear(HIDDEN, columns) for name, (_, columns) in self.shapes.items()})
        self.tell = nn.ModuleDict({name: nn.Embedding(columns, HIDDEN) for name, (_, columns) in self.shapes.items()})
        self.register_buffer("baseline", torch.zeros(()))

    def draw(self, greedy: bool = False) -> tuple[dict[str, list[int]], Tensor, Tensor, dict[str, Tensor]]:
        """Choices, their log-likelihood, the entropy and the logits on the way; a greedy draw takes the largest."""
        state, told = None, self.start
        total = entropy = self.start.new_zeros(())
        choices: dict[str, list[int]] = {}
        logits: dict[str, Tensor] = {}
        for name, (rows, _) in self.shapes.items():
            choices[name], found = [], []
            for _ in range(rows):
                state = self.cell(told, state)
                scores = self._scores(name, state[0])
                weights = scores.exp().detach().cpu()  # drawn by the CPU's generator on any device
                pick = scores.argmax(dim=1) if greedy else torch.multinomial(weights, 1)[:, 0].to(scores.device)
                told = self.tell[name](pick)
                total = total + scores[0, pick[0]]
                entropy = entropy - (scores.exp() * scores).sum()
                choices[name].append(int(pick))
                found.append(scores)
            logits[name] = torch.cat(found)
        return choices, total, entropy, logits

    def _scores(self, name: str, hidden: Tensor) -> Tensor:
        logits = self.read[name](hidden)
        if self.without is not None:
            logits = logits.index_fill(1, torch.tensor(self.without, device=logits.device), -1e9)
        found: Tensor = logits.log_softmax(dim=1)
        return found

    def path(self, choices: Mapping[str, list[int]]) -> dict[str, Mixture]:
        """What a supernet mixes for these choices."""
        return {name: one_hot(choices[name], columns, self.start) for name, (_, columns) in self.shapes.items()}

    @torch.no_grad()
    def drawn_path(self) -> dict[str, Mixture]:
        """One to be run, not to be learnt from."""
        return self.path(self.draw()[0])

    def learn(
        self, look: Callable[[dict[str, Mixture]], Tensor], samples: int, optimizer: torch.optim.Optimizer
    ) -> Tensor:
        """One step by paths of its own and the loss and accuracy that `look` gives of each; their mean."""
        found: list[Tensor] = []
        losses: list[Tensor] = []
        for _ in range(samples):
            choices, log_likelihood, entropy, _ = self.draw()
            found.append(look(self.path(choices)))
            loss, accuracy = found[-1]
            reward = torch.where(accuracy.isnan(), -loss, accuracy)  # no classification has no accuracy
            losses.append(self.loss(reward, log_likelihood, entropy))
        torch.stack(losses).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        return torch.stack(found).mean(dim=0)

    @torch.no_grad()
    def show(self, net: Supernet) -> None:
        """Let α stand for the path of the largest scores."""
        for name, logits in self.draw(greedy=True)[3].items():
            net.alpha[name].copy_(logits)

    def loss(self, reward: Tensor, log_likelihood: Tensor, entropy: Tensor) -> Tensor:
        """REINFORCE with a moving baseline, which each reward moves, and a bonus for entropy."""
        first = not self.baseline.any()
        self.baseline.copy_(reward if first else DECAY * self.baseline + (1 - DECAY) * reward)
        return -(reward - self.baseline) * log_likelihood - ENTROPY * entropy
