"""Run folders as a search writes them, made up: the curves look like real ones, and are the same every time."""

import json
import math
import random

from idarts.arch import parse, to_data

NAS_BENCH_201 = "|nor_conv_3x3~0|+|skip_connect~0|nor_conv_1x1~1|+|nor_conv_3x3~0|skip_connect~1|nor_conv_3x3~2|"
SHAPES = {
    "nas-bench-201": {"cell": (6, 5)},
    "darts": {"normal": (14, 8), "reduce": (14, 8)},
    "nas-bench-1shot1-s1": {
        "inputs_2": (1, 2),
        "inputs_3": (1, 3),
        "inputs_4": (1, 4),
        "ops": (4, 3),
        "output": (1, 5),
    },
    "choice": {"block1": (1, 3), "block2": (1, 2)},
}
ONE_SHOT = {
    "schema": 1,
    "space": "nas-bench-1shot1",
    "variant": "S1",
    "cells": {
        "cell": {
            "nodes": 6,
            "edges": [[0, 1], [0, 2], [1, 2], [0, 3], [2, 3], [0, 4], [1, 4], [3, 5], [4, 5]],
            "output": [5],
            "ops": ["conv3x3-bn-relu", "maxpool3x3", "conv1x1-bn-relu", "conv3x3-bn-relu"],
        }
    },
}
FOUND = {
    "nas-bench-201": NAS_BENCH_201,
    "darts": "DARTS_V2",
    "nas-bench-1shot1-s1": ONE_SHOT,
    "choice": {"schema": 1, "space": "choice", "choices": {"block1": "wide", "block2": "gelu"}},
}


def config(space="nas-bench-201", **changes):
    return {
        "space": space,
        "method": "idarts",
        "data": "digits",
        "seed": 0,
        "macro": {"depth": 1, "channels": 8, "classes": 10, "image": 16},
        "rounds": 100,
        "inner_steps": 4,
        "batch": 64,
        "weights": {"rate": 0.025, "last_rate": 0.001, "momentum": 0.9, "nesterov": True},
        "alpha": {"rate": 0.0003, "betas": [0.5, 0.999]},
        "hypergradient": {"order": "implicit", "terms": 2, "step": "auto"},
    } | changes


def metrics(space="nas-bench-201", rounds=100, every=1):
    """A line for each round; α moves from uniform towards one option of each decision."""
    draw = random.Random(0)
    goals = {name: [draw.randrange(shape[1]) for _ in range(shape[0])] for name, shape in SHAPES[space].items()}
    speed = {name: [draw.uniform(0.2, 3) for _ in goal] for name, goal in goals.items()}
    lines = []
    for number in range(1, rounds + 1):
        done = number / rounds
        line = {
            "number": number,
            "train_loss": 2.3 * math.exp(-3 * done) + draw.uniform(0, 0.2),
            "valid_loss": 2.3 * math.exp(-2.6 * done) + draw.uniform(0, 0.3),
            "rate": 0.001 + 0.012 * (1 + math.cos(math.pi * done)),
            "entropy": 1 - 0.3 * done**2,
            "gradient_evaluations": 11.0 * number,
            "norm": 0.05 * draw.lognormvariate(0, 0.4),
            "implicit_share": min(1, 0.1 + 0.2 * done + draw.uniform(0, 0.05)),
            "contraction": 0.9 + 0.05 * draw.random(),
            "step": 0.02 / (1 + 5 * done),
            "seconds": 0.21 * number,
            "train_accuracy": min(1, 0.1 + 0.87 * (1 - math.exp(-4 * done)) + draw.uniform(-0.03, 0.03)),
            "valid_accuracy": min(1, 0.1 + 0.84 * (1 - math.exp(-4 * done)) + draw.uniform(-0.03, 0.03)),
        }
        if number % every == 0 or number == rounds:
            line["alpha"] = {
                name: [
                    [
                        speed[name][row] * done * (column == goals[name][row]) + 0.1 * draw.gauss(0, done)
                        for column in range(shape[1])
                    ]
                    for row in range(shape[0])
                ]
                for name, shape in SHAPES[space].items()
            }
            line["architecture"] = FOUND[space] if isinstance(FOUND[space], str) else json.dumps(FOUND[space])
        lines.append(line)
    return lines


def result(space, lines, settings, **more):
    return {
        "space": space,
        "method": "idarts",
        "seed": 0,
        "architecture": to_data(parse(FOUND[space])),
        "alpha": lines[-1]["alpha"],
        "metrics": lines[-1],
        "gradient_evaluations": lines[-1]["gradient_evaluations"],
        "seconds": lines[-1]["seconds"],
        "config": settings,
        "versions": {"idarts": "0.1.0", "python": "3.11.9", "torch": "2.13.0"},
        "data": {"name": "digits", "train": 898, "valid": 899, "classes": ["0", "1", "2"]},
        "device": "cpu",
    } | more


def write_run(folder, space="nas-bench-201", rounds=100, every=1, finished=True, settings=None, **more):
    """A run folder; `more` goes into its result."""
    lines = metrics(space, rounds, every)
    folder.mkdir(parents=True, exist_ok=True)
    settings = settings or config(space)
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if finished:
        (folder / "result.json").write_text(json.dumps(result(space, lines, settings, **more)))
    return folder
