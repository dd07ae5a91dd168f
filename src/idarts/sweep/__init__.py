"""Many searches: a plan of jobs, engines that run them, one table of results, and what the table says."""

from idarts.sweep.conduct import sweep
from idarts.sweep.engines import local, on_ray, on_slurm
from idarts.sweep.plan import Plan, plan, read_plan
from idarts.sweep.results import write_results

__all__ = ["Plan", "local", "on_ray", "on_slurm", "plan", "read_plan", "sweep", "write_results"]
