"""Workers behind a Dask scheduler, as an executor.

One thread talks to Dask: it connects when there is work, checks the workers, submits as many pieces
as they can take, and collects the results. A piece that is not yet submitted can be cancelled; one
that is counts as running. A scheduler that does not answer, missing workers and workers that differ
end the work with an ExecutorError, in bounded time.
"""

import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.campaign.executors import worker_check
from penstock.campaign.executors.pool import ExecutorError, Limits, WorkerDiedError
from penstock.campaign.executors.worker_check import WorkerChecks

BEAT = 0.5
CHECK = 2.0
"""Seconds between two checks of the scheduler and its workers."""
TRIES = 4
"""How often a piece of work is submitted at most, where Dask itself does not count."""


class Cluster(Protocol):
    """A connection to a scheduler, and to the source of its workers."""

    @property
    def client(self) -> Any:
        """Dask's client."""
        ...

    def look_after_workers(self, workers: int, done: int) -> str:
        """Start workers again that ended, given how many there are and how much they have done.

        Return what the run waits for, in words; ExecutorError: there will be no worker.
        """
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class SharedValue:
    """A value of many pieces: sent once, and again if it was lost with a scheduler."""

    packed: bytes
    task: Any = None
    workers: frozenset[str] | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class _Piece:
    future: "Future[Any]"
    work: Callable[..., Any]
    args: tuple[Any, ...]
    task: Any = None
    tries: int = 0
    workers: frozenset[str] | None = None
    """The workers that may run it; None: any."""

    def all_workers(self) -> Iterator[frozenset[str] | None]:
        """Yield the workers of the piece and of each shared value that it needs."""
        yield self.workers
        yield from (arg.workers for arg in self.args if isinstance(arg, SharedValue))


class DaskPool(Executor):
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
        self._queue: deque[_Piece] = deque()
        self._submitted: dict[Any, _Piece] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._abandoned = False  # Nobody needs the pieces that still run.
        self._failure: BaseException | None = None
        self._threads = 0
        self._done = 0
        self._checks = WorkerChecks(name=name, tell=tell, patience=limits.worker_answer)
        self._workers: frozenset[str] | None = None

    def __exit__(self, *_: object) -> None:
        self.shutdown(cancel_futures=True)

    def executor(self, *, light: bool = False) -> Executor:  # noqa: ARG002 - all work goes to Dask
        """Return itself."""
        return self

    def share(self, value: Any) -> Any:
        """Return the value packed, to send it once for all pieces that have it."""
        return SharedValue(packed=pickle.dumps(value, protocol=5))

    def room(self) -> int:
        """Return how many pieces to submit at a time: a few more than workers have threads."""
        return self._threads + self._threads // 2 + 2

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Let some worker call a function."""
        if kwargs:
            raise TypeError("work has no keyword arguments here; bind them with functools.partial")
        piece = _Piece(future=Future(), work=fn, args=args)
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._closing:
                raise RuntimeError("the pool is closed")
            self._queue.append(piece)
            if self._thread is None:
                # Not a daemon: however the program ends, it first ends what it started.
                self._thread = threading.Thread(target=self._serve, name="campaign", daemon=False)
                self._thread.start()
        self._wake.set()
        return piece.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; end what was started for it when all is done, or at once."""
        with self._lock:
            self._closing = True
            thread = self._thread
            if cancel_futures:
                for piece in self._queue:
                    piece.future.cancel()
                self._queue.clear()
                self._abandoned = True
        self._wake.set()
        if wait and thread is not None:
            thread.join()

    def _serve(self) -> None:
        try:
            with self._connect() as cluster:
                try:
                    self._work(cluster)
                finally:
                    self._checks.close()
                    self._cancel_submitted(cluster.client)
        except BaseException as error:
            self._fail(error)

    def _work(self, cluster: Cluster) -> None:
        checked, without_worker, reported = 0.0, time.monotonic(), False
        while not self._finished():
            now = time.monotonic()
            if cluster.client.status in ("closed", "closing"):
                raise ExecutorError(f"{self.name} went away")
            if cluster.client.status == "running":
                if now - checked > (CHECK if self._threads else BEAT):
                    self._check(cluster)
                    checked = now
                self._collect()
                if self._threads:
                    without_worker, reported = now, False
                    self._submit_pieces(cluster)
                elif self._checks.undecided:
                    without_worker = now
                else:
                    waited = now - without_worker
                    reported = self._await_worker(cluster, waited, reported=reported)
            self._wake.wait(BEAT)
            self._wake.clear()

    def _finished(self) -> bool:
        with self._lock:
            return self._closing and (self._abandoned or not (self._queue or self._submitted))

    def _await_worker(self, cluster: Cluster, seconds: float, *, reported: bool) -> bool:
        silent = (f"worker {worker} does not answer" for worker in sorted(self._checks.silent))
        reason = ", ".join(filter(None, (cluster.look_after_workers(0, self._done), *silent)))
        if seconds > self._wait:
            raise ExecutorError(
                f"{self.name} has had no worker for {self._wait:g} s{reason and f' ({reason})'}; "
                "start some, or let it wait longer (campaign.wait)"
            )
        if seconds > self._limits.quiet and not reported:
            self._tell(f"waiting for a worker of {self.name}{reason and f': {reason}'}")
            return True
        return reported

    def _check(self, cluster: Cluster) -> None:
        """Check that the scheduler answers, which workers it has, and that they fit."""
        client, limit = cluster.client, self._limits.answer
        try:
            workers: dict[str, int] = client.sync(client.scheduler.ncores, callback_timeout=limit)
        except TimeoutError as error:
            raise ExecutorError(
                f"{self.name} has not answered for {limit:g} s; check what it does"
            ) from error
        except OSError:
            return  # The client notices, and tries to connect again for a while.
        self._checks.update(client, workers)
        fit = self._checks.fit
        # All have time to answer before the first piece: one that differs ends the run at once.
        if self._threads or not self._checks.undecided:
            self._threads = sum(threads for worker, threads in workers.items() if worker in fit)
        self._workers = None if workers.keys() <= fit else frozenset(fit)
        self._recall(client)
        if workers:
            cluster.look_after_workers(len(workers), self._done)

    def _recall(self, client: Any) -> None:
        """Cancel pieces whose workers have all left; they are submitted again."""
        stranded = [
            piece.task
            for piece in self._submitted.values()
            if piece.task.status == "pending" and any(map(self._left, piece.all_workers()))
        ]
        if stranded:
            client.sync(client._cancel, stranded, force=True, callback_timeout=self._limits.answer)

    def _left(self, workers: frozenset[str] | None) -> bool:
        return workers is not None and not workers & self._checks.fit

    def _argument(self, client: Any, value: Any) -> Any:
        """Return what Dask gets as an argument: the value, or the task of a shared one."""
        if not isinstance(value, SharedValue):
            return value
        lost = value.task is None or value.task.status in ("cancelled", "lost", "error")
        if lost or self._left(value.workers):
            # A task, not scattered data: if its worker dies, the scheduler runs it again.
            import dask  # noqa: PLC0415

            value.workers = self._workers
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                value.task = client.submit(
                    pickle.loads, value.packed, pure=False, workers=_sorted(value.workers)
                )
        return value.task

    def _submit_pieces(self, cluster: Cluster) -> None:
        while len(self._submitted) < self.room():
            with self._lock:
                if not self._queue:
                    return
                piece = self._queue.popleft()
            if piece.tries == 0 and not piece.future.set_running_or_notify_cancel():
                continue
            piece.tries += 1
            try:
                piece.workers = self._workers
                args = [self._argument(cluster.client, arg) for arg in piece.args]
                piece.task = cluster.client.submit(
                    worker_check.run_if_same,
                    dict(worker_check.environment()),
                    piece.work,
                    *args,
                    pure=False,
                    key=f"penstock-{id(piece):x}-{time.time_ns():x}",
                    workers=_sorted(piece.workers),
                )
            except (OSError, RuntimeError) as error:
                with self._lock:
                    self._queue.appendleft(piece)
                if cluster.client.status == "running":
                    raise ExecutorError(f"{self.name} takes no work: {error}") from error
                return
            except Exception as error:
                # Work that cannot be pickled.
                piece.future.set_exception(error)
                continue
            self._submitted[piece.task.key] = piece
            piece.task.add_done_callback(lambda _: self._wake.set())

    def _collect(self) -> None:
        limit = self._limits.answer
        for key, piece in list(self._submitted.items()):
            status = piece.task.status
            if self._abandoned:
                return
            if status == "pending":
                continue
            try:
                if status == "finished":
                    piece.future.set_result(piece.task.result(timeout=limit))
                elif status == "error":
                    piece.future.set_exception(_translate(piece.task.exception(timeout=limit)))
                else:
                    raise CancelledError
            except TimeoutError:
                continue  # Its worker has died since: Dask runs it again.
            except (CancelledError, OSError):
                del self._submitted[key]
                if piece.tries >= TRIES:
                    raise ExecutorError(f"{self.name} lost a piece of work {TRIES} times") from None
                with self._lock:
                    self._queue.appendleft(piece)
                continue
            piece.task.release()
            del self._submitted[key]
            self._done += 1

    def _cancel_submitted(self, client: Any) -> None:
        """Cancel what nobody waits for any more: the scheduler may be somebody else's."""
        tasks = [piece.task for piece in self._submitted.values()]
        if tasks and client.status == "running":
            with suppress(Exception):
                client.sync(client._cancel, tasks, force=True, callback_timeout=self._limits.close)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._failure = error
            pieces = [*self._queue, *self._submitted.values()]
            self._queue.clear()
            self._submitted.clear()
        for piece in pieces:
            if piece.tries or piece.future.set_running_or_notify_cancel():
                piece.future.set_exception(error)


def _translate(error: BaseException | None) -> BaseException:
    """Return a worker's error as this process should report it."""
    from distributed import KilledWorker  # noqa: PLC0415

    if isinstance(error, KilledWorker):
        return WorkerDiedError(
            f"{error.allowed_failures + 1} workers died of one piece of work, the last one "
            f"{error.last_worker.address}, perhaps for want of memory"
        )
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("penstock"):
        return worker_check.UnfitWorkerError(f"a worker has no {error.name}; {worker_check.ADVICE}")
    return error if error is not None else ExecutorError("a worker failed without an error")


def _sorted(workers: frozenset[str] | None) -> list[str] | None:
    return None if workers is None else sorted(workers)
