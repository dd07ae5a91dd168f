"""A model folder: `model.safetensors` and `config.json`. Written as a whole, read without running anything in it."""

import json
import shutil
from collections.abc import Callable, Mapping
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from idarts.arch import json_form
from idarts.errors import InputError
from idarts.files import beside
from idarts.spaces import Choice, derive
from idarts.spaces.networks import network
from idarts.training.card import FORMAT, Card, card_from

CONFIG, WEIGHTS, ONNX, TORCH_EXPORT = "config.json", "model.safetensors", "model.onnx", "model.pt2"
EVALUATION, EVALUATION_PAGE = "evaluation.json", "evaluation.html"
FILES = (CONFIG, WEIGHTS, ONNX, TORCH_EXPORT, EVALUATION, EVALUATION_PAGE)
MODEL = "model"  # the model folder in a training run's


def save(folder: "str | PathLike[str]", net: nn.Module, card: Card, *, overwrite: bool = False) -> Path:
    """Write a network as a model folder, all of it or nothing; an auxiliary head is left out.

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
    ['config.json', 'model.safetensors']
    >>> again.card == card, torch.equal(again.classifier.weight, net.classifier.weight), again.training
    (True, True, False)
    """
    state = weights(net, card)
    return write_folder(folder, card, lambda aside: write_weights(aside / WEIGHTS, state, card), overwrite)


def load(
    folder: "str | PathLike[str]", model: nn.Module | None = None, *, device: "str | torch.device" = "cpu"
) -> nn.Module:
    """The network in a model folder, or in a training run's, in evaluation mode, with its card as `.card`.

    A derived `Choice` model's classes are not in the folder: give the module that was searched, or one like the derived
    one, as `model`; it stays as it is, and a copy gets the weights.

    >>> import tempfile
    >>> from idarts.training import train
    >>> with tempfile.TemporaryDirectory() as place:
    ...     done = train("nas-bench-201:0", "digits", out=Path(place, "run"), depth=1, channels=4, epochs=1)
    ...     net = load(Path(place, "run"))
    >>> net(torch.zeros(1, 1, 8, 8)).shape, net.card.labels[:3]
    (torch.Size([1, 10]), ('0', '1', '2'))
    """
    where = model_folder(folder)
    card = read_card(where)
    state = _read_weights(where, card)
    net = _built(where, card) if model is None else _given(where, card, model)
    problem = _difference(net.state_dict(), state)
    if problem:
        told = "the given model is another one" if model is not None else f"{CONFIG} is of another network"
        raise InputError(f"{where / WEIGHTS} does not fit: {problem}; {told} than was saved")
    net.load_state_dict(state, assign=model is None)  # what is given may share weights, and goes on sharing them
    net.card = card  # type: ignore[assignment] # a module takes any attribute
    return net.to(device).eval()


def read_card(folder: Path) -> Card:
    """The card in a model folder."""
    file = folder / CONFIG
    try:
        return card_from(json_form.load(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def model_folder(path: "str | PathLike[str]") -> Path:
    """The model folder that is meant: the one given, or the one in a training run's folder.

    >>> model_folder("nowhere")
    Traceback (most recent call last):
    idarts.errors.InputError: nowhere is no folder; give a model folder or a finished training run
    """
    given = Path(path)
    if not given.is_dir():
        raise InputError(f"{given} is no folder; give a model folder or a finished training run")
    if (given / MODEL).is_dir():
        return given / MODEL
    if any((given / name).exists() for name in (WEIGHTS, ONNX, TORCH_EXPORT)) or is_model(given):
        return given
    if (given / "result.json").exists():
        raise InputError(f"{given} is a search, not a trained network; train what it found: idarts train {given}")
    if (given / "checkpoints").is_dir():
        raise InputError(f"{given} holds no finished model yet; let its training end, with --resume if it was stopped")
    raise InputError(f"{given} holds no model, expected {CONFIG} and {WEIGHTS}, or a training run with {MODEL}/")


def weights(net: nn.Module, card: Card) -> dict[str, Tensor]:
    """The tensors to be saved, each on its own in memory, checked against the network that the card describes."""
    found = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in net.state_dict().items()}
    if card.macro is None:
        return found
    found = {name: tensor for name, tensor in found.items() if not name.startswith("auxiliary.")}
    with torch.device("meta"):
        expected = network(card.architecture, card.macro, in_channels=card.in_channels).state_dict()
    problem = _difference(expected, found)
    if problem:
        raise InputError(f"the network is not the one that its card describes: {problem}")
    return found


def write_weights(file: Path, state: dict[str, Tensor], card: Card) -> None:
    """Weights with a note of the network they belong to: operations without weights leave no trace in them."""
    file.write_bytes(to_bytes(state, {"format": "pt", "idarts": FORMAT, "network": _note(card)}))


def write_folder(
    folder: "str | PathLike[str]", card: Card, fill: Callable[[Path], None], overwrite: bool = False
) -> Path:
    """Make a model folder aside, let `fill` put the network into it, then move it to its place in one step."""
    target = Path(folder)
    _require_free(target, overwrite)
    aside = beside(target)
    try:
        aside.mkdir(parents=True)
        fill(aside)
        text = json.dumps(card.to_data(), indent=1, ensure_ascii=False, allow_nan=False)
        (aside / CONFIG).write_text(f"{text}\n", encoding="utf-8")
        _replace(target, aside)
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot write {target}: {getattr(error, 'strerror', None) or error}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target


def _replace(target: Path, aside: Path) -> None:
    if not target.exists():
        aside.rename(target)
        return
    old = target.rename(beside(target))
    try:
        aside.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _require_free(target: Path, overwrite: bool) -> None:
    """A folder that is there is replaced only if that was asked for, and if all in it is a model's."""
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{target} is a file, expected a folder to write")
    strange = sorted(file.name for file in target.iterdir() if file.name not in FILES)
    if strange:
        raise InputError(f"{target} holds {strange[0]}, which is no part of a model; name a new folder")
    if any(target.iterdir()) and not overwrite:
        raise InputError(f"{target} holds a model already; replace it with --overwrite, or name a new folder")


def is_model(folder: Path) -> bool:
    """Whether a folder says of itself that it holds a model."""
    try:
        found = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and str(found.get("format", "")).startswith("idarts-model")


def _note(card: Card) -> str:
    return json.dumps(card.network(), sort_keys=True)


def _read_weights(folder: Path, card: Card) -> dict[str, Tensor]:
    file = folder / WEIGHTS
    if not file.is_file():
        others = [name for name in (ONNX, TORCH_EXPORT) if (folder / name).exists()]
        only = f", only {' and '.join(others)}; export it with --format safetensors" if others else ""
        raise InputError(f"{folder} holds no {WEIGHTS}{only}")
    try:
        with safe_open(file, framework="pt") as opened:
            note = opened.metadata() or {}
            state = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (it is no mapping)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{file} is damaged, or no safetensors file: {error}") from None
    if note.get("idarts") != FORMAT:
        raise InputError(f"{file} was not written by idarts; only {FORMAT} files can be loaded")
    if note.get("network") != _note(card):
        raise InputError(f"{folder / CONFIG} describes another network than the one whose weights are in {WEIGHTS}")
    return state


def _built(folder: Path, card: Card) -> nn.Module:
    if card.macro is None:
        raise InputError(
            f"{folder} holds a module of your own, which its data alone cannot rebuild; "
            "load it from Python: idarts.load(folder, model=your_module)"
        )
    with torch.device("meta"):  # no weights are drawn only to be thrown away
        return network(card.architecture, card.macro, in_channels=card.in_channels)


def _given(folder: Path, card: Card, model: nn.Module) -> nn.Module:
    if card.macro is not None:
        raise InputError(f"{folder} holds a network of {card.architecture.space}, which needs no model to be loaded")
    if any(isinstance(module, Choice) for module in model.modules()):
        return derive(model, card.architecture)
    return deepcopy(model)


def _difference(expected: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """The first thing in which two sets of named tensors differ, in words."""
    for name, tensor in expected.items():
        if name not in found:
            return f"{name} is missing"
        if found[name].shape != tensor.shape:
            return f"{name} has shape {tuple(found[name].shape)}, expected {tuple(tensor.shape)}"
        if found[name].dtype != tensor.dtype:
            return f"{name} is of type {found[name].dtype}, expected {tensor.dtype}"
    unknown = sorted(set(found) - set(expected))
    return f"{unknown[0]} is unknown" if unknown else None
