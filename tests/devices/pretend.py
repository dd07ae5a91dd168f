"""A device that is not the CPU, computed on the CPU: it refuses what a GPU refuses, and counts what makes one wait.

`install()` registers it as `pretend` for the rest of the process; then `tensor.to("pretend")`, `torch.device`,
`torch.accelerator` and the random state of the device work as for a GPU. Each tensor on it holds one of the CPU.

- An operation on tensors of both devices raises, as on a GPU. Copies may cross, and numbers (tensors without
  dimensions) of the CPU may take part.
- What makes the host wait for the device is recorded in `waits`, with the line of idarts that did it: `.item()`,
  `float()`, `bool()`, `.tolist()`, copies to the CPU, and operations whose shape depends on values.
- The device has a random generator of its own, other than the CPU's.

What it cannot show: kernels that a GPU lacks, other numerics, memory, streams, CUDA's graphs and compiled code, several
devices, NCCL. Optimisers take their loop over parameters here, on a GPU their fused form.
"""

import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

aten = torch.ops.aten
SOURCE = str(Path(torch.__file__).parent)
COPIES = {aten.copy_.default, aten.copy.default}
CROSSING = {aten._to_copy.default, *COPIES}
WAITING = {  # the host must see values before it can go on
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.equal.default,
    aten._unique2.default,
    aten.unique_dim.default,
    aten.repeat_interleave.Tensor,
}
LIBRARY = torch.library.Library("_", "IMPL")
waits = []  # "file.py:line function: operation" of everything that made the host wait
generator = torch.Generator()
"""The random numbers of the device."""


class OnDevice(torch.Tensor):
    """A tensor of the device, with its values in `held`."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(
            cls, held.size(), held.stride(), held.storage_offset(), dtype=held.dtype, device="pretend:0"
        )

    def __init__(self, held):
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return compute(function, args, kwargs or {})

    def __repr__(self):
        return f"OnDevice({self.held})"

    def tolist(self):
        return self.cpu().tolist()


def compute(function, args, kwargs):
    """One operation that has to do with the device."""
    flat, _ = pytree.tree_flatten((args, kwargs))
    tensors = [value for value in flat if isinstance(value, torch.Tensor)]
    ours = [value for value in tensors if isinstance(value, OnDevice)]
    others = [value for value in tensors if not isinstance(value, OnDevice)]
    target = kwargs.get("device")
    to_device = target.type == "pretend" if target is not None else bool(ours)
    if function in CROSSING:
        from_device = isinstance(args[1 if function in COPIES else 0], OnDevice)
        to_device = isinstance(args[0], OnDevice) if function in COPIES else to_device
        at_once = args[2] if function in COPIES and len(args) > 2 else kwargs.get("non_blocking")
        if from_device != to_device and not (at_once and to_device):
            waited(function)
    elif any(value.dim() for value in others) and ours:
        raise RuntimeError(f"{function} got tensors on two devices, pretend and cpu")
    elif function in WAITING or (function is aten.index.Tensor and masks(args[1])):
        waited(function)
    held = pytree.tree_map_only(OnDevice, lambda value: value.held, (args, dict(kwargs)))
    if target is not None:
        held[1]["device"] = torch.device("cpu")
    if torch.Tag.nondeterministic_seeded in function.tags and to_device:
        before = torch.get_rng_state()
        torch.set_rng_state(generator.get_state())
        result = function(*held[0], **held[1])
        generator.set_state(torch.get_rng_state())
        torch.set_rng_state(before)
    else:
        result = function(*held[0], **held[1])
    if not to_device:
        return result
    given = {id(value.held): value for value in ours}  # what an operation in place returns is what it got
    wrap = lambda value: given[id(value)] if id(value) in given else OnDevice(value)  # noqa: E731
    return pytree.tree_map_only(torch.Tensor, wrap, result)


def masks(indices):
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices)


def waited(function):
    """Record the innermost line that is not torch's or this file's."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ or frame.f_code.co_filename.startswith(SOURCE):
        frame = frame.f_back
    code = frame.f_code
    waits.append(f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_qualname}: {function}")


class Functions(TorchFunctionMode):
    """Does step by step what torch does in C++, where this device cannot be reached."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in (torch.tensor, torch.as_tensor) and "pretend" in str(kwargs.get("device")):
            return function(*args, **kwargs | {"device": "cpu"}).to(kwargs["device"])
        if function in (torch.Tensor.__getitem__, torch.Tensor.__setitem__) and isinstance(args[0], OnDevice):
            args = (args[0], listed(args[1]), *args[2:])
        if function.__name__ == "lstm_cell":  # which is fused on every device but the CPU
            return lstm_cell(*args)
        return function(*args, **kwargs)


def listed(index):
    """An index with its lists as tensors: torch copies each to the device."""
    if isinstance(index, tuple):
        return tuple(map(listed, index))
    return torch.tensor(index).to("pretend") if isinstance(index, list) else index


def lstm_cell(x, state, wx, wh, bx, bh):
    hidden, cell = state
    enter, forget, new, leave = (x @ wx.T + bx + hidden @ wh.T + bh).chunk(4, dim=1)
    cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * cell.tanh(), cell


class Module:
    """What `torch.pretend` offers, as `torch.cuda` does."""

    def is_initialized(self):
        return True

    is_available = is_initialized

    def _is_in_bad_fork(self):
        return False

    def current_device(self):
        return 0

    def device_count(self):
        return 1

    def manual_seed_all(self, seed):
        generator.manual_seed(seed)

    def get_rng_state(self, device=0):
        return generator.get_state()

    def set_rng_state(self, state, device=0):
        generator.set_state(state)

    def get_amp_supported_dtype(self):
        return [torch.float16, torch.bfloat16]


def install():
    _setup_privateuseone_for_python_backend("pretend", backend_module=Module())
    torch.__future__.set_swap_module_params_on_conversion(True)
    LIBRARY.fallback(lambda function, *args, **kwargs: compute(function, args, kwargs), "PrivateUse1")
    Functions().__enter__()


@contextmanager
def watched():
    """The waits inside of the block."""
    waits.clear()
    found = SimpleNamespace(waits=[])
    yield found
    found.waits = list(waits)
