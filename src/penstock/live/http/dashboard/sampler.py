"""Samples of a second: what each I/O node moved, and how many jobs transferred and waited."""

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from penstock.live.controller.supervise import Steps
from penstock.live.http.dashboard.history import WINDOW, History
from penstock.live.http.dashboard.lanes import Lane
from penstock.live.http.dashboard.schema import NodeNow, Sample
from penstock.live.protocol import messages

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller

EVERY = 1.0
ANSWERED_WITHIN = 0.8
JOBS = 100
"""Jobs of an I/O node that are named."""


class Sampler:
    """Samples a controller once a second."""

    def __init__(self, controller: "Controller", history: History) -> None:
        self._controller, self._history = controller, history
        self._samples: deque[tuple[int, Sample]] = deque(maxlen=int(WINDOW / EVERY))
        self._measured: dict[int, tuple[float, messages.NodeCounters]] = {}  # by number: when, what
        self._before: dict[int, tuple[float, int, int]] = {}  # by number: when, node, bytes
        self._sampled, self._passed = 0.0, 0
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
            due = max(due + EVERY, time.monotonic() + EVERY / 2)
            await asyncio.sleep(due - time.monotonic())

    async def sample(self) -> None:
        """Take one sample."""
        await self._measure()
        self._history.tick()
        transferring = waiting = 0
        on: dict[int, list[str]] = {}
        steps = Steps()
        everyone = list(self._history.lanes.by_id.values())
        for lane in everyone:
            transferring += lane.kind == "io"
            waiting += lane.kind == "wait"
            if lane.job.state == "running":
                for number in lane.job.io_nodes:
                    on.setdefault(number, []).append(lane.job.id)
            await steps.breathe()
        await self._see_patterns(everyone, on)
        direct, self.totals = self._direct(), self._controller.jobs.totals()
        numbers = range(len(self._controller.fleet.io_nodes))
        answers = [self._measured.get(number) for number in numbers]
        queued = [None if found is None else found[1].queued for found in answers]
        sample = Sample(
            time=self._history.now(),
            io_nodes=[self._rate(number, found) for number, found in enumerate(answers)],
            queued=queued,
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
            if isinstance(told, messages.NodeCounters):
                self._measured[number] = (time.monotonic(), told)

        asked = {n.number: messages.GetCounters() for n in serving}
        await fleet.ask_each(asked, messages.NodeCounters, heard, ANSWERED_WITHIN)

    def _rate(
        self, number: int, answer: tuple[float, messages.NodeCounters] | None
    ) -> float | None:
        """Return the bytes a second that an I/O node moved between its last two answers."""
        if answer is None:
            return None
        heard, found = answer
        moved = found.read_bytes + found.write_bytes
        when, node, before = self._before.get(number, (heard, found.node, moved))
        self._before[number] = (heard, found.node, moved)
        if node != found.node:  # another process, which began to count anew
            before = 0
        return max(moved - before, 0) / (heard - when) if heard > when else 0.0

    def _direct(self) -> float:
        """Return the bytes a second that went past the I/O nodes."""
        now, passed = time.monotonic(), self._history.passed
        elapsed, moved = now - self._sampled, passed - self._passed
        self._sampled, self._passed = now, passed
        return moved / elapsed if 0 < elapsed < 10 * EVERY else 0.0

    def _node(self, number: int, jobs: list[str]) -> NodeNow:
        io_node = self._controller.fleet.io_nodes[number]
        _, found = self._measured.get(number, (0.0, None))
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

    async def _see_patterns(self, lanes: list[Lane], on: dict[int, list[str]]) -> None:
        """Take note of jobs' access patterns, where their I/O node serves no other job."""
        tuning, steps = self._controller.tuning, Steps()
        if tuning is None:
            return
        for lane in lanes:
            await steps.breathe()
            numbers = lane.job.io_nodes
            if lane.kind != "io" or len(numbers) != 1 or on.get(numbers[0]) != [lane.job.id]:
                continue
            pattern = tuning.node(numbers[0]).get("pattern")
            had = lane.patterns[-1][1] if lane.patterns else None
            if pattern not in {None, "unknown", had}:
                lane.patterns.append((self._history.now(), str(pattern)))
                lane.revision = self._history.lanes.next()
