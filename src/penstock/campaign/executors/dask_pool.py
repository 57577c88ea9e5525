"""Workers behind a Dask scheduler, as an executor.

It connects when there is work, checks the workers, and submits as many pieces as they can take. All
of it happens in the thread that submits and waits; Dask's own thread only delivers results. A
scheduler that does not answer, missing workers and workers that differ end the work with an
ExecutorError, in bounded time.
"""

import json
import logging
import pickle
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock.campaign.executors.pool import (
    CampaignExecutor,
    ExecutorError,
    Limits,
    LostPieceError,
    WorkerDiedError,
)
from penstock.campaign.executors.worker_check import WorkerChecks, environment, run_if_same
from penstock.errors import InputError

BEAT = 0.5
CHECK = 2.0
"""Seconds between two checks of the scheduler and its workers: without workers, and with some."""

Workers = frozenset[str] | None
"""The workers that may run a task; None: any."""


@dataclass(slots=True, kw_only=True)
class Cluster:
    """A connection to a scheduler whose workers are started elsewhere."""

    client: Any

    def look_after_workers(self, workers: int, done: int) -> str:  # noqa: ARG002
        """Start the workers, and those again that ended; `done` pieces of work are done.

        Return what the run waits for, in words; ExecutorError: there will be no worker.
        """
        return ""


@dataclass(slots=True, kw_only=True, eq=False)
class SharedValue:
    """A value of many pieces: sent once, and again if it was lost with a scheduler."""

    packed: bytes
    task: Any = None
    workers: Workers = None


class DaskPool(CampaignExecutor):
    """The executor, which is its own pool; a context manager."""

    remote = True

    def __init__(
        self,
        name: str,
        connect: Callable[[], AbstractContextManager[Cluster]],
        *,
        wait: float,
        tell: Callable[[str], None],
        limits: Limits,
    ) -> None:
        self.name = name
        self._connect = connect
        self._wait = wait
        self._tell = tell
        self._limits = limits
        self._stack = ExitStack()
        self._cluster: Cluster | None = None
        self._failure: ExecutorError | None = None
        self._checks = WorkerChecks(name=name, tell=tell, patience=limits.worker_answer)
        self._submitted: dict[Future[Any], tuple[Any, list[Workers]]] = {}
        self._allowed: Workers = None
        self._threads = 0
        self._done = 0
        self._checked = 0.0
        self._without_worker = 0.0
        self._reported = False

    def __exit__(self, *_: object) -> None:
        # In a thread that is no daemon: a second interrupt leaves nothing behind.
        error = self._failure
        closing = threading.Thread(
            target=self._stack.__exit__,
            args=(type(error), error, error.__traceback__) if error else (None, None, None),
            daemon=False,
        )
        closing.start()
        closing.join()

    def executor(self, *, light: bool = False) -> "DaskPool":  # noqa: ARG002 - all goes to Dask
        """Return itself."""
        return self

    def share(self, value: Any) -> Any:
        """Return the value packed, to send it once for all pieces that have it."""
        return SharedValue(packed=pickle.dumps(value, protocol=5))

    def room(self) -> int:
        """Return how many pieces to submit at a time: a few more than workers have threads."""
        return self._threads + self._threads // 2 + 2

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Let some worker call a function; wait until there is one."""
        try:
            cluster = self._connected()
            while not (self._threads and cluster.client.status == "running"):
                self._watch(cluster)
                time.sleep(BEAT / 10)
        except ExecutorError as error:
            self._fail(error)
            raise
        workers = self._allowed
        try:
            task = cluster.client.submit(
                run_if_same,
                dict(environment()),
                partial(fn, **kwargs),
                *(self._argument(cluster.client, arg, workers) for arg in args),
                pure=False,
                workers=_sorted(workers),
            )
        except (OSError, RuntimeError) as error:
            raise LostPieceError(f"{self.name} takes no work: {error}") from error
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        shared = [arg.workers for arg in args if isinstance(arg, SharedValue)]
        self._submitted[future] = (task, [workers, *shared])
        task.add_done_callback(partial(self._deliver, future))
        return future

    def watch(self) -> None:
        """Check the scheduler and its workers; a failure ends all pieces."""
        try:
            self._watch(self._connected())
        except ExecutorError as error:
            self._fail(error)

    def _connected(self) -> Cluster:
        if self._failure is not None:
            raise self._failure
        if self._cluster is None:
            self._cluster = self._stack.enter_context(self._connect())
            self._stack.callback(self._checks.close)
        return self._cluster

    def _watch(self, cluster: Cluster) -> None:
        status, now = cluster.client.status, time.monotonic()
        if status in ("closed", "closing"):
            raise ExecutorError(f"{self.name} went away")
        if status != "running" or now - self._checked < (CHECK if self._threads else BEAT):
            return
        workers = self._check(cluster)
        self._checked = time.monotonic()
        reason = cluster.look_after_workers(len(workers), self._done)
        if self._threads or self._checks.undecided or not self._without_worker:
            self._without_worker, self._reported = now, False
        else:
            self._await_worker(now - self._without_worker, reason)

    def _check(self, cluster: Cluster) -> dict[str, int]:
        """Check that the scheduler answers, which workers it has, and that they fit."""
        client, limit = cluster.client, self._limits.answer
        try:
            workers: dict[str, int] = client.sync(client.scheduler.ncores, callback_timeout=limit)
        except TimeoutError as error:
            raise ExecutorError(
                f"{self.name} has not answered for {limit:g} s; check what it does"
            ) from error
        except OSError:
            return {}  # The client notices, and tries to connect again for a while.
        self._checks.update(client, workers)
        # All have time to answer before the first piece: one that differs ends the run at once.
        if self._threads or not self._checks.undecided:
            self._threads = sum(workers[worker] for worker in self._checks.fit)
        self._allowed = None if workers.keys() <= self._checks.fit else frozenset(self._checks.fit)
        for future, (task, allowed) in list(self._submitted.items()):
            if task.status == "pending" and any(map(self._left, allowed)):
                self._lose(future)
        return workers

    def _await_worker(self, seconds: float, reason: str) -> None:
        silent = (f"worker {worker} does not answer" for worker in sorted(self._checks.silent))
        reason = ", ".join(filter(None, (reason, *silent)))
        if seconds > self._wait:
            raise ExecutorError(
                f"{self.name} has had no worker for {self._wait:g} s{reason and f' ({reason})'}; "
                "start some, or let it wait longer (campaign.wait)"
            )
        if seconds > self._limits.quiet and not self._reported:
            self._reported = True
            self._tell(f"waiting for a worker of {self.name}{reason and f': {reason}'}")

    def _left(self, workers: Workers) -> bool:
        return workers is not None and not workers & self._checks.fit

    def _argument(self, client: Any, value: Any, workers: Workers) -> Any:
        """Return what Dask gets as an argument: the value, or the task of a shared one."""
        if not isinstance(value, SharedValue):
            return value
        lost = value.task is None or value.task.status in ("cancelled", "lost", "error")
        if lost or self._left(value.workers):
            # A task, not scattered data: if its worker dies, the scheduler runs it again.
            import dask  # noqa: PLC0415

            value.workers = workers
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                value.task = client.submit(
                    pickle.loads, value.packed, pure=False, workers=_sorted(workers)
                )
        return value.task

    def _deliver(self, future: "Future[Any]", task: Any) -> None:
        """Pass on what became of a task, in Dask's thread."""
        limit = self._limits.answer
        try:
            if task.status == "error":
                self._settle(future, error=_translate(task.exception(timeout=limit)))
            else:
                self._settle(future, result=task.result(timeout=limit))
        except (CancelledError, TimeoutError, OSError):
            self._lose(future)  # With the scheduler, or with the worker that has the result.

    def _lose(self, future: "Future[Any]") -> None:
        lost = LostPieceError(f"{self.name} loses a piece of work again and again")
        self._settle(future, error=lost)

    def _fail(self, error: ExecutorError) -> None:
        self._failure = error
        for future in list(self._submitted):
            self._settle(future, error=error)

    def _settle(
        self, future: "Future[Any]", *, result: Any = None, error: BaseException | None = None
    ) -> None:
        """End a piece, unless it has ended; its task is no longer needed."""
        task, _ = self._submitted.pop(future, (None, None))
        if task is None:
            return
        task.release()
        if error is not None:
            future.set_exception(error)
        else:
            self._done += 1
            future.set_result(result)


def _translate(error: BaseException) -> BaseException:
    """Return a worker's error as this process should report it."""
    from distributed import KilledWorker  # noqa: PLC0415

    if isinstance(error, KilledWorker):
        return WorkerDiedError(
            f"{error.allowed_failures + 1} workers died of one piece of work, the last one "
            f"{error.last_worker.address}, perhaps for want of memory"
        )
    return error


def _sorted(workers: Workers) -> list[str] | None:
    return None if workers is None else sorted(workers)


def scheduler_pool(
    where: str, *, wait: float, tell: Callable[[str], None], limits: Limits
) -> DaskPool:
    """Return the workers behind a scheduler's address or scheduler file, which stays as it is."""
    address = where if "://" in where else _address(Path(where))
    name = f"the Dask scheduler at {address}"

    @contextmanager
    def connect() -> Iterator[Cluster]:
        with connected(address, name, limits) as client:
            yield Cluster(client=client)

    return DaskPool(name, connect, wait=wait, tell=tell, limits=limits)


def _address(file: Path) -> str:
    try:
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is not a Dask scheduler file: {error!r}") from error
    return str(address)


@contextmanager
def connected(address: Any, name: str, limits: Limits) -> Iterator[Any]:
    """Connect to the scheduler at an address, or to a cluster."""
    import distributed  # noqa: PLC0415
    from distributed.versions import VersionMismatchWarning  # noqa: PLC0415

    new_client: Any = distributed.Client
    silence_dask()
    with warnings.catch_warnings():
        # worker_check compares the versions that matter.
        warnings.simplefilter("ignore", VersionMismatchWarning)
        try:
            client = new_client(address, timeout=limits.connect, set_as_default=False)
        except (OSError, TimeoutError, RuntimeError) as error:
            raise ExecutorError(
                f"{name} did not answer within {limits.connect:g} s; check that it runs and that "
                "this host reaches it"
            ) from error
        except (ValueError, TypeError) as error:
            raise InputError(f"{name}: {error}") from error
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=limits.close)


def silence_dask() -> None:
    """Keep Dask's log off the terminal: an error is reported once, in one line."""
    for name in ("distributed", "tornado.application", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
