"""An inner optimiser's step as options of a method."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop

from idarts.errors import InputError
from idarts.hypergrad.rules import AdamRule, OptimizerRule, RMSpropRule, SGDRule

RULES: dict[type[Optimizer], type[OptimizerRule]] = {
    SGD: SGDRule,
    Adam: AdamRule,
    AdamW: AdamRule,
    RMSprop: RMSpropRule,
}


def from_optimizer(optimizer: Optimizer, w: Iterable[Tensor]) -> dict[str, Any]:
    """The step of the inner optimiser for each tensor of `w`, as options of `OneStep`, `Neumann` or an unrolled method.

    For SGD without momentum the options are its learning rates and weight decays. For SGD with momentum, Adam, AdamW
    and RMSprop they are a rule with the optimiser's current state. `ReverseMode` and `TruncatedReverse` differentiate
    the steps of that rule. `Neumann` and `OneStep` use the current preconditioner as a diagonal γ; AdamW's weight decay
    is then λ in the metric of the preconditioner.

    >>> import torch
    >>> net = torch.nn.Linear(3, 1)
    >>> groups = [{"params": [net.weight], "weight_decay": 0.1}, {"params": [net.bias], "lr": 0.5}]
    >>> from_optimizer(torch.optim.SGD(groups, lr=0.01), (net.weight, net.bias))
    {'step': (0.01, 0.5), 'weight_decay': (0.1, 0.0)}
    >>> from_optimizer(torch.optim.LBFGS(net.parameters()), net.parameters())
    Traceback (most recent call last):
    idarts.errors.InputError: from_optimizer: LBFGS is not supported, only SGD, Adam, AdamW, RMSprop; give step=
    """
    kind = type(optimizer)
    if kind not in RULES:
        names = ", ".join(supported.__name__ for supported in RULES)
        raise InputError(f"from_optimizer: {kind.__name__} is not supported, only {names}; give step=")
    tensors = tuple(w)
    groups = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    for index, tensor in enumerate(tensors):
        if id(tensor) not in groups:
            raise InputError(f"from_optimizer: tensor {index} of w is not a parameter of the optimiser")
    each = [{name: value for name, value in groups[id(t)].items() if name != "params"} for t in tensors]
    _require_one_kind(kind.__name__, each)
    if kind is SGD and not any(group["momentum"] for group in each):
        return {name: tuple(float(group[key]) for group in each) for name, key in _PLAIN.items()}
    states = tuple(
        {
            name: value.detach().clone()
            for name, value in optimizer.state.get(t, {}).items()
            if isinstance(value, Tensor)
        }
        for t in tensors
    )
    return {"step": RULES[kind](tuple(each), states)}


_PLAIN = {"step": "lr", "weight_decay": "weight_decay"}


def _require_one_kind(name: str, groups: list[dict[str, Any]]) -> None:
    if any(group.get("maximize") for group in groups):
        raise InputError(f"from_optimizer: {name} with maximize=True; the inner problem must be a minimisation")
    for flag in ("nesterov", "amsgrad", "centered", "decoupled_weight_decay"):
        if len({bool(group.get(flag)) for group in groups}) > 1:
            raise InputError(f"from_optimizer: {flag} differs between the groups of {name}; set it for all or for none")
