"""`idarts doctor`: what this machine has, and what is missing, with the command to get it."""

import importlib
import json
import os
import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console

from idarts._version import __version__
from idarts.data import SOURCES
from idarts.data.roots import VARIABLE as DATA
from idarts.errors import IdartsError, InputError
from idarts.tables import TABLES, benchmarks
from idarts.tables.storage.places import VARIABLE

MODULES = {"pillow": "PIL", "pyyaml": "yaml", "scikit-learn": "sklearn"}  # of packages with another name
# extra → (module that it brings, what it is for)
EXTRAS = {
    "report": ("jinja2", "reports and pages"),
    "draw": ("pygraphviz", "drawings of cells"),
    "tables": ("pyarrow", "tables from Parquet files"),
    "tensorboard": ("tensorboard", "live curves in a browser"),
    "export": ("onnxscript", "ONNX files"),
    "ray": ("ray", "sweeps on a Ray cluster"),
    "slurm": ("submitit", "sweeps on Slurm"),
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox")
_MARKS = {"found": "+", "missing": "-", "broken": "!"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for; `help` says how to get it."""

    part: str
    name: str
    state: str  # found, missing, broken
    told: str
    help: str = ""


def add_arguments(parser: ArgumentParser) -> None:
    """Nothing but the form of the answer."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> None:
    """Print what is found; the exit code is 1 where something that is required is broken."""
    found = [*_required(), *_machine(), *_data(), *_tables(), *_extras(), _browser()]
    broken = [finding.name for finding in found if finding.state == "broken"]
    if args.json:
        print(json.dumps({"ok": not broken, "findings": [asdict(finding) for finding in found]}))
    else:
        _print(found)
    if broken:
        raise IdartsError(
            f"{', '.join(broken)} does not work; install idarts anew: pip install --force-reinstall idarts"
        )


def _required() -> Iterator[Finding]:
    yield Finding("versions", "idarts", "found", __version__)
    yield Finding("versions", "python", "found", platform.python_version())
    for name in required_modules(requires("idarts") or []):
        try:
            # Only looked for, not imported, where that takes long.
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
        import torch  # noqa: PLC0415 (if it is broken, that is told above)
    except Exception:
        return
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if device is None:
        how = "where there is a GPU, install the torch that is made for it: https://pytorch.org"
        yield Finding("machine", "device", "found", "cpu, no accelerator", how)
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
    return f"{total:.1f} GiB, {free:.1f} GiB of them free"


def _data() -> Iterator[Finding]:
    root = os.environ.get(DATA)
    where = f"{DATA} is {root}" if root else f"{DATA} is not set"
    if root and not Path(root).is_dir():
        yield Finding("data", DATA, "missing", f"{root} is no folder", f"export {DATA}=FOLDER")
    for name in SOURCES:
        look = getattr(SOURCES[name], "where", None)
        try:
            if look is not None:
                yield Finding("data", name, "found", look())
        except InputError as error:
            _, _, install = str(error).partition(": pip ")  # a package is missing, or else files are
            how = f"pip {install}" if install else f"export {DATA}=FOLDER, the one with its files"
            yield Finding("data", name, "missing", where, how)


def _tables() -> Iterator[Finding]:
    named = os.environ.get(VARIABLE)
    if named and not Path(named).is_dir():
        yield Finding("tables", VARIABLE, "missing", f"{named} is no folder", f"export {VARIABLE}=FOLDER")
    for benchmark in benchmarks():
        views = [name for name in TABLES if TABLES[name] is benchmark and name != benchmark.name]
        try:
            also = f", also for {', '.join(views)}" if views else ""
            yield Finding("tables", benchmark.name, "found", f"{benchmark.check()}{also}")
        except InputError as error:  # what a look-up would say: the problem; what to do
            told, _, how = str(error).partition("; ")
            yield Finding("tables", benchmark.name, "missing", told, how)


def _extras() -> Iterator[Finding]:
    for extra, (module, purpose) in EXTRAS.items():
        if find_spec(module) is None:
            yield Finding("extras", extra, "missing", purpose, f"pip install 'idarts[{extra}]'")
            continue
        try:
            told = f"{module} {version(module)}"
        except PackageNotFoundError:
            told = module
        yield Finding("extras", extra, "found", told)


def _browser() -> Finding:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found:
        return Finding("machine", "browser", "found", found)
    return Finding("machine", "browser", "missing", "reports open in any", "copy the HTML file to where one is")


def _print(found: list[Finding]) -> None:
    console = Console(markup=False, highlight=False, soft_wrap=True)
    width = max(len(finding.name) for finding in found)
    for part in dict.fromkeys(finding.part for finding in found):
        console.print(part, style="bold")
        for finding in found:
            if finding.part == part:
                console.print(f" {_MARKS[finding.state]} {finding.name:{width}}  {finding.told}")
                if finding.help:
                    console.print(f"   {'':{width}}  → {finding.help}")
    missing = sum(finding.state == "missing" for finding in found)
    if not any(finding.state == "broken" for finding in found):
        console.print(f"all that is required is there; missing of what is optional: {missing}")
