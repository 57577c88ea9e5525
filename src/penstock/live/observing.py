"""The API's Service of a controller that keeps no turns."""

import time
from typing import Any, Protocol

from penstock.live import wire
from penstock.live.jobs import Jobs
from penstock.live.service import ConflictError, Measures, Mode, Modes, NotFoundError, Turns


class Plain(Protocol):
    """A controller without turns."""

    jobs: Jobs

    async def status(self) -> wire.Status:
        """Return how things are."""
        ...

    async def remap(self, remap: wire.Remap) -> None:
        """Give a running job other I/O nodes; return when it has them."""
        ...


class Observing:
    """It observes, and closes no gate."""

    def __init__(self, controller: Plain) -> None:
        self._jobs = controller.jobs
        self.status = controller.status
        self.remap = controller.remap
        self._killed = False

    async def job(self, job: str) -> dict[str, Any]:
        """Return one job of the status, by its id."""
        for known in self._jobs.all():
            if known.id == job:
                return known.told(time.time())
        raise NotFoundError(f"there is no job {job[:80]!r}; /v1/jobs lists those that are known")

    async def explain(self, job: str) -> dict[str, Any]:
        """Return what is known of a job: its I/O nodes; no turn is kept from it."""
        found = await self.job(job)
        return {"job": job, "io_nodes": found["io_nodes"], "mode": "observe", "gate": "open"}

    async def modes(self) -> Modes:
        """Return the only mode there is."""
        return Modes(site="observe", kill_switch=self._killed, users={})

    async def set_mode(self, user: str | None, mode: Mode | None) -> None:  # noqa: ARG002
        """Refuse all but observing."""
        if mode not in {None, "observe"}:
            raise ConflictError(f"mode {mode!r} needs turns, and this controller keeps none")

    async def kill_switch(self, on: bool) -> None:
        """Take note; every gate is open as it is."""
        self._killed = on

    async def waiting(self) -> Turns:
        """Return that nobody waits."""
        return Turns()

    async def measures(self) -> Measures:
        """Return the fail-opens; their reasons are not kept apart here."""
        return Measures(fail_opens={"any": self._jobs.totals()[2]})
