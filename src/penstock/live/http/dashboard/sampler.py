"""One sample per second: the rate of each I/O node, and how many jobs transfer and wait."""

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from penstock.live.controller.supervise import Steps
from penstock.live.http.dashboard.history import WINDOW, History
from penstock.live.http.dashboard.lanes import Lane
from penstock.live.http.dashboard.schema import NodeNow, Sample
from penstock.live.protocol import messages
from penstock.live.protocol.io_node_record import NodeTuning

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller

INTERVAL = 1.0
ANSWER_SECONDS = 0.8
NAMED_JOBS = 100
"""Jobs of an I/O node that are named."""


class Sampler:
    """Samples a controller once per second, by the history's clock."""

    def __init__(self, controller: "Controller", history: History) -> None:
        self._controller, self._history = controller, history
        self._samples: deque[tuple[int, Sample]] = deque(maxlen=int(WINDOW / INTERVAL))
        self._measured: dict[
            int, tuple[float, messages.NodeCounters]
        ] = {}  # by number, with the time
        self._before: dict[int, tuple[float, int, int]] = {}  # by number: time, node, bytes
        self._sampled, self._direct_bytes = 0.0, 0
        self.totals = controller.jobs.totals()
        """Bytes forwarded and direct, and fail-opens, of all jobs, as of the last sample."""
        self.io_nodes: list[NodeNow] = []

    def since(self, revision: int) -> list[Sample]:
        """Return the samples that were taken after a revision."""
        newer: list[Sample] = []
        for number, sample in reversed(self._samples):
            if number <= revision:
                break
            newer.append(sample)
        return newer[::-1]

    async def run(self) -> None:
        """Sample until cancelled."""
        clock = self._history.clock
        due = clock()
        while True:
            await self.sample()
            due = max(due + INTERVAL, clock() + INTERVAL / 2)
            await asyncio.sleep(due - clock())

    async def sample(self) -> None:
        """Take one sample."""
        await self._measure()
        self._history.tick()
        transferring = waiting = 0
        jobs_on: dict[int, list[str]] = {}
        steps = Steps()
        lanes = list(self._history.lanes.by_id.values())
        for lane in lanes:
            transferring += lane.kind == "io"
            waiting += lane.kind == "wait"
            if lane.job.state == "running":
                for number in lane.job.io_nodes:
                    jobs_on.setdefault(number, []).append(lane.job.id)
            await steps.pause()
        await self._note_patterns(lanes, jobs_on)
        direct, self.totals = self._direct(), self._controller.jobs.totals()
        numbers = range(len(self._controller.io_nodes.nodes))
        answers = [self._measured.get(number) for number in numbers]
        queued = [None if answer is None else answer[1].queued for answer in answers]
        sample = Sample(
            time=self._history.now(),
            io_nodes=[self._rate(number, answer) for number, answer in enumerate(answers)],
            queued=queued,
            direct=direct,
            transferring=transferring,
            waiting=waiting,
        )
        self._samples.append((self._history.lanes.next(), sample))
        self.io_nodes = [self._node(number, jobs_on.get(number, [])) for number in numbers]

    async def _measure(self) -> None:
        io_nodes = self._controller.io_nodes
        self._measured = {}
        serving = [n for n in io_nodes.nodes if n.node is not None]

        def note(number: int, answer: object) -> None:
            if isinstance(answer, messages.NodeCounters):
                self._measured[number] = (self._history.clock(), answer)

        requests = {n.number: messages.GetCounters() for n in serving}
        await io_nodes.ask_each(requests, messages.NodeCounters, note, ANSWER_SECONDS)

    def _rate(
        self, number: int, answer: tuple[float, messages.NodeCounters] | None
    ) -> float | None:
        """Return an I/O node's bytes per second between its last two answers."""
        if answer is None:
            return None
        now, measured = answer
        moved = measured.read_bytes + measured.write_bytes
        earlier, node, before = self._before.get(number, (now, measured.node, moved))
        self._before[number] = (now, measured.node, moved)
        if node != measured.node:  # another process, which counts from 0
            before = 0
        return max(moved - before, 0) / (now - earlier) if now > earlier else 0.0

    def _direct(self) -> float:
        """Return the direct bytes per second since the last sample."""
        now, total = self._history.clock(), self._history.direct_bytes
        elapsed, moved = now - self._sampled, total - self._direct_bytes
        self._sampled, self._direct_bytes = now, total
        return moved / elapsed if 0 < elapsed < 10 * INTERVAL else 0.0

    def _node(self, number: int, jobs: list[str]) -> NodeNow:
        io_node = self._controller.io_nodes.nodes[number]
        _, measured = self._measured.get(number, (0.0, None))
        serves = io_node.node is not None
        tuning = NodeTuning()
        if serves and self._controller.tuning is not None:
            tuning = self._controller.tuning.node(number)
        state = "serving" if measured is not None else "not answering"
        return NodeNow(
            number=number,
            state=state if serves else io_node.absence,
            alive=serves,
            deaths=io_node.deaths,
            jobs=jobs[:NAMED_JOBS],
            job_count=len(jobs),
            scheduler=None if measured is None else measured.scheduler,
            queued=None if measured is None else measured.queued,
            operation=tuning.operation or None,
            pattern=tuning.pattern or None,
            tuned=tuning.tuned,
        )

    async def _note_patterns(self, lanes: list[Lane], jobs_on: dict[int, list[str]]) -> None:
        """Note the access pattern of each job that has its I/O node to itself."""
        tuning, steps = self._controller.tuning, Steps()
        if tuning is None:
            return
        for lane in lanes:
            await steps.pause()
            numbers = lane.job.io_nodes
            if lane.kind != "io" or len(numbers) != 1 or jobs_on.get(numbers[0]) != [lane.job.id]:
                continue
            node = tuning.node(numbers[0])
            last = lane.patterns[-1][1] if lane.patterns else None
            if node.operation and node.pattern and node.pattern != last:  # it had requests
                lane.patterns.append((self._history.now(), node.pattern))
                lane.revision = self._history.lanes.next()
