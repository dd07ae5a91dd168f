"""Export a network for other programs: safetensors, ONNX or `torch.export`, with its `config.json`."""

import json
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from idarts._version import __version__
from idarts.engine.folder import ONNX, TORCH_EXPORT, WEIGHTS
from idarts.errors import IdartsError, InputError, require_known
from idarts.training.card import Card, card_of
from idarts.training.model_folder import weights, write_folder, write_weights

TOLERANCE = 1e-4  # for the outputs of an exported network, relative to the largest logit if that is above 1
_BATCHES = (1, 3)  # sizes of the batches that are compared; the network is traced with a batch of two
_Result = TypeVar("_Result")


def export(
    net: nn.Module, out: "str | PathLike[str]", formats: Sequence[str] = ("safetensors",), *, overwrite: bool = False
) -> dict[str, float | None]:
    """Write a loaded network into a folder, in one or more formats.

    Each exported file is compared with the network itself; nothing is written if one differs. An exported network
    accepts batches of any size.

    Args:
        net: a network from `idarts.load`, or any with a `.card`.
        out: the folder to write.
        formats: any of `safetensors`, `onnx` and `torch-export`.
        overwrite: replace a model that is in the folder.

    Returns:
        The largest difference of the outputs by format; None where it could not be compared.

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
    for name in formats or [""]:
        require_known("format", name, FORMATS)
    differences: dict[str, float | None] = {}

    def fill(folder: Path) -> None:
        for name in dict.fromkeys(formats):
            differences[name] = FORMATS[name](net, card, folder)

    write_folder(out, card, fill, getattr(net, "split", None), overwrite)
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
    _describe(file, card)
    if find_spec("onnxruntime") is None:
        return None
    import onnxruntime  # type: ignore[import-untyped] # noqa: PLC0415 (an extra)

    session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
    return _difference(net, card, lambda x: torch.from_numpy(session.run(None, {"images": x.cpu().numpy()})[0]), file)


def _describe(file: Path, card: Card) -> None:
    """Write into an ONNX file how images become its input, and what its outputs mean: all that a program needs."""
    import onnx  # noqa: PLC0415 (an extra)

    facts: dict[str, object] = {"labels": list(card.labels), **card.preprocessing(), "library": f"idarts {__version__}"}
    model = onnx.load(file)
    known = {entry.key: entry.value for entry in model.metadata_props}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in facts.items()}
    onnx.helper.set_model_props(model, {**known, **texts})
    onnx.save(model, file)


def _torch_export(net: nn.Module, card: Card, folder: Path) -> float | None:
    file = folder / TORCH_EXPORT
    batch = torch.export.Dim("batch")
    example = _images(net, card, 2)
    program = _traced(lambda: torch.export.export(net, (example,), dynamic_shapes=({0: batch},)))
    with file.open("w+b") as opened:  # torch itself ends the process if the path is not UTF-8
        torch.export.save(program, opened)
        opened.seek(0)
        again = torch.export.load(opened).module()
    return _difference(net, card, again, file)


# name → a function that writes the network into a folder and returns the largest difference of its outputs
FORMATS: dict[str, Callable[[nn.Module, Card, Path], float | None]] = {
    "safetensors": _safetensors,
    "onnx": _onnx,
    "torch-export": _torch_export,
}


def _traced(trace: Callable[[], _Result]) -> _Result:
    """Trace a network, with one line in place of torch's pages if a user's own module cannot be traced."""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # about torch's own code
            return trace()
    except Exception as error:  # torch raises many kinds
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise IdartsError(f"the network cannot be exported: {first}") from error


@torch.no_grad()
def _difference(net: nn.Module, card: Card, other: Callable[[Tensor], Tensor], file: Path) -> float:
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
    """Noise on the scale of normalised images; always the same, and without a draw from torch's global generator."""
    values = torch.randn((count, card.in_channels, *card.image), generator=torch.Generator().manual_seed(count))
    return values.to(next(net.parameters()).device)
