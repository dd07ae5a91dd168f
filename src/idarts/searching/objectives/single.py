"""The loss of one mixture, as in the paper."""

from collections.abc import Callable, Mapping

from torch import Tensor

from idarts.layers.mixture import Mixture
from idarts.searching.registries import OBJECTIVES


@OBJECTIVES.register("single")
class Single:
    """L1(w, α) on one batch.

    >>> import torch
    >>> Single(None)(lambda: {}, lambda mixtures: torch.tensor(2.0))
    tensor(2.)
    """

    def __init__(self, _settings: object) -> None: ...

    def __call__(
        self, draw: Callable[[], Mapping[str, Mixture]], evaluate: Callable[[Mapping[str, Mixture]], Tensor]
    ) -> Tensor:
        return evaluate(draw())
