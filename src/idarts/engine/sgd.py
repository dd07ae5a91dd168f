"""SGD on weights, as searches, trials and trainings take it: precision, ranks, clipping, numbers that are not finite.

The caller computes the gradients, because a search and a training take them in different ways; the rest is shared.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from idarts.engine.ranks import average_gradients
from idarts.engine.settings import Precision


class SGD:
    """torch's SGD with autocast, a gradient scaler for float16, means over ranks, and clipping.

    `clip` is the largest norm of the gradient, and 0 clips nothing; with None, gradients are not even checked.

    >>> w = nn.Parameter(torch.tensor([1.0, 2.0]))
    >>> sgd = SGD([w], momentum=0.0)
    >>> with sgd.autocast():
    ...     loss = (w**2).sum() / 2
    >>> seen, finite = sgd.step(sgd.gradients(loss), loss.detach().reshape(1), rate=0.5)
    >>> w.data, seen, finite
    (tensor([0.5000, 1.0000]), tensor([2.5000]), tensor(True))
    """

    def __init__(
        self,
        w: Iterable[nn.Parameter],
        *,
        momentum: float,
        nesterov: bool = False,
        decay: float = 0.0,
        clip: float | None = None,
        precision: Precision = "float32",
    ) -> None:
        self.w, self.clip, self.precision = list(w), clip, precision
        self.optimizer = torch.optim.SGD(self.w, momentum=momentum, nesterov=nesterov, weight_decay=decay)
        self.device = self.w[0].device.type
        self.scaler = torch.amp.GradScaler(self.device, enabled=precision == "float16")

    def autocast(self) -> torch.autocast:
        """The context in which a loss is computed in the settings' precision."""
        low = self.precision != "float32"
        return torch.autocast(self.device, getattr(torch, self.precision) if low else None, enabled=low)

    def gradients(self, loss: Tensor, also: Sequence[Tensor] = ()) -> tuple[Tensor | None, ...]:
        """The (scaled) gradients of a loss by w, then by `also`; None where one is not used. Nothing is accumulated."""
        return torch.autograd.grad(self.scaler.scale(loss), [*self.w, *also], allow_unused=True)

    def step(self, grads: Sequence[Tensor | None], seen: Tensor, rate: float) -> tuple[Tensor, Tensor]:
        """One step by (scaled) gradients. Returns the mean of `seen` over ranks, and whether all was finite.

        `seen` holds what is known of the batch, the loss first. Where the loss or a gradient is not finite, the step
        takes zeros for gradients. Nothing waits for the device.
        """
        grads, seen = average_gradients(grads, seen)
        for parameter, grad in zip(self.w, grads, strict=True):
            parameter.grad = grad
        self.scaler.unscale_(self.optimizer)
        finite = seen[0].isfinite() if self.clip is None else clip_gradients(self.w, seen[0], self.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        # In float16 a gradient that overflows is usual: the scaler skips the step and lowers its scale.
        return seen, seen[0].isfinite() if self.scaler.is_enabled() else finite


def clip_gradients(parameters: Iterable[nn.Parameter], loss: Tensor, clip: float) -> Tensor:
    """Clip the gradients to a norm (0: do not), or zero them if they or the loss are not finite; returns if they are.

    All of it stays on the device. In a step with zeroed gradients, momentum still moves the weights.

    >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> w.grad = torch.tensor([6.0, 8.0])
    >>> clip_gradients([w], torch.tensor(1.0), clip=5.0), w.grad
    (tensor(True), tensor([3.0000, 4.0000]))
    >>> clip_gradients([w], torch.tensor(torch.nan), clip=5.0), w.grad
    (tensor(False), tensor([0., 0.]))
    """
    grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = torch.nn.utils.get_total_norm(grads)
    finite = loss.isfinite() & norm.isfinite()
    scale = (clip / (norm + 1e-6)).clamp(max=1.0) if clip else 1.0
    for grad in grads:
        grad.copy_(torch.where(finite, grad * scale, 0.0))
    return finite
