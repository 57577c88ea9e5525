"""Detects the access pattern of applications, and keeps it with what is known of them.

An I/O node reports what it observed of all its requests, and the bytes of each job. Where almost
all were those of one application, its pattern is that application's. An application's class is the
one that most of its bytes were in, since the controller began. With tuning, the Council asks the
I/O nodes; else they are asked here, while jobs use them.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from penstock.config.tuning import TuningSection
from penstock.errors import InputError
from penstock.learn.detection.model import Model, load, shipped
from penstock.live.controller.io_nodes import IoNodes
from penstock.live.controller.job_table import JobEntry
from penstock.live.protocol import messages as wire
from penstock.model import Context, Observation
from penstock.model.observation import UNKNOWN

AT_A_TIME, APART = 64, 0.01
"""I/O nodes that are queried together, and the seconds until the next ones."""
ONE = 0.9
"""The part of an I/O node's bytes from which on they show one application."""
APPLICATIONS = 1000
"""Applications whose bytes by class are kept, those that did I/O last."""
log = logging.getLogger("penstock.controller")
_Application = tuple[str, str, int]


class ModelFile:
    """The model in use: the built-in one, or a file that may be replaced at any time."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._changed = self._stamp()
        self.model = shipped() if self._path is None else load(self._path)

    def refresh(self) -> Model | None:
        """Return the model if its file has changed and can be read, else None."""
        if self._path is None or (stamp := self._stamp()) == self._changed:
            return None
        self._changed = stamp
        try:
            self.model = load(self._path)
        except InputError as error:
            log.warning("the model is not replaced: %s", error)
            return None
        log.info("access patterns are now detected by %s", self._path)
        return self.model

    def _stamp(self) -> tuple[int, int]:
        try:
            stat = self._path.stat() if self._path is not None else None
        except OSError:
            stat = None
        return (0, 0) if stat is None else (stat.st_mtime_ns, stat.st_ino)


async def query(
    io_nodes: IoNodes,
    numbers: Collection[int],
    receive: Callable[[int, Any], None],
    *,
    until: float,
    clock: Callable[[], float],
) -> None:
    """Ask I/O nodes for their observations, and wait until a time for the answers."""
    queried = [n for n in io_nodes.nodes if n.node is not None and n.number in numbers]
    groups = []
    # In groups: otherwise the last report would wait until all others are handled.
    for k in range(0, len(queried), AT_A_TIME):
        requests = {n.number: wire.GetObservation() for n in queried[k : k + AT_A_TIME]}
        within = max(until - clock(), 0.001)
        asking = io_nodes.ask_each(requests, wire.NodeObservation, receive, within)
        groups.append(asyncio.create_task(asking))
        await asyncio.wait(groups[-1:], timeout=APART)  # a slow one delays no others
    await asyncio.gather(*groups)


class Detection:
    """Follows the reports of I/O nodes; `keep` takes a job and the class of its application."""

    def __init__(
        self,
        jobs: Mapping[str, JobEntry],
        keep: Callable[[JobEntry, str, int], None],
    ) -> None:
        self._jobs, self._keep = jobs, keep
        self._bytes: dict[int, Mapping[str, int]] = {}  # by job, at the last report of a node
        self._seen: dict[_Application, Counter[tuple[str, int]]] = {}

    def down(self, number: int) -> None:
        """An I/O node is gone: the next one counts from zero."""
        self._bytes.pop(number, None)

    def application(
        self, number: int, observation: Observation, by_job: Mapping[str, int]
    ) -> JobEntry | None:
        """Return a job of the one application that a report is of; None: of several, or of none.

        Call it once for each report.
        """
        before, self._bytes[number] = self._bytes.get(number, {}), by_job
        moved = {
            name: total - before.get(name, 0) if total >= before.get(name, 0) else total
            for name, total in by_job.items()
        }
        # An I/O node of several users names jobs USER/JOB.
        jobs = {n: self._jobs.get(n.rpartition("/")[2]) for n, more in moved.items() if more}
        if not observation.moved or sum(moved.values()) < ONE * observation.moved:
            return None  # the rest is that of jobs that have left
        by_application: Counter[_Application | None] = Counter()
        for name, job in jobs.items():
            by_application[None if job is None else _application(job)] += moved[name]
        leading, most = by_application.most_common(1)[0]
        if leading is None or most < ONE * sum(moved.values()):
            return None
        return next(
            job for job in jobs.values() if job is not None and _application(job) == leading
        )

    def detected(self, job: JobEntry, context: Context, moved: int) -> None:
        """A report was of this job's application alone, which moved these bytes."""
        application = _application(job)
        seen = self._seen.pop(application, Counter())
        self._seen[application] = seen
        if len(self._seen) > APPLICATIONS:
            del self._seen[next(iter(self._seen))]
        seen[context.pattern, context.size] += moved
        pattern, size = max(seen, key=lambda each: seen[each])
        if pattern != UNKNOWN:
            self._keep(job, pattern, size)


def _application(job: JobEntry) -> _Application:
    begin = job.begin
    return begin.user, begin.executable, begin.nodes


class DetectionService:
    """Asks the I/O nodes that jobs use, where no Council does."""

    def __init__(
        self,
        section: TuningSection,
        io_nodes: IoNodes,
        detection: Detection,
        jobs: Mapping[str, JobEntry],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._io_nodes, self._detection, self._jobs = io_nodes, detection, jobs
        self._clock = clock
        self._interval, self._deadline = section.seconds()
        self._model = ModelFile(section.model)

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await asyncio.sleep(self._interval)
            used = {number for job in self._jobs.values() for number in job.io_nodes}
            if used:
                until = self._clock() + self._deadline
                await query(self._io_nodes, used, self._receive, until=until, clock=self._clock)
                await asyncio.to_thread(self._model.refresh)

    def _receive(self, number: int, answer: Any) -> None:
        if not isinstance(answer, wire.NodeObservation):
            return
        try:
            observation = answer.to_observation()
        except ConnectionError:  # invalid: as if none came
            return
        job = self._detection.application(number, observation, answer.jobs)
        context, _ = self._model.model.situation(observation)
        if job is not None and context is not None:
            self._detection.detected(job, context, observation.moved)
