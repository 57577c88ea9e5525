"""This machine's cores: processes, or threads where the work releases Python's lock."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from penstock.campaign.executors.pool import CampaignExecutor
from penstock.config.campaign import LOCAL
from penstock.errors import InputError

RENEWALS = 2
"""How often the pool starts its processes again after one died."""


class LocalPool(CampaignExecutor):
    """Processes and threads of this machine, one per core, started when there is work.

    The pool itself is the executor of its processes.
    """

    name = LOCAL
    remote = False

    def __init__(
        self, cores: int | None = None, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._cores = cores or available_cores()
        self._tell = tell
        self._renewals = 0
        self._stack = ExitStack()
        self._processes: Executor | None = None
        self._threads: Executor | None = None

    def __exit__(self, *error: Any) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=error[0] is None, cancel_futures=True)
        self._stack.__exit__(*error)

    def executor(self, *, light: bool = False) -> Executor:
        """Return processes, or threads for light work."""
        if light:
            self._threads = self._threads or ThreadPoolExecutor(self._cores)
            return self._threads
        return self

    def share(self, value: Any) -> Any:
        """Return the value: sharing gains nothing here."""
        return value

    def room(self) -> int:
        """Return the number of cores."""
        return self._cores

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Let some process call a function."""
        if self._processes is None:
            self._processes = self._stack.enter_context(local_workers(self._cores))
        # Workers start with the first submissions; one that starts while interrupts are blocked
        # never gets the terminal's Ctrl-C, not even before it runs Penstock's code.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self._processes.submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def renew(self) -> bool:
        """Start half as many processes, since most die for want of memory; False: no more."""
        if self._renewals == RENEWALS:
            return False
        self._renewals += 1
        self._cores = max(1, self._cores // 2)
        self._tell(f"a worker process died; its cells are run again, {self._cores} at a time")
        self._stack.close()
        self._processes = None
        return True


@contextmanager
def local_workers(cores: int | None = None) -> Iterator[Executor]:
    """Return an executor of `cores` processes, which all end with the block, however it ends."""
    context = multiprocessing.get_context("spawn")
    # Start it here: on its start it unblocks interrupts that a caller has blocked.
    resource_tracker.ensure_running()
    reader, writer = context.Pipe(duplex=False)
    count = cores or available_cores()
    try:
        workers = ProcessPoolExecutor(
            count, mp_context=context, initializer=_follow_parent, initargs=(reader,)
        )
    except OSError as error:  # a semaphore, which names no file
        reader.close()
        writer.close()
        raise InputError(
            f"worker processes need semaphores in /dev/shm: {error.strerror}; make it writable "
            "(mode 1777)"
        ) from error
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
