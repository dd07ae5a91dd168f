"""Names for the rows and columns of α, in the words of the cell's drawing."""

from collections.abc import Mapping
from typing import Any

from idarts.arch import SPACES, Space
from idarts.arch.style import family


def title(config: Mapping[str, Any], group: str) -> str:
    """A heading for a group of decisions; empty if its space has none.

    >>> title({"space": "darts"}, "reduce"), title({}, "inputs_2")
    ('Reduction cell', '')
    """
    space = _space(config)
    return space.style.titles.get(group, "").capitalize() if space else ""


def names(config: Mapping[str, Any], group: str, shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Names of a group's decisions (rows of α) and of their options (columns).

    For a user's own model, the names of the branches are in the run's configuration, under `choices`.

    >>> names({"space": "nas-bench-201"}, "cell", (6, 5))[0][:3], names({}, "mine", (1, 2))
    (['in → 1', 'in → 2', '1 → 2'], (['mine'], ['option 1', 'option 2']))
    """
    rows, columns = _known(config, group, shape)
    if (len(rows), len(columns)) == shape:
        return rows, columns
    generic = [group] if shape[0] == 1 else [f"{group} {row + 1}" for row in range(shape[0])]
    return generic, [f"option {column + 1}" for column in range(shape[1])]


def taking_part(config: Mapping[str, Any], group: str, shape: tuple[int, ...]) -> list[int]:
    """The columns of α that took part in a search: all, but not `none` where the settings left it out.

    >>> taking_part({"space": "nas-bench-201", "none": False}, "cell", (6, 5))
    [1, 2, 3, 4]
    """
    _, columns = names(config, group, shape)
    own = group in (config.get("choices") or {})  # a user's own branch may have any name
    barred = "none" if config.get("none") is False and not own else None
    return [place for place, name in enumerate(columns) if family(name) != barred]


def _space(config: Mapping[str, Any]) -> Space | None:
    space = SPACES.parts().get(str(config.get("space")))
    return space if isinstance(space, Space) else None


def _known(config: Mapping[str, Any], group: str, shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    space = _space(config)
    if space and space.has("labels"):
        return space.labels(group, shape)
    choices = config.get("choices")
    branches = choices.get(group) if isinstance(choices, Mapping) else None
    return ([group], [str(branch) for branch in branches]) if isinstance(branches, list) else ([], [])
