"""Where jobs run: processes of this machine, Ray, Slurm. An engine is a context that gives one function.

That function runs another one, of the module level, on plain data somewhere, and waits for what it returns; a worker
that dies is an `EngineError`, whoever killed it. Leaving the context by an exception, such as an interrupt, asks all
that still runs to stop, which lets a search write a checkpoint, and every call raises `StoppedError`.
"""

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from idarts.errors import IdartsError, InputError

Function = Callable[[dict[str, Any]], Any]
Call = Callable[[Function, dict[str, Any]], Any]
Engine = AbstractContextManager[Call]
Job = TypeVar("Job")  # as an engine knows it

NAMES = ("local", "ray", "slurm")
PRELOADED = ["idarts.experiments.job", "torch._dynamo"]  # the latter takes seconds, and every optimiser asks for it
_GRACE = 60.0  # seconds that a cancelled job gets to write its checkpoint


class EngineError(IdartsError):
    """A worker died, or was stopped, before it gave an answer."""


class StoppedError(EngineError):
    """The engine is being left: what ran was asked to stop, and nothing more is begun."""


@contextmanager
def _calling(
    begin: Callable[[Function, dict[str, Any]], Job], answer: Callable[[Job], Any], stop: Callable[[list[Job]], None]
) -> Iterator[Call]:
    """What all engines share: from how a job is begun, waited for and asked to stop, the function that they give."""
    running: set[Job] = set()
    beginning, stopping = threading.Lock(), threading.Event()

    def call(function: Function, task: dict[str, Any]) -> Any:
        with beginning:
            if stopping.is_set():
                raise StoppedError("it was not begun")
            job = begin(function, task)
            running.add(job)
        try:
            return answer(job)
        finally:
            running.discard(job)
            if stopping.is_set():
                raise StoppedError("it was asked to stop")

    try:
        yield call
    except BaseException:
        with beginning:
            stopping.set()
        stop(list(running))
        raise


@contextmanager
def local() -> Iterator[Call]:
    """A process for each call, forked from a server that has torch loaded already.

    A pool of workers would be lost as a whole with one that is killed.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)

    def begin(function: Function, task: dict[str, Any]) -> tuple[BaseProcess, Connection]:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_answer, args=(theirs, function, task))
        process.start()
        theirs.close()
        return process, ours

    def answer(job: tuple[BaseProcess, Connection]) -> Any:
        process, ours = job
        with ours:
            try:
                return ours.recv()
            except EOFError:
                raise EngineError("its process was killed, or crashed") from None
            finally:
                process.join()

    def stop(jobs: list[tuple[BaseProcess, Connection]]) -> None:
        for process, _ in jobs:
            process.terminate()

    with _calling(begin, answer, stop) as call:
        yield call


def _answer(answer: Connection, function: Function, task: dict[str, Any]) -> None:
    """In the new process; it ends with the one that started it, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    found = function(task)
    with suppress(BrokenPipeError):  # nobody is left to hear it
        answer.send(found)


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def on_ray(address: str, threads: int = 1, gpus: float = 0) -> Iterator[Call]:
    """Tasks of a Ray cluster; `local` starts one on this machine. Its nodes must share the sweep's folder."""
    try:
        import ray  # type: ignore[import-not-found,import-untyped,unused-ignore] # noqa: PLC0415 (an extra)
    except ImportError:
        raise InputError("the engine ray needs Ray: pip install 'idarts[ray]'") from None
    dashboard = False if address == "local" else None  # of a cluster that is there already it is not ours to say
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=dashboard)
    except (ConnectionError, RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(f"no Ray cluster answers at {address} ({said}); --address local starts one here") from None
    # Retries are ours: Ray's own would not be counted, nor reported.
    remote = ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=0)

    def begin(function: Function, task: dict[str, Any]) -> Any:
        return remote(function).remote(task)

    def answer(job: Any) -> Any:
        try:
            return ray.get(job)
        except ray.exceptions.RayError as error:
            raise EngineError(f"its worker was killed, or crashed ({type(error).__name__})") from None

    def stop(jobs: list[Any]) -> None:
        for job in jobs:
            ray.cancel(job)
        if jobs:
            ray.wait(jobs, num_returns=len(jobs), timeout=_GRACE)

    try:
        with _calling(begin, answer, stop) as call:
            yield call
    finally:
        ray.shutdown()


@contextmanager
def on_slurm(
    folder: Path, threads: int = 1, gpus: int = 0, parameters: Mapping[str, Any] | None = None, cluster: str = "slurm"
) -> Iterator[Call]:
    """Slurm jobs through submitit, whose files go to `folder`; `parameters` are its own, such as `timeout_min`."""
    try:
        import submitit  # type: ignore[import-not-found,import-untyped,unused-ignore] # noqa: PLC0415 (an extra)
    except ImportError:
        raise InputError("the engine slurm needs submitit: pip install 'idarts[slurm]'") from None
    asked = {"name": "idarts", "cpus_per_task": threads, **({"gpus_per_node": gpus} if gpus else {})}
    try:
        executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
        executor.update_parameters(**asked | dict(parameters or {}))
    except (RuntimeError, NameError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(f"submitit does not take these settings of Slurm: {said}") from None

    def answer(job: Any) -> Any:
        try:
            return job.result()
        except (submitit.core.utils.UncompletedJobError, submitit.core.utils.FailedJobError):
            raise EngineError(f"Slurm's job {job.job_id} died (state {job.state}); see {job.paths.stderr}") from None

    def stop(jobs: list[Any]) -> None:
        for job in jobs:
            job.cancel()

    with _calling(executor.submit, answer, stop) as call:
        yield call
