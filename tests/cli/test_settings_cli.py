"""Settings from presets, methods, files and options: what stands above what, and what is refused before a search."""

import json
import shlex
import sys
from dataclasses import asdict, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import pytest
import yaml

from idarts.cli import main, search
from idarts.cli.parser import Parser
from idarts.cli.settings import RunSettings, add_run_arguments, read_settings, resume_command
from idarts.engine.run import Interrupted
from idarts.engine.settings import PartOf, change, dotted, validated
from idarts.errors import InputError
from idarts.registry import Registry
from idarts.searching import METHODS, PRESETS, Config, RunConfig, config, resolved
from idarts.searching.registries import SCHEDULES, SELECTIONS, build_part
from idarts.searching.settings import Cost, Selection


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def written(tmp_path):
    def write(name="settings.yaml", **settings):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings) if path.suffix == ".json" else yaml.safe_dump(settings))
        return str(path)

    return write


@pytest.fixture
def settings(capsys):
    """What a command would run with, without running it."""

    def read(*arguments):
        assert main([*arguments, "--print-config"]) == 0
        return yaml.safe_load(capsys.readouterr().out)

    return read


@pytest.fixture
def refused(capsys):
    def message(*arguments):
        assert main(list(arguments)) == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        return line

    return message


def as_data(settings):
    return json.loads(json.dumps(asdict(settings)))


@pytest.mark.parametrize("name", ["file.yaml", "file.json"])
def test_a_method_in_a_file_is_that_method(name, written, settings):
    found = settings("search", "--config", written(name, method="darts", batch=8))
    assert found == as_data(change(RunConfig(method="darts", batch=8), METHODS["darts"]))


def test_a_preset_in_a_file_is_that_preset(written, settings):
    found = settings("search", "--config", written(preset="smoke", rounds=7))
    assert found == as_data(change(change(RunConfig(), PRESETS["smoke"]), {"rounds": 7}))
    trained = settings("train", "--config", written(preset="nas-bench-201-12"))
    assert (trained["epochs"], trained["weights"]["rate"]) == (12, 0.1)


def test_a_later_source_stands_above_an_earlier_one(written, settings):
    first, second = written("a.yaml", method="darts", rounds=7), written("b.yaml", method="gdas")
    assert settings("search", "--config", first, "--config", second)["relaxation"] == "gumbel"
    assert settings("search", "--config", second, "--config", first)["relaxation"] == "softmax"
    assert settings("search", "--config", first, "--method", "gdas")["relaxation"] == "gumbel"
    assert settings("search", "--method", "gdas", "--config", first)["relaxation"] == "gumbel"  # wherever it is typed
    assert settings("search", "--config", first, "--preset", "smoke", "--preset=cpu")["rounds"] == 150
    assert settings("search", "--config", first, "--preset", "cpu", "--rounds", "9")["rounds"] == 9
    assert settings("search", "--config", written(preset="cpu"), "--config", first)["rounds"] == 7


def test_options_leave_with_their_part(written, settings):
    """Those of the preset's selection do not belong to the selection that an option or a method names."""
    assert settings("search", "--preset", "darts-cpu")["selection"]["options"] == {"fewest": 2, "most": 2}
    more = settings("search", "--preset", "darts-cpu", "--selection.options", '{"fewest": 1}')
    assert more["selection"]["options"] == {"fewest": 1, "most": 2}
    for other in (["--selection.rule", "argmax"], ["--method", "enas"]):
        assert settings("search", "--preset", "darts-cpu", *other)["selection"]["options"] == {}
    file = written(relaxation="partial-channels", relaxation_options={"share": 2})
    assert settings("search", "--config", file)["relaxation_options"] == {"share": 2}
    assert settings("search", "--config", file, "--relaxation", "softmax")["relaxation_options"] == {}


def test_a_preset_does_not_change_what_a_method_is(written, settings):
    typed = settings("search", "--preset", "nas-bench-1shot1-paper", "--method", "darts")
    assert typed["inner_steps"] == 1  # the preset has 5
    assert (typed["hypergradient"]["method"], typed["hypergradient"]["steps"]) == ("reverse", 1)
    assert (typed["batch"], typed["hypergradient"]["curvature"]) == (96, "hessian")
    file = written(method="darts", hypergradient={"terms": 1})
    changed = settings("search", "--config", file, "--preset", "nas-bench-1shot1-paper")
    assert changed["inner_steps"] == 1  # the method's
    assert changed["hypergradient"]["terms"] == 3  # what is typed stands above the file


@pytest.mark.parametrize("first", METHODS)
def test_a_method_typed_over_a_full_record_of_any_other_gives_that_method(first, written, settings):
    """Of the others: iDARTS, which sets least, so that whatever is left behind shows; and the next two in the list."""
    file = written(**as_data(change(RunConfig(method=first, batch=8, rounds=3), METHODS[first])))
    names = list(METHODS)
    place = names.index(first)
    for method in {"idarts", *(names[other % len(names)] for other in (place + 1, place + 2))}:
        found = settings("search", "--config", file, "--method", method)
        assert found == as_data(change(RunConfig(method=method, batch=8, rounds=3), METHODS[method]))


def test_only_the_result_has_to_be_consistent(written, settings, refused):
    file = written(relaxation="uniform")
    assert "use --strategy fixed" in refused("search", "--config", file)
    assert settings("search", "--config", file, "--strategy", "fixed")["relaxation"] == "uniform"
    assert settings("search", "--config", file, "--method", "random-nas")["relaxation"] == "uniform"


def test_dashes_and_underscores_are_the_same(settings):
    for option in ("--weights.last-rate", "--weights.last_rate"):
        assert settings("search", option, "1e-3", "--inner_steps=2")["weights"]["last_rate"] == 1e-3
    assert settings("train", "--data-root=/x")["data_root"] == settings("train", "--data_root", "/x")["data_root"]


def test_values_are_read_by_their_types(settings):
    typed = "--epochs none --alpha.betas [0.1,0.2] --augment FALSE --valid official --data-root 12 --seed 3"
    found = settings("search", *typed.split())
    assert (found["epochs"], found["alpha"]["betas"], found["augment"]) == (None, [0.1, 0.2], False)
    assert (found["valid"], found["data_root"], found["seed"]) == ("official", "12", 3)


def test_a_full_record_stands_above_its_method_and_is_resumed_exactly(written, settings):
    begun = change(RunConfig(method="darts", seed=4), {"hypergradient": {"terms": 1}, "alpha": {"betas": (0.1, 0.2)}})
    assert begun.inner_steps == 4  # darts has 1
    file = written("run/config.json", **as_data(begun), choices={})
    folder = file.removesuffix("/config.json")
    for arguments in (["--config", file], ["--resume", "--out", folder], ["--resume", "--config", file]):
        assert settings("search", *arguments) == as_data(begun)
    trained = settings("train", "DARTS_V2", "--data", "digits", "--seed", "4")
    folder = written("train/config.json", **trained).removesuffix("/config.json")
    assert settings("train", "--resume", "--out", folder) == trained


def test_a_wrong_name_or_value_in_a_file_is_named_with_the_file(written, refused):
    for content, message in [
        ({"method": "dart"}, "unknown method 'dart'; did you mean darts?"),
        ({"method": 3}, "method is 3, expected text"),
        ({"preset": 3}, "unknown preset 3; there are cpu, "),
        ({"preset": ["cpu"]}, "unknown preset ['cpu']; there are"),
        ({"weights": "fast"}, "weights is 'fast', expected a group of settings such as weights: {rate: 0.01}"),
        ({"weights": None}, "weights is None, expected a group of settings"),
        ({"rounds": {"first": 1}}, "rounds is {'first': 1}, expected a whole number of at least 1"),
        ({"rounds": "3"}, "rounds is '3', expected a whole number of at least 1"),
        ({"rounds": 0}, "rounds is 0, expected a whole number of at least 1"),
        ({"alpha": {"betas": [0.5]}}, "alpha.betas is [0.5], expected 2 values"),
        ({"out": "runs/1"}, "out is not read from a file; remove it, and type --out"),
    ]:
        file = written(**content)
        assert refused("search", "--config", file).startswith(f"idarts: {file}: {message}")


@pytest.mark.parametrize(("changes", "name"), [({"weights": {"raten": 1}}, "weights.raten"), ({"roundz": 1}, "roundz")])
def test_a_misspelt_key_is_named_with_its_file(changes, name, written, refused):
    file = written("run/config.json", **(as_data(RunConfig()) | changes))
    for arguments in (["--resume", "--out", file.removesuffix("/config.json")], ["--config", file]):
        assert f"{file}: unknown setting '{name}'; did you mean " in refused("search", *arguments)


LAUGHS = "a: &a [x, x]\n" + "".join(f"{c}: &{c} [*{b}, *{b}]\n" for b, c in pairwise("abcdefghijklmnopqrstuvwxyz"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("broken.yaml", b"rounds: 3\nweights: [\n", "is not YAML, see line 3"),
        ("broken.json", b'{"rounds": 3,\n"batch"}', "is not JSON, see line 2"),
        ("latin.yaml", b"data: folder:caf\xe9", "is not YAML"),
        ("empty.yaml", b"", "has no settings"),
        ("list.yaml", b"[1, 2]", "has no settings"),
        ("name.yaml", b"3: 4", "has the name 3, which is not text"),
        ("deep.yaml", b"a: " + b"[" * 2000 + b"]" * 2000, "is nested too deep"),
        ("deep.json", b'{"a": ' + b"[" * 200_000, "is nested too deep"),
        ("deeper.yaml", b"a: {b: {c: {d: {e: 1}}}}", "is nested too deep"),
        ("laughs.yaml", LAUGHS.encode(), "is not YAML, see line 2"),
        ("code.yaml", b"data: !!python/object/apply:os.system ['touch ran']", "is not YAML, see line 1"),
        ("large.yaml", b"# " + b"x" * (1 << 20), "has more than 1,048,576 bytes"),
    ],
)
def test_a_file_that_is_not_settings(name, content, message, tmp_path, refused):
    file = tmp_path / name
    file.write_bytes(content)
    assert refused("search", f"--config={file}").startswith(f"idarts: {file} {message}")
    assert not (tmp_path / "ran").exists()


def test_a_file_that_cannot_be_read(tmp_path, refused):
    file = tmp_path / "none.yaml"
    assert refused("train", "--config", str(file)) == f"idarts: {file} cannot be read: No such file or directory\n"
    assert "cannot be read: Is a directory" in refused("search", "--config", str(tmp_path))


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        *(("selection", name, 0) for name in ("samples", "batches", "steps")),
        *(("weights", name, -1) for name in ("rate", "last_rate", "momentum", "decay", "clip", "warmup")),
        ("weights", "momentum", 1),
        ("weights", "rate", float("nan")),
        *(("alpha", name, -1) for name in ("rate", "decay")),
        ("alpha", "betas", (0.5, 1.0)),
        *(("hypergradient", name, -1) for name in ("terms", "damping", "step")),
        ("hypergradient", "terms", 1.5),
        ("hypergradient", "step", "autos"),
        ("cost", "kind", "params"),
        *(("", name, -1) for name in ("rounds", "epochs", "minutes", "checkpoint_rounds", "checkpoint_minutes")),
        *(("", name, 0) for name in ("image", "depth", "channels", "valid", "checkpoint_rounds", "inner_steps")),
        ("", "valid", 1.0),
        ("", "batch", True),
    ],
)
def test_values_that_cannot_be_are_refused_when_settings_are_made(group, name, value):
    with pytest.raises(InputError) as error:
        change(RunConfig(), {group: {name: value}} if group else {name: value})
    option = f"{group}.{name}" if group else name
    assert str(error.value).startswith(f"{option} is {value!r}, expected ")


@pytest.mark.parametrize(
    ("group", "name", "value", "nearest"),
    [("weights", "relaxation", "sofmax", "softmax"), ("selection", "rule", "best", "best-of")],
)
def test_a_missing_part_is_named_with_its_setting(group, name, value, nearest):
    with pytest.raises(InputError, match=rf"^{group}\.{name}: unknown \w+ '{value}'; did you mean {nearest}\?$"):
        change(RunConfig(), {group: {name: value}})


@pytest.mark.parametrize("option", ["--selection.samples", "--selection.steps", "--checkpoint-rounds", "--batch"])
def test_they_are_refused_before_a_folder_is_made(option, tmp_path, refused):
    message = refused("search", "--preset", "smoke", "--out", str(tmp_path / "run"), option, "0")
    assert message == f"idarts: {option} is '0', expected a whole number of at least 1\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("name", "value"), [("momentum", "1"), ("clip", "-1"), ("by", "steps")])
def test_settings_of_a_training_are_checked_too(name, value, refused):
    assert f"--weights.{name} is '{value}', expected " in refused("train", "DARTS_V2", f"--weights.{name}", value)


@pytest.mark.parametrize(
    ("kind", "unused"),
    [
        ("none", {"target": 5e5}),
        ("none", {"weight": 1.0}),
        ("none", {"skeleton": "cifar100"}),
        ("parameters", {"target": 5e5, "table": "latency.json"}),
        ("multiply_adds", {"table": "latency.json"}),
        ("latency", {"skeleton": "cifar100"}),
    ],
)
def test_a_cost_that_would_not_be_minded_is_refused(kind, unused):
    name = list(unused)[-1]
    with pytest.raises(InputError, match=rf"cost\.{name} is .*, but cost\.kind {kind} ignores it"):
        Cost(kind, **unused)
    assert Cost("latency", 5.0, table="latency.json").table


@pytest.mark.parametrize(
    ("method", "changes", "use"),
    [
        ("idarts", {"relaxation": "dirichlet"}, "--hypergradient.method first-order"),
        ("idarts", {"relaxation": "uniform"}, "--strategy fixed"),
        ("gdas", {"relaxation": "uniform"}, "--strategy fixed"),
        ("idarts", {"hypergradient": {"products": "finite_difference"}}, "--hypergradient.curvature hessian"),
        ("idarts", {"weights": {"momentum": 0.0}}, "--weights.nesterov false"),
    ],
)
def test_what_cannot_work_together_is_refused_with_what_to_use(method, changes, use):
    with pytest.raises(InputError, match=f"use {use}"):
        config(method, **changes)
    option, value = use[2:].split()
    fixed = {**dotted(changes), option: {"false": False}.get(value, value)}
    assert config(method, **fixed)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_fits_every_method(preset):
    """A preset's options for a part do not reach the part that a method has in its place."""
    for method in METHODS:
        settings = resolved([{"preset": preset, "method": method}])
        build_part(SELECTIONS, settings.selection.rule, settings.selection.options)
        build_part(SCHEDULES, settings.stages, settings.stages_options)
        settings.build_relaxation()


def test_methods_and_presets_stand():
    for method in METHODS:
        for preset in PRESETS.values():
            assert change(change(RunConfig(), preset), METHODS[method])
    assert config(weights={"relaxation": "uniform"}).weights.relaxation == "uniform"
    assert Config(selection=Selection(samples=1)).selection.samples == 1


@pytest.fixture
def interrupted(monkeypatch):
    """A search that is stopped at once; where it would have been."""
    folders = []

    def stop(settings, out, **options):
        folders.append(str(out))
        raise Interrupted(3)

    monkeypatch.setattr(search, "run_search", stop)
    return folders


def test_how_to_resume_is_a_command_for_the_shell(interrupted, capsys):
    main(["search", "--out", "my runs/it's $HOME"])
    line = capsys.readouterr().out.splitlines()[-1]
    assert shlex.split(line) == ["idarts", "search", "--resume", "--out", interrupted[0]]


@pytest.mark.parametrize(("data", "name"), [("folder:/x/y/cls", "x-y-cls"), ("npz:../a.npz", "a.npz"), ("d", "d")])
def test_the_default_folder_is_one_folder(data, name, interrupted):
    main(["search", "--data", data, "--seed", "2"])
    assert interrupted == [f"runs/nas-bench-201-idarts-{name}-2"]


COLOURS: Registry[object] = Registry("colour")
COLOURS.add("red", object())
COLOURS.add("green", object())


@validated
class Frame:
    """The frame of a picture."""

    colour: Annotated[str, PartOf(lambda: COLOURS)] | None = None
    """colour of the frame"""


@validated
class Picture:
    """A picture, for tests."""

    colour: Annotated[str, PartOf(lambda: COLOURS)] = "red"
    """colour of the 100 % opaque paint"""
    size: str = "A4"
    """size of the paper"""
    frame: Frame = field(default_factory=Frame)


@pytest.fixture
def picture(tmp_path, monkeypatch):
    """A command line with the settings of a picture, and a user's module on the path."""
    (tmp_path / "my_colours.py").write_text("teal = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_colours", raising=False)
    monkeypatch.setattr(COLOURS, "_own", {})
    sizes = []
    settings = RunSettings(Picture(), {}, loaders={"size": sizes.append})
    parser = Parser(prog="draw")
    add_run_arguments(parser, settings, "PICTURE")

    def read(*typed):
        return read_settings(parser.parse_args([*typed]), settings)

    return SimpleNamespace(parser=parser, settings=settings, sizes=sizes, read=read)


def test_parts_are_listed_and_suggested(picture, capsys):
    help = " ".join(picture.parser.format_help().split())
    assert "--colour VALUE colour of the 100 % opaque paint: green, red, or your own package.module:name" in help
    assert "frame: The frame of a picture." in help
    assert picture.read("--frame.colour", "green").frame.colour == "green"
    with pytest.raises(InputError, match=r"^--colour: unknown colour 'gren'; did you mean green\?$"):
        picture.read("--colour", "gren")
    with pytest.raises(InputError, match=r"^--frame\.colour: unknown colour 'blue'; there are green, red$"):
        picture.read("--frame.colour", "blue")


def test_a_users_own_part_is_imported_only_if_it_was_typed(picture, written):
    file = written(colour="my_colours:teal")
    with pytest.raises(InputError, match="colour: the colour my_colours:teal is not loaded; name it on the command"):
        picture.read("--config", file)
    assert "my_colours" not in sys.modules
    made = picture.read("--config", file, "--colour", "my_colours:teal")
    assert (made.colour, COLOURS[made.colour]) == ("my_colours:teal", 3)
    assert picture.read("--config", file).colour == "my_colours:teal"  # known now, however it is named
    words = shlex.split(resume_command("search", Path("a b"), made, picture.settings))
    assert words == ["idarts", "search", "--resume", "--out", "a b", "--colour", "my_colours:teal"]
    with pytest.raises(InputError, match=r"^colour my_colours:tale: the module my_colours has no 'tale'; did you mean"):
        picture.read("--colour", "my_colours:tale")
    with pytest.raises(InputError, match=r"^colour no_module:x: no_module cannot be imported"):
        picture.read("--colour", "no_module:x")


def test_a_setting_may_have_its_own_loader(picture, written):
    made = picture.read("--config", written(size="my:a"), "--size", "my:b")
    assert (made.size, picture.sizes) == ("my:b", ["my:b"])  # not of the file
    words = shlex.split(resume_command("search", Path("run"), made, picture.settings))
    assert words[-2:] == ["--size", "my:b"]
