"""Hashes of α, architecture and weights after some commands, to see that a change of the code changed no result.

`python benchmarks/unchanged.py` prints them for this source tree, `--source PATH` for another one, `--only NAME …` for
some commands. Only tensors and architectures are hashed, not files: files hold versions and times. The data are the
digits, and CIFAR-10 in `IDARTS_DATA`. A source tree of version 0.1.0 also needs jsonargparse.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file

HERE = Path(__file__).resolve().parents[1]
RANKS = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
CPU = ["--preset", "cpu", "--image", "8", "--rounds", "2", "--inner-steps", "1", "--weights.warmup", "2"]
TRIALS = ["--selection.samples", "4", "--selection.steps", "2", "--selection.batches", "2"]
COST = ["--cost.kind", "parameters", "--cost.target", "372000", "--rounds", "8", "--channels", "4", "--batch", "16"]
SMALL = ["--rounds", "6", "--channels", "4", "--batch", "16", "--inner-steps", "2"]
PAPER = ["--alpha.rate", "3e-4", "--none", "true"]  # defaults of 0.1.0
ONE_SHOT = ["--space", "nas-bench-1shot1-s1", "--data", "digits", "--depth", "3", *SMALL, *PAPER]
DARTS = ["--space", "darts", "--data", "digits", "--depth", "3", "--rounds", "2", "--channels", "4", "--batch", "8"]
DARTS += PAPER
TRAIN = ["nas-bench-201:1462", "--data", "digits", "--depth", "1", "--channels", "4", "--epochs", "1", "--batch", "32"]
CHOICE = """
import sys, torch, idarts
from torch import nn
torch.manual_seed(0)
wide, deep = nn.Linear(4, 8), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 8))
first = idarts.Choice({"wide": wide, "deep": deep}, name="first")
last = idarts.Choice({"line": nn.Linear(8, 1), "curve": nn.Sequential(nn.Tanh(), nn.Linear(8, 1))}, name="last")
x = torch.randn(96, 4)
data, loss = (x, x.sin().sum(1, keepdim=True)), nn.functional.mse_loss
alpha = {"rate": 3e-4}
idarts.search(nn.Sequential(first, last), data, loss=loss, batch=16, rounds=6, seed=1, alpha=alpha, out=sys.argv[-1])
"""

# What follows `python`; the run folder is appended. Each command fixes its seed through the settings' default.
COMMANDS: dict[str, list[str]] = {
    "smoke, idarts": ["-m", "idarts", "search", "--preset", "smoke", "--method", "idarts"],
    "smoke, darts-first-order": ["-m", "idarts", "search", "--preset", "smoke", "--method", "darts-first-order"],
    "smoke, gdas": ["-m", "idarts", "search", "--preset", "smoke", "--method", "gdas"],
    "smoke, darts-one-step": ["-m", "idarts", "search", "--preset", "smoke", "--method", "darts-one-step"],
    "smoke, setn": ["-m", "idarts", "search", "--preset", "smoke", "--method", "setn", *SMALL],
    "smoke, random-nas": ["-m", "idarts", "search", "--preset", "smoke", "--method", "random-nas", *SMALL],
    "smoke, enas": ["-m", "idarts", "search", "--preset", "smoke", "--method", "enas", *SMALL],
    "cpu, trials": ["-m", "idarts", "search", *CPU, *TRIALS],
    "cost-aware": ["-m", "idarts", "search", "--preset", "smoke", *COST],
    "1shot1": ["-m", "idarts", "search", *ONE_SHOT],
    "darts space": ["-m", "idarts", "search", *DARTS],
    "choice": ["-c", CHOICE],
    "training": ["-m", "idarts", "train", *TRAIN],
    "two ranks": ["-m", *RANKS, "idarts", "search", "--preset", "smoke", *SMALL],
}
NAMES_IN_0_1_0 = {"darts-one-step": "darts"}


def machine() -> list[str]:
    """What the last bits of a sum depend on."""
    return [torch.__version__, torch.backends.cpu.get_cpu_capability()]


def run(name: str, source: Path, out: Path) -> dict[str, str]:
    """Run one command of a source tree on one thread, and hash what its run folder holds."""
    old = (source / "src/idarts/search").is_dir()  # 0.1.0 had a package of this name
    words = [NAMES_IN_0_1_0.get(word, word) if old else word for word in COMMANDS[name]]
    paths = [str(source / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    output = [str(out)] if words[0] == "-c" else ["--out", str(out)]
    done = subprocess.run(
        [sys.executable, *words, *output], env=environment, capture_output=True, text=True, check=False, cwd=out.parent
    )
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
    return hashes(out)


def hashes(out: Path) -> dict[str, str]:
    """The hashes of a finished run: of its result, its last checkpoint and, after a training, its model."""
    result = json.loads((out / "result.json").read_text())
    newest = max((out / "checkpoints").glob("[0-9]*.pt"))
    net = torch.load(newest, map_location="cpu", weights_only=True)["state"]["net"]
    alpha = {key: value for key, value in net.items() if "alpha" in key}
    found = {
        "architecture": digest(json.dumps(result["architecture"], sort_keys=True).encode()),
        "weights": digest_of({key: value for key, value in net.items() if key not in alpha}),
    }
    if alpha:
        found["alpha"] = digest_of(alpha)
    for model in sorted(out.rglob("model.safetensors")):
        found["model"] = digest_of(load_file(model))
    return found


def digest_of(tensors: Mapping[str, torch.Tensor]) -> str:
    """One hash of named tensors, whatever order they are in."""
    parts = [f"{key} {tensors[key].dtype} {list(tensors[key].shape)} ".encode() for key in sorted(tensors)]
    raw = [tensors[key].contiguous().numpy().tobytes() for key in sorted(tensors)]
    return digest(b"".join(head + body for head, body in zip(parts, raw, strict=True)))


def digest(data: bytes) -> str:
    """The start of a SHA-256."""
    return hashlib.sha256(data).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=HERE, help="root of a source tree (default: this one)")
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS), help="commands to run")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: run(name, args.source.resolve(), Path(folder, str(i))) for i, name in enumerate(args.only)}
    print(json.dumps({"machine": machine(), "runs": runs}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
