"""States of searches as 0.1.0 saved them, in today's form."""

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
