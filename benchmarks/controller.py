"""The controller's speed: how soon a turn is granted, a new controller serves, and what turns cost.

A thousand jobs, each with its own connection, begin one phase per second each; in fifty groups one
job transfers at a time. The latency of a turn is measured from the message that makes it possible
(its own phase begins, or the one before it in its group ends) to its arrival. Times are of this
machine; the bar is printed beside them.
"""

import argparse
import asyncio
import gc
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from penstock.learn.imported import Imported
from penstock.live.protocol import messages
from penstock.live.protocol.client import encode_line
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.store import Family, Knowledge, Store, WriteBehind

PENSTOCK = [sys.executable, "-m", "penstock.cli"]
GROUPS = 50
POLICY = f"""
from penstock.policies.base import ByArrival

class Groups(ByArrival):
    def group(self, job):
        return job.serial % {GROUPS}
"""
GRANTED_WITHIN, SERVES_WITHIN, OVERHEAD = 0.005, 2.0, 0.02
PHASES = """
import os, sys, time
began = time.monotonic()
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
for phase in range(20):
    time.sleep(0.1)
    for k in range(20):
        os.pwrite(fd, bytes(1 << 20), k << 20)
os.close(fd)
print(time.monotonic() - began)
"""
"""Twenty times a tenth of a second of computing, and as much writing at 200 MiB/s."""
_ANSWER_TYPES = (
    messages.JobAccepted
    | messages.Turn
    | messages.Hold
    | messages.Heartbeat
    | messages.NodeMap
    | messages.Done
)


@dataclass
class Load:
    """Jobs that begin one phase per second each, and the latencies of their turns."""

    hold: float
    seconds: float
    latencies: list[float] = field(default_factory=list)
    ended: dict[int, float] = field(default_factory=dict)  # by group: when a phase last ended

    async def job(self, path: Path, rng: random.Random) -> None:
        reader, writer = await asyncio.open_unix_connection(path, limit=1 << 20)
        begin = messages.BeginJob(
            name="load", pid=os.getpid(), command=["x"], user="root", protocol=messages.PROTOCOL
        )
        writer.write(encode_line(begin))
        begun = msgspec.json.decode(await reader.readline(), type=_ANSWER_TYPES)
        assert isinstance(begun, messages.JobAccepted), begun
        group = (int(begun.job.rpartition(".")[2])) % GROUPS
        began: dict[int, float] = {}
        turns: asyncio.Queue[int] = asyncio.Queue()
        listener = asyncio.create_task(self.listen(reader, group, began, turns))
        until, phase = time.monotonic() + self.seconds, 0
        await asyncio.sleep(rng.random())
        while time.monotonic() < until:
            due, phase = time.monotonic() + 1.0, phase + 1
            began[phase] = time.monotonic()
            writer.write(encode_line(messages.PhaseBegan(phase=phase)))
            while await turns.get() != phase:
                pass
            await asyncio.sleep(self.hold)
            self.ended[group] = time.monotonic()
            writer.write(
                encode_line(
                    messages.PhaseEnded(phase=phase, bytes=1 << 20, seconds=self.hold, waited=0.0)
                )
            )
            await asyncio.sleep(max(due - time.monotonic(), 0.0))
        listener.cancel()
        writer.close()

    async def listen(
        self,
        reader: asyncio.StreamReader,
        group: int,
        began: dict[int, float],
        turns: "asyncio.Queue[int]",
    ) -> None:
        while text := await reader.readline():
            if b'"Turn"' in text:
                message = msgspec.json.decode(text, type=messages.Turn)
                possible = max(began[message.phase], self.ended.get(group, 0.0))
                self.latencies.append(time.monotonic() - possible)
                turns.put_nowait(message.phase)


async def loaded(path: Path, jobs: int, hold: float, seconds: float) -> list[float]:
    load, rng = Load(hold, seconds), random.Random(0)
    gc.disable()  # what is measured is the controller's pauses, not ours
    async with asyncio.timeout(seconds + 60), asyncio.TaskGroup() as group:
        for _ in range(jobs):
            group.create_task(load.job(path, rng))
    # The first second is that of a thousand jobs that all begin at once.
    return load.latencies[jobs:]


def grants(jobs: int, seconds: float) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        root, state = Path(folder, "data"), Path(folder, "s")
        root.mkdir()
        Path(folder, "groups.py").write_text(POLICY)
        up = ["up", "--root", root, "--io-nodes", "0", "--state", state, "--mode", "enforce"]
        subprocess.run(
            [*PENSTOCK, *map(str, up), "--policy", f"{folder}/groups.py:Groups"], check=True
        )
        try:
            latencies = asyncio.run(loaded(StateDirectory(state).controller, jobs, 0.002, seconds))
        finally:
            subprocess.run([*PENSTOCK, "down", "--state", str(state)], check=True)
    cuts = statistics.quantiles(latencies, n=1000)
    p50, p99, p999 = cuts[499], cuts[989], cuts[998]
    print(
        f"{jobs} jobs, {len(latencies) / (seconds - 1):.0f} turns a second: p50 {1e3 * p50:.2f} ms,"
        f" p99 {1e3 * p99:.2f} ms, p99.9 {1e3 * p999:.2f} ms"
        f" (bar: p99 {1e3 * GRANTED_WITHIN:g} ms, {'met' if p99 <= GRANTED_WITHIN else 'NOT met'})"
    )
    return p99 <= GRANTED_WITHIN


def fill(path: Path, jobs: int) -> None:
    """Write the state that a controller with this number of jobs leaves behind."""
    with WriteBehind(Store(f"sqlite:///{path}")) as keeper:
        for k in range(jobs):
            name = f"code-{k % 500}"
            keeper.running(
                JobRecord(
                    id=f"{name}.{k}",
                    serial=k,
                    user="ann",
                    uid=os.getuid(),
                    name=name,
                    state="running",
                    began=1e9,
                    seconds=1.0,
                    io_nodes=[],
                    forwarded_bytes=k,
                    direct_bytes=0,
                    fail_opens=0,
                    waits=0,
                    waited_seconds=0.0,
                    counters={"write_bytes": k},
                )
            )
            keeper.learn(
                Family(user=f"user-{k % 100}", executable=name, nodes=1 + k % 64),
                Knowledge(imported=Imported(w_iter=10.0, iterations=5)),
            )
        keeper.flush(60)


def restart(jobs: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        root, state = Path(folder, "data"), StateDirectory(Path(folder, "s"))
        root.mkdir()
        state.create()
        up = ["up", "--root", root, "--io-nodes", "0", "--state", state.folder]
        taken = {}
        for known in (0, jobs):
            if known:
                fill(state.store, known)
            began = time.monotonic()
            subprocess.run([*PENSTOCK, *map(str, up)], check=True, capture_output=True)
            subprocess.run(
                [*PENSTOCK, "status", "--state", str(state.folder)], check=True, capture_output=True
            )
            taken[known] = time.monotonic() - began
            subprocess.run([*PENSTOCK, "down", "--state", str(state.folder)], check=True)
    met = taken[jobs] <= SERVES_WITHIN
    print(
        f"from 'penstock up' to an answer: {taken[0]:.2f} s with nothing known, {taken[jobs]:.2f} s"
        f" with {jobs} known jobs (bar: {SERVES_WITHIN:g} s, {'met' if met else 'NOT met'})"
    )
    return met


def overhead(rounds: int) -> bool:
    """Run a job alone, with and without enforced turns, in alternation."""
    with tempfile.TemporaryDirectory() as folder:
        root, state = Path(folder, "data"), ["--state", str(Path(folder, "s"))]
        root.mkdir()
        up = ["up", "--root", str(root), "--io-nodes", "1", "--emulate", "targets=1,rate=200MiB/s"]
        subprocess.run([*PENSTOCK, *up, *state], check=True, capture_output=True)
        taken: dict[str, list[float]] = {"off": [], "enforce": []}
        try:
            for mode in list(taken) * rounds:
                subprocess.run([*PENSTOCK, "mode", mode, *state], check=True, capture_output=True)
                job = [*PENSTOCK, "run", *state, "--", sys.executable, "-c", PHASES, f"{root}/f"]
                run = subprocess.run(job, check=True, capture_output=True, text=True)
                taken[mode].append(float(run.stdout))
        finally:
            subprocess.run([*PENSTOCK, "down", *state], check=True, capture_output=True)
    plain, managed = (min(taken[mode]) for mode in ("off", "enforce"))
    met = managed / plain - 1 <= OVERHEAD
    print(
        f"a job alone, 20 phases of 0.1 s, best of {rounds}: {plain:.3f} s, with turns"
        f" {managed:.3f} s, {100 * (managed / plain - 1):+.1f}%"
        f" (bar: {100 * OVERHEAD:g}%, {'met' if met else 'NOT met'})"
    )
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--known", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    met = [grants(options.jobs, options.seconds), restart(options.known), overhead(options.rounds)]
    sys.exit(not all(met))


if __name__ == "__main__":
    main()
