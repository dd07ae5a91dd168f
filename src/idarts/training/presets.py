"""Named settings: the protocols of the papers, and one for a small machine."""

from typing import Any

_NAS_BENCH_201: dict[str, Any] = {
    "data": "cifar10",
    "epochs": 200,
    "batch": 256,
    "weights": {"rate": 0.1, "by": "epoch", "nesterov": True, "decay": 5e-4, "clip": 0.0},
    "crop": 4,
    "flip": True,
    "log_steps": 50,
}

PRESETS: dict[str, dict[str, Any]] = {
    # CIFAR-10 at a quarter of its pixels, a small network of any space: a few minutes on two cores.
    "cpu": {
        "data": "cifar10",
        "image": 16,
        "depth": 3,
        "channels": 8,
        "epochs": 8,
        "batch": 128,
        "weights": {"rate": 0.1, "nesterov": True, "decay": 5e-4},
        "crop": 2,
        "flip": True,
    },
    # The evaluation of DARTS on CIFAR, which the paper follows; for CIFAR-100 add `--data cifar100`.
    "cifar-paper": {
        "data": "cifar10",
        "skeleton": "cifar",
        "epochs": 600,
        "batch": 96,
        "weights": {"by": "epoch"},
        "auxiliary": 0.4,
        "drop_path": 0.2,
        "crop": 4,
        "flip": True,
        "cutout": 16,
        "log_steps": 50,
    },
    # The mobile setting. Crops have a fixed scale; the papers draw a scale for each image, and change colours.
    "imagenet-paper": {
        "image": 224,
        "skeleton": "imagenet",
        "epochs": 250,
        "batch": 128,
        "weights": {"rate": 0.1, "schedule": "linear-slow-end", "by": "epoch", "decay": 3e-5},
        "smoothing": 0.1,
        "auxiliary": 0.4,
        "crop": 28,
        "flip": True,
        "multiply_adds": 600.0,
        "log_steps": 100,
    },
    "nas-bench-201": _NAS_BENCH_201,
    "nas-bench-201-12": _NAS_BENCH_201 | {"epochs": 12},
}
