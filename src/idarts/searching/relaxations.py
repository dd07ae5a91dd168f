"""The relaxations of a search, by name and by how far it has come: some cool down on the way."""

from collections.abc import Callable

from idarts.errors import InputError
from idarts.searching.settings import Config, Relaxed
from idarts.spaces import Supernet
from idarts.spaces.relaxation import Gumbel, PartialChannels, Relaxation, Without, dirichlet, softmax, uniform

# From the share of the budget that is used up. GDAS' temperature falls from 10 to 0.1.
RELAXATIONS: dict[str, Callable[[float], Relaxation]] = {
    "softmax": lambda _: softmax,
    "gumbel": lambda used: Gumbel(10 - 9.9 * used),
    "dirichlet": lambda _: dirichlet,
    "uniform": lambda _: uniform,
    "partial-channels": lambda _: PartialChannels(),
}


def require_built(net: Supernet, settings: Config) -> None:
    """Refuse what a supernet would have to be made for."""
    wanted = "partial-channels" in (settings.relaxation, settings.weights.relaxation)
    if wanted and not any(getattr(module, "share", 1) > 1 for module in net.modules()):
        raise InputError("partial-channels are built into a supernet, and this one has none; search a space by name")


def relaxed(net: Supernet, settings: Config, name: Relaxed | None, used: float) -> Relaxation:
    """What mixes a supernet's options now; `none` is left out where the settings say so.

    >>> from idarts.searching.settings import Config
    >>> from idarts.spaces import space
    >>> found = space("nas-bench-201")
    >>> net = found.supernet(found.skeleton.changed(depth=1, channels=4))
    >>> relaxed(net, Config(), "gumbel", used=1.0)
    Gumbel(temperature=0.0999...)
    """
    found = RELAXATIONS[name or settings.relaxation](used)
    return found if settings.none or net.none is None else Without(net.none, found)
