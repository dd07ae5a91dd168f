"""XNAS' rule: exponentiated gradient, experts that leave (Nayman et al. 2019, arXiv:1906.08031, Algorithm 1).

With u = softmax(a) and the reward R = −∂L2/∂u, clipped to ±𝓛, a step is u ← u·exp(ηR)/Z, in logits a ← a + ηR. An
expert leaves once it cannot catch up: a gap closes by at most 2η𝓛 a step, so in round t of T those leave whose logit is
below max a − 2η𝓛(T − t). At t = T only leaders remain. η = √(2 ln N/T)/𝓛 gives a regret of at most 𝓛√(2T ln N).

It needs ∂L2/∂u, which the relaxation `experts` gives: with softmax the gradient would be u·(∂L2/∂u − mean), and with
clipping the two differ by more than a constant. What other code does: archai's version clips the norm of w's gradient
instead of the reward, and steps a shared α once for each cell.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from idarts.errors import InputError
from idarts.searching.registries import RULES
from idarts.searching.stage import Mask

if TYPE_CHECKING:
    from idarts.searching.settings import Alpha


@RULES.register("exponentiated")
class Exponentiated:
    """a ← a − η·clip(∂L2/∂u, ±`bound`); with `wipe_out`, options that cannot win any more leave.

    >>> from idarts.searching.settings import Alpha
    >>> alpha = nn.Parameter(torch.zeros(1, 2))
    >>> rule = Exponentiated([alpha], Alpha(rate=0.5))
    >>> rule.step([torch.tensor([[-7.0, 0.5]])])
    >>> alpha.data
    tensor([[ 0.5000, -0.2500]])
    >>> rule.survivors({"cell": alpha}, {"cell": [[True, True]]}, rounds_left=0.5)
    {'cell': [[True, False]]}
    """

    def __init__(self, alphas: Sequence[nn.Parameter], settings: "Alpha") -> None:
        assert settings.rate != "auto"  # the search has replaced it by a number
        unknown = settings.options.keys() - {"bound", "wipe_out"}
        self.bound: float = settings.options.get("bound", 1.0)
        self.wipe_out = bool(settings.options.get("wipe_out", True))
        if unknown or not (isinstance(self.bound, int | float) and self.bound > 0):
            raise InputError(
                f"alpha.options is {settings.options}; the rule exponentiated has `bound`, a positive number, and "
                "`wipe_out`, true or false"
            )
        self.alphas, self.rate = alphas, settings.rate

    def automatic_rate(self, rounds: float) -> float:
        """η of the theory for so many rounds; of rows with fewer options the bound holds as well."""
        options = max(alpha.shape[-1] for alpha in self.alphas)
        return math.sqrt(2 * math.log(max(options, 2)) / max(rounds, 1.0)) / self.bound

    @torch.no_grad()
    def step(self, grads: Sequence[Tensor]) -> None:
        """One step by ∂L2/∂u."""
        for alpha, grad in zip(self.alphas, grads, strict=True):
            alpha.sub_(self.rate * grad.clamp(-self.bound, self.bound))

    def survivors(
        self,
        alphas: Mapping[str, Tensor],
        mask: Mask,
        rounds_left: float,
        fewest: Mapping[str, int] | None = None,
    ) -> Mask:
        """The mask without the options that cannot win any more; it only ever gets smaller."""
        if not self.wipe_out:
            return mask
        slack, left = 2 * self.rate * self.bound * rounds_left, Mask()
        for name, rows in mask.items():
            count, left[name] = (fewest or {}).get(name, 1), []
            for alive, values in zip(rows, alphas[name].tolist(), strict=True):
                best = sorted((value for value, on in zip(values, alive, strict=True) if on), reverse=True)
                least = best[min(count, len(best)) - 1] - slack
                left[name].append([on and value >= least for value, on in zip(values, alive, strict=True)])
        return left

    def state_dict(self) -> dict[str, Any]:
        return {"rate": self.rate}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rate = state["rate"]
