"""Controller, agents, I/O nodes and jobs die and stall, in any order and together, under load.

Jobs of a deployment that enforces turns overwrite their own blocks, checksummed. Whatever is killed
is started again, as a service manager would. Nothing acknowledged may be lost, nothing old may come
back, every job must end, and no call may take longer than the lease and two seconds, unless
something was stopped (not killed) meanwhile: a stopped I/O node holds its requests, as a hung file
system does. PENSTOCK_SOAK=MINUTES makes it longer; PENSTOCK_CHAOS_SEED repeats a run's choices.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from chaos.test_chaos import BLOCKS, RANKS, compare
from chaos.writer import ENTRY
from limits import HANG, within

from penstock.live.protocol.state_directory import StateDirectory, lock_holder

PENSTOCK = [sys.executable, "-m", "penstock.cli"]
SECONDS = 60 * float(os.environ.get("PENSTOCK_SOAK", "0")) or 27.0
LEASE, LONGEST_WAIT = 1.0, 1.0
ALLOWED = within(LEASE + 2.0)
CAUSES = ("failed_open", "gave_up", "lapses", "overdue")


class Job:
    """`penstock run` and the writer below it."""

    def __init__(self, site: "Site", rank: int) -> None:
        script = str(Path(__file__).with_name("writer.py"))
        numbers = map(str, (rank, RANKS, BLOCKS, site.rng.randrange(1 << 30)))
        run = ["run", "--state", str(site.state.folder), "--name", f"rank{rank}", "--"]
        writer = [sys.executable, script, "data", "../ledger", *numbers, "../stalls"]
        self.agent = subprocess.Popen(
            [*PENSTOCK, *run, *writer],
            cwd=site.folder / "managed",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.agent.stdout is not None
        words = self.agent.stdout.readline().split()
        assert words[:1] == ["writes"], self.agent.communicate(timeout=HANG)
        self.writer = int(words[1])

    def finish(self, *statuses: int) -> None:
        """Let it end: its input does; both of its processes are gone when its output is."""
        _, complaints = self.agent.communicate(timeout=HANG)
        assert self.agent.returncode in (0, *statuses), complaints


class Site:
    """A deployment whose parts can be hurt."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.state = StateDirectory(folder / "s")
        self.injected: Counter[str] = Counter()
        self.stopped: list[tuple[float, float]] = []
        self.causes: Counter[str] = Counter()
        self.jobs: list[Job] = []
        self.up()

    def up(self) -> None:
        command = ["up", "--root", self.folder / "managed", "--io-nodes", "2"]
        command += ["--state", self.state.folder, "--mode", "enforce", "--policy", "exclusive-fcfs"]
        command += ["--set", f"live.lease={LEASE}", "--set", f"live.max-wait={LONGEST_WAIT}"]
        done = subprocess.run(
            [*PENSTOCK, *map(str, command)],
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def status(self) -> dict[str, object]:
        done = subprocess.run(
            [*PENSTOCK, "status", "--state", str(self.state.folder), "--json"],
            capture_output=True,
            text=True,
            timeout=HANG,
            check=True,
        )
        status: dict[str, object] = json.loads(done.stdout)
        return status

    def final_status(self) -> dict[str, object]:
        """Return the status once the controller has read how all jobs ended."""
        deadline = time.monotonic() + HANG
        while list(self.state.exit_spool.glob("*.json")):
            assert time.monotonic() < deadline, "the exit spool is not read"
            time.sleep(0.1)
        return self.status()

    def io_nodes(self) -> list[int]:
        return [pid for k in range(2) if (pid := lock_holder(self.state.node_lock(k)))]

    def hurt(self) -> None:
        """Hurt one to three parts, at once."""
        ways = [
            self.kill_controller,
            self.kill_io_node,
            self.kill_agent,
            self.kill_writer,
            self.stop_something,
        ]
        repairs = [way() for way in self.rng.sample(ways, self.rng.choice((1, 1, 1, 2, 3)))]
        time.sleep(self.rng.uniform(0, 0.5))
        # Who is stopped goes on first: the end of its job is waited for by another.
        for repair in sorted(repairs, key=lambda repair: repair.__name__ != "go_on"):
            repair()

    def kill_controller(self) -> Callable[[], None]:
        pid = lock_holder(self.state.lock)
        if pid:
            os.kill(pid, signal.SIGKILL)
            self.injected["controllers killed"] += 1
        return lambda: None if self.state.is_up() else self.up()

    def kill_io_node(self) -> Callable[[], None]:
        """The controller starts it again."""
        for pid in self.io_nodes()[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.injected["I/O nodes killed"] += 1
        return lambda: None

    def kill_agent(self) -> Callable[[], None]:
        """Its command goes on without it, until its input ends."""
        rank = self.rng.randrange(RANKS)
        job = self.jobs[rank]
        job.agent.send_signal(signal.SIGKILL)
        self.injected["agents killed"] += 1
        return lambda: self.replace(rank, -signal.SIGKILL)

    def kill_writer(self) -> Callable[[], None]:
        rank = self.rng.randrange(RANKS)
        with suppress(ProcessLookupError):
            os.kill(self.jobs[rank].writer, signal.SIGKILL)
        self.injected["writers killed"] += 1
        return lambda: self.replace(rank, 128 + signal.SIGKILL, -signal.SIGKILL)

    def replace(self, rank: int, *statuses: int) -> None:
        self.jobs[rank].finish(*statuses, 128 + signal.SIGKILL, -signal.SIGKILL)
        self.jobs[rank] = Job(self, rank)

    def stop_something(self) -> Callable[[], None]:
        """Stop a process for longer than a lease, or shorter."""
        controller = [pid] if (pid := lock_holder(self.state.lock)) else []
        agents = [job.agent.pid for job in self.jobs if job.agent.poll() is None]
        pid = self.rng.choice([*controller * 2, *self.io_nodes(), *agents])
        began = time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        self.injected["processes stopped"] += 1
        seconds = self.rng.uniform(0.2, 2.5)

        def go_on() -> None:
            time.sleep(max(began + seconds - time.monotonic(), 0.0))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            self.stopped.append((began, time.monotonic()))

        return go_on

    def kill_all(self) -> None:
        """Everything but the jobs, in one instant."""
        self.kill_controller()
        for pid in self.io_nodes():
            os.kill(pid, signal.SIGKILL)
        self.up()

    def down(self) -> None:
        subprocess.run(
            [*PENSTOCK, "down", "--state", str(self.state.folder)], timeout=HANG, check=False
        )


def stalls(folder: Path, stopped: list[tuple[float, float]]) -> list[tuple[int, float, float]]:
    """Return the calls that took long while nothing was stopped: rank, beginning, seconds."""
    calls = []
    for line in (folder / "stalls").read_text().splitlines():
        rank, began, seconds = int(line.split()[0]), *map(float, line.split()[1:])
        # What was stopped may take as long as an I/O node's patience to be avoided.
        if not any(began < end + 2.0 and first < began + seconds for first, end in stopped):
            calls.append((rank, began, seconds))
    return calls


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.timeout(SECONDS + 1200)
def test_nothing_is_lost_and_nobody_hangs_whatever_dies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("PENSTOCK_CHAOS_SEED", time.time_ns() % 10**9))
    (tmp_path / "managed").mkdir()
    (tmp_path / "managed" / "data").touch()
    (tmp_path / "stalls").touch()
    (tmp_path / "ledger").write_bytes(bytes(BLOCKS * ENTRY.size))
    site = Site(tmp_path, random.Random(seed))
    try:
        site.jobs = [Job(site, rank) for rank in range(RANKS)]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(site.rng.uniform(0.2, 1.5))
            site.hurt()
        site.kill_all()
        for job in site.jobs:
            job.finish(-signal.SIGKILL)
        status = site.final_status()
    finally:
        for job in site.jobs:
            job.agent.kill()
        site.down()
    acknowledged, doubtful = compare(tmp_path)
    calls = stalls(tmp_path, site.stopped)
    longest = max((seconds for _, _, seconds in calls), default=0.0)
    jobs = status["jobs"]
    assert isinstance(jobs, list)
    causes = {cause: sum(job["counters"].get(cause, 0) for job in jobs) for cause in CAUSES}
    with capsys.disabled():
        print(
            f"\nchaos of everything, seed {seed}, {SECONDS:g} s: {acknowledged} writes"
            f" acknowledged, {doubtful} blocks in a killed write; "
            + ", ".join(f"{count} {what}" for what, count in sorted(site.injected.items()))
            + f"; longest call while nothing was stopped {longest:.1f} s (allowed {ALLOWED:g});"
            f" {status['fail_open_total']} fail-opens in all, those of jobs still listed {causes}"
        )
    assert acknowledged > 1000
    assert status["fail_open_total"] >= sum(causes.values())
    assert longest <= ALLOWED, calls
