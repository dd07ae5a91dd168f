"""What the branches of a model's Choices cost."""

from idarts.arch import Architecture
from idarts.errors import InputError
from idarts.spaces.choice import SPACE
from idarts.spaces.choice.supernet import Choice, ChoiceSupernet
from idarts.spaces.prices import Prices, Whole


def prices(whole: Whole, net: ChoiceSupernet) -> Prices:
    """Each branch beside the first branches of all other Choices. The sum is exact unless Choices share modules."""
    for choice in (module for module in net.modules() if isinstance(module, Choice)):
        inner = [module for branch in choice.branches.values() for module in branch.modules()]
        if any(isinstance(module, Choice) for module in inner):
            raise InputError(
                f"Choice {choice.name!r} has Choices in it, whose cost depends on whether they are used; "
                "a cost needs Choices that are not nested"
            )
    branches = net.branches()
    first = {name: names[0] for name, names in branches.items()}
    base = whole(Architecture(SPACE, choices=first))
    options = {
        name: [[whole(Architecture(SPACE, choices={**first, name: branch})) - base for branch in names]]
        for name, names in branches.items()
    }
    return Prices(base, options, whole)
