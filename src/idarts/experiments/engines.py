"""Where jobs run: processes of this machine, Ray, Slurm. An engine is a context manager that yields one function.

That function runs another, module-level function on plain data somewhere, and waits for its answer. A worker that dies
raises an `EngineError`, whatever killed it. When an exception such as an interrupt leaves the context, the engine stops
all running jobs, which lets a search write a checkpoint, and every call raises `StoppedError`.
"""

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

import torch

from idarts.errors import IdartsError, InputError

Function = Callable[[dict[str, Any]], Any]
Call = Callable[[Function, dict[str, Any]], Any]
Engine = AbstractContextManager[Call]
Handle = TypeVar("Handle")  # what an engine knows a running job by

PRELOADED = ["idarts.experiments.jobs", "torch._dynamo"]  # the latter takes seconds, and every optimiser imports it
_GRACE = 60.0  # seconds that a cancelled job has to write its checkpoint


class EngineError(IdartsError):
    """A worker died before it answered."""


class StoppedError(EngineError):
    """The engine is stopping: running jobs are stopped, and no new ones start."""


def cores() -> int:
    """The number of cores that this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_each(jobs: int) -> int:
    """Threads for each of `jobs` jobs at a time: a share of the cores, at most OMP_NUM_THREADS.

    >>> threads_each(10**6)
    1
    """
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    most = int(limit) if limit.isascii() and limit.isdigit() else cores()
    return max(1, min(cores() // jobs, most))


def slots() -> int:
    """How many searches this machine runs at a time: one for each core, but only one if they would share a GPU.

    >>> 1 <= slots() <= cores()
    True
    """
    return 1 if torch.accelerator.is_available() else cores()


@contextmanager
def _calling(
    start: Callable[[Function, dict[str, Any]], Handle],
    answer: Callable[[Handle], Any],
    stop: Callable[[list[Handle]], None],
) -> Iterator[Call]:
    """The function that an engine yields, from its own ways to start a job, wait for its answer and stop it."""
    running: set[Handle] = set()
    starting, stopping = threading.Lock(), threading.Event()

    def call(function: Function, task: dict[str, Any]) -> Any:
        with starting:
            if stopping.is_set():
                raise StoppedError("it was not started")
            handle = start(function, task)
            running.add(handle)
        try:
            return answer(handle)
        finally:
            running.discard(handle)
            if stopping.is_set():
                raise StoppedError("it was stopped")

    try:
        yield call
    except BaseException:
        with starting:
            stopping.set()
        stop(list(running))
        raise


@contextmanager
def local() -> Iterator[Call]:
    """One process for each call, forked from a server that has torch loaded already.

    A pool of workers would be lost as a whole when one of them is killed.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)

    def start(function: Function, task: dict[str, Any]) -> tuple[BaseProcess, Connection]:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_answer, args=(theirs, function, task))
        try:
            with theirs:
                process.start()
        except (OSError, EOFError):  # the next start makes a new server
            ours.close()
            raise EngineError("the server that makes its process died") from None
        return process, ours

    def answer(handle: tuple[BaseProcess, Connection]) -> Any:
        process, ours = handle
        with ours:
            try:
                return ours.recv()
            except EOFError:
                raise EngineError("its process was killed, or crashed") from None
            finally:
                process.join()

    def stop(handles: list[tuple[BaseProcess, Connection]]) -> None:
        for process, _ in handles:
            process.terminate()

    with _calling(start, answer, stop) as call:
        yield call


def _answer(connection: Connection, function: Function, task: dict[str, Any]) -> None:
    """In the new process, which ends together with its parent, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    answer = function(task)
    with suppress(BrokenPipeError):  # the parent has ended
        connection.send(answer)


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def on_ray(address: str, threads: int = 1, gpus: float = 0) -> Iterator[Call]:
    """Tasks of a Ray cluster; `local` starts one on this machine. Its nodes must share the experiment's folder."""
    try:
        import ray  # type: ignore[import-not-found,import-untyped,unused-ignore] # noqa: PLC0415 (an extra)
    except ImportError:
        raise InputError("the engine ray needs Ray: pip install 'idarts[ray]'") from None
    dashboard = False if address == "local" else None  # an existing cluster decides for itself

    def connect() -> None:
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=dashboard)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            fix = "--address local starts one here"
            raise InputError(f"no Ray cluster answers at {address} ({reason}); {fix}") from None

    connect()
    # Retries are the runner's: Ray's own would be neither counted nor reported.
    remote = ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=0)
    waiting: set[Any] = set()
    lost = threading.Event()  # this process has no cluster any more

    def start(function: Function, task: dict[str, Any]) -> Any:
        try:
            if lost.is_set():
                while waiting:  # these fail, too; Ray must not be shut down while they wait
                    time.sleep(0.1)
                ray.shutdown()
                connect()
                lost.clear()
            handle = remote(function).remote(task)
        except (ray.exceptions.RayError, ConnectionError, RuntimeError, InputError) as error:
            lost.set()
            raise EngineError(f"Ray's head does not answer ({type(error).__name__})") from None
        waiting.add(handle)
        return handle

    def answer(handle: Any) -> Any:
        try:
            return ray.get(handle)
        except ray.exceptions.RayError as error:
            if isinstance(error, ray.exceptions.LocalRayletDiedError):
                lost.set()
            raise EngineError(f"its worker was killed, or crashed ({_reason(error)})") from None
        finally:
            waiting.discard(handle)

    def stop(handles: list[Any]) -> None:
        for handle in handles:
            ray.cancel(handle)
        if handles:
            ray.wait(handles, num_returns=len(handles), timeout=_GRACE)

    try:
        with _calling(start, answer, stop) as call:
            yield call
    finally:
        ray.shutdown()


def _reason(error: Exception) -> str:
    """The kind of one of Ray's errors; of an exception in a task, such as a missing module, its last line."""
    return str(error).strip().splitlines()[-1] if hasattr(error, "cause") else type(error).__name__


@contextmanager
def on_slurm(
    folder: Path, threads: int = 1, gpus: int = 0, parameters: Mapping[str, Any] | None = None, cluster: str = "slurm"
) -> Iterator[Call]:
    """Slurm jobs through submitit, whose files go to `folder`; `parameters` are submitit's, such as `timeout_min`."""
    try:
        import submitit  # type: ignore[import-not-found,import-untyped,unused-ignore] # noqa: PLC0415 (an extra)
    except ImportError:
        raise InputError("the engine slurm needs submitit: pip install 'idarts[slurm]'") from None
    wanted = {"name": "idarts", "cpus_per_task": threads, **({"gpus_per_node": gpus} if gpus else {})}
    try:
        executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
        executor.update_parameters(**wanted | dict(parameters or {}))
    except (RuntimeError, NameError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"submitit refuses these parameters for Slurm: {reason}") from None

    def answer(handle: Any) -> Any:
        try:
            return handle.result()
        except (submitit.core.utils.UncompletedJobError, submitit.core.utils.FailedJobError):
            raise EngineError(
                f"Slurm's job {handle.job_id} died (state {handle.state}); see {handle.paths.stderr}"
            ) from None

    def stop(handles: list[Any]) -> None:
        for handle in handles:
            handle.cancel()

    with _calling(executor.submit, answer, stop) as call:
        yield call
