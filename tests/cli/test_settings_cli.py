"""Settings from presets, methods, files and options: what stands above what, and what is refused before a search."""

import json
import shlex
from dataclasses import asdict

import pytest
import yaml

from idarts.cli import main, search
from idarts.engine.run import Interrupted
from idarts.engine.settings import change
from idarts.errors import InputError
from idarts.searching.presets import PRESETS
from idarts.searching.run import RunConfig
from idarts.searching.settings import METHODS, Config, Cost, Selection, config


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
    def told(*arguments):
        assert main(list(arguments)) == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        return line

    return told


def as_run(printed):
    """The part of what was printed that a run's own record has."""
    return {name: printed[name] for name in asdict(RunConfig())}


def as_data(settings):
    return json.loads(json.dumps(asdict(settings)))


@pytest.mark.parametrize("name", ["file.yaml", "file.json"])
def test_a_method_in_a_file_is_that_method(name, written, settings):
    found = settings("search", "--config", written(name, method="darts", batch=8))
    assert as_run(found) == as_data(change(RunConfig(method="darts", batch=8), METHODS["darts"]))


def test_a_preset_in_a_file_is_that_preset(written, settings):
    found = settings("search", "--config", written(preset="smoke", rounds=7))
    assert as_run(found) == as_data(change(change(RunConfig(), PRESETS["smoke"]), {"rounds": 7}))
    trained = settings("train", "--config", written(preset="nas-bench-201-12"))
    assert (trained["epochs"], trained["weights"]["rate"]) == (12, 0.1)


def test_what_was_typed_and_later_files_stand_above_a_file(written, settings):
    first, second = written("a.yaml", method="darts"), written("b.yaml", method="gdas")
    assert settings("search", "--config", first, "--config", second)["relaxation"] == "gumbel"
    assert settings("search", "--config", first, "--method", "gdas")["relaxation"] == "gumbel"
    assert settings("search", "--config", first, "--preset", "smoke", "--preset=cpu")["rounds"] == 150


def test_a_method_is_not_typed_over_another_ones_full_record(written, settings, refused):
    file = written(**as_data(RunConfig()))
    told = refused("search", "--config", file, "--method", "darts")
    assert f"{file} is of idarts and sets inner_steps, hypergradient.terms, hypergradient.step" in told
    assert settings("search", "--config", file, "--method", "idarts")["inner_steps"] == 4
    assert settings("search", "--config", written(method="idarts", rounds=3), "--method", "darts")["inner_steps"] == 1


def test_a_full_record_stands_above_its_method_and_is_resumed_exactly(written, settings):
    begun = change(RunConfig(method="darts", seed=4), {"hypergradient": {"terms": 1}, "alpha": {"betas": (0.1, 0.2)}})
    assert begun.inner_steps == 4  # darts has 1
    file = written("run/config.json", **as_data(begun), choices={})
    folder = file.removesuffix("/config.json")
    for arguments in (["--config", file], ["--resume", "--out", folder], ["--resume", "--config", file]):
        assert as_run(settings("search", *arguments)) == as_data(begun)


def test_a_wrong_name_in_a_file_is_told(written, refused):
    assert "unknown method 'dart'; did you mean darts?" in refused("search", "--config", written(method="dart"))
    assert "unknown preset '3'" in refused("search", "--config", written(preset=3))


@pytest.mark.parametrize(("changes", "name"), [({"weights": {"raten": 1}}, "weights.raten"), ({"roundz": 1}, "roundz")])
def test_a_misspelt_key_is_named_with_its_file(changes, name, written, refused):
    file = written("run/config.json", **(as_data(RunConfig()) | changes))
    for arguments in (["--resume", "--out", file.removesuffix("/config.json")], ["--config", file]):
        told = refused("search", *arguments)
        assert f"{file}: unknown setting '{name}'; did you mean " in told


def test_a_file_that_cannot_be_read_is_told(tmp_path, refused):
    missing, broken, empty = (str(tmp_path / name) for name in ("none.yaml", "broken.yaml", "empty.yaml"))
    (tmp_path / "broken.yaml").write_text("rounds: 3\nweights: [\n")
    (tmp_path / "empty.yaml").touch()
    assert refused("search", "--config", missing) == f"idarts: --config {missing} cannot be read: No such file or " + (
        "directory\n"
    )
    assert f"--config {broken} is no YAML in line 3" in refused("search", f"--config={broken}")
    assert f"--config {empty} has no settings" in refused("train", "--config", empty)


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        *(("selection", name, 0) for name in ("samples", "batches", "steps")),
        *(("weights", name, -1) for name in ("rate", "last_rate", "momentum", "decay", "clip", "warmup")),
        ("weights", "momentum", 1),
        ("weights", "rate", float("nan")),
        ("weights", "relaxation", "sofmax"),
        *(("alpha", name, -1) for name in ("rate", "decay")),
        ("alpha", "betas", (0.5, 1.0)),
        *(("hypergradient", name, -1) for name in ("terms", "damping", "samples", "step")),
        ("hypergradient", "terms", 1.5),
        ("hypergradient", "step", "autos"),
        ("selection", "rule", "best"),
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


@pytest.mark.parametrize("option", ["--selection.samples", "--selection.steps", "--checkpoint-rounds", "--batch"])
def test_they_are_refused_before_a_folder_is_made(option, tmp_path, refused):
    told = refused("search", "--preset", "smoke", "--out", str(tmp_path / "run"), option, "0")
    assert told == f"idarts: {option[2:].replace('-', '_')} is 0, expected a whole number of at least 1\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("name", "value"), [("momentum", 1), ("clip", -1), ("by", "steps")])
def test_a_trainings_weights_are_looked_at_too(name, value, refused):
    if name != "by":
        told = refused("train", "DARTS_V2", "--data", "digits", f"--weights.{name}", str(value))
        assert f"weights.{name} is {float(value)}, expected a number" in told
    else:
        assert f"--weights.{name} is '{value}'" in refused("train", "DARTS_V2", f"--weights.{name}", value)


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
    with pytest.raises(InputError, match=rf"cost\.{name} is .*, which cost\.kind {kind} does not use"):
        Cost(kind, **unused)
    assert Cost("latency", 5.0, table="latency.json").table


@pytest.mark.parametrize(
    ("method", "changes", "use"),
    [
        ("idarts", {"relaxation": "dirichlet"}, "--hypergradient.order first"),
        ("idarts", {"relaxation": "uniform"}, "--hypergradient.order none"),
        ("gdas", {"relaxation": "uniform"}, "--hypergradient.order none"),
        ("idarts", {"hypergradient": {"products": "finite_difference"}}, "--hypergradient.curvature hessian"),
        ("idarts", {"weights": {"momentum": 0.0}}, "--weights.nesterov false"),
    ],
)
def test_what_cannot_work_together_is_refused_with_what_to_use(method, changes, use):
    with pytest.raises(InputError, match=f"use {use}$"):
        config(method, **changes)
    option, value = use[2:].split()
    group, name = option.split(".")
    fixed = changes | {group: changes.get(group, {}) | {name: {"false": False}.get(value, value)}}
    assert config(method, **fixed)


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


def test_how_to_go_on_is_a_command_for_the_shell(interrupted, capsys):
    main(["search", "--out", "my runs/it's $HOME"])
    line = capsys.readouterr().out.splitlines()[-1]
    assert shlex.split(line) == ["idarts", "search", "--resume", "--out", interrupted[0]]


@pytest.mark.parametrize(("data", "name"), [("folder:/x/y/cls", "x-y-cls"), ("npz:../a.npz", "a.npz"), ("d", "d")])
def test_the_default_folder_is_one_folder(data, name, interrupted):
    main(["search", "--data", data, "--seed", "2"])
    assert interrupted == [f"runs/nas-bench-201-idarts-{name}-2"]
