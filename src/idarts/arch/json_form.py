"""Records as JSON, with a schema version. Every error names the key."""

import json
from collections.abc import Mapping
from reprlib import repr as short
from typing import Any

from idarts.arch.record import Architecture, Cell
from idarts.errors import InputError
from idarts.files import load_json

SCHEMA = 1


def to_data(architecture: Architecture) -> dict[str, Any]:
    """The record as plain dictionaries, lists, strings and integers, ready for JSON.

    >>> to_data(Architecture("choice", choices={"block1": "conv3"}))
    {'schema': 1, 'space': 'choice', 'choices': {'block1': 'conv3'}}
    """
    data: dict[str, Any] = {"schema": SCHEMA, "space": architecture.space}
    if architecture.variant is not None:
        data["variant"] = architecture.variant
    if architecture.cells:
        data["cells"] = {name: _cell_to_data(cell) for name, cell in architecture.cells.items()}
    if architecture.choices:
        data["choices"] = dict(architecture.choices)
    return data


def from_data(data: Any) -> Architecture:
    """The record that `to_data` describes; anything else is an InputError that names the key.

    >>> from_data({"schema": 1, "space": "choice", "choices": {"block1": "conv3"}}).choices["block1"]
    'conv3'
    """
    _check_keys("the architecture", data, required={"schema", "space"}, optional={"variant", "cells", "choices"})
    if type(data["schema"]) is not int or data["schema"] != SCHEMA:  # True == 1 in Python
        raise InputError(f"schema is {short(data['schema'])}, expected {SCHEMA}")
    cells = data.get("cells", {})
    _check_keys("cells", cells)
    try:
        return Architecture(
            space=data["space"],
            cells={name: _cell_from_data(f"cells.{_shown(name)}", cell) for name, cell in cells.items()},
            choices=data.get("choices", {}),
            variant=data.get("variant"),
        )
    except RecursionError:
        raise InputError("the architecture is nested too deeply, expected a record") from None


def to_json(architecture: Architecture) -> str:
    """The record as one line of JSON.

    >>> to_json(Architecture("choice", choices={"block1": "conv3"}))
    '{"schema": 1, "space": "choice", "choices": {"block1": "conv3"}}'
    """
    return json.dumps(to_data(architecture), ensure_ascii=False)


def from_json(text: str) -> Architecture:
    """The record that a JSON text describes.

    >>> from_json('{"schema": 2, "space": "choice"}')
    Traceback (most recent call last):
    idarts.errors.InputError: schema is 2, expected 1
    """
    return from_data(load_json(text))


def _shown(name: Any) -> str:
    """A key in one line."""
    return name if isinstance(name, str) and name.isprintable() else short(name)


def _cell_to_data(cell: Cell) -> dict[str, Any]:
    edges = [[part for part in edge if part is not None] for edge in cell.edges]
    data: dict[str, Any] = {"nodes": cell.nodes, "edges": edges, "output": list(cell.output)}
    return data | ({"ops": list(cell.ops)} if cell.ops else {})


def _cell_from_data(where: str, data: Any) -> Cell:
    _check_keys(where, data, required={"nodes", "edges", "output"}, optional={"ops"})
    try:
        return Cell(data["nodes"], data["edges"], data["output"], data.get("ops", []))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _check_keys(where: str, data: Any, required: set[str] | None = None, optional: set[str] | None = None) -> None:
    if not isinstance(data, Mapping):
        raise InputError(f"{where} is {short(data)}, expected an object with keys")
    if required is None:
        return
    missing, unknown = required - set(data), [key for key in data if key not in required | (optional or set())]
    if missing:
        raise InputError(f"{where} lacks the key {min(missing)!r}, expected {', '.join(sorted(required))}")
    if unknown:
        allowed = ", ".join(sorted(required | (optional or set())))
        raise InputError(f"{where} has the unknown key {short(unknown[0])}, expected only {allowed}")
