"""A deployment with turns, brought up by the command line, and jobs that do as they are told."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

from limits import HANG

from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.state_directory import StateDirectory, lock_holder

PENSTOCK = (sys.executable, "-m", "penstock.cli")
OBEDIENT = Path(__file__).parents[1] / "programs" / "obedient.py"
WAIT = HANG
MAX_WAIT = 3 * HANG
"""Seconds that a job waits for its turn if nothing ends its wait: more than any test does."""
LEASE = 2.0


class ScriptedJob:
    """A job that does what it is told; `run` is its 'penstock run', `pid` its command."""

    def __init__(self, run: "subprocess.Popen[str]", name: str) -> None:
        self.run = run
        self.name = name
        self._answers = cast(IO[str], run.stdout)
        self.pid = int(self.answer())

    def tell(self, line: str) -> None:
        given = cast(IO[str], self.run.stdin)
        given.write(f"{line}\n")
        given.flush()

    def answer(self, seconds: float = WAIT) -> str:
        """Return what it says next, within so long."""
        assert select.select([self._answers], [], [], seconds)[0], f"{self.name} says nothing"
        return self._answers.readline().strip()

    def is_silent(self) -> bool:
        return not select.select([self._answers], [], [], 0)[0]

    def do(self, line: str, seconds: float = WAIT) -> None:
        self.tell(line)
        assert self.answer(seconds) == line.split(maxsplit=1)[0]

    def finish(self) -> dict[str, Any]:
        """Let it end, well; return what `penstock run --json` said of it."""
        cast(IO[str], self.run.stdin).close()
        assert self.run.wait(WAIT) == 0
        ended: dict[str, Any] = json.loads(cast(IO[str], self.run.stderr).read().splitlines()[-1])
        return ended


class Deployed:
    """A deployment in `folder`, over `folder`/data."""

    def __init__(self, folder: Path) -> None:
        self.state = StateDirectory(folder / "state")
        self.root = folder / "data"
        self.root.mkdir(exist_ok=True)
        self.jobs = ExitStack()

    def up(self, *options: str, mode: str = "enforce") -> None:
        limits = ("--set", f"live.lease={LEASE} s", "--set", f"live.max-wait={MAX_WAIT} s")
        given = ("--mode", mode, *limits, *options)
        self.penstock(
            *("up", "--root", str(self.root), "--io-nodes", "1", "--policy", "exclusive-fcfs"),
            *("--emulate", "targets=1,rate=40MiB/s", *given),
        )

    def penstock(self, verb: str, *args: str) -> str:
        command = [*PENSTOCK, *verb.split(), "--state", str(self.state.folder), *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, name: str, *command: str, options: Sequence[str] = ()) -> "subprocess.Popen[str]":
        words = [*PENSTOCK, "run", "--state", str(self.state.folder), "--name", name, "--json"]
        words += options
        run = subprocess.Popen(
            [*words, "--", *command],
            text=True,
            cwd=self.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.jobs.callback(_ended, run)
        return run

    def obedient(self, name: str, *options: str) -> ScriptedJob:
        command = (sys.executable, str(OBEDIENT), f"{name}.out")
        job = ScriptedJob(self.run(name, *command, options=options), name)
        self.jobs.callback(_kill, job.pid)
        return job

    @property
    def controller(self) -> int:
        pid = lock_holder(self.state.lock)
        assert pid
        return pid

    def status(self) -> messages.Status:
        return launcher.ask(self.state, messages.GetStatus(), messages.Status)

    def job(self, name: str) -> JobRecord:
        """Return the latest job of this name."""
        return next(job for job in reversed(self.status().jobs) if job.name == name)

    def until(self, name: str, condition: Callable[[JobRecord], bool]) -> JobRecord:
        """Return the latest job of this name as soon as there is one that meets a condition."""
        deadline = time.monotonic() + WAIT
        while True:
            jobs = [job for job in self.status().jobs if job.name == name]
            if jobs and condition(jobs[-1]):
                return jobs[-1]
            assert time.monotonic() < deadline, jobs
            time.sleep(0.02)

    def held(self, holder: ScriptedJob, waiter: ScriptedJob) -> None:
        """Let one have the turn, and another wait for it."""
        holder.do("begin")
        waiter.tell("write 4")
        entry = self.until(waiter.name, lambda job: job.doing == "waiting")
        assert entry.behind == [self.job(holder.name).id]
        assert waiter.is_silent()


def _kill(pid: int) -> None:
    """End a command that its 'penstock run' may have left behind."""
    try:
        if b"obedient.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, 9)
    except (FileNotFoundError, ProcessLookupError):
        pass


def _ended(run: "subprocess.Popen[str]") -> None:
    run.kill()
    run.wait(WAIT)
    for pipe in (run.stdin, run.stdout, run.stderr):
        if pipe is not None:
            pipe.close()


@contextmanager
def deployed(folder: Path) -> Iterator[Deployed]:
    """Yield a deployment that is not up yet; what runs at the end is ended."""
    site = Deployed(folder)
    with site.jobs:
        yield site
    launcher.down(site.state)
