"""Files of settings: YAML or JSON, plain data only, small and shallow."""

import json
import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped] # it comes without types

from idarts.digests import without_digest
from idarts.errors import InputError

LARGEST = 1 << 20  # bytes
DEEPEST = 4  # a file, a group, a list: no setting is deeper
_BITS = 1024  # of a whole number
HINT = "--print-config writes such a file"


class _Yaml(yaml.SafeLoader):  # type: ignore[misc] # see above
    """The safe part of YAML, with numbers as JSON and YAML 1.2 have them: PyYAML reads 1e-3 as text."""


_Yaml.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), [*"-+0123456789"])


def load(path: Path, deepest: int = DEEPEST, hint: str = HINT) -> dict[str, Any]:
    """The content of a file of settings; names and values are not checked yet. `hint` says how to get a good file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.yaml").write_text("alpha: {rate: 1e-3}")
    ...     load(Path(folder, "a.yaml"))
    {'alpha': {'rate': 0.001}}
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise InputError(f"{path} has more than {LARGEST:,} bytes: too many for settings; {hint}")
    kind = "JSON" if path.suffix == ".json" else "YAML"
    try:
        data = json.loads(content) if kind == "JSON" else _parse_yaml(content, deepest)
        data = _without_digest(data) if kind == "JSON" else data
        if not isinstance(data, dict) or not data:
            raise InputError("has no settings")
        _require_plain(data, deepest)
    except RecursionError:
        raise InputError(f"{path} is nested too deep for settings; {hint}") from None
    except InputError as error:
        raise InputError(f"{path} {error}; {hint}") from None
    except (ValueError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else getattr(error, "lineno", None)
        raise InputError(f"{path} is not {kind}{f', see line {line}' if line else ''}; {hint}") from None
    return data


def to_yaml(data: dict[str, Any]) -> str:
    """Settings as YAML, in the order in which they are given."""
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))


def _without_digest(data: Any) -> Any:
    try:
        return without_digest(data)
    except InputError as error:
        raise InputError(f"is damaged: {error}") from None


def _parse_yaml(content: bytes, deepest: int) -> Any:
    """Without aliases: with them, a few lines can stand for more data than fits into memory.

    The depth is checked on the way: PyYAML takes a time that grows with its square.
    """
    depth = 0
    for event in yaml.parse(content, _Yaml):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem_mark=event.start_mark)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > deepest:
            raise InputError("is nested too deep for settings")
    return yaml.load(content, _Yaml)


def _require_plain(data: Any, depth: int) -> None:
    if isinstance(data, int) and data.bit_length() > _BITS:  # Python refuses to print one of thousands of digits
        raise InputError("has a number that no setting can have")
    if isinstance(data, dict | list) and not depth:
        raise InputError("is nested too deep for settings")
    if isinstance(data, dict):
        for name in data:
            if not isinstance(name, str):
                raise InputError(f"has the name {name!r}, which is not text")
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        _require_plain(part, depth - 1)
