"""Assigns resources to jobs whenever a job starts or ends, or a resource comes or goes.

The allocator says how many each job gets, the placer which ones (paper forwarding, Section 5.6.3).
A job that starts gets its resources at once. A running job is moved only if its count changes, one
of its resources is gone, or a `joint` placer decides for all jobs; the Assign comes `remap_delay`
seconds later (GekkoFWD's clients ask every ten seconds), with what was decided last by then. Under
a `sticky` allocator a running job keeps its count.

Jobs that reach the same resources divide these among themselves: those that are up, and that serve
the job's user, host and partition.

With a `fallback` no decision is ever dropped. The allocator decides for the jobs of which it knows
what it needs, as if no others ran; the others share what is left by the fallback policy, which
knows nothing of their curves, on the least loaded resources. So an unknown job takes nothing from a
known one. One that is younger than `settle` seconds gets one resource and moves nobody, neither
when it starts nor when it ends (Section 5.7: short jobs are not eligible). If the allocator raises
an exception, the fallback policy decides for all. Every job's `Allotment` says which case it was.
Without a fallback, as in most simulations, an exception is the caller's.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.core.allotment import DECIDED, Allotment, Reason, by_prior, lacking
from penstock.core.explorer import Explorer
from penstock.core.spread import Spread
from penstock.errors import InputError
from penstock.model import (
    Action,
    Assign,
    Event,
    Job,
    JobEnded,
    JobId,
    JobStarted,
    NodeDown,
    NodeUp,
    PhaseBegan,
    Pinned,
    ResourceId,
    View,
    WakeAt,
    Woke,
)
from penstock.policies._support.asking import ask, guard, shown
from penstock.policies.base import Allocator, Placer
from penstock.policies.placement.greedy_non_clairvoyant import GreedyNonClairvoyant

Arbitrate = Callable[[Event, View], Sequence[Action]]
"""Handles an event, of phases those that begin; returns Assign and WakeAt."""
Resources = tuple[ResourceId, ...]
Jobs = Mapping[JobId, Job]
EXPLORE = "explore"
"""The hint of a job whose count may be varied to learn its curve."""


@dataclass(slots=True)
class _Move:
    """A running job's next resources, and when to send them."""

    time: float
    resources: Resources


@dataclass(slots=True)
class _Decision:
    """What was decided for jobs that reach the same resources."""

    reasons: dict[JobId, Reason] = field(default_factory=dict)
    counts: dict[JobId, int] = field(default_factory=dict)
    places: dict[JobId, Resources] = field(default_factory=dict)
    lacks: dict[JobId, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""

    def give(self, counts: Mapping[JobId, int], reason: Reason) -> None:
        self.counts |= counts
        self.reasons |= dict.fromkeys(counts, reason)

    def decides(self, job: JobId) -> bool:
        """Tell whether a job has a count of its own, and not a share of what others leave."""
        return self.reasons[job] not in ("new", "unknown")


class Arbiter:
    """Runs the allocator and the placer whenever the jobs or the usable resources change."""

    def __init__(
        self,
        *,
        allocator: Allocator,
        placer: Placer,
        fallback: Allocator | None = None,
        remap_delay: float = 0.0,
        settle: float = 0.0,
        explorer: Explorer | None = None,
        all_up: bool = True,
    ) -> None:
        """`all_up`: resources serve before the first NodeUp, which a live site waits for."""
        for name, seconds in (("remap-delay", remap_delay), ("settle", settle)):
            if not seconds >= 0:
                raise InputError(f"{name} is {seconds}; give seconds, zero or more")
        self.allocator = allocator
        self.placer = placer
        self.fallback = fallback
        self.remap_delay = remap_delay
        self.settle = settle
        self.explorer = explorer
        self.moves = 0
        """Times that a running job was moved."""
        self.assigned: dict[JobId, Resources] = {}
        """The resources that each job has, or will have once its Assign is sent."""
        self.allotments: dict[JobId, Allotment] = {}
        """The same, with reasons."""
        self.reasons: Counter[Reason] = Counter()
        """Times that a job got resources for each reason."""
        self.observe: Callable[[JobId, Allotment], None] = _ignore
        """Called with every new allotment."""
        self._started: dict[JobId, float] = {}
        self._settling: dict[JobId, float] = {}  # when jobs that are too young are so no longer
        self._pinned: dict[JobId, Resources] = {}
        self._explored: dict[JobId, int] = {}
        self._pending: dict[JobId, _Move] = {}
        self._displaced: set[JobId] = set()  # moved because a resource was gone
        self._returning: set[JobId] = set()  # placed again, because a resource is back
        self._spread = Spread()
        self._all_up = all_up
        self._up: dict[ResourceId, NodeUp | None] = {}  # None: it is down

    def handle(self, event: Event, view: View) -> list[Action]:
        """Return the assignments that follow from an event."""
        now, actions = event.time, list[Action]()
        match event:
            case JobStarted():
                self._started[event.job.id] = now
                actions += self._settles(event.job)
            case PhaseBegan():
                self._spread.begins_io(event.job, self.assigned.get(event.job, ()))
                return []
            case JobEnded():
                self._spread.ended(event.job)
                for of_job in (
                    *(self.assigned, self.allotments, self._started, self._pending),
                    *(self._settling, self._pinned, self._explored),
                ):
                    of_job.pop(event.job, None)
            case NodeUp():
                self._up[event.resource] = event
                self._returning, self._displaced = self._displaced, set()
            case NodeDown():
                self._up[event.resource] = None
                self._displaced |= {j for j, had in self.assigned.items() if event.resource in had}
            case Pinned():
                self._pinned[event.job] = event.resources
                if event.job not in self._started:
                    return []
            case Woke():
                actions += self._deliver(now)
                if not self._settled(now):
                    return actions
            case _:
                return []
        return actions + self._decide(now, view)

    def _settles(self, job: Job) -> list[Action]:
        """Note a job that is not eligible yet; ask to be woken when it is."""
        if self.fallback is None or not self.settle or not lacking(job, self.allocator):
            return []
        due = self._started[job.id] + self.settle
        self._settling[job.id] = due
        return [WakeAt(time=due)]

    def _settled(self, now: float) -> bool:
        """Tell whether jobs have become eligible."""
        due = [job for job, time in self._settling.items() if time <= now]
        for job in due:
            del self._settling[job]
        return bool(due)

    def _decide(self, now: float, view: View) -> list[Action]:
        actions: list[Action] = []
        for usable, jobs in self._by_reach(view):
            decision = self._divide(now, view, usable, jobs)
            for job, resources in decision.places.items():
                actions += self._change(now, job, resources)
            for job, why in decision.reasons.items():
                self._keep(job, why, decision, now)
        self._returning = set()
        return actions

    def _by_reach(self, view: View) -> Iterable[tuple[list[ResourceId], Jobs]]:
        """Return the resources that jobs can use, each with the jobs that can use just these."""
        up = [r for r in range(view.site.resources) if self._up.get(r, self._all_up)]
        limits = {r: node for r in up if (node := self._up.get(r)) and node.is_limited}
        if not limits:
            return [(up, view.jobs)] if view.jobs else []
        groups: dict[tuple[str, str, str], dict[JobId, Job]] = {}
        for id, job in view.jobs.items():
            groups.setdefault((job.user, job.host, job.partition), {})[id] = job
        reach: dict[tuple[ResourceId, ...], dict[JobId, Job]] = {}
        for member, jobs in groups.items():
            usable = tuple(r for r in up if r not in limits or limits[r].serves(*member))
            reach.setdefault(usable, {}).update(jobs)
        return [(list(usable), jobs) for usable, jobs in reach.items()]

    def _divide(self, now: float, view: View, usable: list[ResourceId], jobs: Jobs) -> _Decision:
        """Decide how many of the usable resources each of the jobs gets, and which."""
        decision = _Decision()
        pinned = {job: self._pinned[job] for job in jobs if job in self._pinned}
        decision.places |= pinned
        decision.reasons |= dict.fromkeys(pinned, "pinned")
        others = jobs if not pinned else {id: j for id, j in jobs.items() if id not in pinned}
        if not usable:
            if self.fallback is None:
                return decision  # nothing to choose from: jobs keep what they have
            decision.places |= {job: self.assigned.get(job, ()) for job in others}
            decision.reasons |= dict.fromkeys(others, "unreachable")
            return decision
        self._count(view, len(usable), others, decision)
        self._explore(now, others, len(usable), decision)
        self._place(view, usable, jobs, decision)
        return decision

    def _count(self, view: View, resources: int, jobs: Jobs, decision: _Decision) -> None:
        """Decide how many resources each job gets."""
        known = jobs
        if self.fallback is not None:
            lacks = {id: lacking(job, self.allocator) for id, job in jobs.items()}
            decision.lacks = {id: needs for id, needs in lacks.items() if needs}
            if decision.lacks:
                known = {id: job for id, job in jobs.items() if id not in decision.lacks}
        try:
            if known:
                counts = self._by_policy(self._allocator_view(view, known, resources))
                decision.give(counts, "policy")
                for id, job in known.items():
                    if by_prior(job, self.allocator):
                        decision.reasons[id] = "prior"
        except Exception as error:
            if self.fallback is None:
                raise
            decision.error, known = _text(self.allocator, error), {}
        if len(known) == len(jobs):
            return
        decision.give({id: 1 for id in decision.lacks if id in self._settling}, "new")
        rest = {id: replace(j, curve=None) for id, j in jobs.items() if id not in decision.counts}
        left = resources if not known else resources - sum(decision.counts[id] for id in known)
        counts = self._by_fallback(_part(view, rest, max(left, 1))) if rest else {}
        for id, count in counts.items():
            decision.give({id: count}, "unknown" if id in decision.lacks else "failed")

    @property
    def _uses_curves(self) -> bool:
        return bool(self.allocator.needs & {"best-count", "curve"})

    def _allocator_view(self, view: View, jobs: Jobs, resources: int) -> View:
        """Return what the allocator is told of these jobs.

        Learnt curves have the counts that jobs happened to have, and a policy gives no others: one
        that asks for no curve would be bound by what it gave before.
        """
        if self.fallback is None or self._uses_curves:
            return _part(view, jobs, resources)
        plain = {id: replace(job, curve=None) for id, job in jobs.items()}
        return _PartView(view, plain, resources)

    def _by_policy(self, view: View) -> dict[JobId, int]:
        counts = allocate(self.allocator, view)
        if self.allocator.sticky:
            most = view.site.resources
            for job in counts:
                if job in self.assigned:
                    counts[job] = min(len(self.assigned[job]), most)
        return counts

    def _by_fallback(self, view: View) -> dict[JobId, int]:
        assert self.fallback is not None
        try:
            return allocate(self.fallback, view)
        except Exception:  # a policy of the site's own: one each needs no policy
            return dict.fromkeys(view.jobs, 1)

    def _explore(self, now: float, jobs: Jobs, resources: int, decision: _Decision) -> None:
        """Vary the count of a job that starts, if it may be and there is room.

        As in every decision, jobs of which too little is known take no room from the others. They
        have what is left, so that each counts as one where the load is judged.
        """
        if self.explorer is None or not self._uses_curves:
            return
        undecided = sum(not decision.decides(id) for id in decision.counts)
        decided = sum(map(len, decision.places.values()))  # of pinned jobs
        decided += sum(n for id, n in decision.counts.items() if decision.decides(id))
        for id, job in jobs.items():
            count, was_decided = decision.counts[id], decision.decides(id)
            others = decided - count if was_decided else decided
            unknown = undecided if was_decided else undecided - 1
            begins = self._started[id] == now and id not in self.assigned
            if begins and job.hints.get(EXPLORE):
                tried = self.explorer.choose(
                    job,
                    count,
                    others=others + unknown,
                    room=resources - others,
                    resources=resources,
                )
                if tried is not None:
                    self._explored[id] = tried
            if id in self._explored:
                explored = self._explored[id]
                if others + explored > resources:
                    del self._explored[id]  # others need the room
                    continue
                decision.give({id: explored}, "explored")
                decided, undecided = others + explored, unknown

    def _place(self, view: View, usable: list[ResourceId], jobs: Jobs, decision: _Decision) -> None:
        """Choose the resources of each job: by the placer, then on the least loaded."""
        by_load = {id for id, why in decision.reasons.items() if why not in DECIDED | {"pinned"}}
        if self.fallback is not None:
            for id in decision.counts:
                if id not in by_load and (needs := lacking(jobs[id], self.placer)):
                    by_load.add(id)
                    decision.lacks[id], decision.reasons[id] = needs, "placed-by-load"
        placed = {id: jobs[id] for id in decision.counts if id not in by_load}
        if len(placed) < len(jobs):
            # Policies prefer low numbers: those without any other job come first.
            load = Counter(r for id in jobs if id not in placed for r in self.assigned.get(id, ()))
            usable = sorted(usable, key=lambda r: (load[r], r))
        try:
            decision.places |= self._by_placer(view, usable, placed, decision.counts)
        except Exception as error:
            if self.fallback is None:
                raise
            decision.error = _text(self.placer, error)
            for id in placed:
                decision.reasons[id] = "placed-by-load"
            by_load |= placed.keys()
        if by_load:
            counts = {id: n for id, n in decision.counts.items() if id in by_load}
            decision.places |= self._least_loaded(view, usable, jobs, counts, decision.places)

    def _by_placer(
        self, view: View, usable: list[ResourceId], jobs: Jobs, counts: Mapping[JobId, int]
    ) -> dict[JobId, Resources]:
        # Policies number the usable resources from 0.
        number = {resource: k for k, resource in enumerate(usable)}
        decided = {
            job: tuple(number[r] for r in self.assigned[job] if r in number)
            for job in jobs
            if job in self.assigned and job not in self._returning
        }
        joint = getattr(self.placer, "joint", False) and not self.allocator.sticky
        to_place = {
            job: counts[job]
            for job in jobs
            if joint
            or job not in decided
            or len(decided[job]) != counts[job]
            or len(self.assigned[job]) != counts[job]  # one of its resources is gone
        }
        if not to_place:
            return {job: self.assigned[job] for job in jobs}
        staying = decided if joint else {j: r for j, r in decided.items() if j not in to_place}
        places = place(self.placer, _part(view, jobs, len(usable)), to_place, staying)
        return {
            job: tuple(usable[k] for k in places[job]) if job in places else self.assigned[job]
            for job in jobs
        }

    def _least_loaded(
        self,
        view: View,
        usable: list[ResourceId],
        jobs: Jobs,
        counts: Mapping[JobId, int],
        places: Mapping[JobId, Resources],
    ) -> dict[JobId, Resources]:
        """Return the resources of jobs that the placer does not place; they stay if they can.

        Jobs load a resource if the policies decided for them or they do I/O. Of equally loaded ones
        those come first that fewer jobs used, so that jobs that run one after the other use all.
        """
        usable = self._spread.order(usable, self.assigned, self._started, view.now)
        number = {resource: k for k, resource in enumerate(usable)}
        had = {job: self.assigned[job] for job in counts if job in self.assigned}
        stay = {
            job: resources
            for job, resources in had.items()
            if len(resources) == counts[job]
            and all(r in number for r in resources)
            and job not in self._returning
        }
        to_place = {job: count for job, count in counts.items() if job not in stay and count}
        staying = {
            job: tuple(number[r] for r in resources if r in number)
            for job, resources in {**places, **stay}.items()
            if job in places or job in self._spread.users
        }
        among = _part(view, jobs, len(usable))
        chosen = GreedyNonClairvoyant().place(among, to_place, staying)
        return stay | {
            job: tuple(sorted(usable[k] for k in chosen.get(job, ())))
            for job in counts
            if job not in stay
        }

    def _change(self, now: float, job: JobId, resources: Resources) -> Iterator[Action]:
        # The order in which a job's resources are named makes no difference.
        if job in self.assigned and set(self.assigned[job]) == set(resources):
            return
        self.assigned[job] = resources
        if job in self._pinned:
            self._pending.pop(job, None)  # it has them already
        elif self._started[job] == now or self.remap_delay == 0:
            self._pending.pop(job, None)
            yield self._assign(job, resources, now)
        elif job in self._pending:
            self._pending[job].resources = resources
        else:
            self._pending[job] = _Move(now + self.remap_delay, resources)
            yield WakeAt(time=now + self.remap_delay)

    def _keep(self, job: JobId, why: Reason, decision: _Decision, now: float) -> None:
        """Keep why a job has its resources, and since when."""
        lacks = decision.lacks.get(job, ())
        error = decision.error if why in ("failed", "placed-by-load") and not lacks else ""
        before, resources = self.allotments.get(job), self.assigned.get(job, ())
        if (
            before is not None
            and before.reason == why
            and before.resources == resources
            and (before.lacks, before.error) == (lacks, error)
        ):
            return
        allotment = Allotment(resources=resources, reason=why, since=now, lacks=lacks, error=error)
        self.allotments[job] = allotment
        self.reasons[why] += 1
        self.observe(job, allotment)

    def _assign(self, job: JobId, resources: Resources, now: float) -> Assign:
        self.moves += self._started[job] != now
        return Assign(job=job, resources=resources)

    def _deliver(self, now: float) -> list[Action]:
        due = [job for job, move in self._pending.items() if move.time <= now]
        return [self._assign(job, self._pending.pop(job).resources, now) for job in due]


def _ignore(job: JobId, allotment: Allotment) -> None:
    """Nobody follows what is decided."""


def _text(policy: object, error: Exception) -> str:
    """Return what a policy raised, in one line; the text of its own exceptions is its code."""
    try:
        text = guard(policy, "an exception", str, error)
    except Exception:
        text = ""
    return shown(" ".join(text.split()) or type(error).__name__)[1:-1]


def _part(view: View, jobs: Jobs, resources: int) -> View:
    """Return a view of these jobs on a number of resources."""
    if len(jobs) == len(view.jobs) and resources == view.site.resources:
        return view
    return _PartView(view, jobs, resources)


class _PartView:
    """A host's view of some of its jobs, on a part of its resources."""

    def __init__(self, view: View, jobs: Jobs, resources: int) -> None:
        self.site = replace(view.site, resources=resources)
        self.now, self.jobs = view.now, jobs
        self.progress, self.age, self.work_left = view.progress, view.age, view.work_left
        self.io_done, self.expected = view.io_done, view.expected
        self.done, self.remaining = view.done, view.remaining


def allocate(allocator: Allocator, view: View) -> dict[JobId, int]:
    """Return one count per job; InputError: the allocator's answer is invalid."""
    name, site = type(allocator).__name__, view.site

    def plain(answer: object) -> dict[JobId, int]:
        if not isinstance(answer, Mapping):
            raise InputError(
                f"{name} answered {shown(answer)}; allocate() must return counts by job"
            )
        _same_jobs(name, answer, view.jobs)
        for job, count in answer.items():
            if (
                not isinstance(count, int)
                or not (0 if site.direct else 1) <= count <= site.resources
            ):
                path = "" if site.direct else " and no direct access"
                raise InputError(
                    f"{name} gives job {job!r} {shown(count)} resources; "
                    f"the site has {site.resources}{path}"
                )
        return {str.__str__(job): int.__int__(count) for job, count in answer.items()}

    counts: dict[JobId, int] = ask(allocator, "allocate", view, plain=plain)
    return counts


def place(
    placer: Placer, view: View, counts: Mapping[JobId, int], staying: Mapping[JobId, Resources]
) -> dict[JobId, Resources]:
    """Return the resources of every job in `counts`; InputError: the placer's answer is invalid."""
    requested = {job: count for job, count in counts.items() if count > 0}
    name, site = type(placer).__name__, view.site
    # A job that goes direct from now on frees its resources.
    stay = {j: r for j, r in staying.items() if r and (j in requested or j not in counts)}

    def plain(answer: object) -> dict[JobId, Resources]:
        if not isinstance(answer, Mapping):
            raise InputError(
                f"{name} answered {shown(answer)}; place() must return resources by job"
            )
        _same_jobs(name, answer, requested)
        for job, resources in answer.items():
            valid = isinstance(resources, tuple | list) and all(
                isinstance(r, int) and 0 <= r < site.resources for r in resources
            )
            if not valid or not len(set(resources)) == len(resources) == requested[job]:
                raise InputError(
                    f"{name} gives job {job!r} the resources {shown(resources)}; "
                    f"it must be {requested[job]} distinct ones of 0 to {site.resources - 1}"
                )
        return {
            job: tuple(map(int.__int__, answer[job])) if job in requested else () for job in counts
        }

    places: dict[JobId, Resources] = ask(placer, "place", view, requested, stay, plain=plain)
    return places


def _same_jobs(name: str, answer: Mapping[JobId, object], jobs: Iterable[JobId]) -> None:
    expected = set(jobs)
    for job in expected:
        if job not in answer:
            raise InputError(f"{name} left out job {job!r}; it must answer for every job")
    for job in answer:
        if job not in expected:
            raise InputError(f"{name} answers for {job!r}, which is not one of the jobs to decide")
