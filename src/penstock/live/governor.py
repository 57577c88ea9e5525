"""Turns and modes of a deployment's jobs: the clock and the voice of `Turns`.

A job is told only in its mode: who is observed never waits, and is shown what it would have had.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from penstock.config import Config
from penstock.errors import InputError
from penstock.learn.periods import Period, Prior
from penstock.ledger import Ledger, knows
from penstock.live import wire
from penstock.live.jobs import Job
from penstock.live.turns import Order, Turns
from penstock.manager import Manager
from penstock.model import Assign, JobId, Site, WakeAt
from penstock.model import Job as Known

MODES = ("observe", "advise", "enforce", "off")
BEATS = 4
"""Words a lease that say that the controller lives."""
SILENCE = 3.0
"""Seconds without a word from a job's agent after which its turn goes to others."""
log = logging.getLogger("penstock.controller")


def _period(job: Known) -> Period:
    return Period.live(None if job.w_iter is None else Prior(w_iter=job.w_iter))


class Governor:
    """Hears what jobs do; tells those whose mode is enforce when they may."""

    def __init__(
        self,
        config: Config,
        *,
        io_nodes: int,
        tell: Callable[[JobId, wire.Message], None],
        weigh: Callable[[Mapping[JobId, float]], None],
        assign: Callable[[Assign], None],
    ) -> None:
        sharing = config.sharing.sharing()
        knows(sharing.needs)
        site = Site(resources=max(io_nodes, 1), direct=True)
        arbiter = config.arbiter()
        ledger = Ledger(site=site)
        manager = Manager(
            sharing=sharing,
            view=ledger,
            learn=_period,
            arbitrate=None if arbiter is None else arbiter.handle,
        )
        self.turns = Turns(manager, ledger)
        self.arbitrates = arbiter is not None
        self.policy = config.sharing.policy
        self.site_mode: str = config.live.mode
        self.users: dict[str, str] = dict(config.live.users)
        self.lease, self.longest_wait = config.live.seconds()
        self._tell, self._weigh, self._assign = tell, weigh, assign
        self._jobs: dict[JobId, Job] = {}
        self._weighed: dict[JobId, float] = {}
        self._serial = 0

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
        self._reweigh()

    def started(self, job: Job) -> None:
        """A job begins."""
        self._serial += 1
        self._jobs[job.id] = job
        known = Known(
            id=job.id,
            serial=self._serial,
            nodes=job.begin.nodes,
            processes=job.begin.processes,
            user=job.begin.user,
            executable=job.begin.executable,
        )
        self._obey(self.turns.started(time.monotonic(), known))

    def ended(self, job: Job) -> None:
        """A job is gone."""
        if self._jobs.pop(job.id, None) is not None:
            self._weighed.pop(job.id, None)
            self._obey(self.turns.ended(time.monotonic(), job.id))

    def phase_began(self, job: Job, told: wire.PhaseBegan) -> None:
        """A job asks for its turn."""
        if job.id in self._jobs:
            self._obey(self.turns.phase_began(time.monotonic(), job.id, told.phase))

    def phase_ended(self, job: Job, told: wire.PhaseEnded) -> None:
        """A job's phase is over."""
        if job.id in self._jobs:
            self._obey(self.turns.phase_ended(time.monotonic(), job.id, told))

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

    def told(self, id: JobId) -> dict[str, object]:
        """Return how a job stands, as `penstock status` lists it."""
        standing = self.turns.standings.get(id)
        if standing is None:
            return {}
        now, phase = time.monotonic(), standing.phase
        known = self.turns.manager.jobs[id]
        told: dict[str, object] = {
            "mode": self.mode(known.user),
            "doing": "computing",
            "since_seconds": None,
            "behind": [],
            "share": 0.0,
            "w_iter": known.w_iter,
            "phases": standing.phases,
            "phase_bytes": standing.bytes / standing.phases if standing.phases else None,
            "turn_waited_seconds": standing.waited,
            "bandwidth": standing.bandwidth or None,
        }
        if phase is not None and phase.admitted is None and not phase.overdue:
            behind = self.turns.manager.ahead_of(id)
            told |= {"doing": "waiting", "since_seconds": now - phase.began, "behind": behind}
        elif phase is not None:
            began = phase.began if phase.admitted is None else phase.admitted
            told |= {"doing": "transferring", "since_seconds": now - began}
            told["share"] = self.turns.share(id)
        return told

    def _beat(self) -> None:
        for job in self._jobs.values():
            if job.begin.protocol >= 2:
                self._tell(job.id, wire.Beat(mode=self.mode(job.begin.user)))

    def _obey(self, orders: list[Order]) -> None:
        for order in orders:
            match order:
                case Assign():
                    self._assign(order)
                case WakeAt(time=due):
                    asyncio.get_running_loop().call_later(
                        max(due - time.monotonic(), 0.0), self._wake
                    )
                case (job, message):
                    self._tell(job, message)
        self._reweigh()

    def _reweigh(self) -> None:
        """Tell the I/O nodes the weights of all jobs, if one has another: they keep no others."""
        weights = {
            job: weight if self.mode(self._jobs[job].begin.user) == "enforce" else 1.0
            for job, weight in (self._weighed | self.turns.weights()).items()
        }
        changed = {job: w for job, w in weights.items() if self._weighed.get(job, 1.0) != w}
        if changed:
            self._weighed |= changed
            self._weigh(dict(self._weighed))

    def _wake(self) -> None:
        self._obey(self.turns.woke(time.monotonic()))
