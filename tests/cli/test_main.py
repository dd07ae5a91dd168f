"""The shell around the commands: version, help, exit codes, tracebacks, and how quick it starts."""

import os
import subprocess
import sys

import pytest

from idarts import InputError, __version__, cli


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "idarts", *arguments], capture_output=True, text=True, check=False)


def test_version_and_help():
    assert run("--version").stdout == f"idarts {__version__}\n"
    shown = run("--help")
    assert shown.returncode == 0
    assert "--debug" in shown.stdout
    assert run().stdout == shown.stdout


@pytest.mark.parametrize("arguments", [["--wrong"], ["nothing-of-this-name"]])
def test_a_users_mistake_is_exit_code_2_on_stderr(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert arguments[0] in done.stderr
    assert "Traceback" not in done.stderr


ERRORS = [
    (InputError("no such\n  thing"), 2),
    (RuntimeError("broken"), 1),
    (BrokenPipeError(32, "to a worker, not to whoever reads the output"), 1),
]


@pytest.mark.parametrize(("error", "code"), ERRORS)
def test_errors_are_one_line(monkeypatch, capsys, error, code):
    def fail(args):
        raise error

    monkeypatch.setattr("idarts.cli.report.run", fail)
    assert cli.main(["report", "x"]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("idarts: ")
    assert shown.err.count("\n") == 1
    assert ("--debug" in shown.err) == (code == 1)
    for arguments in (["--debug", "report", "x"], ["report", "x", "--debug"]):
        with pytest.raises(type(error)):
            cli.main(arguments)


def test_a_command_that_cannot_be_imported_has_a_traceback_too(monkeypatch, capsys):
    monkeypatch.setitem(cli.COMMANDS, "broken", ("this_module", "Fail."))  # this one is not an extra's
    assert cli.main(["broken"]) == 1
    assert "idarts: No module named 'this_module' (`idarts --debug" in capsys.readouterr().err
    with pytest.raises(ModuleNotFoundError):
        cli.main(["--debug", "broken"])


def test_a_module_of_an_extra_is_a_users_mistake(monkeypatch, capsys):
    monkeypatch.setitem(cli.COMMANDS, "broken", ("scipy.nothing", "Fail."))
    assert cli.main(["broken"]) == 2
    assert capsys.readouterr().err == "idarts: this needs scipy: pip install 'idarts[experiments]'\n"


LONG = "import sys; from idarts import cli; cli._run = lambda *_: print('word ' * 10**6); sys.exit(cli.main([]))"


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "idarts", "--help"],
        ["-m", "idarts", "arch", "list"],
        ["-m", "idarts", "arch", "list", "--json"],
        ["-u", "-m", "idarts", "arch", "list", "--json"],
        ["-c", LONG],
    ],
    ids=["help", "rich", "print", "unbuffered", "more than a buffer"],
)
def test_a_reader_that_ends_early_is_no_error(command):
    """As `| head` does: the pipe has nobody at its other end."""
    reading, writing = os.pipe()
    os.close(reading)
    settings = {"stdout": writing, "stderr": subprocess.PIPE, "env": os.environ | {"PYTHONUNBUFFERED": ""}}
    done = subprocess.run([sys.executable, *command], text=True, check=False, **settings)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_shell_starts_without_torch(option):
    code = f"import sys; from idarts.cli import main; main(['{option}']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "numpy", "pydantic", "rich", "yaml", "idarts.cli.search"}
    assert heavy.isdisjoint(done.stderr.split())


def test_importing_costs_hardly_more_than_torch():
    """Only modules that torch does not load itself can cost time: there must be few, none of them heavy."""
    code = (
        "import sys, torch; before = set(sys.modules); import idarts, idarts.hypergrad; "
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"idarts", "difflib", "warnings"}
