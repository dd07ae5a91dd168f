"""Names for the rows and columns of α, in the words of the cell's drawing."""

from collections.abc import Mapping
from typing import Any

from idarts.arch.drawing import label
from idarts.arch.rules import DARTS_OPS, NAS_BENCH_201_EDGES, NAS_BENCH_201_OPS

DARTS_EDGES = tuple((source, target) for target in range(2, 6) for source in range(target))
ONE_SHOT_OPS = ("maxpool3x3", "conv3x3-bn-relu", "conv1x1-bn-relu")  # in the order of the supernet's columns
_GROUPS = {"normal": "Normal cell", "reduce": "Reduction cell"}


def title(group: str) -> str:
    """A heading for a group of decisions; empty for one whose decisions speak for themselves.

    >>> title("reduce"), title("inputs_2")
    ('Reduction cell', '')
    """
    return _GROUPS.get(group, "")


def names(config: Mapping[str, Any], group: str, shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Names of a group's decisions (rows of α) and of their options (columns).

    A model of one's own has the names of its branches in the run's configuration, under `choices`.

    >>> names({"space": "nas-bench-201"}, "cell", (6, 5))[0][:3], names({}, "mine", (1, 2))
    (['in → 1', 'in → 2', '1 → 2'], (['mine'], ['option 1', 'option 2']))
    """
    rows, columns = _known(config, group, shape)
    if (len(rows), len(columns)) == shape:
        return rows, columns
    generic = [group] if shape[0] == 1 else [f"{group} {row + 1}" for row in range(shape[0])]
    return generic, [f"option {column + 1}" for column in range(shape[1])]


def _known(config: Mapping[str, Any], group: str, shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    space = str(config.get("space"))
    if space == "nas-bench-201":
        ends = {0: "in", 3: "out"}
        edges = [f"{ends.get(source, source)} → {ends.get(target, target)}" for source, target in NAS_BENCH_201_EDGES]
        return edges, [label(op) for op in NAS_BENCH_201_OPS]
    if space == "darts":
        inputs = {0: "c(k−2)", 1: "c(k−1)"}
        edges = [f"{inputs.get(source, source - 2)} → {target - 2}" for source, target in DARTS_EDGES]
        return edges, [label(op) for op in DARTS_OPS]
    if space.startswith("nas-bench-1shot1"):
        return _one_shot(group, shape)
    choices = config.get("choices")
    branches = choices.get(group) if isinstance(choices, Mapping) else None
    return ([group], [str(branch) for branch in branches]) if isinstance(branches, list) else ([], [])


def _one_shot(group: str, shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    if group == "ops":
        return [f"operation of node {row + 1}" for row in range(shape[0])], [label(op) for op in ONE_SHOT_OPS]
    reader = "the output" if group == "output" else f"node {group.removeprefix('inputs_')}"
    return [f"what {reader} reads"], ["in", *(f"node {node}" for node in range(1, shape[1]))]
