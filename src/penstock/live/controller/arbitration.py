"""How a deployment gives I/O nodes to jobs: its policies, checked, and what people are told."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from penstock.config import OWN, Config
from penstock.config.sections import DIVIDES
from penstock.core import answers
from penstock.core.allotment import FALLBACKS, REASONS, Allotment
from penstock.core.arbiter import Arbiter
from penstock.errors import InputError
from penstock.live.controller.core_inputs import CLASS, WHY_UNKNOWN
from penstock.live.controller.pace import JobLog
from penstock.live.controller.policy_watch import Watch, unwatched
from penstock.live.protocol.io_node_record import AllocationStatus
from penstock.live.protocol.job_record import JobAllocation
from penstock.model import Action, Curve, Event, Job, JobId, Site, Snapshot, View
from penstock.model.job import PRIOR
from penstock.records import Header, PolicySpec
from penstock.units import show_count


def with_arbitration(header: Header, config: Config, watch: Watch = unwatched) -> Header:
    """Return the header of a live site: no decision is dropped, and I/O nodes come up one by one.

    InputError: a policy can never decide live, or takes longer than `watch` allows.
    """
    if header.allocation is None:
        return header
    section = config.allocation
    fallback = section.fallback_name(section.allocator()) or DIVIDES
    header = msgspec.structs.replace(
        header,
        fallback=PolicySpec(policy=fallback),
        settle=section.settling_time(),
        explore=section.explore,
        resources_up=False,
    )
    check(header, watch)
    return header


def check(header: Header, watch: Watch = unwatched) -> None:
    """Raise InputError if a policy cannot decide even for a job of which everything is known."""
    assert header.allocation is not None
    arbiter = header.arbiter()
    assert arbiter is not None
    names = {"allocation": header.allocation.policy}
    if header.placement is not None:
        names["placement"] = header.placement.policy
    for kind, policy in (("allocation", arbiter.allocator), ("placement", arbiter.placer)):
        if why := getattr(policy, "offline", ""):
            raise InputError(f"{kind} policy {names.get(kind, 'search')!r} cannot run live: {why}")
    job = Job(
        id="example",
        serial=0,
        processes=1,
        w_iter=1.0,
        curve=Curve.of({1: 1.0}),
        volume=1.0,
        compute=1.0,
    )
    view = Snapshot.of([job], header.site)
    if header.fallback is not None:
        _check_fallback(header.fallback, header.site, watch)
    try:
        with watch():
            counts = answers.allocate(arbiter.allocator, view)
            answers.place(arbiter.placer, view, counts, {})
    except InputError as error:
        raise InputError(
            f"allocation policy {header.allocation.policy!r} cannot decide for this site, even for "
            f"a job of which all is known: {error}"
        ) from error


def _check_fallback(fallback: PolicySpec, site: Site, watch: Watch) -> None:
    """Raise InputError if the fallback policy cannot decide for a job of which nothing is known."""
    name, policy = fallback.policy, fallback.make("allocation")
    advice = "it is for jobs of which too little is known; name another, such as 'size'"
    if why := getattr(policy, "offline", ""):
        raise InputError(f"fallback policy {name!r} cannot run live: {why}")
    if lacks := policy.needs - {"nodes"}:
        raise InputError(f"fallback policy {name!r} needs {', '.join(sorted(lacks))}; {advice}")
    try:
        with watch():
            answers.allocate(policy, Snapshot.of([Job(id="example", serial=0)], site))
    except InputError as error:
        raise InputError(
            f"fallback policy {name!r} cannot decide for this site: {error}; {advice}"
        ) from error


class Allocations:
    """What the arbiter of a site decided, for status, explain, metrics and the log.

    What jobs that are not enforced would have is decided apart, as if all jobs were enforced.
    """

    def __init__(
        self,
        header: Header,
        arbiter: Arbiter,
        clock: Callable[[], float] = time.monotonic,
        job_log: JobLog | None = None,
    ) -> None:
        assert header.allocation is not None
        self.seconds = 0.0
        """How long the last decision took."""
        self.decides = False
        """A decision is being made, or the last one raised an exception."""
        self._clock = clock
        self.policy = header.allocation.policy
        self.placement = self.policy if header.placement is None else header.placement.policy
        self.fallback = OWN if header.fallback is None else header.fallback.policy
        self.arbiter = arbiter
        arbiter.observe = self._decided
        shown = header.arbiter(of_all=True, hears_phases=True)
        assert shown is not None
        self._shown = shown
        shown.observe = self._would_be
        self._enforced: set[JobId] = set()
        self._jobs: Mapping[JobId, Job] = {}
        self._log_of_jobs = job_log or JobLog(clock)
        self._reasons: Counter[str] = Counter()

    def handle(self, event: Event, view: View) -> Sequence[Action]:
        """Decide; what is decided for display leads to no action."""
        began, self.decides = self._clock(), True
        actions = self._decide(event, view)
        self.seconds, self.decides = self._clock() - began, False
        return actions

    def begins_io(self, job: JobId) -> None:
        """A job begins an I/O phase."""
        self.arbiter.begins_io(job)
        self._shown.begins_io(job)

    def _decide(self, event: Event, view: View) -> Sequence[Action]:
        self._jobs = view.jobs
        actions = self.arbiter.handle(event, view)
        self._enforced = {id for id, job in view.jobs.items() if job.enforced}
        # Whom it wakes when jobs are old enough is woken by the arbiter, too.
        self._shown.handle(event, view)
        return actions

    @property
    def name(self) -> str:
        """The policies that decide, for people."""
        return f"allocation policy {self.policy} with placement policy {self.placement}"

    @property
    def failures(self) -> int:
        """Times that a policy raised an exception or returned an invalid value."""
        return self.arbiter.failures + self._shown.failures

    def status(self, moves: int) -> AllocationStatus:
        """Return the policies, and totals."""
        return AllocationStatus(
            policy=self.policy,
            placement=self.placement,
            fallback=self.fallback,
            settle=self.arbiter.settle,
            moves=moves,
            reasons={reason: self._reasons[reason] for reason in REASONS},
        )

    def of(self, id: JobId, job: Job, now: float) -> JobAllocation | None:
        """Return what was decided for a job."""
        decided_by = self.arbiter if job.enforced else self._shown
        allotment = decided_by.allotments.get(id)
        if allotment is None:
            return None
        return JobAllocation(
            io_nodes=sorted(allotment.resources),
            reason=allotment.reason,
            policy=self._decided_by(allotment),
            knowledge=self._knowledge(job, allotment),
            lacks=list(allotment.lacks),
            why_unknown=str(job.hints.get(WHY_UNKNOWN, "")),
            error=allotment.error,
            since_seconds=max(now - allotment.since, 0.0),
        )

    def _decided_by(self, allotment: Allotment) -> str:
        match allotment.reason:
            case "policy" | "prior" | "placed-by-load":
                return self.policy
            case "unknown" | "failed" if not allotment.by_default:
                return self.fallback
        return ""

    def _knowledge(self, job: Job, allotment: Allotment) -> dict[str, str]:
        """Return what the policies use of a job and is known, in words."""
        if allotment.reason in ("pinned", "unreachable"):
            return {}
        if allotment.reason in ("unknown", "failed"):
            return {"nodes": show_count(job.nodes, "compute node")}
        needs = self.arbiter.allocator.needs | self.arbiter.placer.needs
        known = {}
        if job.curve is not None and needs & {"curve", "best-count"}:
            known["curve"] = _curve(job, job.curve)
        if job.volume is not None and "volume" in needs:
            known["volume"] = f"{job.volume:.4g} bytes"
        if job.compute is not None and "compute" in needs:
            known["compute"] = f"{job.compute:.4g} s"
        if job.processes is not None and "processes" in needs:
            known["processes"] = str(job.processes)
        if "nodes" in needs:
            known["nodes"] = show_count(job.nodes, "compute node")
        return known

    def _decided(self, id: JobId, allotment: Allotment) -> None:
        self._log(id, allotment, "decided")

    def _would_be(self, id: JobId, allotment: Allotment) -> None:
        if id not in self._enforced:
            self._log(id, allotment, "decided (its mode is not enforce)")

    def _log(self, id: JobId, allotment: Allotment, decided: str) -> None:
        self._reasons[allotment.reason] += 1
        warns = allotment.error and allotment.reason in FALLBACKS
        why = f": {allotment.error}" if allotment.error else ""
        if allotment.lacks:
            why += f" (not known: {', '.join(allotment.lacks)})"
        job = self._jobs.get(id)
        self._log_of_jobs.note(
            "" if job is None else job.user,
            "job %s: I/O nodes %s %s, reason %s%s",
            *(id, sorted(allotment.resources), decided, allotment.reason, why),
            level=logging.WARNING if warns else logging.INFO,
        )


def _curve(job: Job, curve: Curve) -> str:
    """Say where a job's curve is from: its hint `curve` says if not from its own phases."""
    source = str(job.hints.get("curve", "observed"))
    if PRIOR not in job.hints:
        return f"{source} at {_counts(curve)}"
    numbers = str(job.hints[PRIOR]).replace(",", ", ")
    prior = f"a prior at {numbers}: {job.hints.get(CLASS, '')}"
    own = job.own_curve
    return prior if own is None else f"{source.partition(' ')[0]} at {_counts(own)}; {prior}"


def _counts(curve: Curve) -> str:
    return ", ".join(map(str, curve.counts))
