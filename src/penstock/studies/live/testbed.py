"""Runs a workload as real jobs on an emulated file system, and returns it as a record of a run.

One storage target behind one I/O node is the file system of paper io-sets: one resource, and jobs
that have all of it when they are alone. Its rate makes a phase of s isolated seconds s * RATE bytes
long. Shares are the I/O node's fair queue. Whatever the machine does to processes in between, late
wake-ups and crossings of processes, is part of what is measured.
"""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.config import Config
from penstock.config.sections import LiveSection, Mode, SharingSection, SiteSection
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.measure.scratch import in_memory, interruptible, private_state
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory
from penstock.model import Site
from penstock.sim.run import Run
from penstock.sim.workload import Floats, Workload

REQUEST = 64 * 2**10
RATE = 64 * 2**20
"""Bytes a second: a request takes about a millisecond."""
THREADS = 4
DEPTH = 2
"""Requests that the I/O node has in service: the next one is there when the target is free."""
READY_WITHIN, ENDS_WITHIN = 60.0, 30.0
LEAD = 0.2
"""Seconds from the word to begin until the clock's zero."""
WATCHED_EVERY = 2.0
_JOB = Path(__file__).with_name("periodic_job.py")


class TestbedError(RuntimeError):
    """A job that did not do what it should have; nothing can be said of the run."""

    __test__ = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What happened: the run, and what the controller counted."""

    run: Run
    turn: Floats  # when each phase began to transfer
    turns: int
    fail_opens: int
    direct_bytes: int
    forwarded_bytes: int


def measured(
    workload: Workload,
    *,
    policy: str,
    mode: Mode,
    until: float,
    options: Mapping[str, object] | None = None,
    in_order: bool = False,
    watch: Callable[[float, messages.Status], object] | None = None,
) -> Measured:
    """Run a workload for `until` seconds; jobs finish the phases that they are in by then.

    The controller numbers jobs as they come, and a policy may look at that: `in_order` they are
    started one after the other. `watch` gets the status every few seconds.
    """
    with (
        interruptible(),
        private_state() as folder,
        in_memory() as root,
        contextlib.ExitStack() as stack,
    ):
        state = StateDirectory(folder)
        controller = launcher.up(
            Deployment(
                state=str(folder),
                roots=[str(root)],
                io_nodes=1,
                emulate=f"targets=1,rate={RATE},latency=0,switch=0",
                settings=messages.Settings(depth=DEPTH),
                attached=True,
                config=Config(
                    site=SiteSection(bandwidth=float(RATE)),
                    sharing=SharingSection(policy=policy, options=dict(options or {})),
                    live=LiveSection(mode=mode, max_wait=2 * until),
                ),
            )
        )
        assert controller is not None
        stack.callback(controller.wait)
        stack.callback(launcher.down, state)
        plans = [_plan(workload, j, root, folder, until) for j in range(len(workload))]
        _play(stack, state, plans, until, in_order=in_order, watch=watch)
        status = launcher.ask(state, messages.GetStatus(), messages.Status)
        times = [json.loads(_results(plan).read_text(encoding="utf-8")) for plan in plans]
        return Measured(
            run=_record(workload, times),
            turn=np.concatenate([job["turn"] for job in times]),
            turns=status.turns,
            fail_opens=status.fail_open_total,
            direct_bytes=status.direct_bytes,
            forwarded_bytes=status.forwarded_bytes,
        )


def _plan(workload: Workload, j: int, root: Path, folder: Path, until: float) -> Path:
    rows = slice(*workload.offsets[j : j + 2])
    volumes = np.rint(workload.io[rows] * RATE).astype(int).tolist()
    period = float((workload.compute[rows] + workload.io[rows]).mean())
    plan = folder / f"plan-{j}.json"
    plan.write_text(
        json.dumps(
            {
                "name": workload.id(j),
                "folder": str(root),
                "results": str(_results(plan)),
                "threads": THREADS,
                "request": REQUEST,
                "release": float(workload.release[j]),
                "phases": list(zip(workload.compute[rows].tolist(), volumes, strict=True)),
                "until": until,
                "hint": f"period={period},phases={len(volumes)}",
            }
        ),
        encoding="utf-8",
    )
    return plan


def _results(plan: Path) -> Path:
    return plan.with_name(plan.name.replace("plan", "times"))


def _play(
    stack: contextlib.ExitStack,
    state: StateDirectory,
    plans: Sequence[Path],
    until: float,
    *,
    in_order: bool,
    watch: Callable[[float, messages.Status], object] | None,
) -> None:
    """Start all jobs, let them go at once when all are ready, and return when all have ended."""
    jobs = []
    for plan in plans:
        jobs.append(_start(stack, state, plan))
        if in_order:
            await_ready(jobs[-1:])
    if not in_order:
        await_ready(jobs)
    zero = time.monotonic() + LEAD
    for job in jobs:
        assert job.stdin is not None
        job.stdin.write(f"{zero!r}\n".encode())
        job.stdin.close()
    deadline = zero + until + ENDS_WITHIN
    while watch is not None and time.monotonic() + WATCHED_EVERY < zero + until:
        with contextlib.suppress(subprocess.TimeoutExpired):
            jobs[0].wait(WATCHED_EVERY)
            break
        watch(time.monotonic() - zero, launcher.ask(state, messages.GetStatus(), messages.Status))
    for plan, job in zip(plans, jobs, strict=True):
        try:
            status = job.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            raise TestbedError(f"{plan.stem} has not ended after {until:g} s") from None
        if status != 0:
            raise TestbedError(f"{plan.stem} ended with status {status}")


def _start(
    stack: contextlib.ExitStack, state: StateDirectory, plan: Path
) -> "subprocess.Popen[bytes]":
    settings = json.loads(plan.read_text(encoding="utf-8"))
    penstock = [sys.executable, "-P", "-m", "penstock.cli", "run"]
    job = stack.enter_context(
        subprocess.Popen(
            [
                *penstock,
                "--require",
                *("--state", str(state.folder)),
                *("--name", settings["name"], "--hint", settings["hint"]),
                "--",
                *(sys.executable, "-P", str(_JOB), str(plan)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    )
    stack.callback(end, job)
    return job


def end(job: "subprocess.Popen[bytes]") -> None:
    """End a job that still runs: the signal goes to its command."""
    if job.poll() is None:
        job.terminate()
        try:
            job.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            job.kill()


def await_ready(jobs: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Return when all jobs have said that they are ready."""
    until = time.monotonic() + READY_WITHIN
    with selectors.DefaultSelector() as waiting:
        for job in jobs:
            assert job.stdout is not None
            waiting.register(job.stdout, selectors.EVENT_READ)
        while waiting.get_map():
            left = until - time.monotonic()
            if left <= 0:
                raise TestbedError(f"jobs are not ready after {READY_WITHIN:g} s")
            for key, _ in waiting.select(left):
                if os.read(key.fd, 64) != b"ready\n":
                    raise TestbedError("a job ended before it began; see its message above")
                waiting.unregister(key.fileobj)


def _record(workload: Workload, times: Sequence[Mapping[str, Sequence[float]]]) -> Run:
    """Return what the jobs noted, without the iterations that they did not finish."""
    counts = np.array([len(job["end"]) for job in times])
    done = np.concatenate(
        [np.arange(first, first + n) for first, n in zip(workload.offsets, counts, strict=False)]
    )
    return Run(
        workload=Workload(
            ids=[workload.id(j) for j in range(len(workload))],
            compute=workload.compute[done],
            io=workload.io[done],
            offsets=np.concatenate(([0], np.cumsum(counts))),
            release=workload.release,
            profile=workload.profile,
            horizon=workload.horizon,
        ),
        site=Site(resources=1),
        request=np.concatenate([job["request"] for job in times]),
        end=np.concatenate([job["end"] for job in times]),
        start=np.array([job["start"][0] for job in times]),
        phase_ends=int(counts.sum()),
    )
