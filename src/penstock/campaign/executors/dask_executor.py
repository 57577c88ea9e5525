"""Workers behind a Dask scheduler, as an executor.

One thread talks to Dask: it connects when there is work, looks after the workers, hands out as many
pieces as they can take, and collects. What is not handed out yet can be cancelled; what is counts
as running. A scheduler that does not answer, workers that are not there and those that differ end
the work with an ExecutorError, in bounded time.
"""

import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.campaign.executors import worker_check
from penstock.campaign.executors.checks import Checks
from penstock.campaign.executors.executor import ExecutorError, WorkerDiedError

BEAT = 0.5
LOOK = 2.0
"""Seconds between two looks at the scheduler and its workers."""
ANSWER = 20.0
"""Seconds that a scheduler has for an answer."""
TRIES = 4
"""How often a piece of work is handed out at most, where Dask itself does not count."""
SILENT = 5.0
"""Seconds without a worker after which that is told."""
CLOSE = 10.0


class Cluster(Protocol):
    """A connection to a scheduler, and what is known of who starts its workers."""

    @property
    def client(self) -> Any:
        """Dask's client."""
        ...

    def look(self, workers: int, done: int) -> str:
        """Look after who starts workers, given how many there are and how much they have done.

        Return what is waited for, in words; ExecutorError: there will be none.
        """
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class Shared:
    """A value that many pieces have: sent once, and again if it got lost with a scheduler."""

    packed: bytes
    there: Any = None
    only: frozenset[str] | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class _Piece:
    future: "Future[Any]"
    work: Callable[..., Any]
    args: tuple[Any, ...]
    there: Any = None
    tries: int = field(default=0)
    only: frozenset[str] | None = None
    """The workers that it was handed to; None: any."""

    def needs(self) -> Iterator[frozenset[str] | None]:
        """Yield who it, and what it shares with others, was handed to."""
        yield self.only
        yield from (arg.only for arg in self.args if isinstance(arg, Shared))


class Away(Executor):
    """The executor, and the place it is at; a context manager."""

    away = True

    def __init__(
        self,
        name: str,
        connect: Callable[[], AbstractContextManager[Cluster]],
        *,
        wait: float,
        tell: Callable[[str], None],
    ) -> None:
        self.name = name
        self._connect = connect
        self._wait = wait
        self._tell = tell
        self._queue: deque[_Piece] = deque()
        self._sent: dict[Any, _Piece] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._ending = False
        self._dropped = False  # Whether nobody wants what is still being worked at.
        self._failure: BaseException | None = None
        self._threads = 0
        self._done = 0
        self._checks = Checks(name=name, tell=tell)
        self._only: frozenset[str] | None = None

    def __exit__(self, *_: object) -> None:
        self.shutdown(cancel_futures=True)

    def executor(self, *, light: bool = False) -> Executor:  # noqa: ARG002 - all go to Dask
        """Return itself."""
        return self

    def share(self, value: Any) -> Any:
        """Return the value packed, to be sent once for all pieces that have it."""
        return Shared(packed=pickle.dumps(value, protocol=5))

    def room(self) -> int:
        """Return how many pieces are handed out at a time: a few more than workers have threads."""
        return self._threads + self._threads // 2 + 2

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Have a function called by some worker."""
        if kwargs:
            raise TypeError("work has no keyword arguments here; bind them with functools.partial")
        piece = _Piece(future=Future(), work=fn, args=args)
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._ending:
                raise RuntimeError("no work is taken after the end")
            self._queue.append(piece)
            if self._thread is None:
                # Not a daemon: whatever ends the program, what was started is ended first.
                self._thread = threading.Thread(target=self._serve, name="campaign", daemon=False)
                self._thread.start()
        self._wake.set()
        return piece.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; end what was started for it once all is done, or at once."""
        with self._lock:
            self._ending = True
            thread = self._thread
            if cancel_futures:
                for piece in self._queue:
                    piece.future.cancel()
                self._queue.clear()
                self._dropped = True
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
                    self._forget(cluster.client)
        except BaseException as error:
            self._fail(error)

    def _work(self, cluster: Cluster) -> None:
        looked, alone_since, told = 0.0, time.monotonic(), False
        while not self._over():
            now = time.monotonic()
            if cluster.client.status in ("closed", "closing"):
                raise ExecutorError(f"{self.name} went away")
            if cluster.client.status == "running":
                if now - looked > (LOOK if self._threads else BEAT):
                    self._look(cluster)
                    looked = now
                self._collect()
                if self._threads:
                    alone_since, told = now, False
                    self._send(cluster)
                elif self._checks.undecided:
                    alone_since = now
                else:
                    told = self._alone(cluster, now - alone_since, told=told)
            self._wake.wait(BEAT)
            self._wake.clear()

    def _over(self) -> bool:
        with self._lock:
            return self._ending and (self._dropped or not (self._queue or self._sent))

    def _alone(self, cluster: Cluster, seconds: float, *, told: bool) -> bool:
        silent = (f"worker {worker} does not answer" for worker in sorted(self._checks.silent))
        reason = ", ".join(filter(None, (cluster.look(0, self._done), *silent)))
        if seconds > self._wait:
            raise ExecutorError(
                f"{self.name} has had no worker for {self._wait:g} s{reason and f' ({reason})'}; "
                "start some, or let it wait longer (campaign.wait)"
            )
        if seconds > SILENT and not told:
            self._tell(f"waiting for a worker of {self.name}{reason and f': {reason}'}")
            return True
        return told

    def _look(self, cluster: Cluster) -> None:
        """See that the scheduler answers, who its workers are, and that they fit."""
        client = cluster.client
        try:
            workers: dict[str, int] = client.sync(client.scheduler.ncores, callback_timeout=ANSWER)
        except TimeoutError as error:
            raise ExecutorError(
                f"{self.name} has not answered for {ANSWER:g} s; see what it does"
            ) from error
        except OSError:
            return  # The client notices itself, and tries again for a while.
        self._checks.look(client, workers)
        fit = self._checks.fit
        # Before the first piece all have their time to answer: who differs is told at once.
        if self._threads or not self._checks.undecided:
            self._threads = sum(threads for worker, threads in workers.items() if worker in fit)
        self._only = None if workers.keys() <= fit else frozenset(fit)
        self._recall(client)
        if workers:
            cluster.look(len(workers), self._done)

    def _recall(self, client: Any) -> None:
        """Take back pieces that were handed to workers all of whom are gone."""
        stranded = [
            piece.there
            for piece in self._sent.values()
            if piece.there.status == "pending" and any(map(self._lost, piece.needs()))
        ]
        if stranded:
            client.sync(client._cancel, stranded, force=True, callback_timeout=ANSWER)

    def _lost(self, only: frozenset[str] | None) -> bool:
        return only is not None and not only & self._checks.fit

    def _there(self, client: Any, value: Any) -> Any:
        """Return what stands for a value with the scheduler."""
        if not isinstance(value, Shared):
            return value
        gone = value.there is None or value.there.status in ("cancelled", "lost", "error")
        if gone or self._lost(value.only):
            # A task, not data scattered: if its worker dies, the scheduler has it done again.
            import dask  # noqa: PLC0415

            value.only = self._only
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                value.there = client.submit(
                    pickle.loads, value.packed, pure=False, workers=_list(value.only)
                )
        return value.there

    def _send(self, cluster: Cluster) -> None:
        while len(self._sent) < self.room():
            with self._lock:
                if not self._queue:
                    return
                piece = self._queue.popleft()
            if piece.tries == 0 and not piece.future.set_running_or_notify_cancel():
                continue
            piece.tries += 1
            try:
                piece.only = self._only
                args = [self._there(cluster.client, arg) for arg in piece.args]
                piece.there = cluster.client.submit(
                    worker_check.where_fit,
                    dict(worker_check.fitness()),
                    piece.work,
                    *args,
                    pure=False,
                    key=f"penstock-{id(piece):x}-{time.time_ns():x}",
                    workers=_list(piece.only),
                )
            except (OSError, RuntimeError) as error:
                with self._lock:
                    self._queue.appendleft(piece)
                if cluster.client.status == "running":
                    raise ExecutorError(f"{self.name} takes no work: {error}") from error
                return
            except Exception as error:
                # Work that cannot be packed.
                piece.future.set_exception(error)
                continue
            self._sent[piece.there.key] = piece
            piece.there.add_done_callback(lambda _: self._wake.set())

    def _collect(self) -> None:
        for key, piece in list(self._sent.items()):
            status = piece.there.status
            if self._dropped:
                return
            if status == "pending":
                continue
            try:
                if status == "finished":
                    piece.future.set_result(piece.there.result(timeout=ANSWER))
                elif status == "error":
                    piece.future.set_exception(_told(piece.there.exception(timeout=ANSWER)))
                else:
                    raise CancelledError
            except TimeoutError:
                continue  # Its worker has died since: it is worked out again.
            except (CancelledError, OSError):
                del self._sent[key]
                if piece.tries >= TRIES:
                    raise ExecutorError(f"{self.name} lost a piece of work {TRIES} times") from None
                with self._lock:
                    self._queue.appendleft(piece)
                continue
            piece.there.release()
            del self._sent[key]
            self._done += 1

    def _forget(self, client: Any) -> None:
        """Take back what nobody waits for any more: the scheduler may be somebody else's."""
        left = [piece.there for piece in self._sent.values()]
        if left and client.status == "running":
            with suppress(Exception):
                client.sync(client._cancel, left, force=True, callback_timeout=CLOSE)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._failure = error
            left = [*self._queue, *self._sent.values()]
            self._queue.clear()
            self._sent.clear()
        for piece in left:
            if piece.tries or piece.future.set_running_or_notify_cancel():
                piece.future.set_exception(error)


def _told(error: BaseException | None) -> BaseException:
    """Return a worker's error as this process should tell it."""
    from distributed import KilledWorker  # noqa: PLC0415

    if isinstance(error, KilledWorker):
        return WorkerDiedError(
            f"{error.allowed_failures + 1} workers died of one piece of work, the last one "
            f"{error.last_worker.address}, perhaps for want of memory"
        )
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("penstock"):
        return worker_check.UnfitWorkerError(f"a worker has no {error.name}; {worker_check.ADVICE}")
    return error if error is not None else ExecutorError("a worker failed without an error")


def _list(workers: frozenset[str] | None) -> list[str] | None:
    return None if workers is None else sorted(workers)
