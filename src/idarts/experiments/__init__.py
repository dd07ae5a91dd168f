"""Many searches: a plan of jobs, engines that run them, one table of results, and a page that shows it."""

from idarts.experiments.engines import local, on_ray, on_slurm
from idarts.experiments.plan import Plan, plan, read_plan
from idarts.experiments.results import write_results
from idarts.experiments.sweep import sweep

__all__ = ["Plan", "local", "on_ray", "on_slurm", "plan", "read_plan", "sweep", "write_results"]
