"""When a lean function must leave the work to torch."""

import torch
from torch import Tensor
from torch.autograd import forward_ad


def must_fall_back(x: Tensor, *others: Tensor | None) -> bool:
    """Whether torch's own function must run: no gradients, other dtypes, or a transform that rewrites operations.

    >>> must_fall_back(torch.zeros(1, 3, 8, 8)), must_fall_back(torch.zeros(1, 3, 8, 8).half())
    (False, True)
    """
    return (
        not torch.is_grad_enabled()
        or x.dim() != 4
        or x.numel() == 0
        or x.dtype not in (torch.float32, torch.float64)
        or any(t is not None and t.dtype != x.dtype for t in others)
        or x.device.type not in ("cpu", "cuda")
        or torch.is_autocast_enabled(x.device.type)
        or torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or torch.compiler.is_compiling()
    )


# Values. Below this a layer's fixed cost in Python is more than what its double backward saves, measured for a gradient
# and one product (`benchmarks/small.py`).
SMALL = 32_768


def is_small(x: Tensor) -> bool:
    """Whether torch's own layer is the faster one, in the gradient and in the double backward.

    >>> is_small(torch.zeros(8, 8, 8, 8)), is_small(torch.zeros(32, 16, 16, 16))
    (True, False)
    """
    return x.numel() < SMALL
