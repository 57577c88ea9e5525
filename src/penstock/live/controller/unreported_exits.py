"""Ends of jobs that are heard late: last words, taken into the books, the store and the record."""

import asyncio
import logging
import time
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

TAKEN_EVERY = 2.0
log = logging.getLogger("penstock.controller")


class UnreportedExits:
    """Takes in the last words that are left for a controller, or told to it."""

    def __init__(self, controller: "Controller", words: ExitSpool) -> None:
        self._controller, self._words = controller, words
        self._one_at_a_time = asyncio.Lock()
        self._unkept: dict[str, SpoolFile] = {}  # heard, and there until the store has it
        self._stuck: set[str] = set()  # heard, and cannot be removed
        words.create()

    async def keep(self) -> None:
        """Take in what is left, now and every few seconds, until cancelled."""
        while True:
            try:
                await self.take()
            except Exception:  # whatever was left there: jobs that run are more important
                log.exception("unreported exits cannot be read")
            await asyncio.sleep(TAKEN_EVERY)

    async def take(self) -> None:
        """Take in what is left; a file goes once the store has what it says."""
        heard = {*self._unkept, *self._stuck}
        for each in await asyncio.to_thread(lambda: list(self._words.files(but=heard))):
            if await self._heard(each):
                self._unkept[each.path.name] = each
        if not self._unkept:
            return
        kept = await asyncio.to_thread(self._controller.archive.store.flush)
        if kept:
            self._stuck |= {name for name, each in self._unkept.items() if not each.remove()}
            self._unkept.clear()

    async def _heard(self, found: SpoolFile) -> bool:
        """Take one in, or refuse it; False: it has to wait."""
        try:
            word = msgspec.json.decode(found.text, type=messages.UnreportedExit)
            await self.hear(word, Peer(uid=found.uid))
        except ConnectionError as error:
            log.warning("unreported exit %s waits: %s", found.path.name, error)
            return False
        except (InputError, msgspec.DecodeError, UnicodeDecodeError) as error:
            self._controller.refusals.note(f"unreported exit {found.path.name}: {reason(error)}")
        return True

    async def hear(self, word: messages.UnreportedExit, peer: Peer) -> None:
        """Take in how a job ended; RefusedError: it is not for `peer` to say.

        ConnectionError: not now; who keeps the word tells it again.
        """
        peer.check_user(word.begin.user, "tell the end of a job")
        async with self._one_at_a_time:
            try:
                earlier = await self._controller.archive.find(word.job)
            except StoreError as error:
                raise ConnectionError(f"the store does not answer: {error}") from error
            running = self._controller.jobs.running.get(word.job)
            if running is not None:  # that its connection is broken was not noticed yet
                _check_owner(running.begin.user, word, peer)
                running.counters = word.counters
                self._controller.end(running, word.status)
            else:
                self._hear(word, peer, earlier)

    def _hear(self, word: messages.UnreportedExit, peer: Peer, earlier: JobRecord | None) -> None:
        controller = self._controller
        if earlier is not None:
            _check_owner(earlier.user, word, peer)
        name = word.job.rpartition(".")[0]
        if name != word.begin.name or not (earlier or controller.archive.may_exist(word.job)):
            raise RefusedError(f"{peer} tells the end of {word.job!r}, which nobody began")
        if earlier is not None and earlier.state == "ended":
            return  # it was taken in before, and the answer did not arrive
        lost = earlier if earlier is not None and earlier.state == "lost" else None
        job = _ended(word, peer, word.began if earlier is None else earlier.began)
        if lost is not None:
            controller.jobs.take_back(lost)
        controller.jobs.remember(job)
        controller.archive.reported_late(job, lost)
        controller.turn_service.ended_elsewhere(job.id)
        log.info("job %s had ended with %s while nobody heard", job.id, job.status)


def _ended(word: messages.UnreportedExit, peer: Peer, began: float) -> JobRecord:
    ended = min(word.ended, time.time())
    began = min(began, ended)
    job = JobEntry(
        id=word.job,
        serial=int(word.job.rpartition(".")[2]),
        begin=word.begin,
        began=began,
        lasted=ended - began,
        host=peer.address,
        ended=ended,
        counters=word.counters,
        state="ended",
        status=word.status,
    )
    return job.record(0.0)


def _check_owner(user: str, word: messages.UnreportedExit, peer: Peer) -> None:
    if user != word.begin.user:
        raise RefusedError(f"{peer} cannot tell the end of {word.job}: it is another user's")
