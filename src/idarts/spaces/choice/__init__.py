"""Any model with `Choice` in it as a search space: an architecture names the branch that each Choice takes.

>>> from idarts.arch import Architecture, as_text
>>> as_text(Architecture("choice", choices={"block1": "conv3"}))
'{"schema": 1, "space": "choice", "choices": {"block1": "conv3"}}'
"""

from reprlib import repr as short

from idarts.arch import SPACES, Absent, Architecture, Space, lazy
from idarts.errors import InputError

SPACE = "choice"


def _check(architecture: Architecture) -> None:
    if architecture.cells:
        raise InputError("choice: it has cells, expected only choices")
    if not architecture.choices:
        raise InputError("choice: no choices, expected at least one name with the branch it takes")
    for name, branch in architecture.choices.items():
        if not isinstance(branch, str) or not branch or not name:
            raise InputError(f"choice {short(name)}: branch is {short(branch)}, expected the name of a branch")


SPACES.add(
    SPACE,
    Space(
        name=SPACE,
        check=_check,
        supernet=Absent("search the model itself, or wrap it in ChoiceSupernet"),
        network=Absent("use derive(model, architecture)"),
        prices=lazy(f"{__name__}.prices:prices"),
    ),
)
