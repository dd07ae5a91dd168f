"""When a lean function must step back for torch's own."""

import torch
from torch import Tensor
from torch.autograd import forward_ad


def must_be_stock(x: Tensor, *others: Tensor | None) -> bool:
    """Whether torch's own function must run: nothing to differentiate, or something else that rewrites operations."""
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
