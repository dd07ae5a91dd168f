"""The search of a fit: as the plan says, and with trials of networks that are all equally large."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from idarts.arch import Architecture, Skeleton, parse
from idarts.data import Augment, Batches, ImageData, Images, Part, split
from idarts.data.arrays import resize as resize_images
from idarts.engine import folder
from idarts.engine.device import device_named
from idarts.engine.settings import change
from idarts.fitting.candidates import candidates
from idarts.fitting.plan import Plan
from idarts.fitting.speed import METHOD, SEARCH_CHANNELS
from idarts.searching import Round, RunConfig, Search, Task
from idarts.searching.prepare import Parts, prepare
from idarts.searching.run import run_search
from idarts.searching.settings import resolved
from idarts.spaces import network, space
from idarts.spaces.supernet import channels_last

# Learning rate of the trials: for each image of a batch, and at least. At half of it, short trials rank plain
# convolutions too high, because these learn faster at first (docs/benchmarks.md).
TRIAL_RATE, LEAST_TRIAL_RATE = 0.1 / 64, 0.05

OnText = Callable[[str], None]
Resize = Callable[[Architecture], Skeleton]  # the skeleton in which an architecture is as large as all others


def search(
    out: Path, data: ImageData, plan: Plan, settings: Mapping[str, Any], resize: Resize, on_text: OnText
) -> Architecture:
    """Search in the folder `out`, or resume there, or read the architecture of a finished search.

    `resize` says how wide the network of a candidate is.
    """
    if folder.is_finished(out):
        return parse(folder.read_result(out)["architecture"])

    def on_round(latest: Round, work: Search) -> None:
        accuracy = "" if latest.valid_accuracy is None else f", validation accuracy {100 * latest.valid_accuracy:.0f} %"
        on_text(f"round {latest.number} of {work.total}{accuracy}")

    config = search_settings(plan, settings)
    options: dict[str, Any] = {"on_round": on_round, "on_message": on_text, "resume": folder.is_run(out)}
    return run_search(lambda *_: _task(data, plan, config, resize), config, out, **options).architecture


def search_settings(plan: Plan, settings: Mapping[str, Any]) -> RunConfig:
    """The plan as settings of a search."""
    trials = plan.candidates > 1
    return change(
        resolved([{"method": METHOD}]),
        {
            "space": plan.space,
            "data": settings["data"],
            "data_root": settings["data_root"],
            "image": plan.search_image,
            "depth": plan.search_depth,
            "channels": SEARCH_CHANNELS,
            "rounds": plan.rounds,
            "minutes": max(plan.seconds["search"] + plan.seconds["selection"], 1.0) / 60,
            "batch": plan.search_batch,
            "seed": settings["seed"],
            "none": False,
            "weights.warmup": plan.warmup,
            "alpha.rate": "auto",  # it follows the rounds that the time really allows; the plan has the forecast
            "selection.none": False,
            "selection.rule": "trials" if trials else "argmax",
            "selection.samples": plan.candidates,
            "selection.steps": plan.trial_steps,
            "selection.rate": max(LEAST_TRIAL_RATE, TRIAL_RATE * plan.search_batch),
            "selection.batches": 16,
            "checkpoint_minutes": 1.0,
            "log": settings["log"],
        },
    )


def _task(data: ImageData, plan: Plan, config: RunConfig, resize: Resize) -> tuple[Task, dict[str, Any]]:
    """The task: w and α see two parts of the training images; candidates are networks of the final size."""
    pair = (data.train, data.valid) if data.valid is not None else split(data.train, 0.5, seed=config.seed)
    train, valid = (_smaller(part, plan.search_image) for part in pair)
    description = data.describe(search=train, valid=valid)
    task = prepare(plan.space, Parts(train, valid, len(data.classes), description, augment=False), config)
    device, in_channels = device_named(config.device), train.shape[0]
    augment = Augment(crop=min(plan.crop, plan.search_image // 8), flip=plan.flip)
    inner = Batches(train, config.batch, seed=2 * config.seed, augment=augment, device=device)
    outer = Batches(valid, config.batch, seed=2 * config.seed + 1, device=device)

    def build(architecture: Architecture) -> nn.Module:
        net = network(architecture, resize(architecture), in_channels=in_channels).to(device)
        channels_last(net)
        return net

    propose = partial(candidates, fixed=space(plan.space).fixed())
    return replace(task, network=build, candidates=propose, train=inner, valid=outer), description


def _smaller(part: Part, side: int) -> Part:
    if not isinstance(part, Images) or part.shape[1:] == torch.Size((side, side)):
        return part
    return replace(part, images=resize_images(part.images, side))
