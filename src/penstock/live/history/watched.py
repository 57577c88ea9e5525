"""What the dashboard asks of a controller, answered in the controller's own loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from penstock.live.history.history import History
from penstock.live.history.sampling import Sampler
from penstock.live.history.timeline import Timelines
from penstock.live.lasting import for_ever

if TYPE_CHECKING:
    from penstock.live.controller import Controller


class Watched:
    """A controller whose history is kept."""

    def __init__(self, controller: "Controller") -> None:
        self._history = History(controller)
        self._sampler = Sampler(controller, self._history)
        self._timelines = Timelines(controller, self._history, self._sampler)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Sample as long as the block goes on."""
        sampling = asyncio.create_task(for_ever(self._sampler.keep, "sampling"))
        try:
            yield
        finally:
            sampling.cancel()
            with suppress(asyncio.CancelledError):
                await sampling

    async def timeline(self, since: str | None, *, named: bool) -> bytes:
        """Return what changed since a cursor, as JSON."""
        return await self._timelines.answer(since, named=named)
