"""
Compare two methods with paired seeds
=====================================

A fair comparison has the same space, the same data, the same cost and the same seeds. A
sweep runs all of it, and ``compare`` pairs the runs by their seeds. On the command
line: ``idarts sweep grid.yaml --out runs/grid``, then ``idarts compare runs/grid``.
"""

# %%
# One dict (on the command line, a YAML file) says what to run: every method with every
# seed. Here on the digits, in the NAS-Bench-201 space, so small that the numbers mean
# nothing. ``gradient_evaluations`` gives both methods the same cost.
import tempfile
from pathlib import Path

from idarts.experiments import Request, plan, run_experiment
from idarts.experiments.comparison import compare, pairs, value

sweep = plan(
    {
        "preset": "smoke",
        "methods": ["idarts", "darts-first-order"],
        "seeds": 3,
        "settings": {
            "gradient_evaluations": 40,
            "rounds": 1000,
            "weights.warmup": 0,
            "selection.rule": "argmax",
        },
    }
)
print(*sweep.jobs, sep="\n")

# %%
# The jobs run here one after the other; :doc:`many_runs` has the other engines. The
# same call continues a sweep that was stopped.
out = Path(tempfile.mkdtemp())
page = run_experiment(sweep.experiment, Request(out))

# %%
# Runs with the same settings are a group. If there is a benchmark table
# (``IDARTS_TABLES``), the measure is the true accuracy of the selected cell; here it is
# the supernet's validation accuracy. It says nothing about the cells: for the same
# cost, first order takes more weight steps.
comparison = compare([out], by=["method"], measure="valid_accuracy")
for group in comparison.groups:
    print(group.name, [round(value(run, comparison.measure), 3) for run in group.runs])

# %%
# The test uses the differences seed by seed. With three pairs, an exact permutation
# test cannot fall below p = 0.25: decide how many seeds you need before you run.
for first, second, test in pairs(comparison):
    print(f"{first} − {second}: {test.mean:+.3f} ± {test.deviation:.3f}")
    print(f"p = {test.permutation:.2f} from {test.pairs} pairs")

# %%
# ``results.csv`` has a row for each run, and the page has curves at equal cost.
columns = (out / "results.csv").read_text().splitlines()[0].split(",")
print(page.name, "and", *columns[:6], "…")
