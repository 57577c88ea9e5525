"""Ends of jobs that are heard late: last words, taken into the books, the store and the record."""

import asyncio
import logging
import time
from typing import TYPE_CHECKING

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.live import wire
from penstock.live.jobs import Job
from penstock.live.last_words import Found, LastWords
from penstock.live.peer import Peer, RefusedError
from penstock.live.store import EndedJob, StoreError

if TYPE_CHECKING:
    from penstock.live.controller import Controller

TAKEN_EVERY = 2.0
log = logging.getLogger("penstock.controller")


class LateEnds:
    """Takes in the last words that are left for a controller, or told to it."""

    def __init__(self, controller: "Controller", words: LastWords) -> None:
        self._controller, self._words = controller, words
        words.create()

    async def keep(self) -> None:
        """Take in what is left, now and every few seconds, until cancelled."""
        while True:
            try:
                await self.take()
            except Exception:  # whatever was left there: jobs that run are more important
                log.exception("last words cannot be taken in")
            await asyncio.sleep(TAKEN_EVERY)

    async def take(self) -> None:
        """Take in what is left; a file goes once the store has what it says."""
        found = await asyncio.to_thread(lambda: list(self._words.left()))
        heard = [each.path for each in found if await self._heard(each)]
        if not heard:
            return
        kept = await asyncio.to_thread(self._controller.archive.keeper.flush)
        for path in heard if kept else ():
            path.unlink(missing_ok=True)

    async def _heard(self, found: Found) -> bool:
        """Take one in, or refuse it; False: it has to wait."""
        try:
            word = msgspec.json.decode(found.text, type=wire.LastWord)
            await self.hear(word, Peer(uid=found.uid))
        except StoreError as error:
            log.warning("last word %s waits: %s", found.path.name, error)
            return False
        except (InputError, msgspec.DecodeError, UnicodeDecodeError) as error:
            self._controller.refusals.note(f"last word {found.path.name}: {reason(error)}")
        return True

    async def hear(self, word: wire.LastWord, peer: Peer) -> None:
        """Take in how a job ended; RefusedError: it is not for `peer` to say."""
        peer.check_user(word.begin.user, "tell the end of a job")
        controller, begin = self._controller, word.begin
        running = controller.jobs.running.get(word.job)
        if running is not None:  # that its connection is broken was not noticed yet
            _check_owner(running.begin.user, word, peer)
            running.counters = word.counters
            controller.end(running, word.status)
            return
        earlier = await controller.archive.find(word.job)
        _check_owner(begin.user if earlier is None else earlier.user, word, peer)
        name, _, serial = word.job.rpartition(".")
        if name != begin.name or not (earlier or controller.archive.may_be(word.job)):
            raise RefusedError(f"{peer} tells the end of {word.job[:80]!r}, which nobody began")
        if isinstance(earlier, EndedJob) and earlier.state == "ended":
            return  # it was heard, and the answer was not
        ended = min(word.ended, time.time())
        job = Job(
            id=word.job,
            serial=int(serial),
            begin=begin,
            began=min(word.began if earlier is None else earlier.began, ended),
            host=peer.address,
            ended=ended,
            counters=word.counters,
            state="ended",
            status=word.status,
        )
        controller.ended_unheard(job, earlier if isinstance(earlier, EndedJob) else None)


def _check_owner(user: str, word: wire.LastWord, peer: Peer) -> None:
    if user != word.begin.user:
        raise RefusedError(f"{peer} cannot tell the end of {word.job}: it is another user's")
