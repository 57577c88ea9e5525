"""What the HTTP API needs of a controller: its jobs, turns, modes and dashboard."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from penstock.live.controller.modes import DEFAULT
from penstock.live.http.dashboard.operations import DashboardApi
from penstock.live.http.dispatch import NotFoundError
from penstock.live.http.schema import (
    Measures,
    Mode,
    Modes,
    Transferring,
    Turns,
    Waiting,
)
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.users import UnknownUserError

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller


class ControllerService:
    """Answers in the controller's own loop; NotFoundError and ConflictError become 404 and 409."""

    def __init__(
        self, controller: "Controller", *, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._controller, self._wall_clock = controller, wall_clock
        self._jobs, self._turn_service = controller.jobs, controller.turn_service
        self._store, self._record_writer = controller.archive.store, controller.record_writer
        self.status, self.remap = controller.status, controller.remap
        self.policy = controller.turn_service.policy
        self.dashboard = DashboardApi(controller)

    async def job(self, job: str) -> JobRecord:
        """Return one job of the status, by its id."""
        if (entry := self._jobs.running.get(job)) is not None:
            return self._controller.record(entry)
        for record in self._jobs.ended():
            if record.id == job:
                return record
        raise NotFoundError(f"there is no job {job[:80]!r}; GET /v1/jobs lists the jobs")

    async def modes(self) -> Modes:
        """Return the modes; the site's is the one that holds once the kill switch is off."""
        modes = self._turn_service.modes
        users = cast("dict[str, Mode]", dict(modes.users))
        return Modes(site=cast("Mode", modes.site_mode), kill_switch=modes.kill_switch, users=users)

    async def set_mode(self, user: str | None, mode: Mode | None) -> None:
        """Set the mode of the site or of a user; while the kill switch is on, gates stay open."""
        if user is None:
            if mode is not None:
                self._turn_service.set_site_mode(mode)
        else:
            try:
                self._turn_service.set_mode(messages.SetMode(mode=mode or DEFAULT, user=user))
            except UnknownUserError as error:
                raise NotFoundError(str(error)) from error

    async def kill_switch(self, on: bool) -> None:
        """Open every gate, or return to the site's mode."""
        self._turn_service.set_kill_switch(on)

    async def waiting(self) -> Turns:
        """Return the jobs that transfer and those that wait."""
        now, turns = self._wall_clock(), Turns()
        moment = self._turn_service.turns.moment()
        for job in self._jobs.running.values():
            record = self._controller.record(job, moment)
            since = now - (record.since_seconds or 0.0)
            group = record.group or ""
            if record.doing == "waiting":
                turns.waiting.append(
                    Waiting(
                        job=job.id,
                        user=record.user,
                        since=since,
                        behind=record.behind,
                        ahead=record.ahead,
                        group=group,
                        waits_on=record.waits_on,
                    )
                )
            elif record.doing == "transferring":
                turns.transferring.append(
                    Transferring(
                        job=job.id,
                        user=record.user,
                        since=since,
                        share=record.share,
                        received=record.received,
                        weight=1.0 if record.weight is None else record.weight,
                        group=group,
                        file_systems=record.file_systems,
                        waits_on=record.waits_on,
                    )
                )
        return turns

    async def measures(self) -> Measures:
        """Return what `/metrics` has beside the status."""
        return Measures(
            fail_opens=self._jobs.fail_opens(),
            throttled_seconds=dict(self._turn_service.waits.by_user),
            turn_waits=self._turn_service.waits,
            store_failures=self._store.failed_total,
            record_lost=self._record_writer.lost_total,
            record_failures=self._record_writer.failed_total,
        )
