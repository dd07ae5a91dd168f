"""From data to the plan of a fit: look, measure, plan."""

import time
from collections.abc import Mapping
from typing import Any

from idarts.arch.space import all_spaces
from idarts.data import ImageData
from idarts.errors import InputError
from idarts.fitting.look import Look, look, named
from idarts.fitting.plan import SPACE, Plan, Rung, make_plan
from idarts.fitting.sizes import MEASURES, resized
from idarts.fitting.speed import measure
from idarts.searching.settings import Cost
from idarts.spaces import space

MEASURING = 0.05  # share of the time after which no further measurement starts


def plan(data: Any, *, minutes: float = 20.0, **options: Any) -> tuple[Look, Plan]:
    """The look at the data and the plan of a fit, which takes a few seconds and writes nothing.

    >>> seen, made = plan("digits", minutes=5)
    >>> seen.classes, made.image, made.flip
    (10, 8, False)
    """
    started = time.monotonic()
    chosen = {"space": SPACE, "image": None, "random": None, "flip": None, "data_root": None, **options}
    chosen["cost"] = checked_cost(options.get("cost"))
    seen, _, made = planned(named(data), {**chosen, "minutes": minutes}, started)
    return seen, made


def planned(source: Any, settings: dict[str, Any], started: float) -> tuple[Look, ImageData, Plan]:
    """The look at the data, the data, and the plan."""
    name = settings["space"]
    require_fixed(name)
    if isinstance(source, ImageData):
        raise InputError("give the source of the data, such as (x, y), not loaded data: a fit chooses the image size")
    seen, data = look(source, settings["data_root"])
    speed = measure(name, seen.side, seen.channels, seen.classes, seconds=MEASURING * 60 * settings["minutes"])
    given = {key: settings[key] for key in ("image", "random", "flip")}
    prepared = time.monotonic() - started
    made = make_plan(seen, settings["minutes"], speed, space_name=name, prepared=prepared, **given)
    cost = settings["cost"]
    if cost is not None:  # the time decides on images and depth, the cost on the width
        skeleton, fixed = made.skeleton(seen.classes), space(name).fixed()
        width = resized(fixed, skeleton, cost["target"], seen.channels, MEASURES[cost["kind"]]).channels
        size, prepared = Rung(made.image, width, made.depth), time.monotonic() - started
        made = make_plan(seen, settings["minutes"], speed, space_name=name, prepared=prepared, **given, size=size)
    return seen, data, made


def require_fixed(name: str) -> None:
    """Refuse a space without a network to compare with."""
    if not space(name).has("fixed"):
        usable = [one.name for one in all_spaces() if one.has("fixed")]
        raise InputError(
            f"a fit cannot use the space {name}, because it has no fixed architecture to compare with; use "
            f"{', '.join(usable[:-1])} or {usable[-1]}"
        )


def checked_cost(cost: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The kind and target of a cost; None without one."""
    if cost is None:
        return None
    checked = Cost(**cost)
    if checked.kind == "none" or checked.target is None:
        raise InputError("a cost needs a kind and a target, such as --cost.kind latency --cost.target 5")
    return {"kind": checked.kind, "target": checked.target}
