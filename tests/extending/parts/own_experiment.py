"""An experiment of one's own: does a larger learning rate of α lead to a more certain architecture?"""

from idarts.experiments import Experiment, search_jobs
from idarts.pages.experiment import Section

RATES = {"slow": 0.01, "fast": 0.1}


def plan(request):
    for label, rate in RATES.items():
        changes = {"alpha.rate": rate, "channels": 4, "inner_steps": 1}
        yield from search_jobs(request, "nas-bench-201", label, changes)


def show(rows, request):
    table = [[str(row["job"]), f"{float(row['entropy']):.4f}"] for row in rows]
    return [Section("Entropy of α", header=("job", "entropy"), rows=table)]


rates = Experiment("rates", "Learning rates of α.", plan, show)
