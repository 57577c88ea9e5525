"""What the dashboard costs: its answers with a thousand jobs, and the turns that they delay.

A thousand jobs, each with its own connection, begin one phase per second each, as in controller.py:
without an HTTP port, with one that gets no requests, and with dashboards that send one request per
second. The longest step is that of the controller's loop, in processor time: a turn may have to
wait for it. Times are of this machine; compare them with each other.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from controller import PENSTOCK, POLICY, loaded

from penstock.live.protocol.state_directory import StateDirectory

STEPS = """
import asyncio.events, atexit, os, sys, time
if "penstock.live.controller" in sys.orig_argv:
    steps, run = [], asyncio.events.Handle._run
    def timed(self):
        began = time.thread_time()
        run(self)
        took = time.thread_time() - began
        if took > 0.001:
            answers = "RequestResponseCycle" in repr(getattr(self._callback, "__self__", ""))
            steps.append((time.time(), took, int(answers)))
    asyncio.events.Handle._run = timed
    def report():
        with open(os.environ["STEPS_FILE"], "w") as file:
            file.writelines(f"{when} {took} {answers}\\n" for when, took, answers in steps)
    atexit.register(report)
"""
"""A sitecustomize of the controller's process: steps of its loop over a millisecond of work."""


@dataclass
class Answers:
    """The answers that dashboards got: seconds and bytes of each."""

    whole: list[tuple[float, int]] = field(default_factory=list)
    changes: list[tuple[float, int]] = field(default_factory=list)


async def dashboard(url: str, seconds: float, answers: Answers) -> None:
    """Ask as the page does; every fifth time from the beginning, as one that was away."""
    cursor, requests, until = "", 0, time.monotonic() + seconds
    async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
        while time.monotonic() < until:
            whole, requests = requests % 5 == 0, requests + 1
            began = time.perf_counter()
            answer = await client.get("/v1/timeline", params={} if whole else {"since": cursor})
            took = (time.perf_counter() - began, len(answer.content))
            (answers.whole if whole else answers.changes).append(took)
            cursor = answer.json()["cursor"]
            await asyncio.sleep(max(1.0 - took[0], 0.0))


async def watched(
    state: StateDirectory, jobs: int, seconds: float, dashboards: int
) -> tuple[list[float], Answers]:
    answers = Answers()
    looking = [
        asyncio.create_task(dashboard(state.http.read_text().strip(), seconds, answers))
        for _ in range(dashboards)
    ]
    latencies = await loaded(state.controller, jobs, 0.002, seconds)
    await asyncio.gather(*looking)
    return latencies, answers


def measured(jobs: int, seconds: float, *, http: bool, dashboards: int) -> float:
    """Print one line; return the 99th percentile of the turns' latencies."""
    with tempfile.TemporaryDirectory() as folder:
        root, state = Path(folder, "data"), StateDirectory(Path(folder, "s"))
        root.mkdir()
        Path(folder, "groups.py").write_text(POLICY)
        Path(folder, "sitecustomize.py").write_text(STEPS)
        steps = Path(folder, "steps")
        env = os.environ | {"PYTHONPATH": folder, "STEPS_FILE": str(steps)}
        up = ["up", "--root", root, "--io-nodes", "2", "--state", state.folder, "--mode", "enforce"]
        up += ["--policy", f"{folder}/groups.py:Groups", *(["--http", "0"] if http else [])]
        subprocess.run([*PENSTOCK, *map(str, up)], check=True, capture_output=True, env=env)
        began = time.time()
        try:
            latencies, answers = asyncio.run(watched(state, jobs, seconds, dashboards))
        finally:
            ended = time.time()
            down = [*PENSTOCK, "down", "--state", str(state.folder)]
            subprocess.run(down, check=True, capture_output=True)
        # The first second is that of a thousand jobs that all begin at once, the last of their end.
        lines = [tuple(map(float, line.split())) for line in steps.read_text().splitlines()]
        during = [line for line in lines if began + 3 < line[0] < ended - 1]
        longest = max((took for _, took, _ in during), default=0.0)
        of_answers = max((took for _, took, answers in during if answers), default=0.0)
    cuts = statistics.quantiles(latencies, n=1000)
    name = f"{dashboards} dashboards" if http else "no HTTP port"
    print(
        f"{jobs} jobs, {name}: turns p50 {1e3 * cuts[499]:.2f} ms, p99 {1e3 * cuts[989]:.2f} ms,"
        f" p99.9 {1e3 * cuts[998]:.2f} ms; longest step of the loop {1e3 * longest:.1f} ms,"
        f" of an answer {1e3 * of_answers:.1f} ms"
    )
    for kind, got in (("whole", answers.whole), ("what changed", answers.changes)):
        if got:
            times, sizes = zip(*got, strict=True)
            print(
                f"  {kind}: median {1e3 * statistics.median(times):.0f} ms, at most"
                f" {1e3 * max(times):.0f} ms, {statistics.median(sizes) / 2**20:.2f} MiB"
            )
    return cuts[989]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--dashboards", type=int, default=2)
    options = parser.parse_args()
    plain = measured(options.jobs, options.seconds, http=False, dashboards=0)
    kept = measured(options.jobs, options.seconds, http=True, dashboards=0)
    looked = measured(options.jobs, options.seconds, http=True, dashboards=options.dashboards)
    print(
        f"p99 of turns, as a ratio: history kept {kept / plain:.2f}, looked at {looked / plain:.2f}"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
