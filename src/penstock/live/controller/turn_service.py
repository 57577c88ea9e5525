"""Turns and modes of a deployment's jobs: the clock and the voice of `Turns`.

A job is told only in its mode: who is observed never waits, and is shown what it would have had.
"""

import asyncio
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

import msgspec

from penstock.config import OWN, Config
from penstock.config.sections import MODES
from penstock.core.ledger import knows
from penstock.learn.periods import HYSTERESIS
from penstock.live.controller.gate_slices import GateSlicer
from penstock.live.controller.job_table import JobEntry
from penstock.live.controller.modes import DEFAULT, Modes
from penstock.live.controller.multi_host_jobs import MultiHostJob, MultiHostJobs
from penstock.live.controller.turns import Order, Turns, TurnState
from penstock.live.controller.wait_histogram import TurnWaits
from penstock.live.protocol import messages
from penstock.live.protocol.counters import COUNTER_INTERVAL
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.users import canonical_user
from penstock.live.store import Knowledge
from penstock.model import Assign, Curve, Job, JobId, WakeAt
from penstock.policies.base import Own
from penstock.records import Chosen, Header, RecordWriter

_BEAT = {mode: messages.Heartbeat(mode=mode) for mode in MODES}
BEATS = 3
"""Words a lease that say that the controller lives."""
SPREAD = 25
"""Pieces in which they are said."""
SILENCE = 3.0
"""Seconds without a word from a job's agent after which its turn goes to others, at least."""
LATE = 0.5
"""Seconds that a word may take."""
log = logging.getLogger("penstock.controller")


def header(config: Config, io_nodes: int) -> Header:
    """Return what a deployment's Manager is made of, as its record begins with it."""
    allocation = config.allocation
    allocated = allocation.policy != OWN and io_nodes > 0
    placer = config.placement.name(allocation.allocator())
    return Header(
        run=secrets.token_hex(8),
        epoch=time.time() - time.monotonic(),
        began=time.monotonic(),
        site=replace(config.site.site(), resources=max(io_nodes, 1), direct=True),
        sharing=Chosen(policy=config.sharing.policy, options=config.sharing.options),
        allocation=Chosen(policy=allocation.policy, options=allocation.options)
        if allocated
        else None,
        placement=Chosen(policy=placer, options=config.placement.options) if allocated else None,
        remap_delay=allocation.delay(),
        learn={"changes": True, "hysteresis": HYSTERESIS},
        fair_users=config.live.fair_users,
    )


def _hints(told: messages.Hints, known: Knowledge) -> dict[str, float | str]:
    """Return what an event tells of a job beside what policies know of any."""
    hints: dict[str, float | str] = {}
    if known.w_iter:
        hints["observations"] = known.observations
    period = told.period or known.w_iter
    if told.phases and period:
        hints |= {"phases": told.phases, "period": period}
    return hints


class TurnService:
    """Hears what jobs do; tells those whose mode is enforce when they may."""

    def __init__(
        self,
        config: Config,
        *,
        io_nodes: int,
        tell: Callable[[JobId, messages.Message], None],
        weigh: Callable[[Mapping[JobId, float]], None],
        is_direct: Callable[[JobId], bool],
        assign: Callable[[Assign], None],
    ) -> None:
        self.header = header(config, io_nodes)
        knows(config.sharing.sharing().needs)
        self.turns = Turns(*self.header.manager())
        self.policy = config.sharing.policy
        self.modes = Modes(config.live.mode, config.live.users)
        self.lease, self.longest_wait = config.live.seconds()
        # Until its gate has opened by itself, a silent agent may still keep its job waiting: for a
        # lease after the last beat that it heard, which may be younger than its own last word.
        self.silence = max(SILENCE, self.lease + COUNTER_INTERVAL + LATE)
        self.waits = TurnWaits()
        self.throttled: defaultdict[str, float] = defaultdict(float)
        """Seconds that jobs waited for turns, by user."""
        self._tell, self._weigh, self._assign = tell, weigh, assign
        self._is_direct = is_direct
        self._slicer = GateSlicer(self._sliced, self._slice)
        self._teams = MultiHostJobs()
        self._jobs: dict[JobId, JobEntry] = {}
        self.weighed: dict[JobId, float] = {}
        """The weights that I/O nodes were told."""
        self._serial = 0
        self.failures = 0
        """How often the policy raised something."""

    def govern(self, told: messages.SetMode) -> None:
        """Change a mode now; every gate hears of it at once."""
        user = told.user
        if user is not None and user not in self.modes.users and told.mode != DEFAULT:
            user = canonical_user(user, {job.begin.user for job in self._jobs.values()})
        self.modes.set(told.mode, user)
        log.warning("mode of %s is %s", user or "the site", told.mode)
        self._beat(self._jobs.values())
        for id, _ in list(self.turns.waiting()):
            self.turns.watch.stands(id)
        self._reweigh(self.turns.weights())
        users = {id: job.begin.user for id, job in self._jobs.items()}
        self._announce({id: 1.0 for id in self.weighed if self.modes.of(users[id]) != "enforce"})

    def record(self, writer: RecordWriter) -> None:
        """Write down what happens from now on."""
        self.turns.record = writer.write

    def started(self, job: JobEntry, known: Knowledge | None = None) -> None:
        """A job begins, or another member of it; `known` is of its family."""
        known = known or Knowledge()
        self._jobs[job.id] = job
        if not self._teams.join(job.id, job.begin):
            return
        self._serial += 1
        model = Job(
            id=job.id,
            serial=self._serial,
            nodes=job.begin.nodes,
            processes=job.begin.processes,
            user=job.begin.user,
            executable=job.begin.executable,
            w_iter=known.w_iter,
            curve=Curve.of(dict(known.curve)) if known.curve else None,
            hints=_hints(job.begin.hints, known),
        )
        volume = job.begin.hints.volume or known.phase_bytes
        now = time.monotonic()
        self._heed(lambda: self.turns.started(now, model, known.bandwidth or 0.0, volume))

    def ended(self, job: JobEntry) -> None:
        """A job, or a member of it, is gone."""
        if self._jobs.pop(job.id, None) is None:
            return
        self.weighed.pop(job.id, None)
        team = self._teams.of(job.id)
        if team is not None and len(team.members) > 1 and job.id in team.asked:
            cut = messages.PhaseEnded(
                phase=team.asked[job.id],
                bytes=0,
                seconds=0.0,
                waited=self._untold_wait(team) or 0.0,
            )
            self.phase_ended(job, cut)
        if team := self._teams.leave(job.id):
            last = team.id
            if (waited := self._untold_wait(team)) is not None:
                self._waited(last, waited)
            self._heed(lambda: self.turns.ended(time.monotonic(), last))

    def _untold_wait(self, team: MultiHostJob) -> float | None:
        """Return how long a phase waited that nobody will tell the end of; None: there is none."""
        standing = self.turns.states[team.id]
        phase = standing.phase or standing.untold
        return None if phase is None else phase.waited_until(time.monotonic())

    def ended_unheard(self, job: JobId) -> None:
        """A job of an earlier controller has ended: the record has it, though no turn was its."""
        self._heed(lambda: self.turns.ended_unheard(time.monotonic(), job))

    def _standing(self, member: JobId) -> TurnState | None:
        team = self._teams.of(member)
        return None if team is None else self.turns.states.get(team.id)

    def mate(self, job: JobEntry) -> JobId | None:
        """Return another member of the job, which has its I/O nodes; None: there is none."""
        team = self._teams.of(job.id)
        return None if team is None else min(team.members - {job.id}, default=None)

    def members(self, id: JobId) -> Iterable[JobId]:
        """Return the members of a job, by the id that its turns go by."""
        team = self._teams.by_id.get(id)
        return () if team is None else team.members

    def turn_id(self, member: JobId) -> JobId | None:
        """Return the id that a member's turns go by; None: it has none."""
        team = self._teams.of(member)
        return None if team is None else team.id

    def phase_began(self, job: JobEntry, told: messages.PhaseBegan) -> None:
        """A job asks for its turn, or joins the one that it has on other hosts."""
        team = self._teams.of(job.id)
        if team is None:
            return
        resumes = team.resumes(job.id, told.phase)
        if not team.begins(job.id, told.phase):
            self._joins(job.id, told.phase, team)
            return
        try:
            now = time.monotonic()
            orders = self.turns.phase_began(now, team.id, team.phase, told.bytes, resumes=resumes)
        except Exception:  # a policy may be anybody's, and a job must not wait for it
            orders = self._failed()
        self._obey(orders)

    def _joins(self, member: JobId, number: int, team: MultiHostJob) -> None:
        phase = self.turns.states[team.id].phase
        if phase is None or phase.overdue or phase.admitted is not None:
            weight = 1.0 if phase is None else phase.weight
            self._tell(member, messages.Turn(phase=number, weight=weight))
        else:
            behind = self.turns.manager.ahead_of(team.id)
            self._tell(member, messages.Hold(phase=number, behind=behind))

    def phase_ended(self, job: JobEntry, told: messages.PhaseEnded) -> None:
        """A job's phase is over, on this host at least."""
        team = self._teams.of(job.id)
        ended = None if team is None else team.ends(job.id, told)
        if team is not None and ended is not None:
            id, over = team.id, ended
            self._waited(id, over.waited)
            self._heed(lambda: self.turns.phase_ended(time.monotonic(), id, over))

    def heard(self, job: JobEntry) -> None:
        """A job's agent lives."""
        if standing := self._standing(job.id):
            standing.heard = time.monotonic()

    def idle(self, job: JobEntry, told: messages.Idle) -> None:
        """A job does not want its slice, or lends its turn to those who wait for it."""
        team = self._teams.of(job.id)
        if team is None or len(team.asked) != 1:
            return
        if not told.lends:
            self._slicer.idle(team.id)
        elif self._is_wanted(team.id) and team.lends(job.id, told.phase):
            self._tell(job.id, messages.Hold(phase=told.phase, turn_lent=True))
            self._heed(partial(self.turns.lent, time.monotonic(), team.id))

    def _is_wanted(self, id: JobId) -> bool:
        """Say whether somebody waits for what a job has."""
        phase = self.turns.states[id].phase
        return (
            phase is not None
            and phase.admitted is not None
            and any(
                self._is_enforced(other) and id in self.turns.manager.ahead_of(other)
                for other, _ in self.turns.waiting()
            )
        )

    async def keep(self) -> None:
        """Say that the controller lives, and end waits that are too long, until cancelled."""
        while True:
            began = time.monotonic()
            jobs = list(self._jobs.values())
            # To all at once, a thousand words would keep turns waiting for as long as they take.
            for k in range(SPREAD):
                self._beat(jobs[k::SPREAD])
                await asyncio.sleep(self.lease / BEATS / SPREAD)
            now = time.monotonic()
            if now - began > self.lease:  # it was stopped itself: nobody could be heard
                self.turns.forgive(now)
            self._heed(partial(self.turns.overdue, now, self.longest_wait))
            self._heed(partial(self.turns.silent, now, self.silence))

    async def slice(self) -> None:
        """Keep the shares of direct jobs, until cancelled."""
        await self._slicer.keep()

    def _sliced(self) -> dict[JobId, float]:
        return {
            id: weight
            for id, weight in self.turns.weights().items()
            if self._is_enforced(id) and all(map(self._is_direct, self._teams.by_id[id].members))
        }

    def _slice(self, id: JobId, open_: bool) -> None:
        for member, number in self._teams.by_id[id].asked.items():
            self._tell(member, messages.Slice(phase=number, open=open_))

    def _is_enforced(self, id: JobId) -> bool:
        return self.modes.of(self.turns.manager.jobs[id].user) == "enforce"

    def progress(self, record: JobRecord) -> JobRecord:
        """Return a job's record with what its phases did so far."""
        standing = self._standing(record.id)
        if standing is None:
            return record
        phases = standing.phases
        return msgspec.structs.replace(
            record,
            phases=phases,
            phase_bytes=standing.bytes / phases if phases else None,
            phase_seconds=standing.transferred / phases if phases else 0.0,
            turn_waited_seconds=standing.waited,
            bandwidth=standing.bandwidth or None,
        )

    def describe(self, record: JobRecord) -> JobRecord:
        """Return a job's record with its phases and its turn."""
        team, standing = self._teams.of(record.id), self._standing(record.id)
        if team is None or standing is None:
            return record
        record, manager, phase = self.progress(record), self.turns.manager, standing.phase
        known, group, weight = manager.jobs[team.id], None, None
        with suppress(Exception):  # a policy may be anybody's
            group, weight = manager.sharing.group(known), manager.sharing.weight(known)
        period = manager.period(team.id)
        record = msgspec.structs.replace(
            record,
            mode=self.modes.of(known.user),
            doing="computing" if record.state == "running" else record.state,
            group=None if group is Own.GROUP else str(group),
            weight=weight,
            w_iter=known.w_iter,
            iterations=period.iterations if period else 0,
        )
        if phase is None or record.state != "running":
            return record
        now = time.monotonic()
        if phase.admitted is None and not phase.overdue:
            waited = now - phase.began
            return msgspec.structs.replace(
                record,
                doing="waiting",
                since_seconds=waited,
                at_most_seconds=max(self.longest_wait - waited, 0.0),
                behind=manager.ahead_of(team.id),
            )
        began = phase.began if phase.admitted is None else phase.admitted
        return msgspec.structs.replace(
            record,
            doing="transferring",
            since_seconds=now - began,
            share=self.turns.share(team.id),
        )

    def _beat(self, jobs: Iterable[JobEntry]) -> None:
        for job in jobs:
            if job.begin.protocol >= 2:
                self._tell(job.id, _BEAT[self.modes.of(job.begin.user)])

    def _heed(self, decide: Callable[[], list[Order]]) -> None:
        try:
            orders = decide()
        except Exception:
            orders = self._failed()
        self._obey(orders)

    def _failed(self) -> list[Order]:
        """Let all go on who wait: it may be for what the policy should have said."""
        self.failures += 1
        log.exception("policy %s failed; who waits goes on without a turn", self.policy)
        return self.turns.failed(time.monotonic())

    def _obey(self, orders: list[Order]) -> None:
        self._slicer.changed()
        weights: dict[JobId, float] = {}
        for order in orders:
            match order:
                case (id, message):
                    self._tell_all(id, message)
                    if isinstance(message, messages.Turn):
                        weights[id] = message.weight
                case Assign():
                    for member in self._teams.by_id[order.job].members:
                        self._assign(replace(order, job=member))
                case WakeAt(time=due):
                    asyncio.get_running_loop().call_later(
                        max(due - time.monotonic(), 0.0), self._wake
                    )
        self._reweigh(weights)

    def _tell_all(self, id: JobId, message: messages.Turn | messages.Hold) -> None:
        """Tell the members of a job that are in its phase; each counts its own."""
        for member, number in self._teams.by_id[id].asked.items():
            self._tell(member, msgspec.structs.replace(message, phase=number))
        if isinstance(message, messages.Turn):
            self._slicer.opened(id)

    def _waited(self, id: JobId, seconds: float) -> None:
        """Count the wait of a phase that is over, if it was really made to wait: each once."""
        if self._is_enforced(id):
            # An agent's word; no phase waits longer than this.
            seconds = min(max(seconds, 0.0), 2 * self.longest_wait + self.lease)
            self.waits.add(seconds)
            self.throttled[self.turns.manager.jobs[id].user] += seconds

    def _reweigh(self, weights: Mapping[JobId, float]) -> None:
        """Tell the I/O nodes the weights of all jobs, if one has another: they keep no others."""
        self._announce(
            {
                member: weight / len(team.members) if self._is_enforced(id) else 1.0
                for id, weight in weights.items()
                for team in (self._teams.by_id[id],)
                for member in team.members
            }
        )

    def _announce(self, weights: Mapping[JobId, float]) -> None:
        changed = {job: w for job, w in weights.items() if self.weighed.get(job, 1.0) != w}
        if changed:
            self.weighed |= changed
            self._weigh(dict(self.weighed))

    def _wake(self) -> None:
        self._heed(lambda: self.turns.woke(time.monotonic()))
