"""A real Dask cluster on this host: a scheduler and workers, each a process, on loopback."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

TESTS = Path(__file__).parents[1]
READY_WITHIN, POLL = 60.0, 0.05
LOOPBACK = ("--host", "127.0.0.1", "--no-dashboard")


class DaskCluster:
    """Runs from entry to exit of its context; `settings` are Dask's, of all its processes."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self._environment = {"PYTHONPATH": str(TESTS)} | {
            f"DASK_DISTRIBUTED__{key.upper()}": str(value) for key, value in settings.items()
        }
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "DaskCluster":
        options = ("--port", "0", "--scheduler-file", str(self.file))
        self.scheduler = self._start("scheduler", *LOOPBACK, *options)
        try:
            wait(lambda: self._address() != "", "scheduler", self.logs)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def address(self) -> str:
        """The scheduler's."""
        return self._address()

    def worker(
        self,
        *options: str,
        threads: int = 1,
        nanny: bool = False,
        python: tuple[str, ...] = (sys.executable,),
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a worker; it joins by and by."""
        words = (self.address, *LOOPBACK, "--nthreads", str(threads), *options)
        kind = "--nanny" if nanny else "--no-nanny"
        # Those of one folder would ask each other's leave.
        own = ("--local-directory", str(self.folder / f"worker-{len(self.workers)}"))
        started = self._start(
            "worker", *words, kind, *own, python=python, environment=environment or {}
        )
        self.workers.append(started)
        return started

    def restart_scheduler(self) -> None:
        """Kill the scheduler and start another at its address; workers end with the first."""
        assert self.scheduler is not None
        port = self.address.rpartition(":")[2]
        self.scheduler.kill()
        self.scheduler.wait()
        self.scheduler = self._start("scheduler", *LOOPBACK, "--port", port)

    def logs(self) -> str:
        """Return the ends of all logs."""
        lines = []
        for path in sorted(self.folder.glob("*.log")):
            lines += [f"--- {path.name}", *path.read_text(errors="replace").splitlines()[-15:]]
        return "\n".join(lines)

    def _address(self) -> str:
        with suppress(OSError, ValueError):
            return str(json.loads(self.file.read_text())["address"])
        return ""

    def _start(
        self,
        role: str,
        *words: str,
        python: tuple[str, ...] = (sys.executable,),
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        log = self.folder / f"{role}-{len(self.workers)}.log"
        with log.open("ab") as out:
            return subprocess.Popen(
                [*python, "-m", f"distributed.cli.dask_{role}", *words],
                env=os.environ | self._environment | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.folder,
                start_new_session=True,
            )

    def _end(self) -> None:
        for process in (*self.workers, *([self.scheduler] if self.scheduler else [])):
            # A nanny's worker, too; they have nothing to lose.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait(
    condition: Callable[[], bool],
    what: str,
    logs: Callable[[], str] = lambda: "",
    within: float = READY_WITHIN,
) -> None:
    """Ask until it is so; AssertionError with the logs when it takes too long."""
    until = time.monotonic() + within
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"no {what} within {within:g} s\n{logs()}")
        time.sleep(POLL)
