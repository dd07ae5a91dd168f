"""What a reader of files hands on: arrays as they came, by part, not yet checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Raw:
    """`parts` maps train, valid or test to (images, labels); `classes` are names, where the files have them."""

    parts: Mapping[str, tuple[Any, Any]]
    classes: tuple[str, ...] | None = None
