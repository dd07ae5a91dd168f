"""What a run is made with: settings, data, versions, threads. Ranks compare it at the start, and so does a resume."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch

from idarts._version import __version__
from idarts.digests import digest
from idarts.engine.ranks import world
from idarts.engine.settings import dotted
from idarts.errors import InputError

# What may differ without another result, but then not bit for bit.
_BITS = ("idarts", "torch", "threads")


def made_with(settings: Any, data: str | None) -> dict[str, Any]:
    """The facts that decide every bit of a run; `data` is a digest of all images and labels, if it is known."""
    return {
        "settings": digest(json.dumps(plain(settings), sort_keys=True).encode()),
        "data": data,
        "idarts": __version__,
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "ranks": world(),
    }


def plain(settings: Any) -> dict[str, Any]:
    """Settings by their dotted names, as JSON has them."""
    return dotted(json.loads(json.dumps(asdict(settings))))


def changes(before: Mapping[str, Any] | None, now: Mapping[str, Any], accept_changed_data: bool) -> list[str]:
    """What has changed since a run was started, and may change its bits. Other data is refused, unless accepted.

    >>> changes({"threads": 1, "data": "a"}, {"threads": 2, "data": "a"}, False)
    ['the run had threads 1, now 2: the results will be close, but not equal bit for bit']
    """
    before = before or {}
    known = before.get("data") is not None and now["data"] is not None
    if known and before["data"] != now["data"] and not accept_changed_data:
        raise InputError(
            "the data is not the same as when the run was started; restore it, or accept the change with "
            "--accept-changed-data (accept_changed_data=True in Python)"
        )
    different = [name for name in _BITS if before.get(name, now.get(name)) != now.get(name)]
    near = "the results will be close, but not equal bit for bit"
    notes = [f"the run had {name} {before[name]}, now {now[name]}: {near}" for name in different]
    if known and before["data"] != now["data"]:
        notes.append("the data has changed since the run was started, and you accepted that")
    return notes
