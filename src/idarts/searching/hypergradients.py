"""Any estimator of the bilevel core in a search: built from settings, with the number of batches that it takes."""

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from idarts.errors import InputError
from idarts.hypergrad import SOLVERS, FirstOrder, Method, make_method

if TYPE_CHECKING:
    from idarts.searching.settings import Hypergradient

_SHARED = ("terms", "steps", "curvature", "damping", "products")  # settings that several estimators have


def build(settings: "Hypergradient", rate: float) -> Method:
    """The estimator that the settings describe, where the learning rate of w is `rate`.

    >>> from idarts.searching.settings import Hypergradient
    >>> build(Hypergradient(method="reverse"), rate=0.025).step
    0.025
    """
    kind: Any = SOLVERS[settings.method]
    if isinstance(kind, Method):  # a user's own, with its options set
        return kind
    known = {part.name: part.default for part in fields(kind)} if is_dataclass(kind) else {}
    options = {name: getattr(settings, name) for name in _SHARED if name in known}
    if options.get("products") == "finite_difference" and options.get("curvature") == "gauss_newton":
        raise InputError(
            "finite differences have no Gauss–Newton form; use --hypergradient.curvature hessian, or exact products"
        )
    if not settings.damping:
        options.pop("damping", None)  # an estimator that needs damping has its own default
    if "step" in known:
        by_rate = settings.step == "rate" or (settings.step == "auto" and known["step"] != "auto")
        options["step"] = rate if by_rate else settings.step
        if options["step"] == 0:  # the learning rate has fallen to 0, which leaves no implicit part
            return FirstOrder()
    return make_method(settings.method, {**options, **settings.options})


def require_derivatives(name: str, relaxation: Any, method: Method) -> None:
    """Refuse a relaxation that cannot be differentiated as often as the method needs."""
    available: int = getattr(relaxation, "derivatives", 2)
    if available == 0:
        raise InputError(f"relaxation {name} gives α no gradient; use --strategy fixed, or another relaxation")
    if available < method.derivatives:
        raise InputError(
            f"relaxation {name} has no second derivative; use --hypergradient.method first-order, "
            "or --hypergradient.products finite_difference"
        )
