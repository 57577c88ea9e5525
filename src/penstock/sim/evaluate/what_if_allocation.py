"""The jobs of a record under other allocators and placers, as what-if compares them.

The resources of the simulation are the I/O nodes: a job on its own ones is slowed down by nobody,
and those that share one share it by the sharing policy that ran. How long a job's I/O takes on
another number of I/O nodes, its curve says, as the record has it. I/O nodes come and go as
recorded, and jobs that asked for some keep them. As on a live site no decision is dropped: jobs of
which a policy knows too little get what its fallback policy gives them, and are counted.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from penstock import registry
from penstock.config import OWN, Config
from penstock.config.sections import DIVIDES
from penstock.core.allotment import FALLBACKS, Allotment
from penstock.core.arbiter import Arbiter
from penstock.core.part_view import PartView
from penstock.errors import InputError
from penstock.model import (
    Action,
    Event,
    Job,
    JobId,
    JobStarted,
    NodeDown,
    NodeUp,
    Pinned,
    Snapshot,
    View,
    WakeAt,
)
from penstock.policies.base import Placer
from penstock.records import ENFORCE, Header, PolicySpec
from penstock.sim.evaluate import what_if
from penstock.sim.evaluate.policy_runs import Outcome, Task
from penstock.sim.evaluate.what_if import WhatIf
from penstock.sim.evaluate.what_ran import UNMANAGED, Ran
from penstock.sim.formats.from_record import Recording

BASELINE = (
    "all, recorded and simulated, are relative to each job alone on the number of I/O nodes that "
    "it had most often; on more of them a job can be faster than that (a slowdown below 1, an "
    "efficiency above 1)"
)
"""What "alone" means in the metrics of all allocations."""


@dataclass(slots=True, kw_only=True)
class Decisions:
    """How the resources of a simulation were given."""

    reasons: Counter[str] = field(default_factory=Counter)
    """Times that jobs got resources, by reason."""
    by_fallback: set[JobId] = field(default_factory=set)
    """Jobs for which the policies did not decide, at one time or another."""
    unmet: dict[str, set[JobId]] = field(default_factory=dict)
    """What the policies need to know and is not known, with the jobs."""
    error: str = ""
    """What a policy raised first."""
    moves: int = 0
    needs: Sequence[str] = ()
    """What the policies must know of a job."""

    def note(self, job: JobId, allotment: Allotment) -> None:
        """Note what a job got."""
        self.reasons[allotment.reason] += 1
        self.error = self.error or allotment.error
        if allotment.reason in FALLBACKS:
            self.by_fallback.add(job)
        for need in allotment.lacks:
            self.unmet.setdefault(need, set()).add(job)

    def as_json(self) -> dict[str, Any]:
        """Return what `penstock what-if --json` prints of it."""
        return {
            "reasons": dict(sorted(self.reasons.items())),
            "jobs_by_fallback": len(self.by_fallback),
            "unmet_needs": {need: len(jobs) for need, jobs in sorted(self.unmet.items())},
            "moves": self.moves,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What allocators make of a record."""

    result: WhatIf
    decisions: Mapping[str, Decisions]
    skipped: Mapping[str, str]
    """Policies that cannot be simulated, each with the reason."""


def candidates(
    header: Header,
    config: Config,
    allocations: Sequence[str],
    placements: Sequence[str],
) -> tuple[str, dict[str, Header]]:
    """Return the name of what ran, and the header of each pair of policies, what ran first.

    Without allocators the one that ran is tried with each placer; without placers each allocator
    has its own.
    """
    acted = header.mode in {None, ENFORCE} and header.allocation is not None
    # Counts that were tried to learn from are none of the policy's.
    base = msgspec.structs.replace(
        header, explore=False, resources_up=header.resources_up or header.part > 1
    )
    ran = base if acted else msgspec.structs.replace(base, allocation=None, placement=None)
    if not allocations:
        if ran.allocation is None:
            raise InputError(
                "no allocation policy acted in the record; name one, too (--allocation)"
            )
        allocations = [ran.allocation.policy]
    headers = {_name(ran, bool(placements)): ran}
    for allocation in allocations:
        for placement in placements or [OWN]:
            pair = _pair(base, config, allocation, placement)
            # What ran has its own options, as recorded.
            headers.setdefault(_name(pair, bool(placements)), pair)
    return next(iter(headers)), headers


def _pair(header: Header, config: Config, allocation: str, placement: str) -> Header:
    if allocation == OWN:
        return msgspec.structs.replace(header, allocation=None, placement=None)
    section, own = config.allocation, header.allocation
    options = section.options if section.policy == allocation else {}
    if own is not None and own.policy == allocation:
        options = own.options
    allocator = registry.policy("allocation", allocation, options)
    placer: PolicySpec | None = None
    if placement != OWN or not isinstance(allocator, Placer):
        named = config.placement if config.placement.policy == placement else None
        placer = PolicySpec(
            policy=config.placement.name(allocator) if placement == OWN else placement,
            options={} if named is None else named.options,
        )
        registry.policy("placement", placer.policy, placer.options)
    return msgspec.structs.replace(
        header,
        allocation=PolicySpec(policy=allocation, options=options),
        placement=placer,
        fallback=PolicySpec(policy=section.fallback_name(allocator) or DIVIDES),
    )


def _name(header: Header, with_placement: bool) -> str:
    if header.allocation is None:
        return OWN
    name = header.allocation.policy
    if not with_placement:
        return name
    return f"{name} + {name if header.placement is None else header.placement.policy}"


def policies(header: Header) -> list[PolicySpec]:
    """Return the policies that a header's arbiter consists of."""
    specs = (header.allocation, header.placement, header.fallback)
    return [spec for spec in specs if spec is not None] if header.allocation else []


def needs(header: Header) -> list[str]:
    """Return what the allocator and the placer of a header must know of a job, sorted."""
    if header.allocation is None:
        return []
    specs = {"allocation": header.allocation, "placement": header.placement}
    known = [
        getattr(registry.policy(kind, spec.policy, spec.options), "needs", ())
        for kind, spec in specs.items()
        if spec is not None
    ]
    return sorted({need for each in known for need in each})


def compare(
    recording: Recording,
    ran: Ran,
    headers: Mapping[str, Header],
    *,
    sharing: str,
    task: Task,
    advance: Callable[[], None],
) -> Compared:
    """Simulate the jobs of a record under each pair of policies, of which `ran` must be one."""
    outcomes: dict[str, Outcome] = {}
    decisions: dict[str, Decisions] = {}
    skipped: dict[str, str] = {}
    for name, header in headers.items():
        noted = Decisions(needs=needs(header))
        try:
            outcomes[name] = _simulate(recording, header, sharing, task, noted)
        except InputError as error:
            if name == ran.policy:
                raise InputError(f"{name}, which ran, cannot be simulated: {error}") from error
            skipped[name] = str(error)
        else:
            if noted.error and name != ran.policy:
                skipped[name] = f"it fails: {noted.error}"
                del outcomes[name]
            else:
                decisions[name] = noted
        advance()
    result = what_if.judge(recording, ran, outcomes, task.window)
    return Compared(result=result, decisions=decisions, skipped=skipped)


def _simulate(
    recording: Recording, header: Header, sharing: str, task: Task, decisions: Decisions
) -> Outcome:
    arbiter = header.arbiter()
    if arbiter is None:
        return task.measure(recording.workload, sharing)
    arbiter.observe = decisions.note
    # Exact or noisy knowledge, on request, is of the simulation; learned is what was known then.
    known = recording.known if task.knowledge.kind == "learned" else {}
    recorded = AsRecorded(arbiter, recording.changes, recording.pinned, known)
    outcome = replace(task, arbiter=lambda: recorded).measure(recording.workload, sharing)
    decisions.moves = arbiter.moves
    return outcome


class AsRecorded:
    """An arbiter that hears of I/O nodes that come and go, and of jobs that asked for some.

    It is told of jobs what the controller knew of them when they began.
    """

    def __init__(
        self,
        arbiter: Arbiter,
        changes: Sequence[NodeUp | NodeDown],
        pinned: Mapping[JobId, tuple[int, ...]],
        known: Mapping[JobId, Job],
    ) -> None:
        self._arbiter, self._known = arbiter, known
        self._changes = sorted(changes, key=lambda change: change.time)
        self._pinned = pinned
        self._began = False

    def handle(self, event: Event, view: View) -> Sequence[Action]:
        """Return the assignments that follow from an event, and from what happened until then."""
        actions: list[Action] = []
        if self._known:
            jobs = {id: self._recorded_job(job) for id, job in view.jobs.items()}
            view = PartView(view, jobs, view.site.resources)
            if isinstance(event, JobStarted):
                event = replace(event, job=self._recorded_job(event.job))
        if not self._began:
            self._began = True
            empty = Snapshot.of([], view.site)
            for change in self._due(event.time):
                self._arbiter.handle(change, empty)
            actions += [WakeAt(time=time) for time in sorted({c.time for c in self._changes})]
        if isinstance(event, JobStarted) and event.job.id in self._pinned:
            resources = self._pinned[event.job.id]
            pin = Pinned(time=event.time, job=event.job.id, resources=resources)
            self._arbiter.handle(pin, view)
        actions += self._arbiter.handle(event, view)
        for change in self._due(event.time):
            actions += self._arbiter.handle(replace(change, time=event.time), view)
        return actions

    def _recorded_job(self, job: Job) -> Job:
        """Return a job with what the controller knew of it."""
        known = self._known.get(job.id)
        if known is None:
            return job
        w_iter = job.w_iter if known.w_iter is None else known.w_iter
        return replace(known, id=job.id, serial=job.serial, w_iter=w_iter)

    def _due(self, now: float) -> list[NodeUp | NodeDown]:
        due = [change for change in self._changes if change.time <= now]
        self._changes = self._changes[len(due) :]
        return due


def notes(header: Header, ran: Ran) -> list[str]:
    """Return what a reader of the comparison must know; `ran` is the sharing policy."""
    texts = [
        "jobs on different I/O nodes are simulated as if they did not slow each other down, which "
        "holds where I/O nodes are slower than the file system",
        f"stretch, I/O slowdown, yield and efficiency: {BASELINE}",
    ]
    live = header.source in ("live", "emulated") and header.site.resources > 1
    of_file_system = header.scope == "file-system"
    if live and of_file_system and ran.mode == ENFORCE and ran.policy != UNMANAGED:
        texts.append(
            "turns were of the whole file system; the simulation gives them for each I/O node"
        )
    if header.explore and header.allocation is not None and header.mode == ENFORCE:
        texts.append("numbers of I/O nodes that were tried to learn are not simulated")
    return texts
