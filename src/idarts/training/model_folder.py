"""Model folders: `model.safetensors`, `config.json` and a model card. Written at once; reading them runs no code."""

import json
import shutil
from collections.abc import Callable, Mapping
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from idarts.data import Split, read_split
from idarts.digests import BLANK, KEY, is_intact, sealed, with_digest
from idarts.engine.folder import (
    CHECKPOINTS,
    CONFIG,
    MODEL,
    MODEL_FILES,
    ONNX,
    README,
    RESULT,
    SPLIT,
    TORCH_EXPORT,
    WEIGHTS,
)
from idarts.errors import InputError, command
from idarts.files import beside, load_json, read_json, remove_strays, safetensors_note, sync_folder, write_whole
from idarts.spaces import Choice, derive
from idarts.spaces.networks import network
from idarts.training.card import FORMAT, Card, card_from
from idarts.training.readme import readme


def save(
    folder: "str | PathLike[str]", net: nn.Module, card: Card, *, split: Split | None = None, overwrite: bool = False
) -> Path:
    """Write a network as a model folder, completely or not at all; an auxiliary head is left out.

    `split` is the record of the images of its training, so that an evaluation can leave them out.

    >>> import tempfile
    >>> from idarts.arch import parse
    >>> from idarts.spaces import SPACES
    >>> card = Card(parse("DARTS_V2"), SPACES["darts"].resolve(depth=2, channels=4), 3, (32, 32),
    ...             mean=(0.5, 0.5, 0.5), std=(0.2, 0.2, 0.2), labels=tuple("0123456789"))
    >>> net = network(card.architecture, card.macro)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = save(Path(place, "model"), net, card)
    ...     again = load(folder)
    ...     sorted(file.name for file in folder.iterdir())
    ['README.md', 'config.json', 'model.safetensors']
    >>> again.card == card, torch.equal(again.classifier.weight, net.classifier.weight), again.training
    (True, True, False)
    """
    state = weights(net, card)
    return write_folder(folder, card, lambda new: write_weights(new / WEIGHTS, state, card), split, overwrite)


def load(
    folder: "str | PathLike[str]", model: nn.Module | None = None, *, device: "str | torch.device" = "cpu"
) -> nn.Module:
    """Load the network in a model folder, or in the folder of a training or a fit, in evaluation mode.

    Args:
        folder: a model folder, a finished training's run folder, or the folder of a finished fit.
        model: for a user's own module, whose code is not in the folder: the module that was searched or trained, or
            one like it. It is not changed; a copy gets the weights.
        device: where the network is placed.

    Returns:
        The network, with its `Card` (architecture, preprocessing, labels) as the attribute `card`, and the record of
        the images of its training, or None, as `split`.

    >>> import tempfile
    >>> from idarts.training import train
    >>> with tempfile.TemporaryDirectory() as place:
    ...     done = train("nas-bench-201:0", "digits", out=Path(place, "run"), depth=1, channels=4, epochs=1)
    ...     net = load(Path(place, "run"))
    >>> net(torch.zeros(1, 1, 8, 8)).shape, net.card.labels[:3]
    (torch.Size([1, 10]), ('0', '1', '2'))
    """
    path = find_model(folder)
    card = read_card(path)
    state = _read_weights(path, card)
    net = _build(path, card) if model is None else _copy(path, card, model)
    problem = _difference(net.state_dict(), state)
    if problem:
        reason = f"{CONFIG} describes another network" if model is None else "the given model is another one"
        raise InputError(f"{path / WEIGHTS} does not fit: {problem}; {reason} than the one that was saved")
    net.load_state_dict(state, assign=model is None)  # a given model may share weights, which must stay shared
    net.card, net.split = card, read_split(path / SPLIT)  # type: ignore[assignment] # a module takes any attribute
    return net.to(device).eval()


def read_card(folder: Path) -> Card:
    """The card in a model folder."""
    file = folder / CONFIG
    data = read_json(file)
    try:
        return card_from(data)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def find_model(path: "str | PathLike[str]") -> Path:
    """The model folder at a path: the path itself, or the one in the folder of a training or a fit.

    >>> find_model("nowhere")
    Traceback (most recent call last):
    idarts.errors.InputError: nowhere is not a folder; give a model folder, or that of a finished training or fit
    """
    given = Path(path)
    if not given.is_dir():
        raise InputError(f"{given} is not a folder; give a model folder, or that of a finished training or fit")
    if (given / MODEL).is_dir():
        return given / MODEL
    if any((given / name).exists() for name in (WEIGHTS, ONNX, TORCH_EXPORT)) or is_model(given):
        return given
    if (given / RESULT).exists():
        raise InputError(f"{given} is a search, not a trained network; train it first: {command('train', given)}")
    if (given / CHECKPOINTS).is_dir():
        raise InputError(
            f"{given} holds no finished model yet; wait for its training, or continue it with --resume "
            "(resume=True in Python)"
        )
    raise InputError(f"{given} holds no model, expected {CONFIG} and {WEIGHTS}, or a training or fit with {MODEL}/")


def is_model(folder: Path) -> bool:
    """Whether a folder's `config.json` is the card of a model."""
    try:
        card = load_json((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(card, dict) and str(card.get("format", "")).startswith("idarts-model")


def weights(net: nn.Module, card: Card) -> dict[str, Tensor]:
    """Copies of the tensors to save, checked against the network that the card describes."""
    state = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in net.state_dict().items()}
    if card.macro is None:
        return state
    state = {name: tensor for name, tensor in state.items() if not name.startswith("auxiliary.")}
    problem = _difference(_build(Path(), card).state_dict(), state)
    if problem:
        raise InputError(f"the network is not the one that its card describes: {problem}")
    return state


def write_weights(file: Path, state: dict[str, Tensor], card: Card) -> None:
    """Write weights, with a note of their network: operations without weights leave no trace in the tensors."""
    from safetensors import SafetensorError  # noqa: PLC0415 (only files need it)
    from safetensors.torch import save as to_bytes  # noqa: PLC0415 (only files need it)

    try:
        content = to_bytes(state, {"format": "pt", "idarts": FORMAT, "network": _note(card), KEY: BLANK})
    except SafetensorError as error:
        raise InputError(f"the weights cannot be written as safetensors: {error}") from None
    write_whole(file, sealed(content))


def write_folder(
    folder: "str | PathLike[str]",
    card: Card,
    fill: Callable[[Path], None],
    split: Split | None = None,
    overwrite: bool = False,
) -> Path:
    """Create a model folder under a temporary name, let `fill` write the network into it, then rename it."""
    target = Path(folder)
    require_free(target, overwrite)
    new = beside(target)
    try:
        new.mkdir(parents=True)
        fill(new)
        text = json.dumps(with_digest(card.to_data()), indent=1, ensure_ascii=False, allow_nan=False)
        write_whole(new / CONFIG, f"{text}\n")
        write_whole(new / README, readme(card))
        if split is not None:
            write_whole(new / SPLIT, split.to_bytes())
        _replace(target, new)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
    remove_strays(target.parent, target.name)
    return target


def _replace(target: Path, new: Path) -> None:
    if not target.exists():
        new.rename(target)
        sync_folder(target.parent)
        return
    old = target.rename(beside(target))
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    for hidden in old.glob(".*"):
        hidden.rename(target / hidden.name)
    sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def require_free(target: Path, overwrite: bool = True) -> None:
    """An existing folder is replaced only with `overwrite`, and only if it holds nothing but a model.

    Hidden files are ignored, because file managers make some; they stay.

    >>> require_free(Path("no/such/folder"))
    """
    if target.name in ("", ".."):
        raise InputError(f"{target} cannot be a model folder, because it has no name of its own; name a new folder")
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{target} is a file, expected a folder to write")
    visible = sorted(file.name for file in target.iterdir() if not file.name.startswith("."))
    strange = [name for name in visible if name not in MODEL_FILES]
    if strange:
        raise InputError(f"{target} holds {strange[0]}, which is not part of a model; move it, or choose a new folder")
    if visible and not overwrite:
        raise InputError(
            f"{target} already holds a model; replace it with --overwrite (overwrite=True in Python), or choose a new "
            "folder"
        )


def _note(card: Card) -> str:
    return json.dumps(card.network(), sort_keys=True)


def _read_weights(folder: Path, card: Card) -> dict[str, Tensor]:
    from safetensors import SafetensorError  # noqa: PLC0415 (only files need it)
    from safetensors.torch import load as from_bytes  # noqa: PLC0415 (only files need it)

    file = folder / WEIGHTS
    if not file.is_file():
        others = [name for name in (ONNX, TORCH_EXPORT) if (folder / name).exists()]
        only = f", only {' and '.join(others)}; export it with --format safetensors" if others else ""
        raise InputError(f"{folder} holds no {WEIGHTS}{only}")
    try:
        content = file.read_bytes()  # safetensors itself opens no path that is not UTF-8
        if not is_intact(content):
            raise InputError(
                f"{file} is damaged: its content does not match its digest; get it again, or export it again"
            )
        state, note = from_bytes(content), safetensors_note(content)
    except (SafetensorError, OSError, KeyError) as error:  # KeyError: a type of numbers that torch does not have
        raise InputError(f"{file} is damaged, or not a safetensors file: {error}") from None
    if note.get("idarts") != FORMAT:
        raise InputError(f"{file} was not written by idarts; only {FORMAT} files can be loaded")
    if note.get("network") != _note(card):
        raise InputError(f"{folder / CONFIG} describes another network than the one whose weights are in {WEIGHTS}")
    return dict(state)


def _build(folder: Path, card: Card) -> nn.Module:
    """The network of a card, without memory for its weights."""
    if card.macro is None:
        raise InputError(
            f"{folder} holds a user's own module, which cannot be rebuilt from its data alone; "
            "load it from Python: idarts.load(folder, model=your_module)"
        )
    with torch.device("meta"):
        return network(card.architecture, card.macro, in_channels=card.in_channels)


def _copy(folder: Path, card: Card, model: nn.Module) -> nn.Module:
    """A copy of a user's own module; if it contains Choices, the derived module."""
    if card.macro is not None:
        raise InputError(f"{folder} holds a network of {card.architecture.space}, which is loaded without a model")
    if any(isinstance(module, Choice) for module in model.modules()):
        return derive(model, card.architecture)
    return deepcopy(model)


def _difference(expected: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """The first difference of two sets of named tensors, in words."""
    for name, tensor in expected.items():
        if name not in given:
            return f"{name} is missing"
        if given[name].shape != tensor.shape:
            return f"{name} has shape {tuple(given[name].shape)}, expected {tuple(tensor.shape)}"
        if given[name].dtype != tensor.dtype:
            return f"{name} is of type {given[name].dtype}, expected {tensor.dtype}"
    unknown = sorted(set(given) - set(expected))
    return f"{unknown[0]} is unknown" if unknown else None
