"""What every step of SGD does to its gradients."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def bounded(parameters: Iterable[nn.Parameter], loss: Tensor, clip: float) -> Tensor:
    """Clip the gradients (0: do not), and make them zero where they or the loss are not finite; whether they are.

    All of it stays on the device: nobody waits for the answer. A momentum carries the weights on in such a step.

    >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> w.grad = torch.tensor([6.0, 8.0])
    >>> bounded([w], torch.tensor(1.0), clip=5.0), w.grad
    (tensor(True), tensor([3.0000, 4.0000]))
    >>> bounded([w], torch.tensor(torch.nan), clip=5.0), w.grad
    (tensor(False), tensor([0., 0.]))
    """
    grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = torch.nn.utils.get_total_norm(grads)
    finite = loss.isfinite() & norm.isfinite()
    scale = (clip / (norm + 1e-6)).clamp(max=1.0) if clip else 1.0
    for grad in grads:
        grad.copy_(torch.where(finite, grad * scale, 0.0))
    return finite
