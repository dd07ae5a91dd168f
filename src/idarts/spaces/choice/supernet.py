"""A search space made of any module, for any task: put a `Choice` wherever there are alternatives."""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from copy import deepcopy
from os import PathLike
from reprlib import repr as short
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from idarts.arch import Architecture, parse
from idarts.errors import InputError, nearest
from idarts.layers.mixing import mix
from idarts.layers.mixture import Mixture, one_hot
from idarts.spaces.choice import SPACE
from idarts.spaces.relaxation import Relaxation, softmax
from idarts.spaces.supernet import ALPHA_SCALE, Supernet

# The mixtures of the supernet whose forward pass is running; each thread has its own.
_mixtures: ContextVar[Mapping[str, Mixture]] = ContextVar("mixtures", default=MappingProxyType({}))


class Choice(nn.Module):
    """Alternatives for one place in a network: the weighted sum of what they return for the same inputs.

    α has a column for each branch. Two Choices with one name make one decision; `tie` gives them one α.

    >>> block = Choice({"wide": nn.Linear(4, 2), "narrow": nn.Linear(4, 2, bias=False)}, name="block1")
    >>> block(torch.zeros(3, 4)).shape, block.alpha.shape
    (torch.Size([3, 2]), torch.Size([1, 2]))
    """

    def __init__(self, branches: Mapping[str, nn.Module], name: str) -> None:
        super().__init__()
        _check(name, branches)
        self.name = name
        self.branches = nn.ModuleDict(branches)
        self.alpha = nn.Parameter(ALPHA_SCALE * torch.randn(1, len(branches)))

    def forward(self, *inputs: Any, **named: Any) -> Tensor:
        mixture = _mixtures.get().get(self.name) or softmax(self.alpha)
        columns = [column for column in range(len(self.branches)) if mixture.runs(0, column)]
        branches = list(self.branches.items())
        before = _versions(inputs)
        outputs: dict[str, Any] = {}
        for branch, module in (branches[column] for column in columns):
            outputs[branch] = module(*inputs, **named)
            if len(columns) > 1 and _versions(inputs) != before:
                raise InputError(
                    f"Choice {self.name!r}: branch {branch!r} changes its input in place; use inplace=False"
                )
        _check_outputs(self.name, outputs)
        weights = mixture.weights[0] if len(columns) == len(branches) else mixture.weights[0, columns]
        return mix(list(outputs.values()), weights)

    def extra_repr(self) -> str:
        return repr(self.name)


class ChoiceSupernet(Supernet):
    """A module with Choices in it as a supernet: separates weights from α, draws one mixture for all Choices of a name.

    >>> net = ChoiceSupernet(Choice({"same": nn.Identity(), "line": nn.Linear(4, 4)}, name="block1"))
    >>> net(torch.zeros(3, 4)).shape, net.alpha["block1"].shape
    (torch.Size([3, 4]), torch.Size([1, 2]))
    >>> line = Architecture("choice", choices={"block1": "line"})
    >>> net(torch.zeros(3, 4), mixtures=net.path(line)).shape  # runs that branch alone
    torch.Size([3, 4])
    """

    def __init__(self, module: nn.Module, relaxation: Relaxation = softmax) -> None:
        super().__init__({}, relaxation)
        self.module = _bare(module)
        _share(self)
        after_loading: Any = self.register_load_state_dict_post_hook
        after_loading(_share)  # because loading with assign=True separates shared parameters

    def forward(self, *inputs: Any, mixtures: Mapping[str, Mixture] | None = None, **named: Any) -> Any:
        """The module's output, its Choices mixed by the relaxation of α or by given mixtures."""
        given = self.mixtures() if mixtures is None else mixtures
        if missing := [name for name in self.alpha if name not in given]:
            raise InputError(f"Choice {missing[0]!r}: no mixture is given for it, expected one for every Choice")
        token = _mixtures.set(given)
        try:
            return self.module(*inputs, **named)
        finally:
            _mixtures.reset(token)

    def mixed(self, images: Tensor, mixtures: Mapping[str, Mixture]) -> Any:
        return self.forward(images, mixtures=mixtures)

    def architecture(self) -> Architecture:
        return _largest(_choices(self.module))

    def derived(self, architecture: Architecture) -> nn.Module:
        return derive(self, architecture)

    def branches(self) -> dict[str, list[str]]:
        """The branches of the columns of each α."""
        return {name: list(same[0].branches) for name, same in _choices(self.module).items()}

    def path(self, architecture: Architecture) -> dict[str, Mixture]:
        choices = _choices(self.module)
        picks = _picks(choices, architecture)
        branches = self.branches()
        return {
            name: one_hot([branches[name].index(branch)], len(branches[name]), self.alpha[name])
            for name, branch in picks.items()
        }


def tie(model: nn.Module) -> dict[str, nn.Parameter]:
    """Give all Choices with the same name one α, that of the first; returns every α by its name.

    >>> model = nn.Sequential(*(Choice({"a": nn.ReLU(), "b": nn.Tanh()}, name="activation") for _ in range(2)))
    >>> len(list(model.parameters())), len(tie(model)), len(list(model.parameters()))
    (2, 1, 1)
    """
    choices = _choices(model)
    for first, *others in choices.values():
        for choice in others:
            choice.alpha = first.alpha
    return {name: same[0].alpha for name, same in choices.items()}


def derive(
    model: nn.Module, architecture: "Architecture | str | PathLike[str] | Mapping[str, Any] | None" = None
) -> nn.Module:
    """A copy of a model (or its `ChoiceSupernet`) in which the chosen branch, with its weights, replaces each Choice.

    The architecture, in any form that `idarts.arch.parse` reads, is by default that of the largest α. The copy has no
    Choices and no α; the model stays as it is.

    >>> model = nn.Sequential(Choice({"a": nn.ReLU(), "b": nn.Tanh()}, name="activation"), nn.Linear(4, 2))
    >>> derive(model, Architecture("choice", choices={"activation": "b"}))
    Sequential(
      (0): Tanh()
      (1): Linear(in_features=4, out_features=2, bias=True)
    )
    """
    module = _bare(model)
    choices = _choices(module)
    picks = _picks(choices, _largest(choices) if architecture is None else parse(architecture))
    copies: dict[int, Any] = {}  # deepcopy's memo: it maps each Choice to the copy of its branch

    def settle(choice: Choice) -> None:
        branch = choice.branches[picks[choice.name]]
        for inner in branch.modules():
            if isinstance(inner, Choice) and id(inner) not in copies:
                settle(inner)
        copies[id(choice)] = deepcopy(branch, copies)

    for same in choices.values():
        for choice in same:
            if id(choice) not in copies:
                settle(choice)
    return deepcopy(module, copies)


def _share(supernet: ChoiceSupernet, _loaded: object = None) -> None:
    supernet.alpha.update(tie(supernet.module))


def _bare(model: nn.Module) -> nn.Module:
    return model.module if isinstance(model, ChoiceSupernet) else model


def _choices(model: nn.Module) -> dict[str, list[Choice]]:
    """The Choices in a model by name; those of one name must have the same branches."""
    if not isinstance(model, nn.Module):
        raise InputError(f"{short(model)} is not a model, expected a torch.nn.Module with Choices in it")
    choices: dict[str, list[Choice]] = {}
    for module in model.modules():
        if isinstance(module, Choice):
            choices.setdefault(module.name, []).append(module)
    for name, same in choices.items():
        kinds = list(dict.fromkeys(", ".join(choice.branches) for choice in same))
        if len(kinds) > 1:
            raise InputError(
                f"Choice {name!r} occurs with the branches {kinds[0]} and with {kinds[1]}; "
                "expected the same branches in the same order"
            )
    if not choices:
        raise InputError(f"there is no Choice in this {type(model).__name__}, expected at least one to search")
    return choices


def _largest(choices: Mapping[str, list[Choice]]) -> Architecture:
    """For every Choice the branch with the largest α, or the first of equal ones."""
    scores = {name: same[0].alpha[0].tolist() for name, same in choices.items()}
    best = {name: list(choices[name][0].branches)[row.index(max(row))] for name, row in scores.items()}
    return Architecture(SPACE, choices=best)


def _picks(choices: Mapping[str, list[Choice]], architecture: Architecture) -> dict[str, str]:
    """The branch that an architecture takes for each of these Choices, if it fits them."""
    if architecture.space != SPACE:
        raise InputError(f"an architecture of {architecture.space} does not choose branches, expected one of {SPACE}")
    branches = {name: list(same[0].branches) for name, same in choices.items()}
    for name, branch in architecture.choices.items():
        if name not in branches:
            raise InputError(f"unknown Choice {name!r}; {nearest(name, branches)}")
        if branch not in branches[name]:
            raise InputError(f"Choice {name!r}: unknown branch {branch!r}; {nearest(branch, branches[name])}")
    for name, known in branches.items():
        if name not in architecture.choices:
            raise InputError(
                f"Choice {name!r}: the architecture names no branch for it, expected one of {', '.join(known)}"
            )
    return dict(architecture.choices)


def _check(name: object, branches: object) -> None:
    """Names become those of parameters and modules, and torch reserves some of them."""
    if not isinstance(name, str) or not name.isidentifier() or hasattr(nn.ParameterDict(), name):
        raise InputError(f"Choice {short(name)}: a parameter cannot have this name, expected one such as 'block1'")
    if not isinstance(branches, Mapping) or not branches:
        given = "no branches" if isinstance(branches, Mapping) else f"branches are {short(branches)}"
        raise InputError(f"Choice {name!r}: {given}, expected names with their modules")
    for branch, module in branches.items():
        if not isinstance(branch, str) or not re.fullmatch(r"[\w-]+", branch) or hasattr(nn.ModuleDict(), branch):
            raise InputError(
                f"Choice {name!r}: a branch cannot be called {short(branch)}, expected a name such as 'conv3'"
            )
        if not isinstance(module, nn.Module):
            raise InputError(f"Choice {name!r}: branch {branch!r} is {short(module)}, expected a torch.nn.Module")


def _versions(inputs: tuple[Any, ...]) -> list[int]:
    return [value._version for value in inputs if isinstance(value, Tensor)]


def _check_outputs(name: str, outputs: Mapping[str, Any]) -> None:
    if not outputs:
        raise InputError(f"Choice {name!r}: its mixture runs no branch, expected at least one")
    for branch, output in outputs.items():
        if not isinstance(output, Tensor):
            raise InputError(f"Choice {name!r}: branch {branch!r} gives a {type(output).__name__}, expected a tensor")
    (first, shape), *others = ((branch, tuple(output.shape)) for branch, output in outputs.items())
    for branch, other in others:
        if other != shape:
            raise InputError(
                f"Choice {name!r}: branch {first!r} gives the shape {shape} and branch {branch!r} {other}, "
                "expected the same of all branches"
            )
