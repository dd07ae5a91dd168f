"""Read an architecture in any form that a person writes it in, and write it in each of them."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any

from idarts.arch import registry
from idarts.arch.json_form import from_data, to_json
from idarts.arch.record import Architecture
from idarts.arch.space import all_spaces, space_of
from idarts.errors import InputError
from idarts.files import load_json

CONFIG = "config.json"  # a run folder has it from its start
RESULT = "result.json"  # a search writes it into its run folder; its key `architecture` holds the record

AnyForm = str | os.PathLike[str] | Mapping[str, Any] | Architecture


def described_forms() -> str:
    """The forms that `parse` reads, in words for help and errors.

    >>> described_forms().split(", ")[-3:]
    ['JSON', 'a file', 'a run folder']
    """
    return f"a published cell's name, {', '.join(_texts())}, JSON, a file, a run folder"


def parse(what: AnyForm) -> Architecture:
    """The architecture that a person wrote, in any form: see `described_forms`.

    >>> parse("DARTS_V2") == parse(as_text(parse("DARTS_V2")))
    True
    >>> parse("nas-bench-201:0").cell.edges[0].op
    'avg_pool_3x3'
    >>> parse("DART_V2")
    Traceback (most recent call last):
    idarts.errors.InputError: 'DART_V2' is not an architecture; did you mean DARTS_V2, DARTS_V1, SDARTS_ADV?
    """
    if isinstance(what, Architecture):
        return what
    if isinstance(what, Mapping):
        return _from_mapping(what)
    if isinstance(what, os.PathLike):
        return _from_path(Path(what))
    if not isinstance(what, str):
        raise InputError(f"{short(what)} is not an architecture, expected {described_forms()}")
    published = registry.find(what.strip())
    if published:
        return published.architecture
    architecture = _from_text(what)
    if architecture is not None:
        return architecture
    if what.strip() and os.path.exists(what):  # os.path: answers False, not an error, for names no system can hold
        return _from_path(Path(what))
    hint = registry.suggestion(what.strip()) if what.strip() else f"expected {described_forms()}"
    raise InputError(f"{short(what)} is not an architecture; {hint}")


def convert(what: AnyForm, form: str) -> str:
    """An architecture (in any form) as text: JSON, or one of the forms of its space.

    >>> convert("nas-bench-201:7", "index")
    '7'
    >>> convert("DARTS_V2", "string")
    Traceback (most recent call last):
    idarts.errors.InputError: an architecture of darts has no form 'string', expected json or genotype
    """
    if form not in form_names():
        raise InputError(f"unknown form {short(form)}, expected one of {', '.join(form_names())}")
    architecture = parse(what)
    writers = forms_of(architecture)
    if form not in writers:
        raise InputError(
            f"an architecture of {architecture.space} has no form {form!r}, expected {' or '.join(writers)}"
        )
    return writers[form](architecture)


def as_text(architecture: Architecture) -> str:
    """An architecture in the form that users of its space know, which `parse` reads.

    >>> as_text(parse("nas-bench-201:0"))[:15]
    '|avg_pool_3x3~0'
    """
    return forms_of(architecture)[space_of(architecture).text_form](architecture)


def forms_of(architecture: Architecture) -> dict[str, Callable[[Architecture], str]]:
    """Functions that write an architecture as text, by the names of the forms.

    >>> list(forms_of(parse("DARTS_V2")))
    ['json', 'genotype']
    """
    return {"json": to_json, **space_of(architecture).forms}


def form_names() -> list[str]:
    """Names of the forms of all spaces.

    >>> form_names()[0]
    'json'
    """
    return list(dict.fromkeys(["json", *(form for space in all_spaces() for form in space.forms)]))


def _texts() -> list[str]:
    return [space.reads for space in all_spaces() if space.reads]


def _from_text(text: str) -> Architecture | None:
    stripped = text.strip()
    if stripped.startswith(("{", "[{")):
        data = load_json(stripped)
        return _from_mapping(data[0] if isinstance(data, list) and len(data) == 1 else data)
    return _from_spaces(stripped)


def _from_spaces(form: str | Mapping[str, Any]) -> Architecture | None:
    """What the first space that knows this form reads."""
    read = (space.parse(form) for space in all_spaces())
    return next((architecture for architecture in read if architecture is not None), None)


def _from_mapping(data: Any) -> Architecture:
    """A record, a space's own form, or a mapping that holds one of them, such as a run's result."""
    if not isinstance(data, Mapping):
        raise InputError(f"{short(data)} is not an architecture, expected an object with keys")
    held = data.get("architecture", data)
    if isinstance(held, str):
        architecture = _from_text(held)
    else:
        architecture = _from_spaces(held) if isinstance(held, Mapping) else None
    return from_data(held) if architecture is None else architecture


def _from_path(path: Path) -> Architecture:
    file = path / RESULT if path.is_dir() else path
    if not file.is_file():
        expected = f"a run folder with {RESULT}" if path.is_dir() else "a file"
        now = "; to train the current architecture of an unfinished search, add --now"
        hint = now if (path / CONFIG).is_file() else ""
        raise InputError(f"{path} holds no architecture, expected {expected}{hint}")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as text: {error}") from None
    try:
        architecture = _from_text(text)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if architecture is None:
        raise InputError(f"{file}: {short(text)} is not an architecture, expected JSON or {' or '.join(_texts())}")
    return architecture
