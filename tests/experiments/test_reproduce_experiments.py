"""Every experiment in its smoke version: what it leaves behind, and the published values beside the measured ones."""

import csv
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest

from idarts.errors import IdartsError, InputError
from idarts.experiments import EXPERIMENTS, Experiment, Request, jobs, run_experiment, search_jobs
from idarts.experiments.paper import practice
from idarts.experiments.paper.published import COLUMNS, TABLE_1, TABLE_K
from idarts.experiments.searches import settings

# Two rounds on digits prove nothing of a search's quality, and may well warn of it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::idarts.errors.CollapseWarning"),
    pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning"),
]


FEW = {"table-2": {"methods": ("random-trials",)}}  # all of its rows would take minutes


def reproduce(name, request, tell=lambda _: None):
    return run_experiment(EXPERIMENTS[name], request, tell=tell)


@pytest.mark.parametrize(("name", "module"), [("practice", "scipy"), ("table-hypergradients", "sklearn")])
def test_an_experiment_says_before_its_first_job_what_it_needs(monkeypatch, tmp_path, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"need sc.*: pip install 'idarts\[experiments\]'"):
        reproduce(name, Request(tmp_path / "out", "smoke", (1,)))
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def results(tables, tmp_path_factory):
    """Experiments by name, each run once."""
    found = {}

    def result(name, **options):
        if name not in found:
            out = tmp_path_factory.mktemp(name) / "out"
            found[name] = reproduce(name, Request(out, "smoke", (1,), tables, **FEW.get(name, {}), **options)).parent
        return found[name]

    return result


def rows(out):
    with (out / "results.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_leaves_all_it_promises(results, name):
    out = results(name)
    text, page = (out / "results.md").read_text(), (out / "index.html").read_text()
    figures = re.findall(r"\]\(([\w-]+\.svg)\)", text)
    assert sorted(figures) == sorted(path.name for path in out.glob("*.svg"))
    assert page.count('<svg viewBox="') == len(figures)
    assert all((out / figure).read_text().startswith("<svg") for figure in figures)
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert rows(out)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_second_call_runs_nothing(results, tables, name):
    out, lines = results(name), []
    before = (out / "results.csv").read_bytes()
    reproduce(name, Request(out, "smoke", (1,), tables, **FEW.get(name, {})), lines.append)
    assert (out / "results.csv").read_bytes() == before
    done = {row["job"] for row in rows(out)}
    assert lines[:-1] == [f"{len(done)} of {len(done)} jobs are done already"]  # the last says what smoke means


def test_a_lost_table_is_made_again_from_the_run_folders(results, tables, monkeypatch):
    out, lines = results("table-k"), []
    before = (out / "results.csv").read_bytes()
    (out / "results.csv").unlink()
    monkeypatch.setattr(jobs, "run", None)
    reproduce("table-k", Request(out, "smoke", (1,), tables), lines.append)
    assert (out / "results.csv").read_bytes() == before
    assert lines[:-1] == ["6 of 6 jobs are done already"]


def test_practice_finishes_a_seed_on_all_data_before_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(practice, "source_of", lambda name: name)
    planned = [job.name for job in EXPERIMENTS["practice"].plan(Request(tmp_path, "cpu", (1, 2)))]
    assert planned == [f"{name}-{seed}" for seed in (1, 2) for name in practice.SETS]


def test_practice_reads_a_finished_fit_again(results, tables, monkeypatch):
    out = results("practice")
    (before,) = rows(out)
    (out / "results.csv").unlink()
    monkeypatch.setattr(practice, "fit", None)
    reproduce("practice", Request(out, "smoke", (1,), tables))
    (after,) = rows(out)
    measured = {"found_milliseconds", "fixed_milliseconds", "digest"}
    assert {name for name in before if before[name] != after[name]} <= measured
    made = json.loads((out / "fits" / "digits-1" / "fit.json").read_text())
    assert [after[name] for name in practice.PLANNED] == [str(made["plan"][name]) for name in practice.PLANNED]


def test_table_1_has_every_row_with_the_papers_beside(results):
    out = results("table-1")
    assert {row["method"] for row in rows(out)} == {
        *("enas", "random-nas", "setn", "gdas", "darts-first-order", "darts-one-step", "darts", "idarts"),
        *("random-trials", "random-search", "regularised-evolution", "optimal"),
    }
    text = (out / "results.md").read_text()
    for method, published in TABLE_1.items():
        lines = text.split(f"\n| {method} | ")[1].splitlines()
        assert lines[1] == f"|   published |  | {' | '.join(published)} |  |  |"


def test_table_1s_accuracies_are_the_tables_for_the_cell_in_the_run_folder(results, tables):
    from idarts.tables import table

    out, known = results("table-1"), table("nas-bench-201", tables)
    for method in ("gdas", "idarts"):
        row = next(row for row in rows(out) if row["job"] == f"{method}-1")
        result = json.loads((out / "runs" / f"{method}-1" / "result.json").read_text())
        found = known.query(result["architecture"])
        assert row["cell"] == found["architecture"]
        assert [float(row[name]) for name in COLUMNS] == [found[n.split("_")[0]][n.split("_")[1]] for n in COLUMNS]
        assert float(row["gradient_evaluations"]) == pytest.approx(result["gradient_evaluations"], abs=0.06)
        assert float(row["argmax_cifar10_test"]) == known.query(result["argmax"])["cifar10"]["test"]


def test_the_optimum_is_the_best_of_the_table(results, tables):
    if not (tables / "nasbench201_tss.parquet").is_file():
        pytest.skip("IDARTS_TABLES names no folder with the real NAS-Bench tables")
    optimal = next(row for row in rows(results("table-1")) if row["method"] == "optimal")
    assert [round(float(optimal[name]), 2) for name in COLUMNS] == [91.61, 94.37, 73.49, 73.51, 46.73, 47.31]


def test_equal_cost_ends_the_others_where_idarts_ended(tables, tmp_path):
    request = Request(tmp_path / "out", "smoke", (1,), tables, methods=("darts-first-order",), equal_cost=True)
    reproduce("table-1", request)
    spent = {row["method"]: float(row["gradient_evaluations"]) for row in rows(tmp_path / "out")}
    assert set(spent) == {"idarts", "darts-first-order"}
    assert 0 <= spent["darts-first-order"] - spent["idarts"] < 2.01  # a round is not cut short
    config = json.loads((tmp_path / "out" / "runs" / "darts-first-order-1" / "config.json").read_text())
    assert config["gradient_evaluations"] == pytest.approx(spent["idarts"], abs=0.06)
    assert "the cost of a selection is added" in (tmp_path / "out" / "results.md").read_text()


def test_at_equal_cost_a_selection_buys_the_other_method_no_rounds(tmp_path):
    dear = {"selection": {"rule": "trials", "samples": 2, "steps": 2, "batches": 1}}

    def plan(request):
        for method, like in (("darts-first-order", "idarts"), ("idarts", None)):
            yield from search_jobs(request, "nas-bench-201", method, dear, method=method, like=like)

    run_experiment(Experiment("two", "Two.", plan), Request(tmp_path, "smoke", (1,)), tell=lambda _: None)
    mine, other = (tmp_path / "runs" / f"{method}-1" for method in ("idarts", "darts-first-order"))
    spent, others = (
        [json.loads(line)["gradient_evaluations"] for line in (run / "metrics.jsonl").read_text().splitlines()]
        for run in (mine, other)
    )
    assert json.loads((mine / "result.json").read_text())["gradient_evaluations"] > spent[-1] + 2
    assert others[-2] < spent[-1] <= others[-1]


def test_an_unfinished_run_is_resumed(tables, tmp_path, monkeypatch):
    """The second search is killed after its first round; the next call resumes it and leaves the first alone."""
    from idarts.searching.run import run

    class Killed(BaseException):
        pass

    def kill(*_):
        raise Killed

    calls = []

    def search(config, folder, resume):
        calls.append((folder.name, resume))
        watch = kill if folder.name == "darts-first-order-1" and not resume else None
        run(config, folder, resume=resume, on_round=watch)

    monkeypatch.setattr(jobs, "run", search)
    request = Request(tmp_path / "out", "smoke", (1,), tables, methods=("idarts", "darts-first-order"))
    with pytest.raises(Killed):
        reproduce("table-1", request)
    reproduce("table-1", request)
    assert calls == [("idarts-1", False), ("darts-first-order-1", False), ("darts-first-order-1", True)]
    rounds = (tmp_path / "out" / "runs" / "darts-first-order-1" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["number"] for line in rounds] == list(range(1, 11))  # iDARTS takes 5 batches a round


@pytest.mark.parametrize("folder", [None, "runs/gdas-1/result.json"])
def test_another_text_for_the_same_settings_is_no_other_setting(tables, tmp_path, folder):
    """As another version may write it: the run folder decides, and without one the text does."""
    request = Request(tmp_path / "out", "smoke", (1,), tables, methods=("gdas",))
    reproduce("table-1", request)
    file = tmp_path / "out" / "results.csv"
    settings = rows(tmp_path / "out")[0]["settings"]
    older = [line.rpartition(",")[0] for line in file.read_text().replace(settings, "00000000").splitlines()]
    file.write_text("\n".join(older) + "\n")  # 0.1.0 wrote no digests
    if folder:
        (tmp_path / "out" / folder).unlink()
        with pytest.raises(InputError, match="has gdas-1 with other settings than now"):
            reproduce("table-1", request)
    else:
        lines = []
        reproduce("table-1", request, lines.append)
        assert lines[:-1] == ["1 of 1 jobs are done already"]


def test_more_seeds_and_rows_may_be_added_later(tables, tmp_path):
    for seeds, methods in (((1,), ("random-search",)), ((1, 2), ("random-search", "optimal"))):
        request = Request(tmp_path / "out", "smoke", seeds, tables, methods)
        reproduce("table-1", request)
    assert [row["job"] for row in rows(tmp_path / "out")] == ["random-search-1", "random-search-2", "optimal"]


def test_an_unknown_row_and_a_missing_table_are_errors_before_anything_is_written(tables, tmp_path):
    with pytest.raises(InputError, match=r"unknown row 'dart'; did you mean darts\?"):
        reproduce("table-1", Request(tmp_path / "out", "smoke", (1,), tables, methods=("dart",)))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match=r"no table of nas-bench-201 in .*; get .* and run: idarts table import"):
        reproduce("table-k", Request(tmp_path / "out", "smoke", (1,), empty))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damaged", ['{"space": "nas-b', "[]"])
def test_a_damaged_run_is_one_failed_job_and_its_folder_is_named(tables, tmp_path, damaged):
    run = tmp_path / "out" / "runs" / "darts-first-order-1"
    request = Request(tmp_path / "out", "smoke", (1,), tables, methods=("darts-first-order", "random-search"))
    reproduce("table-1", replace(request, methods=("optimal",)))
    run.mkdir(parents=True)
    (run / ".lock").touch()
    for name, other in (("config.json", "result.json"), ("result.json", "config.json")):
        (run / name).write_text(damaged)
        (run / other).unlink(missing_ok=True)
        message = re.escape(f"1 of 2 jobs failed, first darts-first-order-1 ({run / name} cannot be read")
        with pytest.raises(IdartsError, match=rf"{message}.*; delete {re.escape(str(run))}, and") as error:
            reproduce("table-1", request)
        assert "--overwrite" not in str(error.value)
        assert [row["method"] for row in rows(tmp_path / "out")] == ["optimal", "random-search"]
    rmtree(run)
    reproduce("table-1", request)
    assert [row["method"] for row in rows(tmp_path / "out")] == ["optimal", "darts-first-order", "random-search"]


def test_trials_alone_have_the_cost_of_the_whole_search_of_idarts(tables, tmp_path):
    planned = list(EXPERIMENTS["table-1"].plan(Request(tmp_path, "smoke", (2,), tables, methods=("random-trials",))))
    assert [(job.name, job.like, job.whole) for job in planned] == [
        ("idarts-2", None, False),
        ("random-trials-2", "runs/idarts-2", True),
    ]


def test_alpha_alone_is_shown_where_it_was_trained(tmp_path):
    table_1 = EXPERIMENTS["table-1"]
    facts = dict.fromkeys(COLUMNS, 90.0) | {name: 80.0 for name in table_1.columns if name.startswith("argmax_")}
    head = dict.fromkeys(("job", *table_1.columns), "") | facts | {"seed": 1, "gradient_evaluations": 1, "seconds": 1}
    made = [head | {"method": method} for method in ("enas", "random-nas", "setn", "gdas", "darts", "idarts")]
    lines = [line[0] for line in table_1.show(made, Request(tmp_path))[0].rows]
    alone = [lines[place - 2] for place, name in enumerate(lines) if name == "  by α alone"]
    assert alone == ["setn", "gdas", "darts", "idarts"]


def test_figure_1_follows_the_log(results):
    out = results("figure-1")
    for setting, folder in (("DARTS", "DARTS-1"), ("T=5", "T5-1")):
        log = [json.loads(line) for line in (out / "runs" / folder / "metrics.jsonl").read_text().splitlines()]
        mine = [row for row in rows(out) if row["setting"] == setting]
        assert [float(row["share"]) for row in mine] == [place / 40 for place in range(41)]
        assert int(mine[0]["round"]) == 1
        assert int(mine[-1]["round"]) == log[-1]["number"]
        assert all(0 < float(row["test_error"]) < 100 for row in mine)


def test_figure_2_uses_one_run_in_two_panels(results):
    found = {(row["panel"], float(row["value"])): row["job"] for row in rows(results("figure-2"))}
    assert found["T", 4.0] == found["γ_α", 0.01] == "T4-1"
    assert set(found) == {("T", 1.0), ("T", 4.0), ("γ", 0.01), ("γ", 0.1), ("γ_α", 0.01), ("γ_α", 0.1)}


def test_settings_are_the_presets_with_what_the_experiment_changes():
    request = Request(Path("out"), "paper")
    paper = settings(request, "nas-bench-201", "idarts", 7, {"hypergradient": {"terms": 1}})
    assert (paper.inner_steps, paper.rounds, paper.seed, paper.data) == (4, 3900, 7, "cifar10")
    assert (paper.hypergradient.terms, paper.hypergradient.step) == (1, 0.01)
    darts = settings(request, "nas-bench-1shot1-s3", "darts", 1, {})
    assert (darts.inner_steps, darts.hypergradient.method, darts.batch) == (1, "reverse", 96)
    assert darts.rounds == 2160 * 6 / 2  # as many epochs as with T = 5
    assert settings(request, "nas-bench-1shot1-s3", "gdas", 1, {}).rounds == 2160 * 6  # its α sees no training batch


# Spelled from the paper, not from the module.
def test_published_numbers_are_the_papers():
    assert TABLE_1["enas"] == ("37.51±3.19", "53.89±0.58", "13.37±2.35", "13.96±2.33", "15.06±1.95", "14.84±2.10")
    assert TABLE_1["gdas"][1::2] == ("93.40±0.49", "70.33±0.87", "41.47±0.21")
    assert TABLE_1["idarts"][::2] == ("89.86±0.60", "70.57±0.24", "40.38±0.593")
    assert TABLE_1["optimal"] == ("91.61", "94.37", "74.49", "73.51", "46.77", "47.31")
    assert TABLE_K[1, 1] == ("86.85±0.93", "89.67±1.31", "64.09±2.92", "64.17±3.26", "36.26±5.71", "36.11±5.77")
    assert TABLE_K[4, 3][2:] == ("68.51±0.77", "68.58±1.18", "42.37±0.48", "42.26±0.41")
    assert TABLE_K[1, 0] == TABLE_1["darts"]
    assert TABLE_K[4, 2][:4] == TABLE_1["idarts"][:4]


def test_published_numbers_all_stand_in_the_papers_source():
    source = Path(__file__).parents[3] / "shared" / "paper" / "idarts.tex"
    if not source.is_file():
        pytest.skip("the paper's source is not beside the checkout")
    text = source.read_text().replace("$\\pm$", "±").replace("± ", "±").replace(" ", "")
    for row in (*TABLE_1.values(), *TABLE_K.values()):
        assert "&".join(row) in text


def test_the_overview_measures_every_method_and_what_the_paper_says_of_memory(results):
    from idarts import hypergrad
    from idarts.experiments.paper.hypergradients import AFTER_STEPS, AT_OPTIMUM, WITHOUT_K

    made = [make(0.1) for make in WITHOUT_K.values()]
    made += [make(2, 0.1) for make in (*AT_OPTIMUM.values(), *AFTER_STEPS.values())]
    running = {"amigo", "bome", "f2sa", "recursive", "running"}  # one call of these says little
    assert {type(method) for method in made} == {
        hypergrad.SOLVERS[name] for name in hypergrad.SOLVERS if name not in running
    }

    found = [row for row in rows(results("table-hypergradients")) if row["part"] == "after T steps"]
    memory = {
        case: [float(row["kilobytes"]) for row in found if row["case"] == case]
        for case in ("reverse mode", "Neumann, K = 2")
    }
    assert memory["reverse mode"][-1] > 1.8 * memory["reverse mode"][0]
    assert memory["Neumann, K = 2"][-1] == pytest.approx(memory["Neumann, K = 2"][0], rel=0.05)


def test_as_t_grows_inner_steps_are_counted_whoever_takes_them(results, monkeypatch):
    from idarts.experiments.paper import hypergradients
    from idarts.experiments.paper.small_supernet import SmallSupernet

    found = [row for row in rows(results("table-hypergradients")) if row["part"] == "after T steps"]
    spent = {(row["case"], int(row["T"])): float(row["gradient_evaluations"]) for row in found}
    for case in ("one step (DARTS)", "Neumann, K = 2", "exact at w_T"):
        assert spent[case, 4] - spent[case, 1] == pytest.approx(3)
    assert spent["one step (DARTS)", 1] == pytest.approx(
        1 + spent["truncated reverse, K ≤ 2", 1]
    )  # which begins at w_0
    text = (results("table-hypergradients") / "results.md").read_text()
    assert "Gradient evaluations and time include the T inner steps" in text

    seen, inner = [], SmallSupernet.inner

    def cost(call):
        seen.clear()
        call()
        return {"milliseconds": len(seen)}

    monkeypatch.setattr(hypergradients, "cost", cost)
    monkeypatch.setattr(SmallSupernet, "inner", lambda *args: seen.append(1) or inner(*args))
    for name, own in (("one step (DARTS)", 1), ("reverse mode", 0)):  # what is timed takes T steps, and one look more
        timed = hypergradients.measure("after T steps", case=name, size=(60, 3, 4, 0))
        assert [row["milliseconds"] for row in timed] == [1 + own, 2 + own, 4 + own]


def test_the_exact_hypergradient_is_exact_and_the_series_nears_it(results):
    found = [row for row in rows(results("table-hypergradients")) if row["part"] == "at w*"]
    errors = {
        case: [float(row["error"]) for row in found if row["case"] == case] for case in {r["case"] for r in found}
    }
    assert errors["exact"][0] < 1e-9
    assert errors["Neumann, γ = 1/λ_max"][-1] < errors["Neumann, γ = 1/λ_max"][0]
    assert errors["Neumann, γ = 1/λ_max"][0] == pytest.approx(errors["one step (DARTS), γ = 1/λ_max"][0])
