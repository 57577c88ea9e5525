"""Samples of a second: what each I/O node moved, and how many jobs transferred and waited."""

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from penstock.live import wire
from penstock.live.history.answers import NodeNow, Sample
from penstock.live.history.history import WINDOW, History
from penstock.live.history.lanes import Lane
from penstock.live.lasting import Steps

if TYPE_CHECKING:
    from penstock.live.controller import Controller

EVERY = 1.0
ANSWERED_WITHIN = 0.8
JOBS = 100
"""Jobs of an I/O node that are named."""


class Sampler:
    """Samples a controller once a second."""

    def __init__(self, controller: "Controller", history: History) -> None:
        self._controller, self._history = controller, history
        self._samples: deque[tuple[int, Sample]] = deque(maxlen=int(WINDOW / EVERY))
        self._measured: dict[int, wire.Measured] = {}
        self._before: dict[int, tuple[float, int, int]] = {}  # by number: when, node, bytes
        self._sampled = 0.0
        self.totals = controller.jobs.totals()
        """Bytes forwarded and direct, and fail-opens, of all jobs ever, as of the last sample."""
        self.io_nodes: list[NodeNow] = []

    def since(self, revision: int) -> list[Sample]:
        """Return the samples that were taken after a revision."""
        newer: list[Sample] = []
        for number, sample in reversed(self._samples):
            if number <= revision:
                break
            newer.append(sample)
        return newer[::-1]

    async def keep(self) -> None:
        """Sample until cancelled."""
        due = time.monotonic()
        while True:
            await self.sample()
            due = max(due + EVERY, time.monotonic())
            await asyncio.sleep(due - time.monotonic())

    async def sample(self) -> None:
        """Take one sample."""
        await self._measure()
        self._history.tick()
        transferring = waiting = 0
        on: dict[int, list[str]] = {}
        steps = Steps()
        for lane in list(self._history.lanes.by_id.values()):
            transferring += lane.kind == "io"
            waiting += lane.kind == "wait"
            if lane.job.state == "running":
                for number in lane.job.io_nodes:
                    on.setdefault(number, []).append(lane.job.id)
                self._see_pattern(lane)
            await steps.breathe()
        direct = self._direct()
        numbers = range(len(self._controller.fleet.io_nodes))
        answers = [self._measured.get(number) for number in numbers]
        sample = Sample(
            time=self._history.now(),
            io_nodes=[self._rate(number, found) for number, found in enumerate(answers)],
            queued=[None if found is None else found.queued for found in answers],
            direct=direct,
            transferring=transferring,
            waiting=waiting,
        )
        self._samples.append((self._history.lanes.next(), sample))
        self.io_nodes = [self._node(number, on.get(number, [])) for number in numbers]

    async def _measure(self) -> None:
        fleet = self._controller.fleet
        self._measured = {}
        serving = [n for n in fleet.io_nodes if n.node is not None]
        for io_node in serving:
            if io_node.link is None and not io_node.remote:
                await fleet.link(io_node)

        def heard(number: int, told: Any) -> None:
            if isinstance(told, wire.Measured):
                self._measured[number] = told

        asked = {n.number: wire.Measure() for n in serving}
        await fleet.ask_each(asked, wire.Measured, heard, ANSWERED_WITHIN)

    def _rate(self, number: int, found: wire.Measured | None) -> float | None:
        """Return the bytes a second that an I/O node moved since it was last asked."""
        if found is None:
            return None
        now, moved = time.monotonic(), found.read_bytes + found.write_bytes
        when, node, before = self._before.get(number, (now, found.node, moved))
        self._before[number] = (now, found.node, moved)
        if node != found.node:  # another process, which began to count anew
            before = 0
        return max(moved - before, 0) / (now - when) if now > when else 0.0

    def _direct(self) -> float:
        """Return the bytes a second that went past the I/O nodes."""
        now, before = time.monotonic(), self.totals[1]
        self.totals = self._controller.jobs.totals()
        elapsed, self._sampled = now - self._sampled, now
        return max(self.totals[1] - before, 0) / elapsed if elapsed < 10 * EVERY else 0.0

    def _node(self, number: int, jobs: list[str]) -> NodeNow:
        io_node, found = self._controller.fleet.io_nodes[number], self._measured.get(number)
        serves = io_node.node is not None
        told: dict[str, Any] = {}
        if serves and self._controller.tuning is not None:
            told = self._controller.tuning.node(number)
        state = "serving" if found is not None else "not answering"
        return NodeNow(
            number=number,
            state=state if serves else io_node.absence,
            alive=serves,
            deaths=io_node.deaths,
            jobs=jobs[:JOBS],
            job_count=len(jobs),
            scheduler=None if found is None else found.scheduler,
            queued=None if found is None else found.queued,
            operation=told.get("operation"),
            pattern=told.get("pattern"),
            tuned=told.get("tuned", {}),
        )

    def _see_pattern(self, lane: Lane) -> None:
        """Take note of a job's access pattern, where its I/O node serves no other."""
        tuning, numbers = self._controller.tuning, lane.job.io_nodes
        if tuning is None or lane.kind != "io" or len(numbers) != 1:
            return
        pattern = tuning.node(numbers[0]).get("pattern")
        if pattern in {None, "unknown"} or (lane.patterns and lane.patterns[-1][1] == pattern):
            return
        busy = {n for n in self._history.lanes.by_id.values() if n.kind == "io"}
        if sum(numbers[0] in other.job.io_nodes for other in busy) == 1:
            lane.patterns.append((self._history.now(), str(pattern)))
            lane.revision = self._history.lanes.next()
