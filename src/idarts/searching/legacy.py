"""Settings and states of searches as earlier versions wrote them, in today's form."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from idarts.searching.loop import Search


def upgrade_state(state: dict[str, Any], search: "Search") -> dict[str, Any]:
    """A checkpoint's state with today's keys; today's own stays as it is.

    0.1.0 knew one stage, no mask, and kept the optimiser of α, the controller and the running eigenvalue side by side.
    """
    if "strategy" in state or "alpha_optimizer" not in state:
        return state
    kept = {name: value for name, value in state.items() if name not in ("alpha_optimizer", "controller", "spectrum")}
    spectrum = state.get("spectrum")
    estimator = None
    if spectrum is not None:
        estimator = dict(zip(("vector", "eigenvalue", "age"), spectrum, strict=True))
    if "controller" in state:
        strategy = {"controller": state["controller"], "optimizer": state["alpha_optimizer"]}
    else:
        strategy = {"rule": state["alpha_optimizer"], "estimator": estimator}
    return {**kept, "strategy": strategy, "stage": [0, state["counts"][1], search.mask]}


# 0.1.0 had one setting for what are two axes now: `hypergradient.order`.
_ORDERS: dict[str, dict[str, Any]] = {
    "implicit": {"hypergradient.method": "neumann"},
    "first": {"hypergradient.method": "first-order"},
    "none": {"strategy": "fixed"},
    "reinforce": {"strategy": "controller"},
}


FACTS = ("choices", "resolved", "table_measure", "history", "typed")  # what config.json holds beside the settings


def upgrade(data: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file, also of a run's config.json, in today's names and with today's meaning.

    >>> upgrade({"hypergradient": {"order": "first", "terms": 2, "samples": 5}, "choices": {}})
    {'hypergradient': {'terms': 2, 'method': 'first-order'}, 'controller': {'samples': 5}}
    """
    data = {name: value for name, value in data.items() if name not in FACTS}
    selection = data.get("selection")
    if "checkpoint_rounds" in data and isinstance(selection, dict) and "judge" not in selection:
        data["selection"] = {**selection, "judge": "loss"}  # a run of an earlier version, which knew nothing else
    return _upgrade_order(data)


def _upgrade_order(data: dict[str, Any]) -> dict[str, Any]:
    """0.1.0's `hypergradient.order` as today's strategy and method."""
    if not isinstance(data.get("hypergradient"), dict) or "order" not in data["hypergradient"]:
        return data
    group = dict(data["hypergradient"])
    order, samples = group.pop("order"), group.pop("samples", None)
    renamed = _ORDERS.get(order, {"hypergradient.method": order})
    upgraded: dict[str, Any] = {**data, "hypergradient": group}
    for name, value in renamed.items():
        if name.startswith("hypergradient."):
            group["method"] = value
        else:
            upgraded[name] = value
    if upgraded.get("method") == "darts":  # its name means DARTS as its authors wrote it now
        upgraded["method"] = "darts-one-step"
    return upgraded if samples is None else {**upgraded, "controller": {"samples": samples}}
