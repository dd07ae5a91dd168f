"""What is importable with only some packages installed: a process in which all others are hidden."""

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

import pytest

HIDE = """
import sys
from importlib.machinery import PathFinder
HIDDEN = set({hidden!r})
class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""


def brings(*packages):
    """These packages and what they require: what `pip install` of them would bring."""
    todo, closed = list(packages), set()
    while todo:
        package = re.split(r"[^\w.-]", todo.pop(), maxsplit=1)[0].lower().replace("_", "-")
        if package in closed:
            continue
        closed.add(package)
        try:
            todo += [line for line in requires(package) or [] if "extra ==" not in line]
        except PackageNotFoundError:  # of another platform
            continue
    return closed


def run(code, *packages, cwd=None):
    names = {"idarts", *brings(*packages)}
    modules = packages_distributions().items()
    hidden = [module for module, owners in modules if not names & {o.lower().replace("_", "-") for o in owners}]
    program = HIDE.format(hidden=hidden) + code
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment, cwd=cwd
    )


ALWAYS = ("torch", "numpy", "pydantic", "safetensors")  # what `pip install idarts` brings
CORE = """
import torch
from idarts.hypergrad import Neumann, hypergradient

def inner(w, a):
    return 0.5 * (w[0] - a[0]).square().sum()

def outer(w, a):
    return 0.5 * w[0].square().sum()

w, a = ((torch.full((3,), value, dtype=torch.float64, requires_grad=True),) for value in (1.0, 0.0))
estimate = hypergradient(inner, outer, w, a, method=Neumann(2, 0.5))
print(estimate.grads[0].tolist())
"""


def test_the_core_needs_torch_and_numpy_alone():
    """H = 1 and ∂²L/∂w∂α = −1, so K = 2 terms give γ(1 + ½ + ¼) = 0.875 of ∇L₂ = 1."""
    done = run(CORE, "torch", "numpy")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[0.875, 0.875, 0.875]"


SEARCH = """
import torch, idarts
from torch import nn
x = torch.randn(64, 4)
model = idarts.Choice({"line": nn.Linear(4, 1), "flat": nn.Linear(4, 1, bias=False)}, name="layer")
data, loss = (x, x.sum(1, keepdim=True) + 1), nn.functional.mse_loss
result = idarts.search(model, data, loss=loss, batch=16, rounds=2, out="run")
print(sorted(result.architecture.choices))
"""


@pytest.mark.parametrize("package", ["pages", "experiments", "fitting"])
def test_a_package_can_be_imported_without_extras(package):
    done = run(f"import idarts.{package}", *ALWAYS)
    assert done.returncode == 0, done.stderr


def test_a_search_from_python_needs_no_extra(tmp_path):
    done = run(SEARCH, *ALWAYS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['layer']"


@pytest.mark.parametrize(
    ("command", "extra"), [("search --preset smoke", "cli"), ("arch list", "cli"), ("table best nas-bench-201", "cli")]
)
def test_a_command_names_the_extra_that_it_needs(command, extra):
    code = f"import sys; from idarts.cli import main; sys.exit(main({command.split()!r}))"
    done = run(code, *ALWAYS)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"idarts: this needs (rich|yaml): pip install 'idarts\[{extra}\]'\n", done.stderr)


def test_doctor_works_without_extras_and_names_them():
    code = "from idarts.cli import main; main(['--version']); main(['doctor'])"
    done = run(code, *ALWAYS)
    assert done.stdout.startswith("idarts ")
    assert "(no rich, yaml" in done.stdout
    assert "pip install 'idarts[cli]'" in done.stdout
