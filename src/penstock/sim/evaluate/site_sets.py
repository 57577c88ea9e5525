"""Which of set-10's sets the jobs of a site fall into, and how often sets meet.

Paper io-sets, Section VIII, for any site: the paper asks it of a year of PlaFRIM's jobs. It takes
jobs that reach 100 MB/s and have more than one I/O phase, and counts the sets of the jobs that run
in windows of five hours. That jobs of two sets run in one window does not mean that they ever do
I/O together, so this counts the time in which they do as well.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.learn.profiles import Profile
from penstock.model import Job
from penstock.policies.sharing.set_10 import Set10
from penstock.sim.workload import Workload
from penstock.units import show_count, show_seconds

MOST_WINDOWS = 1_000_000
ENOUGH_JOBS, ENOUGH_WINDOWS = 30, 10
"""With fewer, nothing is said about the site; our choice."""
LITTLE = 0.01
"""If less of the jobs' I/O time is shared with other jobs, turns cannot gain much; our choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Which jobs count, and the length of the windows; the defaults are the paper's."""

    bandwidth: float = 1e8
    """Bytes per second while a job does I/O, at least."""
    phases: int = 2
    """I/O phases of a job, at least."""
    window: float = 5 * 3600.0
    """Seconds."""

    def __post_init__(self) -> None:
        if self.window <= 0:
            raise InputError("a window has no length; give a positive time")


PAPER = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTimes:
    """When a job ran and did I/O, in seconds since any time that all jobs have in common."""

    begin: float
    end: float
    phases: Sequence[tuple[float, float]]
    w_iter: float | None
    bandwidth: float | None
    """Bytes per second while it did I/O; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Whether set-10 can gain here, or None if that cannot be said; and why."""

    gain_possible: bool | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSets:
    """What was found; all jobs but `few_phases` and `slow` count."""

    jobs: int
    few_phases: int
    """Jobs left out: they have too few I/O phases."""
    slow: int
    """Jobs left out: they are below the bandwidth."""
    unknown_bandwidth: int
    """Jobs that count although their bandwidth is not known."""
    jobs_by_set: dict[int, int]
    windows: int
    """Windows in which a job ran."""
    windows_by_sets: dict[int, int]
    """Windows by the number of sets of the jobs that ran in them, as the paper counts."""
    windows_by_sets_in_io: dict[int, int]
    """Windows by the largest number of sets that were in I/O at one time."""
    io_seconds: float
    """Time in I/O, summed over jobs."""
    shared: float
    """The part of it in which another job was in I/O too."""
    shared_in_set: float
    """The part in which another job of the same set was."""
    shared_between_sets: float
    """The part in which a job of another set was."""

    @property
    def answer(self) -> Answer:
        """Say in a sentence whether set-10 is worth it here."""
        if self.jobs < ENOUGH_JOBS or self.windows < ENOUGH_WINDOWS:
            return Answer(
                gain_possible=None,
                sentence=f"Cannot be said of {show_count(self.jobs, 'job')} in "
                f"{show_count(self.windows, 'window')}; it takes {ENOUGH_JOBS} jobs and "
                f"{ENOUGH_WINDOWS} windows at least.",
            )
        if self.shared < LITTLE:
            return Answer(
                gain_possible=False,
                sentence=f"No: jobs shared {self.shared:.1%} of their I/O time with other jobs, so "
                "that turns have little to gain.",
            )
        between = (
            f"{self.shared_between_sets:.0%} with jobs of other sets"
            if self.shared_between_sets
            else "none of it with jobs of other sets, so that its weights would have no effect"
        )
        return Answer(
            gain_possible=True,
            sentence=f"Worth a simulation: jobs shared {self.shared:.0%} of their I/O time with "
            f"other jobs ({self.shared_in_set:.0%} with jobs of their own set, {between}).",
        )


def of_profile(profile: Profile) -> JobTimes:
    """Return the times of a run that Darshan logged, in seconds since 1970.

    Two phases are enough for a w_iter here, as for the paper: from end to end.
    """
    phases = [(profile.start + p.began, profile.start + p.ended) for p in profile.phases]
    w_iter = profile.w_iter
    if w_iter is None and len(phases) > 1:
        w_iter = (phases[-1][1] - phases[0][1]) / (len(phases) - 1)
    in_io = sum(end - begin for begin, end in phases) or profile.io_seconds
    return JobTimes(
        begin=profile.start,
        end=profile.start + profile.seconds,
        phases=phases,
        w_iter=w_iter,
        bandwidth=profile.volume / in_io if in_io > 0 else None,
    )


def of_workload(workload: Workload) -> Iterator[JobTimes]:
    """Yield the times of a workload's jobs as if each ran alone, from its release on."""
    for j, w_iter in enumerate(workload.w_iter.tolist()):
        rows = slice(*workload.offsets[j : j + 2].tolist())
        now, phases = float(workload.release[j]), []
        columns = workload.compute[rows].tolist(), workload.isolated_io[rows].tolist()
        for compute, io in zip(*columns, strict=True):
            now += compute
            if io > 0:
                phases.append((now, now + io))
            now += io
        yield JobTimes(
            begin=float(workload.release[j]), end=now, phases=phases, w_iter=w_iter, bandwidth=None
        )


def count(jobs: Iterable[JobTimes], limits: Limits = PAPER) -> SiteSets:
    """Return the sets of jobs, and how often they meet; windows count from the first start."""
    policy = Set10()
    counted: list[tuple[int, JobTimes]] = []
    left_out: Counter[str] = Counter()
    for job in jobs:
        if len(job.phases) < limits.phases or not job.w_iter:
            left_out["few_phases"] += 1
        elif job.bandwidth is not None and job.bandwidth < limits.bandwidth:
            left_out["slow"] += 1
        else:
            left_out["unknown_bandwidth"] += job.bandwidth is None
            counted.append((policy.group(Job(id="", serial=0, w_iter=job.w_iter)), job))
    windows = _Windows([job for _, job in counted], limits.window)
    for number, job in counted:
        windows.ran(number, job)
    in_io = _InIo(windows)
    in_io.sweep(counted)
    return SiteSets(
        jobs=len(counted),
        few_phases=left_out["few_phases"],
        slow=left_out["slow"],
        unknown_bandwidth=left_out["unknown_bandwidth"],
        jobs_by_set=dict(sorted(Counter(number for number, _ in counted).items())),
        windows=len(windows.sets),
        windows_by_sets=dict(sorted(Counter(map(len, windows.sets.values())).items())),
        windows_by_sets_in_io=dict(
            sorted(Counter(windows.together.get(k, 0) for k in windows.sets).items())
        ),
        io_seconds=in_io.seconds,
        shared=in_io.part(in_io.shared),
        shared_in_set=in_io.part(in_io.in_set),
        shared_between_sets=in_io.part(in_io.between),
    )


class _Windows:
    """Windows of equal length in which jobs ran, by number."""

    def __init__(self, jobs: Sequence[JobTimes], length: float) -> None:
        self._length = length
        self._first = min((job.begin for job in jobs), default=0.0)
        if sum((job.end - job.begin) / length + 1 for job in jobs) > MOST_WINDOWS:
            raise InputError(
                f"jobs run in more than {MOST_WINDOWS:,} windows of {show_seconds(length)}; give a "
                "longer window"
            )
        self.sets: dict[int, set[int]] = {}
        self.together: dict[int, int] = {}

    def ran(self, number: int, job: JobTimes) -> None:
        """Note the set of a job that ran."""
        for k in self._numbers(job.begin, job.end):
            self.sets.setdefault(k, set()).add(number)

    def in_io(self, begin: float, end: float, sets: int) -> None:
        """Note how many sets were in I/O at one time."""
        for k in self._numbers(begin, end):
            self.together[k] = max(self.together.get(k, 0), sets)

    def _numbers(self, begin: float, end: float) -> range:
        """Return the windows that a time reaches into; one that ends on an edge does not cross."""
        first = math.floor((begin - self._first) / self._length)
        return range(first, max(math.ceil((end - self._first) / self._length), first + 1))


class _InIo:
    """Adds up the time of jobs in I/O, alone and together."""

    def __init__(self, windows: _Windows) -> None:
        self._windows = windows
        self.seconds = self.shared = self.in_set = self.between = 0.0

    def sweep(self, jobs: Sequence[tuple[int, JobTimes]]) -> None:
        """Go through all begins and ends of phases in order of time."""
        changes = sorted(
            change
            for number, job in jobs
            for begin, end in job.phases
            for change in ((begin, 1, number), (end, -1, number))
        )
        active: Counter[int] = Counter()
        before = 0.0
        for time, step, number in changes:
            if time > before and active.total():
                self._add(before, time, active)
            before = time
            active[number] += step

    def _add(self, begin: float, end: float, active: Counter[int]) -> None:
        length, everybody = end - begin, active.total()
        counts = [n for n in active.values() if n]
        self._windows.in_io(begin, end, len(counts))
        self.seconds += length * everybody
        if everybody > 1:
            self.shared += length * everybody
        self.in_set += length * sum(n for n in counts if n > 1)
        if len(counts) > 1:
            self.between += length * everybody

    def part(self, seconds: float) -> float:
        """Return a part of the time in I/O."""
        return seconds / self.seconds if self.seconds else 0.0
