"""Every way to write an architecture down, told apart by looking at it."""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any

from idarts.arch import darts, nas_bench_1shot1, nas_bench_101, nas_bench_201, registry
from idarts.arch.json_form import from_data, load, to_json
from idarts.arch.record import Architecture
from idarts.errors import InputError

FORMS = (
    "a published cell's name, a NAS-Bench-201 string or nas-bench-201:INDEX, a Genotype(…), JSON, a file, a run folder"
)
RESULT = "result.json"  # what a search leaves in its run folder; its key `architecture` holds the record
_INDEX = re.compile(r"nas-bench-201:\s*([0-9]{1,9})", re.IGNORECASE)


def parse(what: "str | os.PathLike[str] | Mapping[str, Any] | Architecture") -> Architecture:
    """The architecture that a person wrote, in any form: see `FORMS`.

    >>> parse("DARTS_V2") == parse(darts.to_text(parse("DARTS_V2")))
    True
    >>> nas_bench_201.to_string(parse("nas-bench-201:0"))[:16]
    '|avg_pool_3x3~0|'
    >>> parse("DART_V2")
    Traceback (most recent call last):
    idarts.errors.InputError: 'DART_V2' is no architecture; did you mean DARTS_V2, DARTS_V1, SDARTS_ADV?
    """
    if isinstance(what, Architecture):
        return what
    if isinstance(what, Mapping):
        return _from_mapping(what)
    if isinstance(what, os.PathLike):
        return _from_path(Path(what))
    if not isinstance(what, str):
        raise InputError(f"{short(what)} is no architecture, expected {FORMS}")
    published = registry.find(what.strip())
    if published:
        return published.architecture
    found = _from_text(what)
    if found is not None:
        return found
    if what.strip() and os.path.exists(what):  # os.path: answers False, not an error, for names no system can hold
        return _from_path(Path(what))
    hint = registry.suggestion(what.strip()) if what.strip() else f"expected {FORMS}"
    raise InputError(f"{short(what)} is no architecture; {hint}")


def convert(what: "str | os.PathLike[str] | Mapping[str, Any] | Architecture", form: str) -> str:
    """An architecture (in any form) as text in one of `CONVERSIONS`: json, string, index, genotype, nas-bench-101.

    >>> convert("nas-bench-201:7", "index")
    '7'
    >>> convert("DARTS_V2", "string")
    Traceback (most recent call last):
    idarts.errors.InputError: an architecture of darts has no form 'string', expected json or genotype
    """
    if form not in CONVERSIONS:
        raise InputError(f"unknown form {short(form)}, expected one of {', '.join(CONVERSIONS)}")
    architecture = parse(what)
    spaces, write = CONVERSIONS[form]
    if spaces and architecture.space not in spaces:
        fitting = [name for name, (spaces, _) in CONVERSIONS.items() if not spaces or architecture.space in spaces]
        raise InputError(
            f"an architecture of {architecture.space} has no form {form!r}, expected {' or '.join(fitting)}"
        )
    return write(architecture)


def _from_text(text: str) -> Architecture | None:
    stripped = text.strip()
    if stripped.startswith(("{", "[{")):
        data = load(stripped)
        return _from_mapping(data[0] if isinstance(data, list) and len(data) == 1 else data)
    if stripped.startswith("|"):
        return nas_bench_201.from_string(stripped)
    if "Genotype" in stripped and "(" in stripped:
        return darts.from_text(stripped)
    index = _INDEX.fullmatch(stripped)
    return nas_bench_201.from_index(int(index[1])) if index else None


def _from_mapping(data: Any) -> Architecture:
    """A record, NAS-Bench-101's matrix and operations, or what holds one of them, as a run's result does."""
    if not isinstance(data, Mapping):
        raise InputError(f"{short(data)} is no architecture, expected an object with keys")
    held = data.get("architecture", data)
    found = _from_text(held) if isinstance(held, str) else None  # as in a table's answer
    if found is not None:
        return found
    return _from_matrix_mapping(held) if isinstance(held, Mapping) and "matrix" in held else from_data(held)


def _from_matrix_mapping(data: Mapping[str, Any]) -> Architecture:
    unknown = set(data) - {"matrix", "ops", "fingerprint"}
    if unknown or "ops" not in data:
        wrong = f"has the unknown key {short(min(unknown, key=str))}" if unknown else "lacks the key 'ops'"
        raise InputError(f"the NAS-Bench-101 cell {wrong}, expected matrix, ops and perhaps fingerprint")
    found = nas_bench_101.from_matrix(data["matrix"], data["ops"])
    fingerprint = nas_bench_101.fingerprint(found)
    if data.get("fingerprint", fingerprint) != fingerprint:
        raise InputError(f"fingerprint is {short(data['fingerprint'])}, but that of matrix and ops is {fingerprint}")
    return found


def _from_path(path: Path) -> Architecture:
    file = path / RESULT if path.is_dir() else path
    if not file.is_file():
        wanted = f"a run folder with {RESULT}" if path.is_dir() else "a file"
        raise InputError(f"{path} holds no architecture, expected {wanted}")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as text: {error}") from None
    try:
        found = _from_text(text)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if found is None:
        raise InputError(
            f"{file}: {short(text)} is no architecture, expected JSON, a NAS-Bench-201 string or a Genotype(…)"
        )
    return found


def _matrix_json(architecture: Architecture) -> str:
    if architecture.space == nas_bench_1shot1.SPACE:
        architecture = nas_bench_1shot1.to_nas_bench_101(architecture)
    matrix, ops = nas_bench_101.to_matrix(architecture)
    fingerprint = nas_bench_101.fingerprint(architecture)
    return json.dumps({"matrix": matrix, "ops": ops, "fingerprint": fingerprint})


# form → (spaces that have it, or none for all; how it is written)
CONVERSIONS: dict[str, tuple[tuple[str, ...], Callable[[Architecture], str]]] = {
    "json": ((), to_json),
    "string": ((nas_bench_201.SPACE,), nas_bench_201.to_string),
    "index": ((nas_bench_201.SPACE,), lambda architecture: str(nas_bench_201.to_index(architecture))),
    "genotype": ((darts.SPACE,), darts.to_text),
    "nas-bench-101": ((nas_bench_101.SPACE, nas_bench_1shot1.SPACE), _matrix_json),
}


def as_text(architecture: Architecture) -> str:
    """The form in which people write an architecture of its space.

    >>> as_text(parse("nas-bench-201:0"))[:15]
    '|avg_pool_3x3~0'
    """
    form = {"nas-bench-201": "string", "darts": "genotype"}.get(architecture.space, "json")
    return str(convert(architecture, form))
