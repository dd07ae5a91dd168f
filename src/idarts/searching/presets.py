"""Named settings: the papers', and some that fit a small machine."""

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    # Digits in NAS-Bench-201 in about 20 s on two cores, with frequent checkpoints: for tests and a first look.
    "smoke": {
        "data": "digits",
        "depth": 1,
        "channels": 8,
        "rounds": 40,
        "batch": 32,
        "checkpoint_rounds": 5,
        "alpha": {"rate": 0.01},
    },
    "cpu": {
        "data": "cifar10",
        "image": 16,
        "depth": 1,
        "channels": 8,
        "rounds": 150,
        "weights": {"warmup": 200},
        "alpha": {"rate": 5e-3},
        "none": False,
        "selection": {"rule": "trials", "none": False, "batches": 16},
    },
    # T = 4, K = 2, γ = 0.01; 25,000 training images make 390 batches, 78 rounds of five: 50 epochs are 3,900 rounds.
    "nas-bench-201-paper": {
        "space": "nas-bench-201",
        "data": "cifar10",
        "rounds": 3900,
        "weights": {"decay": 5e-4},
        "hypergradient": {"step": 0.01, "curvature": "hessian"},
    },
    "nas-bench-1shot1-paper": {
        "space": "nas-bench-1shot1-s3",
        "data": "cifar10",
        "rounds": 2160,
        "inner_steps": 5,
        "batch": 96,
        "weights": {"decay": 3e-4},
        "hypergradient": {"terms": 3, "step": "rate", "curvature": "hessian"},
    },
    "darts-paper": {
        "space": "darts",
        "data": "cifar10",
        "rounds": 3900,
        "weights": {"decay": 3e-4},
        "hypergradient": {"step": "rate", "curvature": "hessian"},
    },
}
