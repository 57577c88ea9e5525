"""Turns and modes of a deployment's jobs: the clock and the voice of `Turns`.

A job is told only in its mode: who is observed never waits, and is shown what it would have had.
"""

import asyncio
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from penstock.config import OWN, Config
from penstock.errors import InputError
from penstock.learn.periods import HYSTERESIS
from penstock.ledger import knows
from penstock.live import wire
from penstock.live.http.service import TurnWaits
from penstock.live.jobs import Job
from penstock.live.slices import SECONDS as SLICE
from penstock.live.slices import Slices
from penstock.live.store import Knowledge
from penstock.live.turns import Order, Turns
from penstock.logbook import Chosen, Header, LogbookWriter
from penstock.model import Assign, Curve, JobId, WakeAt
from penstock.model import Job as Known
from penstock.policies.base import Own

MODES = ("observe", "advise", "enforce", "off")
_BEAT = {mode: wire.Beat(mode=mode) for mode in MODES}
BEATS = 4
"""Words a lease that say that the controller lives."""
SILENCE = 3.0
"""Seconds without a word from a job's agent after which its turn goes to others."""
log = logging.getLogger("penstock.controller")


def header(config: Config, io_nodes: int) -> Header:
    """Return what a deployment's Manager is made of, as its record begins with it."""
    allocation = config.allocation
    allocated = allocation.policy != OWN
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
    )


class Governor:
    """Hears what jobs do; tells those whose mode is enforce when they may."""

    def __init__(
        self,
        config: Config,
        *,
        io_nodes: int,
        tell: Callable[[JobId, wire.Message], None],
        weigh: Callable[[Mapping[JobId, float]], None],
        is_direct: Callable[[JobId], bool],
        assign: Callable[[Assign], None],
    ) -> None:
        self.header = header(config, io_nodes)
        knows(config.sharing.sharing().needs)
        self.turns = Turns(*self.header.manager())
        self.policy = config.sharing.policy
        self.site_mode: str = config.live.mode
        self.users: dict[str, str] = dict(config.live.users)
        self.lease, self.longest_wait = config.live.seconds()
        self.waits = TurnWaits()
        self.throttled: defaultdict[str, float] = defaultdict(
            float
        )  # seconds that jobs waited for turns, by user
        self._tell, self._weigh, self._assign = tell, weigh, assign
        self._is_direct = is_direct
        self._slices, self._slice_of = Slices(), ""
        self._sliced: set[JobId] = set()  # whose gates are closed for others' slices
        self._changed, self._unwanted = asyncio.Event(), asyncio.Event()
        self._jobs: dict[JobId, Job] = {}
        self._weighed: dict[JobId, float] = {}
        self._serial = 0
        self.failures = 0
        """How often the policy raised something."""

    def mode(self, user: str) -> str:
        """Return the mode of a user's jobs; the site's switch is above all."""
        return "off" if self.site_mode == "off" else self.users.get(user, self.site_mode)

    def govern(self, told: wire.Govern) -> None:
        """Change a mode now; every gate hears of it at once."""
        if told.mode not in MODES:
            raise InputError(f"mode {told.mode!r} is none of {', '.join(MODES)}")
        if told.user is None:
            self.site_mode = told.mode
        elif told.mode == "off":
            raise InputError("off is for the whole site; a user's jobs can be observed")
        else:
            self.users[told.user] = told.mode
        log.warning("mode of %s is %s", told.user or "the site", told.mode)
        self._beat()
        self._reweigh(self.turns.weights())

    def record(self, logbook: LogbookWriter) -> None:
        """Write down what happens from now on."""
        self.turns.record = logbook.write

    def started(self, job: Job, known: Knowledge | None = None) -> None:
        """A job begins; `known` is of its family."""
        known = known or Knowledge()
        self._serial += 1
        self._jobs[job.id] = job
        curve = Curve.of(dict(known.curve)) if known.curve else None
        model = Known(
            id=job.id,
            serial=self._serial,
            nodes=job.begin.nodes,
            processes=job.begin.processes,
            user=job.begin.user,
            executable=job.begin.executable,
            w_iter=known.w_iter,
            curve=curve,
            hints={"observations": known.observations} if known.w_iter else {},
        )
        now = time.monotonic()
        self._heed(lambda: self.turns.started(now, model, known.bandwidth or 0.0))

    def ended(self, job: Job) -> None:
        """A job is gone; it keeps how it stood."""
        job.standing = self.told(job.id) | {"doing": job.state, "behind": [], "share": 0.0}
        if self._jobs.pop(job.id, None) is not None:
            self._weighed.pop(job.id, None)
            self._heed(lambda: self.turns.ended(time.monotonic(), job.id))

    def phase_began(self, job: Job, told: wire.PhaseBegan) -> None:
        """A job asks for its turn."""
        if job.id not in self._jobs:
            return
        try:
            orders = self.turns.phase_began(time.monotonic(), job.id, told.phase)
        except Exception:  # a policy may be anybody's, and a job must not wait for it
            self._failed(f"job {job.id} goes on without a turn")
            orders = [(job.id, wire.Turn(phase=told.phase, overdue=True))]
        self._obey(orders)

    def phase_ended(self, job: Job, told: wire.PhaseEnded) -> None:
        """A job's phase is over."""
        if job.id in self._jobs:
            self._heed(lambda: self.turns.phase_ended(time.monotonic(), job.id, told))

    def heard(self, job: Job) -> None:
        """A job's agent lives."""
        standing = self.turns.standings.get(job.id)
        if standing is not None:
            standing.heard = time.monotonic()

    async def keep(self) -> None:
        """Say that the controller lives, and end waits that are too long, until cancelled."""
        while True:
            self._beat()
            now = time.monotonic()
            self._obey(self.turns.overdue(now, self.longest_wait))
            self._obey(self.turns.silent(now, max(SILENCE, self.lease)))
            await asyncio.sleep(self.lease / BEATS)

    def idle(self, job: Job) -> None:
        """A job does not want its slice."""
        if job.id == self._slice_of:
            self._unwanted.set()

    async def slice(self) -> None:
        """Keep the shares of direct jobs whose weights differ, until cancelled."""
        while True:
            self._changed.clear()
            weights = {
                job: weight
                for job, weight in self.turns.weights().items()
                if self.mode(self._jobs[job].begin.user) == "enforce" and self._is_direct(job)
            }
            if not self._slices.share(weights):
                self._give_slice(list(weights))
                await self._changed.wait()
                continue
            self._unwanted.clear()
            self._slice_of = self._slices.next()
            self._give_slice([self._slice_of], list(weights))
            with suppress(TimeoutError):
                async with asyncio.timeout(SLICE):
                    await self._unwanted.wait()

    def _give_slice(self, to: list[JobId], among: Sequence[JobId] = ()) -> None:
        """Open the gates of some, and close those of the others."""
        for job in dict.fromkeys([*to, *among]):
            phase = self.turns.standings[job].phase
            if phase is not None and (job in to) != (job not in self._sliced):
                self._tell(job, wire.Slice(phase=phase.number, open=job in to))
                (self._sliced.discard if job in to else self._sliced.add)(job)

    def told(self, id: JobId) -> dict[str, object]:
        """Return how a job stands, as `penstock status` lists it."""
        standing = self.turns.standings.get(id)
        if standing is None:
            return {}
        now, phase = time.monotonic(), standing.phase
        manager = self.turns.manager
        known, group = manager.jobs[id], manager.sharing.group(manager.jobs[id])
        told: dict[str, object] = {
            "mode": self.mode(known.user),
            "doing": "computing",
            "since_seconds": None,
            "at_most_seconds": None,
            "behind": [],
            "share": 0.0,
            "group": None if group is Own.GROUP else str(group),
            "weight": manager.sharing.weight(known),
            "w_iter": known.w_iter,
            "iterations": period.iterations if (period := manager.period(id)) else 0,
            "phases": standing.phases,
            "phase_bytes": standing.bytes / standing.phases if standing.phases else None,
            "turn_waited_seconds": standing.waited,
            "bandwidth": standing.bandwidth or None,
        }
        if phase is not None and phase.admitted is None and not phase.overdue:
            behind = self.turns.manager.ahead_of(id)
            told |= {"doing": "waiting", "since_seconds": now - phase.began, "behind": behind}
            told["at_most_seconds"] = max(self.longest_wait - (now - phase.began), 0.0)
        elif phase is not None:
            began = phase.began if phase.admitted is None else phase.admitted
            told |= {"doing": "transferring", "since_seconds": now - began}
            told["share"] = self.turns.share(id)
        return told

    def _beat(self) -> None:
        for job in self._jobs.values():
            if job.begin.protocol >= 2:
                self._tell(job.id, _BEAT[self.mode(job.begin.user)])

    def _heed(self, decide: Callable[[], list[Order]]) -> None:
        try:
            orders = decide()
        except Exception:
            self._failed("who waited for this waits for the next turn, or max-wait")
            orders = []
        self._obey(orders)

    def _failed(self, then: str) -> None:
        self.failures += 1
        log.exception("policy %s failed; %s", self.policy, then)

    def _obey(self, orders: list[Order]) -> None:
        self._changed.set()
        heavier: dict[JobId, float] = {}
        for order in orders:
            match order:
                case (job, message):
                    self._tell(job, message)
                    if isinstance(message, wire.Turn):
                        self._sliced.discard(job)
                        heavier[job] = message.weight
                case Assign():
                    self._assign(order)
                case WakeAt(time=due):
                    asyncio.get_running_loop().call_later(
                        max(due - time.monotonic(), 0.0), self._wake
                    )
        self._reweigh(heavier)

    def _reweigh(self, weights: Mapping[JobId, float]) -> None:
        """Tell the I/O nodes the weights of all jobs, if one has another: they keep no others."""
        now = {
            job: weight if self.mode(self._jobs[job].begin.user) == "enforce" else 1.0
            for job, weight in weights.items()
        }
        changed = {job: w for job, w in now.items() if self._weighed.get(job, 1.0) != w}
        if changed:
            self._weighed |= changed
            self._weigh(dict(self._weighed))

    def _wake(self) -> None:
        self._obey(self.turns.woke(time.monotonic()))
