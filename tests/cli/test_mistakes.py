"""Mistakes as a person types them: each is one line that says what was wrong, and what to do."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from idarts.cli import main
from idarts.cli.console import console, printable, say
from idarts.engine.device import device_named
from idarts.errors import InputError
from idarts.hypergrad import Neumann

FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_1_0"


@pytest.fixture
def refused(capsys, monkeypatch, tmp_path):
    """Runs a command in an empty folder; the one line of its error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        assert main(list(arguments)) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert re.fullmatch(r"idarts: [^\n]+\n", shown.err)
        return shown.err.removeprefix("idarts: ").removesuffix("\n")

    return run


SEED = "expected a whole number from 0 to below 4611686018427387904"
MISTAKES = {
    "serach": "unknown command 'serach'; did you mean search?",
    "arch drow": "unknown action 'drow'; did you mean draw?",
    "evaluate": "missing RUN; idarts evaluate --help explains the command",
    "evaluate run": "run is not a folder; give a model folder, or that of a finished training or fit",
    "search --relaxation gumble": "--relaxation: unknown relaxation 'gumble'; did you mean gumbel?",
    "search --arch x": "unknown option --arch; idarts search --help lists all options",
    "profile DARTS_V2 --seconds -1": "--seconds is -1, expected a number of at least 0",
    "profile DARTS_V2 --seconds nan": "--seconds is nan, expected a number of at least 0",
    "profile DARTS_V2 --seconds inf": "--seconds is inf, expected a number of at least 0",
    "profile DARTS_V2 --batches 1 0": "--batches is 0, expected at least 1",
    "search --epochs inf": "--epochs is 'inf', expected a positive number or none",
    "train DARTS_V2 --epochs inf": "--epochs is 'inf', expected a whole number of at least 1",
    "search --minutes nan": "--minutes is 'nan', expected a positive number or none",
    f"search --seed {2**62}": f"--seed is '{2**62}', {SEED}",
    f"train DARTS_V2 --seed {10**30}": f"--seed is '{10**30}', {SEED}",
    "search --seed -1": f"--seed is '-1', {SEED}",
    "arch draw DARTS_V2 -o x/cell.bmp": "x/cell.bmp: the name of a drawing must end in .svg or .png or .pdf or .dot",
    "search --resume --out nowhere": "nowhere holds no run to resume; remove --resume (resume=True in Python) to start "
    "one",
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_mistake_is_one_line(typed, refused, tmp_path):
    assert refused(*typed.split()) == MISTAKES[typed]
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cpu:5", "device is 'cpu:5', but this machine has 1 of them; the first is cpu:0"),
        ("tpu", "device is 'tpu', expected auto, cpu, or one such as cuda or cuda:1"),
    ],
)
def test_a_wrong_device(name, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        device_named(name)


def test_the_first_cpu_is_the_cpu():
    assert str(device_named("cpu:0")) == "cpu"


def test_a_misspelt_step_is_named():
    with pytest.raises(InputError, match=r"^step='atuo' is not possible here; did you mean auto\?$"):
        Neumann(terms=2, step="atuo")
    with pytest.raises(InputError, match=r"^step='best' is not possible here; it must be a positive number or auto$"):
        Neumann(terms=2, step="best")


@pytest.mark.parametrize(
    ("typed", "run", "kinds", "right"),
    [
        ("search", "train-stopped", "a training, not a search", "train"),
        ("train", "search-stopped", "a search, not a training", "search"),
    ],
)
def test_the_other_kind_of_run_is_named_with_the_command_that_resumes_it(typed, run, kinds, right, refused):
    shutil.copytree(FIXTURES / run, "my run")
    message = refused(typed, "--resume", "--out", "my run")
    assert message == f"my run holds {kinds}; resume it with: idarts {right} --resume --out 'my run'"


def test_a_gallery_is_not_written_into_a_run(refused):
    shutil.copytree(FIXTURES / "search-finished", "run")
    assert refused("arch", "gallery", "-o", "run") == "run holds a run or a model; name another folder with -o"
    assert not Path("run", "index.html").exists()


def test_folders_of_files_that_a_person_names_are_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["arch", "draw", "DARTS_V2", "-o", "new/folder/a.dot"]) == 0
    assert main(["arch", "convert", "DARTS_V2", "--to", "json", "-o", "other/a.json"]) == 0
    assert main(["report", str(FIXTURES / "search-finished"), "-o", "pages/a.html"]) == 0
    assert capsys.readouterr().out.split() == ["new/folder/a.dot", "other/a.json", "pages/a.html"]
    assert all(Path(file).stat().st_size for file in ("new/folder/a.dot", "other/a.json", "pages/a.html"))


def test_commands_in_errors_can_be_pasted_into_a_shell(refused):
    shutil.copytree(FIXTURES / "search-finished", "it's mine")
    message = refused("predict", "it's mine", "x.png")
    assert shlex.split(message.partition(": ")[2]) == ["idarts", "train", "it's mine"]
    message = refused("table", "query", "nas-bench-201", "7", "--tables", "it's mine")
    assert shlex.split(message.rpartition("run: ")[2])[-2:] == ["--tables", "it's mine"]


# --- names that would control the terminal ----------------------------------------------------------------------

HOSTILE = "cat\x1b[2J\x1b]0;title\x07\x9b31m\u202egod\r"
SHOWN = r"cat\x1b[2J\x1b]0;title\x07\u009b31m\u202egod\x0d"


def controls(text):
    return [one for one in text if not one.isprintable() and one not in "\n\t"]


def test_names_cannot_control_the_terminal(capsys):
    assert printable(HOSTILE) == SHOWN
    say(f"class {HOSTILE}")
    screen = console(file=sys.stdout, width=200)
    screen.print(f"class {HOSTILE}")
    from rich.table import Table
    from rich.text import Text

    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE)
    table.add_row(Text(HOSTILE))
    screen.print(table)
    shown = capsys.readouterr().out
    assert controls(shown) == []
    assert shown.count(r"\x1b[2J") == 6


def test_a_strangers_files_cannot_control_the_terminal(tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(FIXTURES / "search-finished", run)
    for name in ("config.json", "result.json"):
        data = json.loads((run / name).read_text())
        (data.get("config") or data)["method"] = HOSTILE
        data["method"] = HOSTILE
        (run / name).write_text(json.dumps(data))
    main(["compare", str(run), str(run)])
    main(["predict", str(run), "x.png"])
    main(["search", "--resume", "--out", str(run)])
    main(["arch", "show", json.dumps({"schema": 1, "space": "choice", "choices": {HOSTILE: HOSTILE}})])
    main(["arch", "show", HOSTILE])
    main(["search", "--config", str(tmp_path / HOSTILE)])
    shown = capsys.readouterr()
    assert controls(shown.out + shown.err) == []
    assert SHOWN in shown.out
    assert r"\x1b" in shown.err


def test_json_stays_json(capsys):
    say(json.dumps({"label": HOSTILE}, ensure_ascii=False))
    assert json.loads(capsys.readouterr().out) == {"label": HOSTILE}


def test_everything_that_the_command_line_prints_goes_through_one_place():
    folder = Path(sys.modules["idarts.cli"].__file__).parent
    for file in folder.glob("*.py"):
        calls = re.findall(r"(?<![\w.>\"`])(print|Console)\(", file.read_text()) if file.name != "console.py" else []
        assert [call for call in calls if "Progress(console=Console(" not in file.read_text()] == [], file.name
