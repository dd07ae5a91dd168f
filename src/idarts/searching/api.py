"""`idarts.searching`: the search from Python, on a space by name or on any module with Choices in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idarts.data import CIFAR, NONE, Batches, load, split
from idarts.data.record import Images, LazyImages
from idarts.engine import device_named
from idarts.engine.ranks import share
from idarts.engine.settings import change
from idarts.errors import InputError, require_known
from idarts.searching.loop import Search
from idarts.searching.relaxations import RELAXATIONS
from idarts.searching.round import Round, Stream
from idarts.searching.run import RunConfig, SearchResult, builder, conduct
from idarts.searching.settings import METHODS
from idarts.searching.streams import Piece, TensorBatches, pair
from idarts.searching.trials import Build
from idarts.spaces import ChoiceSupernet, Supernet, space

Data = Any  # (x, y), a part of `idarts.data`, a torch Dataset, or a stream of batches


def search(
    what: "str | nn.Module",
    train: Data,
    valid: Data = None,
    method: str = "idarts",
    *,
    loss: Callable[[Any, Any], Tensor] = cross_entropy,
    out: "str | Path | None" = None,
    resume: bool = False,
    overwrite: bool = False,
    watch: Callable[[Round, Search], None] | None = None,
    **settings: Any,
) -> SearchResult:
    """Search a space by name, or a module with `Choice` in it, and leave a run folder behind.

    `train` and `valid` are `(x, y)` tensors, parts of `idarts.data`, torch `Dataset`s, or streams of batches; `valid`
    may also be the share of `train` that is kept for α, one half unless given. `loss` takes outputs and targets: any
    task will do. All settings of `idarts search` are keywords, groups as dicts: `rounds=50, alpha={"rate": 0.01}`;
    images are cropped and flipped only with `augment=True`.

    >>> import tempfile
    >>> from idarts import Choice
    >>> x = torch.randn(64, 4)
    >>> model = Choice({"line": nn.Linear(4, 1), "nothing": nn.Linear(4, 1, bias=False)}, name="layer")
    >>> data, mse = (x, x.sum(1, keepdim=True) + 1), nn.functional.mse_loss
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = search(model, data, loss=mse, batch=16, rounds=2, out=folder)
    >>> sorted(result.architecture.choices)
    ['layer']
    """
    require_known("method", method, METHODS)
    name = what if isinstance(what, str) else "choice" if not isinstance(what, Supernet) else type(what).__name__
    _require_used(settings, isinstance(what, str))
    if isinstance(valid, int | float | str):
        settings, valid = {**settings, "valid": valid}, None
    config: RunConfig = change(RunConfig(space=name, method=method, data="python", augment=False), METHODS[method])
    config = change(config, settings)
    folder = Path(out) if out is not None else Path("runs", f"{name}-{method}-{config.seed}")

    def prepare() -> tuple[Search, dict[str, Any]]:
        torch.manual_seed(config.seed)
        first, second = _parts(what, train, valid, config)
        net, build = _net(what, (first, second), config)
        device = net.architecture_parameters()[0].device
        inner, outer = (_stream(part, config, which, device) for which, part in enumerate((first, second)))
        described = {"batches of train": len(inner), "batches of valid": len(outer)}
        found = Search(net, inner, outer, config, loss)
        found.build = build
        return found, described

    return conduct(prepare, config, folder, resume=resume, overwrite=overwrite, watch=watch)


def _require_used(settings: dict[str, Any], named: bool) -> None:
    """Refuse what would do nothing: data and models of one's own are as large, and where, they are."""
    unused = ("data", "data_root", "image") if named else ("data", "data_root", "image", "device", "depth", "channels")
    if "space" in settings:
        raise InputError("the space is the first argument; leave space= out")
    for name in unused:
        if name in settings:
            raise InputError(f"{name} says nothing of {'data' if named else 'a model'} of your own; leave it out")


def _net(what: "str | nn.Module", parts: tuple[Any, Any], config: RunConfig) -> tuple[Supernet, Build | None]:
    """The supernet and, for a space by name, how its architectures become networks."""
    if isinstance(what, Supernet):
        return what, None
    if isinstance(what, nn.Module):
        return ChoiceSupernet(what), None
    if not all(map(_is_part, parts)):
        raise InputError(f"the space {what!r} is searched on images; give (x, y), a part of idarts.data, or a Dataset")
    found = space(what)
    channels, height, _ = parts[0].shape
    classes = max(int(part.labels.max()) for part in parts) + 1
    macro = found.skeleton.changed(depth=config.depth, channels=config.channels, classes=classes, image=height)
    net = found.supernet(macro, in_channels=channels, relaxation=RELAXATIONS[config.relaxation](0.0))
    device = device_named(config.device)
    return net.to(device), builder(macro, found.skeleton.depth, channels, device)


def _parts(what: "str | nn.Module", train: Data, valid: Data, config: RunConfig) -> tuple[Any, Any]:
    """Both parts, of one kind: images for a space by name, else what was given."""
    given = [train] if valid is None else [train, valid]
    if config.valid == "official":
        raise InputError("valid='official' needs data by name (idarts search); give a share such as 0.5, or data")
    if not isinstance(what, str):
        given = [part if _is_part(part) or _is_stream(part) else pair(part) for part in given]
    elif len(given) == 2 and not any(_is_part(part) or _is_stream(part) for part in given):
        data = load((train, valid), hold_out=0)  # one scale and one mean for both
        return data.train, data.test
    else:
        given = [part if _is_part(part) or _is_stream(part) else load(part, hold_out=0).train for part in given]
    if len(given) == 2:
        return given[0], given[1]
    kept = 1 - (0.5 if config.valid is None else config.valid)
    if _is_part(given[0]):
        return split(given[0], kept, seed=config.seed)
    if _is_stream(given[0]):
        raise InputError("a stream cannot be halved; give a second one for α as `valid`")
    x, y = given[0]
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(config.seed))
    inner, outer = order.tensor_split([round(len(x) * kept)])
    return (x[inner], y[inner]), (x[outer], y[outer])


def _stream(part: Any, config: RunConfig, which: int, device: torch.device) -> Stream:
    seed, shared = 2 * config.seed + which, share(config.batch)
    if isinstance(part, Images | LazyImages):
        augment = CIFAR if config.augment else NONE
        return Batches(part, config.batch, seed=seed, augment=augment, device=device, share=shared)
    if config.augment:
        raise InputError("augment crops and flips images of idarts.data; leave it out for batches of your own")
    found: Stream = part if _is_stream(part) else TensorBatches(part[0], part[1], config.batch, seed)
    return found if shared[1] == 1 else Piece(found, shared)


def _is_part(data: Data) -> bool:
    return isinstance(data, Images | LazyImages)


def _is_stream(data: Data) -> bool:
    if not hasattr(data, "__next__"):
        return False
    missing = next((name for name in ("__len__", "state_dict", "load_state_dict") if not hasattr(data, name)), None)
    if missing:
        raise InputError(f"a stream of batches without {missing} cannot be gone on with; see idarts.searching.Stream")
    return True
