"""A weight decay for every tensor of a small transformer, learnt while it trains, compared with single ones.

The text is this repository's licence: a transformer of one block predicts the next character, from so little text that
it overfits. The inner problem is the loss of the training text plus the decay, the outer problem the loss of the
validation text. α has one log λ for each tensor; one call of the running estimator follows every fifth step of Adam.
The decay starts far too small. One run then comes close to the best single decay, which takes a run for each candidate.
The test text is used only for the last column.
"""

from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idarts.hypergrad import Bilevel, Running, lift
from idarts.hypergrad.products import Loss

Tensors = tuple[Tensor, ...]
Row = tuple[str, float, float]  # decay, validation loss, test loss
CONTEXT, WIDTH, HEADS, BATCH, STEPS, EVERY = 24, 32, 2, 24, 300, 5
GRID = [-12.0, -7.0, -4.0]  # log λ; the first is as good as none


class Transformer(nn.Module):
    """One block of causal attention and a layer of two; the sum of both on the characters' and places' vectors."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.character, self.place = nn.Embedding(characters, WIDTH), nn.Parameter(0.1 * torch.randn(CONTEXT, WIDTH))
        self.mix, self.join = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, characters)

    def forward(self, text: Tensor) -> Tensor:
        x = self.character(text) + self.place
        parts = self.mix(nn.functional.layer_norm(x, (WIDTH,))).unflatten(-1, (3, HEADS, -1)).transpose(1, 3)
        q, k, v = parts.unbind(2)  # text, head, place, entry
        future = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(
            1
        )  # torch's fast attention has no second derivative
        shares = (q @ k.transpose(2, 3) / q.shape[-1] ** 0.5).masked_fill(future, -torch.inf).softmax(-1)
        x = x + self.join((shares @ v).transpose(1, 2).flatten(2))
        x = x + self.narrow(torch.nn.functional.gelu(self.wide(nn.functional.layer_norm(x, (WIDTH,)))))
        logits: Tensor = self.out(nn.functional.layer_norm(x, (WIDTH,))).transpose(1, 2)
        return logits


def texts() -> tuple[dict[str, Tensor], int]:
    """Pieces of CONTEXT + 1 characters: few for training, more for validation and testing; the number of characters."""
    text = " ".join((Path(__file__).parents[1] / "LICENSE").read_text().split())
    known = sorted(set(text))
    numbers = torch.tensor([known.index(character) for character in text])
    blocks = numbers[: len(numbers) // 300 * 300].view(-1, 300)
    cut = blocks.unfold(1, CONTEXT + 1, 5)
    parts = {"train": slice(0, None, 6), "valid": slice(1, None, 3), "test": slice(2, None, 3)}
    return {name: cut[part].flatten(0, 1) for name, part in parts.items()}, len(known)


TEXTS, CHARACTERS = texts()


def learn(name: str, value: float, *, follow: bool) -> Row:
    """Train with a decay that starts at `value`, and, with `follow`, let the validation loss change it."""
    torch.manual_seed(0)
    net, make = Transformer(CHARACTERS), torch.Generator().manual_seed(0)
    w = tuple(net.parameters())
    a = (torch.full((len(w),), value, requires_grad=True),)

    def batch(part: str) -> tuple[Tensor, Tensor]:
        chosen = TEXTS[part][torch.randint(len(TEXTS[part]), (BATCH,), generator=make)]
        return chosen[:, :-1], chosen[:, 1:]

    def inner() -> Loss:
        lifted = lift(net, cross_entropy, batch("train"), w)
        return lambda w, a: lifted(w, ()) + (a[0].exp() * torch.stack([(t**2).sum() for t in w])).sum() / 2

    def outer() -> Loss:
        lifted = lift(net, cross_entropy, batch("valid"), w)
        return lambda w, a: lifted(w, ())

    optimizer, losses = torch.optim.Adam(w, lr=1e-2), iter(inner, None)
    if follow:
        decays = torch.optim.Adam(a, lr=0.2)
        Bilevel(losses, iter(outer, None), Running(damping=0.5), optimizer, decays, inner_steps=EVERY).run(
            STEPS // EVERY
        )
    else:
        for _ in range(STEPS):
            optimizer.zero_grad()
            next(losses)(w, a).backward()
            optimizer.step()
    with torch.no_grad():
        final = [cross_entropy(net(t[:, :-1]), t[:, 1:]).item() for t in (TEXTS["valid"], TEXTS["test"])]
    return name, final[0], final[1]


def main() -> list[Row]:
    torch.set_num_threads(1)  # more threads are slower for matrices this small
    rows = [learn(f"log λ = {value:.0f} for all", value, follow=False) for value in GRID]
    rows.append(learn("learnt, from log λ = -7", -7.0, follow=True))
    table = Table("weight decay", "validation loss", "test loss")
    for name, valid, test in rows:
        table.add_row(name, f"{valid:.3f}", f"{test:.3f}")
    Console().print(table)
    return rows


if __name__ == "__main__":
    main()
