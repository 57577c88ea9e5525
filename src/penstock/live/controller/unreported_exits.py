"""Jobs that ended while no controller was reachable: their exits, reported later.

They are counted, stored and recorded like other ends.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.live.controller.job_table import JobEntry
from penstock.live.controller.peer import Peer, RefusedError
from penstock.live.protocol import messages
from penstock.live.protocol.exit_spool import ExitSpool, SpoolFile
from penstock.live.protocol.job_record import JobRecord
from penstock.live.store import StoreError

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller

SPOOL_INTERVAL = 2.0
"""Seconds between two looks into the spool."""
log = logging.getLogger("penstock.controller")


class UnreportedExits:
    """Handles exits that agents left in the spool, or report now."""

    def __init__(
        self,
        controller: "Controller",
        spool: ExitSpool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._controller, self._spool, self._clock = controller, spool, clock
        self._one_at_a_time = asyncio.Lock()
        self._unwritten: dict[str, SpoolFile] = {}  # handled; removed once the store has them
        self._stuck: set[str] = set()  # handled, but cannot be removed
        spool.create()

    async def run(self) -> None:
        """Handle the spool now and every few seconds, until cancelled."""
        while True:
            try:
                await self.read_spool()
            except Exception:  # whatever is in the spool: running jobs are more important
                log.exception("unreported exits cannot be read")
            await asyncio.sleep(SPOOL_INTERVAL)

    async def read_spool(self) -> None:
        """Handle the files in the spool; a file is removed once the store has its job."""
        handled = {*self._unwritten, *self._stuck}
        for each in await asyncio.to_thread(lambda: list(self._spool.files(but=handled))):
            if await self._handle_file(each):
                self._unwritten[each.path.name] = each
        if not self._unwritten:
            return
        if await asyncio.to_thread(self._controller.archive.store.flush):
            self._stuck |= {name for name, each in self._unwritten.items() if not each.remove()}
            self._unwritten.clear()

    async def _handle_file(self, file: SpoolFile) -> bool:
        """Accept an exit, or refuse it; False: it has to wait."""
        try:
            report = messages.decode(file.text, messages.UnreportedExit)
            await self.accept(report, Peer(uid=file.uid))
        except ConnectionError as error:
            log.warning("unreported exit %s waits: %s", file.path.name, error)
            return False
        except (InputError, msgspec.DecodeError) as error:
            self._controller.refusals.note(f"unreported exit {file.path.name}: {reason(error)}")
        return True

    async def accept(self, report: messages.UnreportedExit, peer: Peer) -> None:
        """Handle the end of a job; RefusedError: `peer` may not report it.

        ConnectionError: not now; the agent reports it again.
        """
        peer.check_user(report.begin.user, "report the end of a job")
        async with self._one_at_a_time:
            try:
                earlier = await self._controller.archive.find(report.job)
            except StoreError as error:
                raise ConnectionError(f"the store does not answer: {error}") from error
            running = self._controller.jobs.running.get(report.job)
            if running is not None:  # the end of its connection was not noticed yet
                _check_owner(running.begin.user, report, peer)
                running.counters, running.usage = report.counters, report.usage
                self._controller.end(running, report.status)
            else:
                self._accept(report, peer, earlier)

    def _accept(
        self, report: messages.UnreportedExit, peer: Peer, earlier: JobRecord | None
    ) -> None:
        controller = self._controller
        if earlier is not None:
            _check_owner(earlier.user, report, peer)
        name = report.job.rpartition(".")[0]
        if name != report.begin.name or not (earlier or controller.archive.may_exist(report.job)):
            raise RefusedError(f"{peer} reports the end of {report.job!r}, which never began")
        if earlier is not None and earlier.state == "ended":
            return  # it was taken in before, and the answer did not arrive
        lost = earlier if earlier is not None and earlier.state == "lost" else None
        began = report.began if earlier is None else earlier.began
        names = [each.name for each in controller.deployment.all_file_systems]
        job = _ended(report, peer, began, self._clock(), names)
        if lost is not None:
            controller.jobs.take_back(lost)
        controller.jobs.remember(job)
        controller.archive.reported_late(job, lost)
        controller.turn_service.ended_elsewhere(job.id)
        log.info("job %s had ended with %s while no controller was reachable", job.id, job.status)


def _ended(
    report: messages.UnreportedExit,
    peer: Peer,
    began: float,
    now: float,
    file_systems: Sequence[str],
) -> JobRecord:
    ended = min(report.ended, now)
    began = min(began, ended)
    job = JobEntry(
        id=report.job,
        serial=int(report.job.rpartition(".")[2]),
        begin=report.begin,
        began=began,
        lasted=ended - began,
        host=peer.address,
        ended=ended,
        counters=report.counters,
        usage=report.usage,
        file_system_names=file_systems,
        state="ended",
        status=report.status,
    )
    return job.record(0.0)


def _check_owner(user: str, report: messages.UnreportedExit, peer: Peer) -> None:
    if user != report.begin.user:
        raise RefusedError(f"{peer} cannot report the end of {report.job}: it is another user's")
