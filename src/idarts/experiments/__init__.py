"""Many runs: a plan of jobs, an engine that runs them, one table of results, and one page that shows it."""

from idarts.experiments.engines import local, on_ray, on_slurm
from idarts.experiments.experiment import Experiment, Request
from idarts.experiments.jobs import FunctionJob, Job, SearchJob
from idarts.experiments.paper import EXPERIMENTS
from idarts.experiments.runner import FailedJobsError, run_experiment
from idarts.experiments.searches import search_jobs
from idarts.experiments.sweep import Plan, plan, read_plan

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "FailedJobsError",
    "FunctionJob",
    "Job",
    "Plan",
    "Request",
    "SearchJob",
    "local",
    "on_ray",
    "on_slurm",
    "plan",
    "read_plan",
    "run_experiment",
    "search_jobs",
]
