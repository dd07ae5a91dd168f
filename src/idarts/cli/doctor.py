"""`idarts doctor`: what this machine has, and what is missing, with the command that installs it."""

import importlib
import json
import os
import platform
import re
import shutil
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

from idarts._version import __version__
from idarts.cli.console import say
from idarts.cli.parser import Parser
from idarts.data import SOURCES
from idarts.data.roots import VARIABLE as DATA
from idarts.errors import IdartsError, InputError
from idarts.tables import TABLES, benchmarks
from idarts.tables.storage.places import VARIABLE

MODULES = {"pillow": "PIL", "pyyaml": "yaml", "scikit-learn": "sklearn"}  # of packages with another name
# extra → (modules that it installs, what they are for)
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "cli": (("rich", "yaml", "PIL", "sklearn"), "this command line, images, the digits data"),
    "experiments": (("scipy", "sklearn"), "statistics of comparisons, the digits data"),
    "report": (("jinja2", "PIL"), "reports and pages"),
    "draw": (("pygraphviz",), "drawings of cells"),
    "tables": (("pyarrow",), "tables from Parquet files"),
    "tensorboard": (("tensorboard",), "--log tensorboard: live curves in a browser"),
    "wandb": (("wandb",), "--log wandb: Weights & Biases"),
    "mlflow": (("mlflow",), "--log mlflow: an MLflow server or store"),
    "export": (("onnxscript",), "ONNX files"),
    "ray": (("ray",), "sweeps on a Ray cluster"),
    "slurm": (("submitit",), "sweeps on Slurm"),
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox")
_MARKS = {"found": "+", "missing": "-", "broken": "!"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for; `help` says how to get it."""

    part: str
    name: str
    state: str  # found, missing, broken
    detail: str
    help: str = ""

    def to_data(self) -> dict[str, str]:
        """For `--json`, with the names that scripts know."""
        return {
            "part": self.part,
            "name": self.name,
            "state": self.state,
            "message": self.detail,
            "help": self.help,
        }


def add_arguments(parser: Parser) -> None:
    """The form of the answer."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> None:
    """Print the findings; the exit code is 1 if something that is required is broken."""
    findings = [*_required(), *_machine(), *_data(), *_tables(), *_extras(), _browser()]
    broken = [finding.name for finding in findings if finding.state == "broken"]
    if args.json:
        say(json.dumps({"ok": not broken, "findings": [finding.to_data() for finding in findings]}))
    else:
        _print(findings)
    if broken:
        raise IdartsError(
            f"{', '.join(broken)} does not work; install idarts again: pip install --force-reinstall idarts"
        )


def _required() -> Iterator[Finding]:
    yield Finding("versions", "idarts", "found", __version__)
    yield Finding("versions", "python", "found", platform.python_version())
    for name in required_modules(requires("idarts") or []):
        try:
            # Importing takes long: for the others, looking for the module has to do.
            module = importlib.import_module(name) if name in ("torch", "numpy") else find_spec(name)
        except Exception as error:
            yield Finding("versions", name, "broken", " ".join(str(error).split()) or type(error).__name__)
            continue
        if module is None:
            yield Finding("versions", name, "broken", "not installed", "pip install idarts")
        elif name in ("torch", "numpy"):
            yield Finding("versions", name, "found", str(getattr(module, "__version__", "")))


def required_modules(requirements: list[str]) -> list[str]:
    """The modules of the packages that are required without any extra.

    >>> required_modules(["torch<2.14,>=2.6", "pyyaml>=6", "jinja2>=3.1; extra == 'report'"])
    ['torch', 'yaml']
    """
    names = [re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() for line in requirements if "extra ==" not in line]
    return [MODULES.get(name, name.replace("-", "_")) for name in names]


def _machine() -> Iterator[Finding]:
    try:
        import torch  # noqa: PLC0415 (if it is broken, `_required` says so)
    except Exception:
        return
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if device is None:
        hint = "if this machine has a GPU, install the torch build for it: https://pytorch.org"
        yield Finding("machine", "device", "found", "cpu, no accelerator", hint)
    else:
        yield Finding("machine", "device", "found", f"{torch.accelerator.device_count()} × {device.type}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding("machine", "cores", "found", f"{cores}, torch uses {torch.get_num_threads()} threads")
    if memory := _memory():
        yield Finding("machine", "memory", "found", memory)


def _memory() -> str:
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        total, free = (int(lines[name].split()[0]) / 2**20 for name in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return ""
    return f"{total:.1f} GiB, {free:.1f} GiB free"


def _data() -> Iterator[Finding]:
    root = os.environ.get(DATA)
    where = f"{DATA} is {root}" if root else f"{DATA} is not set"
    if root and not Path(root).is_dir():
        yield Finding("data", DATA, "missing", f"{root} is not a folder", f"export {DATA}=FOLDER")
    for name in SOURCES:
        look = getattr(SOURCES[name], "where", None)
        try:
            if look is not None:
                yield Finding("data", name, "found", look())
        except InputError as error:
            _, _, install = str(error).partition(": pip ")  # a package is missing, or else files are
            hint = f"pip {install}" if install else f"export {DATA}=FOLDER, where FOLDER holds its files"
            yield Finding("data", name, "missing", where, hint)


def _tables() -> Iterator[Finding]:
    folder = os.environ.get(VARIABLE)
    if folder and not Path(folder).is_dir():
        yield Finding("tables", VARIABLE, "missing", f"{folder} is not a folder", f"export {VARIABLE}=FOLDER")
    for benchmark in benchmarks():
        views = [name for name in TABLES if TABLES[name] is benchmark and name != benchmark.name]
        try:
            also = f", also for {', '.join(views)}" if views else ""
            yield Finding("tables", benchmark.name, "found", f"{benchmark.check()}{also}")
        except InputError as error:  # the message of a look-up: the problem; what to do
            problem, _, hint = str(error).partition("; ")
            yield Finding("tables", benchmark.name, "missing", problem, hint)


def _extras() -> Iterator[Finding]:
    for extra, (modules, purpose) in EXTRAS.items():
        missing = [module for module in modules if not _installed(module)]
        if missing:
            without = f"{purpose} (no {', '.join(missing)})"
            yield Finding("extras", extra, "missing", without, f"pip install 'idarts[{extra}]'")
        else:
            yield Finding("extras", extra, "found", ", ".join(map(_versioned, modules)))


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # a module that is blocked, or half imported
        return False


def _versioned(module: str) -> str:
    package = {module: package for package, module in MODULES.items()}.get(module, module)
    try:
        return f"{module} {version(package)}"
    except PackageNotFoundError:
        return module


def _browser() -> Finding:
    path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if path:
        return Finding("machine", "browser", "found", path)
    hint = "copy the HTML file to a machine that has a browser"
    return Finding("machine", "browser", "missing", "a browser shows reports", hint)


def _print(findings: list[Finding]) -> None:
    """Without rich: this command is for machines where something is missing."""
    width = max(len(finding.name) for finding in findings)
    for part in dict.fromkeys(finding.part for finding in findings):
        say(part)
        for finding in findings:
            if finding.part == part:
                say(f" {_MARKS[finding.state]} {finding.name:{width}}  {finding.detail}")
                if finding.help:
                    say(f"   {'':{width}}  → {finding.help}")
    missing = sum(finding.state == "missing" for finding in findings)
    if not any(finding.state == "broken" for finding in findings):
        say(f"everything that is required is installed; optional things missing: {missing}")
