"""The jobs of a controller: a table, totals over all jobs, and what the store keeps of them."""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from penstock.errors import InputError, unknown
from penstock.learn.access_class import AccessClass
from penstock.learn.observations import ObservedPhase
from penstock.live.protocol.job_record import (
    FAIL_OPENS,
    JobRecord,
    PinnedIoNodes,
    ZeroBytes,
    direct_bytes,
    fail_opens,
    forwarded_bytes,
    zero_bytes_reason,
)
from penstock.live.protocol.messages import BeginJob, Usage
from penstock.live.protocol.shared_page import JOB_BYTES
from penstock.live.protocol.users import uid_of
from penstock.live.store import Family, Knowledge, StoreError, Totals, WriteBehind
from penstock.model import Context, Job, Value

LONGEST_COMMAND = 1024
"""Characters of a job's command that are kept."""
LISTED = 100
"""Ended jobs that are still listed; totals are of all."""
LOST_JOBS = 10_000
"""Lost jobs that are no longer listed and whose fail-opens are still known by cause."""
log = logging.getLogger("penstock.controller")


@dataclass(slots=True, kw_only=True)
class JobEntry:
    """A job of the table: what its agent said when it began, and what the controller did since."""

    id: str
    serial: int
    begin: BeginJob
    began: float  # seconds since the epoch; a date, not for measuring how long anything took
    since: float = 0.0  # the same, monotonic
    reconnected: float | None = None  # when it came from an earlier controller, if it did
    lasted: float | None = None  # seconds, once it ended
    agent: int = 0  # process id of its `penstock run`, if the kernel confirms it; else 0
    host: str = ""  # address of another host; "": the controller's own
    ended: float | None = None
    io_nodes: tuple[int, ...] = ()  # its current ones, or its last
    counters: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = Usage()  # noqa: RUF009 - frozen
    file_system_names: Sequence[str] = ()  # of the site, in order
    out_of_reach: Collection[int] = ()  # of these: up, and of another user or the other host
    pinned: bool = False  # it, or a person, asked for its I/O nodes
    stripe: int = 0  # bytes, if its files are striped over them
    maps: int = 0  # maps sent since it began; its counter `maps` says how many it has taken
    state: str = "running"  # or ended, or lost: its connection broke
    status: int | None = None
    phase_seen: bool = False  # it reported a phase, later than its counters perhaps

    @property
    def zero_bytes_reason(self) -> ZeroBytes | None:
        """Why no data of it was seen."""
        return None if self.phase_seen else zero_bytes_reason(self.counters)

    @property
    def io_nodes_used(self) -> list[int]:
        """The I/O nodes that moved data for it."""
        return sorted(map(int, self.usage.io_nodes))

    @property
    def bytes_by_file_system(self) -> dict[str, int]:
        """The bytes that it moved on each file system of the site, by name."""
        moved = ((int(number), size) for number, size in self.usage.file_systems.items())
        names = self.file_system_names
        return {names[number]: size for number, size in moved if number < len(names)}

    @property
    def moved_bytes(self) -> int:
        """Bytes moved, forwarded and direct."""
        return forwarded_bytes(self.counters) + direct_bytes(self.counters)

    def record(self, now: float) -> JobRecord:
        """Return the record of this job, without its turns; `now` is monotonic."""
        counters, begin = dict(self.counters), self.begin
        return JobRecord(
            id=self.id,
            serial=self.serial,
            name=begin.name,
            user=begin.user,
            uid=uid_of(begin.user),
            pid=begin.pid,
            host=self.host,
            command=begin.command,
            executable=begin.executable,
            nodes=begin.nodes,
            processes=begin.processes,
            requested_io_nodes=begin.io_nodes,
            stripe=self.stripe,
            pinned=(
                PinnedIoNodes(io_nodes=list(self.io_nodes), stripe=self.stripe)
                if self.pinned
                else None
            ),
            state=self.state,
            status=self.status,
            began=self.began,
            reconnected=self.reconnected,
            ended=self.ended,
            seconds=now - self.since if self.lasted is None else self.lasted,
            io_nodes=[k for k in self.io_nodes if k not in self.out_of_reach],
            io_nodes_used=self.io_nodes_used,
            bytes_by_io_node=self.usage.io_nodes,
            file_systems=list(self.bytes_by_file_system),
            bytes_by_file_system=self.bytes_by_file_system,
            zero_bytes_reason=self.zero_bytes_reason,
            forwarded_bytes=forwarded_bytes(counters),
            carried_bytes=counters.get("carried_bytes", 0),
            direct_bytes=direct_bytes(counters),
            fail_opens=fail_opens(counters),
            waits=counters.get("waits", 0),
            waited_seconds=counters.get("waited", 0) / 1e9,
            counters=counters,
            phases=counters.get("phases", 0),  # the turn service knows better, if it knows the job
        )


class JobTable:
    """Running jobs by id, the records of those that ended recently, and totals over all."""

    def __init__(
        self,
        next_serial: Callable[[], int],
        totals: Totals = Totals(),  # noqa: B008 - frozen
        *,
        listed: int = LISTED,
        lost_jobs: int = LOST_JOBS,
        file_systems: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`totals` are those of jobs that are not listed; the limits bound what is kept."""
        self.running: dict[str, JobEntry] = {}
        self._ended: deque[JobRecord] = deque()
        self._unlisted = totals
        self._causes = Counter(dict.fromkeys(FAIL_OPENS, 0)) | Counter(earlier=totals.fail_opens)
        self._lost: dict[str, Counter[str]] = {}  # causes of lost jobs that are not listed
        self._directories: dict[str, tuple[str, list[str]]] = {}  # by listed job, with its user
        self._next, self._listed, self._lost_jobs = next_serial, listed, lost_jobs
        self._clock = clock
        self._file_systems = file_systems
        self._unlisted_on = Counter(dict.fromkeys(file_systems, 0))
        """Bytes of jobs that are not listed, by file system."""

    def begin(self, begin: BeginJob, now: float, host: str = "") -> JobEntry:
        """Add a job; its id is its name and a serial number, or the id that it had before."""
        name, _, number = (begin.resumes or "").rpartition(".")
        numbered = number.isascii() and number.isdigit()
        resumes = numbered and name == begin.name and begin.resumes not in self.running
        serial = int(number) if resumes else self._next()
        while f"{begin.name}.{serial}" in self.running:  # one resumed an id that was not on record
            serial = self._next()
        job = JobEntry(
            id=f"{begin.name}.{serial}",
            serial=serial,
            begin=msgspec.structs.replace(begin, command=list(_shortened(begin.command))),
            began=now,
            since=self._clock(),
            host=host,
            pinned=begin.io_nodes is not None,
            file_system_names=self._file_systems,
        )
        if not 0 < len(job.id.encode()) < JOB_BYTES:
            raise InputError(f"job name {begin.name!r} is too long; give a shorter one")
        self.running[job.id] = job
        return job

    def end(self, job: JobEntry, status: int | None, now: float) -> None:
        """Mark a running job as ended; with no status it is lost. `remember` then lists it."""
        job.state, job.status = ("lost" if status is None else "ended"), status
        job.ended, job.lasted = max(now, job.began), self._clock() - job.since
        del self.running[job.id]
        if job.usage.directories:
            self._directories[job.id] = (job.begin.user, job.usage.directories)

    def directories(self, may_read: Callable[[str], bool]) -> dict[str, list[str]]:
        """Return where jobs wrote outside the roots, of users whose paths may be read."""
        running = {
            job.id: (job.begin.user, job.usage.directories)
            for job in self.running.values()
            if job.usage.directories
        }
        known = self._directories | running
        readable = {user for user in {user for user, _ in known.values()} if may_read(user)}
        return {id: paths for id, (user, paths) in known.items() if user in readable}

    def remember(self, record: JobRecord) -> None:
        """List a job that ended."""
        if len(self._ended) == self._listed:
            self._unlist(self._ended.popleft())
        self._ended.append(record)

    def take_back(self, lost: JobRecord) -> None:
        """Remove a lost job from the totals: it came back, or its real end was reported."""
        listed = [record for record in self._ended if record.id != lost.id]
        if len(listed) < len(self._ended):
            self._ended = deque(listed)
            return
        self._unlisted = self._unlisted.minus(lost)
        for name, size in lost.bytes_by_file_system.items():
            self._unlisted_on[name] = max(self._unlisted_on[name] - size, 0)
        self._causes -= self._lost.pop(lost.id, Counter(earlier=lost.fail_opens))
        self._causes.update(dict.fromkeys(FAIL_OPENS, 0))  # a difference drops zeros

    def _unlist(self, record: JobRecord) -> None:
        """Keep no more of a job than what it adds to the totals."""
        self._directories.pop(record.id, None)
        self._unlisted = self._unlisted.plus(record)
        self._unlisted_on.update(record.bytes_by_file_system)
        causes = Counter({cause: record.counters.get(cause, 0) for cause in FAIL_OPENS})
        self._causes.update(causes)
        if record.state == "lost" and causes.total():
            self._lost[record.id] = causes
            if len(self._lost) > self._lost_jobs:
                oldest = self._lost.pop(next(iter(self._lost)))
                self._causes.subtract(oldest)
                self._causes["earlier"] += oldest.total()

    def find(self, name: str) -> JobEntry:
        """Return the running job with this id, or the only one with this name."""
        if name in self.running:
            return self.running[name]
        matches = [job for job in self.running.values() if job.begin.name == name]
        if len(matches) > 1:
            ids = ", ".join(job.id for job in matches)
            raise InputError(f"several running jobs are called {name!r}; name one of {ids}")
        if not matches:
            if any(name in (record.id, record.name) for record in self._ended):
                raise InputError(f"job {name!r} has ended; 'penstock status' lists running jobs")
            if not self.running:
                raise InputError(f"there is no job {name!r}: no job is running")
            raise unknown("running job", name, self.running)
        return matches[0]

    def ended(self) -> list[JobRecord]:
        """Return the jobs that ended and are still listed, the oldest first."""
        return list(self._ended)

    def totals(self) -> Totals:
        """Return the totals of all jobs ever."""
        totals = self._unlisted
        for record in self._ended:
            totals = totals.plus(record)
        counters = [job.counters for job in self.running.values()]
        return Totals(
            forwarded_bytes=totals.forwarded_bytes + sum(map(forwarded_bytes, counters)),
            carried_bytes=totals.carried_bytes
            + sum(each.get("carried_bytes", 0) for each in counters),
            direct_bytes=totals.direct_bytes + sum(map(direct_bytes, counters)),
            fail_opens=totals.fail_opens + sum(map(fail_opens, counters)),
        )

    def bytes_by_file_system(self) -> dict[str, int]:
        """Return the bytes that jobs moved on each file system since the controller started."""
        moved = self._unlisted_on.copy()
        for record in self._ended:
            moved.update(record.bytes_by_file_system)
        for job in self.running.values():
            moved.update(job.bytes_by_file_system)
        return dict(moved)

    def fail_opens(self) -> dict[str, int]:
        """Return the fail-opens of all jobs ever, by cause."""
        causes = Counter(self._causes)
        running = (job.counters for job in self.running.values())
        for counters in (*running, *(record.counters for record in self._ended)):
            causes.update({cause: counters.get(cause, 0) for cause in FAIL_OPENS})
        return dict(causes)


def _family(begin: BeginJob) -> Family:
    return Family(user=begin.user, executable=begin.executable, nodes=begin.nodes)


class JobArchive:
    """The controller's jobs in its store."""

    def __init__(self, store: WriteBehind, clock: Callable[[], float] = time.time) -> None:
        self.store, self._clock = store, clock
        self.unclaimed = {job.id: job for job in store.memory.running}
        """Jobs of an earlier controller that may still reconnect."""
        self.impossible = 0
        """Observations that were dropped because their figures cannot be true."""

    async def find(self, id: str) -> JobRecord | None:
        """Return the job with this id, if any; StoreError: the store does not answer."""
        if id in self.unclaimed:
            return self.unclaimed[id]
        return await self.store.find_ended(id)

    async def earlier(self, id: str) -> JobRecord | None:
        """Return the job with this id, or None; a store that does not answer knows none."""
        try:
            return await self.find(id)
        except StoreError as error:
            log.warning("cannot look up the owner of job %s: %s", id, error)
            return None

    def may_exist(self, id: str) -> bool:
        """Tell whether an earlier controller can have given this id to a job."""
        number = id.rpartition(".")[2]
        return number.isascii() and number.isdigit() and int(number) <= self.store.memory.serial

    def knowledge(self, job: JobEntry) -> Knowledge | None:
        """Return what is known of a job's application, with what its class suggests."""
        begin = job.begin
        recalled = self.store.recall(_family(begin))
        known = Knowledge() if recalled is None else recalled.knowledge
        hinted = AccessClass.of(begin.hints.pattern, begin.hints.request)
        known = self.store.families.with_prior(begin.user, known, hinted)
        return None if recalled is None and known.prior is None else known

    def learn(self, job: Job, io_nodes: int, phase: ObservedPhase) -> None:
        """Keep what a phase shows of its application, unless its figures cannot be true."""
        family = Family(user=job.user, executable=job.executable, nodes=job.nodes)
        if not phase.is_possible:
            self.impossible += 1
            if self.impossible == 1:
                log.warning("job %s: observations that cannot be true are dropped", job.id)
            return
        known = self.store.families.known(family)
        self.store.learn(family, known.plus(io_nodes, phase, self._clock()))

    def keep_class(self, job: JobEntry, pattern: str, request_size: int) -> None:
        """Keep the access pattern that was detected, if it changed."""
        family = _family(job.begin)
        known = self.store.families.known(family)
        if (known.pattern, known.request_size) != (pattern, request_size):
            newer = replace(
                known, pattern=pattern, request_size=request_size, updated=self._clock()
            )
            self.store.learn(family, newer)

    def keep_tuned(
        self, job: JobEntry, context: Context, parameter: str, value: Value, rate: float
    ) -> None:
        """Keep how fast an I/O node served a job's application alone with a value."""
        family = _family(job.begin)
        known = self.store.families.known(family)
        tuned = known.tuned.plus(context, parameter, value, rate)
        self.store.learn(family, replace(known, tuned=tuned, updated=self._clock()))

    def own_knowledge(self, job: JobEntry) -> Knowledge:
        """Return what is known of a job's application, or of its nearest size, without a prior."""
        recalled = self.store.recall(_family(job.begin))
        return Knowledge() if recalled is None else recalled.knowledge

    def resumed(self, job: JobEntry, earlier: JobRecord) -> None:
        """Continue an earlier job: keep its start time, and no longer count it as lost."""
        job.since -= max(job.began - earlier.began, 0.0)
        job.reconnected, job.began = job.began, earlier.began
        job.counters = job.begin.counters or earlier.counters
        if earlier.state != "running":
            self.store.resumed(earlier)

    def began(self, record: JobRecord) -> None:
        """Keep a job that began, or reconnected."""
        self.unclaimed.pop(record.id, None)
        self.store.running(record)

    def progressed(self, record: JobRecord) -> None:
        """Keep the progress of a running job."""
        self.store.running(record)

    def ended(self, record: JobRecord) -> None:
        """Keep a job that ended."""
        self.store.ended(record)

    def reported_late(self, record: JobRecord, lost: JobRecord | None) -> None:
        """Keep a job whose end alone was reported; `lost`: it was counted as lost before."""
        self.unclaimed.pop(record.id, None)
        if lost is not None:
            self.store.resumed(lost)
        self.store.ended(record)

    def give_up(self) -> list[JobRecord]:
        """Count the jobs that did not reconnect as lost; return them."""
        now = self._clock()
        lost = [record.lost(now) for record in self.unclaimed.values()]
        for record in lost:
            self.store.ended(record)
        self.unclaimed.clear()
        return lost


class JobObserver:
    """Follows jobs, for the dashboard; this one ignores them. None may raise."""

    def began(self, job: JobEntry) -> None:
        """A job began, or reconnected."""

    def changed(self, id: str, /) -> None:
        """A job's I/O nodes or settings changed."""

    def counted(self, job: JobEntry) -> None:
        """A job sent its counters."""

    def ended(self, job: JobEntry) -> None:
        """A job ended."""


def _shortened(command: Sequence[str]) -> Iterator[str]:
    """Yield the beginning of a command: answers that name all jobs have room for no more."""
    left = LONGEST_COMMAND
    for argument in command:
        if len(argument) >= left:
            yield f"{argument[:left]}..."
            return
        left -= len(argument) + 1
        yield argument
