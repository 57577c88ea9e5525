"""This machine's cores: processes, or threads where the work releases Python's lock."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from penstock.config.campaign import LOCAL

RENEWALS = 2
"""How often the pool starts its processes again after one died."""


class Processes(Executor):
    """Processes of this machine, which can be started again when one has died."""

    def __init__(self, cores: int, tell: Callable[[str], None]) -> None:
        self._cores = cores
        self._tell = tell
        self._renewals = 0
        self._stack = ExitStack()
        self._pool = self._stack.enter_context(local_workers(cores))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Let some process call a function."""
        return self._pool.submit(fn, *args, **kwargs)

    def renew(self) -> bool:
        """Start half as many processes, since most die for want of memory; False: no more."""
        if self._renewals == RENEWALS:
            return False
        self._renewals += 1
        self._cores = max(1, self._cores // 2)
        self._tell(f"a worker process died; its cells are run again, {self._cores} at a time")
        self._stack.close()
        self._pool = self._stack.enter_context(local_workers(self._cores))
        return True


class LocalPool(AbstractContextManager["LocalPool"]):
    """Processes and threads of this machine, one per core, started when there is work."""

    name = LOCAL
    remote = False

    def __init__(
        self, cores: int | None = None, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._cores = cores or available_cores()
        self._tell = tell
        self._stack = ExitStack()
        self._processes: Executor | None = None
        self._threads: Executor | None = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=kind is None, cancel_futures=True)
        self._stack.__exit__(kind, error, trace)

    def executor(self, *, light: bool = False) -> Executor:
        """Return processes, or threads for light work."""
        if light:
            self._threads = self._threads or ThreadPoolExecutor(self._cores)
            return self._threads
        if self._processes is None:
            self._processes = self._stack.enter_context(Processes(self._cores, self._tell))
        return self._processes

    def share(self, value: Any) -> Any:
        """Return the value: sharing gains nothing here."""
        return value

    def room(self) -> int:
        """Return the number of cores."""
        return self._cores


@contextmanager
def local_workers(cores: int | None = None) -> Iterator[Executor]:
    """Return an executor of `cores` processes, which all end with the block, however it ends."""
    context = multiprocessing.get_context("spawn")
    # Start it here: on its start it unblocks interrupts that a caller has blocked.
    resource_tracker.ensure_running()
    reader, writer = context.Pipe(duplex=False)
    count = cores or available_cores()
    workers = ProcessPoolExecutor(
        count, mp_context=context, initializer=_follow_parent, initargs=(reader,)
    )
    try:
        yield workers
        workers.shutdown()
    finally:
        writer.close()
        workers.shutdown(cancel_futures=True)
        reader.close()


def available_cores() -> int:
    """Return how many cores this process may use (a batch system may restrict them)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _follow_parent(pipe: Connection) -> None:
    """End this worker when its parent closes the other end of the pipe or ends, and not before."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        try:
            pipe.poll(None)
        finally:
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
