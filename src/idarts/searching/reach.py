"""Whether a supernet fits its search: a gradient reaches every decision, and what a relaxation needs is built in.

α that gets no gradient would stay as it started, and be chosen by chance.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from idarts.errors import InputError
from idarts.hypergrad.isolation import isolated
from idarts.hypergrad.lift import call_module
from idarts.hypergrad.products import scalar
from idarts.searching.judge import statistics_kept
from idarts.searching.registries import RELAXATIONS, build_part
from idarts.searching.stage import Mask, Restricted
from idarts.spaces import Supernet
from idarts.spaces.relaxation import softmax, weighs_edges

SHAKE = 0.1  # of the noise that is added to the weights for a second look


def require_trainable(net: Supernet) -> None:
    """Refuse α that is frozen, where it is to be stepped by a gradient."""
    frozen = [name for name, alpha in net.alpha.items() if not alpha.requires_grad]
    if frozen:
        raise InputError(
            f"α of {', '.join(frozen)} is frozen, so no gradient can step it; freeze the other parameters alone, or "
            "call `choice.alpha.requires_grad_(True)` for every Choice"
        )


def require_reached(net: Supernet, batch: tuple[Any, Any], loss: Callable[[Any, Any], Tensor], mask: Mask) -> None:
    """Refuse a supernet in which some decisions have no influence on the loss."""
    idle = unreached(net, batch, loss, mask)
    if idle:
        named = ", ".join(_named(name, rows, len(net.alpha[name])) for name, rows in idle.items())
        raise InputError(
            f"no gradient reaches α of {named}: the loss of this supernet does not depend on these decisions, so they "
            "would be made by chance; give a larger --depth or, in your own model, use every Choice in forward"
        )


def unreached(
    net: Supernet, batch: tuple[Any, Any], loss: Callable[[Any, Any], Tensor], mask: Mask | None = None
) -> dict[str, list[int]]:
    """The rows of α that get no gradient from one batch, by groups; nothing of the supernet changes.

    All options are mixed by the softmax, with any relaxation of the search: in a path that was drawn, others get no
    gradient by chance. A gradient may also be 0 because of the first weights, such as a last layer that starts at 0, so
    rows without one are looked at again with noise on all weights.
    """
    devices = {net.architecture_parameters()[0].device}
    with isolated(devices), statistics_kept(net):
        idle = _idle(net, batch, loss, mask)
        if idle:
            with _shaken(net.weight_parameters()):
                idle = _idle(net, batch, loss, mask)
    return idle


def _idle(
    net: Supernet, batch: tuple[Any, Any], loss: Callable[[Any, Any], Tensor], mask: Mask | None
) -> dict[str, list[int]]:
    alive = mask or {name: [[True] * alpha.shape[1] for _ in alpha] for name, alpha in net.alpha.items()}
    alphas = {name: alpha.detach().requires_grad_() for name, alpha in net.alpha.items()}
    mixtures = {name: Restricted(softmax, alive[name], net.none)(alpha) for name, alpha in alphas.items()}
    inputs, targets = batch
    value = loss(call_module(net, inputs, mixtures=mixtures), targets)
    grads: Sequence[Tensor | None] = [None] * len(alphas)
    if not isinstance(value, Tensor) or value.requires_grad:
        grads = torch.autograd.grad(scalar(value, "validation"), tuple(alphas.values()), allow_unused=True)
    idle: dict[str, list[int]] = {}
    for name, grad in zip(alphas, grads, strict=True):
        moves = [False] * len(alive[name]) if grad is None else (grad != 0).any(dim=1).tolist()
        rows = [row for row, moved in enumerate(moves) if not moved and sum(alive[name][row]) > 1]
        if rows:
            idle[name] = rows
    return idle


@contextmanager
def _shaken(weights: Sequence[Tensor]) -> Iterator[None]:
    """Noise on all weights, which are restored afterwards to the bit."""
    kept = [weight.detach().clone() for weight in weights]
    try:
        with torch.no_grad():
            for weight in weights:
                weight.add_(SHAKE * torch.randn_like(weight))
        yield
    finally:
        with torch.no_grad():
            for weight, before in zip(weights, kept, strict=True):
                weight.copy_(before)


def _named(name: str, rows: Sequence[int], count: int) -> str:
    """The rows of a group in few words.

    >>> _named("normal", range(14), 14), _named("cell", [0, 2], 6), _named("block", [0], 1)
    ('normal (all 14 rows)', 'cell (rows 1, 3)', 'block')
    """
    if count == 1:
        return name
    return (
        f"{name} (all {count} rows)" if len(rows) == count else f"{name} (rows {', '.join(str(r + 1) for r in rows)})"
    )


def require_same_decisions(net: Supernet, mask: Mask) -> None:
    """Refuse a stage whose supernet has other decisions than the one before: the options that are left are unknown."""
    rows = {name: len(alpha) for name, alpha in net.alpha.items()}
    if rows != {name: len(alive) for name, alive in mask.items()}:
        raise InputError("the depth of this space is a decision, so stages cannot change it; use --stages single")


def require_built(net: Supernet, settings: Any, relaxation: Any) -> None:
    """Refuse a relaxation that a supernet has to be built for, where it was not."""
    second = settings.weights.relaxation
    options = settings.weights.relaxation_options
    if hasattr(relaxation, "around"):
        relaxation.around(softmax, net)  # refuses a supernet that lacks what it needs
    wanted = [relaxation] if second is None else [relaxation, build_part(RELAXATIONS, second, options)]
    share = any(getattr(one, "share", 1) > 1 for one in wanted)
    if (share and not any(getattr(module, "share", 1) > 1 for module in net.modules())) or (
        any(map(weighs_edges, wanted)) and not net.beta
    ):
        raise InputError("partial-channels are built into a supernet, and this one has none; search a space by name")
