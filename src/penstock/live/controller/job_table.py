"""The jobs that a controller has seen: who they are, and what they say they did."""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import InputError, unknown
from penstock.live.protocol.counters import FAIL_OPENS, direct_bytes, fail_opens, forwarded_bytes
from penstock.live.protocol.messages import BeginJob
from penstock.live.protocol.shared_page import JOB_BYTES

if TYPE_CHECKING:
    from penstock.live.store import EndedJob

REMEMBERED = 100
"""Jobs that ended and are still listed; totals are of all."""
MAY_COME_BACK = 10_000
"""Lost jobs that are not listed and whose fail-opens are still known by cause."""

_COUNTED = (forwarded_bytes, direct_bytes, fail_opens)


@dataclass(slots=True, kw_only=True)
class Job:
    """A job that runs, or ran."""

    id: str
    serial: int
    begin: BeginJob
    began: float  # seconds since the epoch, as all dates: how long something took they do not tell
    since: float = field(default_factory=time.monotonic)  # the same, monotonic
    lasted: float | None = None  # seconds, once it ended
    agent: int = 0  # its `penstock run`, as the kernel says; 0: another's word
    host: str = ""  # the address of another host; "": the controller's own
    ended: float | None = None
    io_nodes: tuple[int, ...] = ()  # those it had last
    counters: Mapping[str, int] = field(default_factory=dict)
    pinned: bool = False  # to I/O nodes that it, or a person, asked for
    maps: int = 0  # sent to it since it began; its counter of this name says how many it has taken
    state: str = "running"  # or ended, or lost: its connection broke off
    status: int | None = None
    standing: Mapping[str, object] = field(default_factory=dict)  # how it stood at its end

    def told(self, now: float) -> dict[str, object]:
        """Return the job as `penstock status` lists it; `now` is monotonic."""
        counters = self.counters
        return {
            "id": self.id,
            "name": self.begin.name,
            "user": self.begin.user,
            "pid": self.begin.pid,
            "host": self.host,
            "command": self.begin.command,
            "state": self.state,
            "status": self.status,
            "began": self.began,
            "seconds": now - self.since if self.lasted is None else self.lasted,
            "io_nodes": list(self.io_nodes),
            "forwarded_bytes": forwarded_bytes(counters),
            "direct_bytes": direct_bytes(counters),
            "fail_opens": fail_opens(counters),
            "waits": counters.get("waits", 0),
            "waited_seconds": counters.get("waited", 0) / 1e9,
            "counters": dict(counters),
            **self.standing,
        }


class Jobs:
    """Running jobs by id, those that ended of late, and totals over all."""

    def __init__(
        self, next_serial: Callable[[], int], forgotten: tuple[int, int, int] = (0, 0, 0)
    ) -> None:
        """`forgotten` are the totals of jobs that are not listed."""
        self.running: dict[str, Job] = {}
        self._ended: deque[Job] = deque(maxlen=REMEMBERED)
        self._forgotten = list(forgotten)
        self._causes = Counter(dict.fromkeys(FAIL_OPENS, 0)) | Counter(earlier=forgotten[2])
        self._lost: dict[str, Counter[str]] = {}  # causes of lost jobs that are not listed
        self._next = next_serial

    def begin(self, begin: BeginJob, now: float, host: str = "") -> Job:
        """Take a job in; its id is its name and a serial number, or the one that it had."""
        name, _, had = (begin.resumes or "").rpartition(".")
        numbered = had.isascii() and had.isdigit()
        resumes = numbered and name == begin.name and begin.resumes not in self.running
        serial = int(had) if resumes else self._next()
        while f"{begin.name}.{serial}" in self.running:  # one that resumed what nobody knew
            serial = self._next()
        job = Job(
            id=f"{begin.name}.{serial}",
            serial=serial,
            begin=begin,
            began=now,
            host=host,
            pinned=begin.io_nodes is not None,
        )
        if not 0 < len(job.id.encode()) < JOB_BYTES:
            raise InputError(f"job name {begin.name!r} is too long; give a shorter one")
        self.running[job.id] = job
        return job

    def end(self, job: Job, status: int | None, now: float) -> None:
        """Take note that a job ended; with no status it was lost."""
        job.state, job.status = ("lost" if status is None else "ended"), status
        job.ended, job.lasted = max(now, job.began), time.monotonic() - job.since
        del self.running[job.id]
        self.remember(job)

    def take_back(self, lost: "EndedJob") -> None:
        """Take a job that was lost out of the totals: it goes on, or its last word has come."""
        listed = [job for job in self._ended if job.id != lost.id]
        if len(listed) < len(self._ended):
            self._ended = deque(listed, maxlen=REMEMBERED)
            return
        counted = (lost.forwarded_bytes, lost.direct_bytes, lost.fail_opens)
        for k, count in enumerate(counted):
            self._forgotten[k] = max(self._forgotten[k] - count, 0)
        self._causes -= self._lost.pop(lost.id, Counter(earlier=lost.fail_opens))
        self._causes.update(dict.fromkeys(FAIL_OPENS, 0))  # a difference keeps no zeros

    def remember(self, job: Job) -> None:
        """List a job that is over."""
        if len(self._ended) == REMEMBERED:
            self._forget(self._ended.popleft())
        self._ended.append(job)

    def _forget(self, job: Job) -> None:
        """Keep no more of a job than what it adds to the totals."""
        for k, count in enumerate(_COUNTED):
            self._forgotten[k] += count(job.counters)
        causes = Counter({cause: job.counters.get(cause, 0) for cause in FAIL_OPENS})
        self._causes.update(causes)
        if job.state == "lost" and causes.total():
            self._lost[job.id] = causes
            if len(self._lost) > MAY_COME_BACK:
                unknown_now = self._lost.pop(next(iter(self._lost)))
                self._causes.subtract(unknown_now)
                self._causes["earlier"] += unknown_now.total()

    def find(self, name: str) -> Job:
        """Return the running job of this id, or the only one of this name."""
        if name in self.running:
            return self.running[name]
        named = [job for job in self.running.values() if job.begin.name == name]
        if len(named) > 1:
            ids = ", ".join(job.id for job in named)
            raise InputError(f"several running jobs are called {name!r}; name one of {ids}")
        if not named:
            if any(name in (job.id, job.begin.name) for job in self._ended):
                raise InputError(f"job {name!r} has ended; 'penstock status' lists those that run")
            if not self.running:
                raise InputError(f"there is no job {name!r}: no job is running")
            raise unknown("running job", name, self.running)
        return named[0]

    def all(self) -> list[Job]:
        """Return the jobs that are listed, the oldest first."""
        return [*self._ended, *self.running.values()]

    def totals(self) -> tuple[int, int, int]:
        """Return the bytes forwarded and direct, and the fail-opens, of all jobs ever."""
        counters = [job.counters for job in self.all()]
        forwarded, direct, opened = (
            self._forgotten[k] + sum(map(count, counters)) for k, count in enumerate(_COUNTED)
        )
        return forwarded, direct, opened

    def fail_opens(self) -> dict[str, int]:
        """Return the fail-opens of all jobs ever, by cause."""
        found = Counter(self._causes)
        for job in self.all():
            found.update({cause: job.counters.get(cause, 0) for cause in FAIL_OPENS})
        return dict(found)
