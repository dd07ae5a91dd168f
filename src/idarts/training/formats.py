"""A network for other programs: safetensors, ONNX, or `torch.export`, each with its `config.json` beside it."""

import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from idarts.errors import IdartsError, InputError
from idarts.training.card import Card, card_of
from idarts.training.model_folder import ONNX, TORCH_EXPORT, WEIGHTS, weights, write_folder, write_weights

TOLERANCE = 1e-4  # of what another program computes, relative to the largest logit where that is above 1
_BATCHES = (1, 3)  # that are compared; the network is traced with a batch of two
_Result = TypeVar("_Result")


def export(
    net: nn.Module, out: "str | PathLike[str]", formats: Sequence[str] = ("safetensors",), *, overwrite: bool = False
) -> dict[str, float | None]:
    """Write a loaded network (one with a `.card`) into a new folder; any of `FORMATS`.

    What each file computes is compared with the network itself: the largest difference by format, None where it could
    not be compared. Nothing is written if one differs. Any number of images goes through the exported network.

    >>> import tempfile
    >>> from idarts.arch import parse
    >>> from idarts.training import load, save
    >>> from idarts.spaces import Skeleton, network
    >>> skeleton = Skeleton(depth=1, channels=4, classes=2, image=8)
    >>> card = Card(parse("nas-bench-201:0"), skeleton, 1, (8, 8), mean=(0.5,), std=(0.2,), labels=("cat", "dog"))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     net = load(save(Path(place, "model"), network(card.architecture, skeleton, in_channels=1), card))
    ...     export(net, Path(place, "out"), ["torch-export"])
    {'torch-export': 0.0}
    """
    card = card_of(net)
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        raise InputError(f"unknown format {unknown[0] if unknown else ''!r}, expected {', '.join(FORMATS)}")
    differences: dict[str, float | None] = {}

    def fill(aside: Path) -> None:
        for name in dict.fromkeys(formats):
            differences[name] = FORMATS[name](net, card, aside)

    write_folder(out, card, fill, overwrite)
    return differences


def _safetensors(net: nn.Module, card: Card, folder: Path) -> float | None:
    write_weights(folder / WEIGHTS, weights(net, card), card)
    return 0.0


def _onnx(net: nn.Module, card: Card, folder: Path) -> float | None:
    for needed in ("onnx", "onnxscript"):
        if find_spec(needed) is None:
            raise InputError(f"ONNX needs {needed}: pip install 'idarts[export]'")
    file = folder / ONNX
    _traced(
        lambda: torch.onnx.export(
            net,
            (_images(net, card, 2),),
            file,
            dynamo=True,
            dynamic_shapes=({0: "batch"},),
            input_names=["images"],
            output_names=["logits"],
            external_data=False,
            verbose=False,
        )
    )
    if find_spec("onnxruntime") is None:
        return None
    import onnxruntime  # type: ignore[import-untyped] # noqa: PLC0415 (an extra)

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return _compared(net, card, lambda x: torch.from_numpy(session.run(None, {"images": x.cpu().numpy()})[0]), file)


def _torch_export(net: nn.Module, card: Card, folder: Path) -> float | None:
    file = folder / TORCH_EXPORT
    batch = torch.export.Dim("batch")
    example = _images(net, card, 2)
    program = _traced(lambda: torch.export.export(net, (example,), dynamic_shapes=({0: batch},)))
    torch.export.save(program, file)
    again = torch.export.load(file).module()
    return _compared(net, card, again, file)


# name → writes the network into a folder and gives its largest difference from the network itself
FORMATS: dict[str, Callable[[nn.Module, Card, Path], float | None]] = {
    "safetensors": _safetensors,
    "onnx": _onnx,
    "torch-export": _torch_export,
}


def _traced(trace: Callable[[], _Result]) -> _Result:
    """A user's own model may hold what cannot be traced; torch says so in pages."""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # torch's own, about itself
            return trace()
    except Exception as error:  # torch raises many kinds
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise IdartsError(f"the network cannot be exported: {first}") from error


@torch.no_grad()
def _compared(net: nn.Module, card: Card, other: Callable[[Tensor], Tensor], file: Path) -> float:
    worst = 0.0
    for count in _BATCHES:
        images = _images(net, card, count)
        expected = net(images)
        difference = float((other(images).to(expected.device) - expected).abs().max())
        if not difference <= TOLERANCE * max(1.0, float(expected.abs().max())):
            raise IdartsError(f"{file.name} differs from the network by {difference:.3g}, more than {TOLERANCE:g}")
        worst = max(worst, difference)
    return worst


def _images(net: nn.Module, card: Card, count: int) -> Tensor:
    """Noise as large as normalised images are, always the same and without a draw from anybody's generator."""
    values = torch.randn((count, card.in_channels, *card.image), generator=torch.Generator().manual_seed(count))
    return values.to(next(net.parameters()).device)
