"""Background work of a controller: restarted when it fails, and cut into steps."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0
"""Seconds before a restart: doubled with every failure that follows within the longest."""
STEP = 0.002
"""Seconds of work in the loop after which other tasks run."""
log = logging.getLogger("penstock.controller")


async def run_forever(
    work: Callable[[], Awaitable[None]],
    name: str,
    *,
    first_delay: float = FIRST_DELAY,
    longest_delay: float = LONGEST_DELAY,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run `work` until cancelled: log and restart it, with back-off, when it returns or raises."""
    delay = first_delay
    while True:
        began = clock()
        try:
            await work()
            log.error("%s has ended; restarting it", name)
        except Exception:
            log.exception("%s has failed; restarting it", name)
        if clock() - began > longest_delay:
            delay = first_delay
        await sleep(delay)
        delay = min(2 * delay, longest_delay)


class Steps:
    """Long work in the controller's loop, cut into steps: turns are given between them."""

    def __init__(
        self, seconds: float = STEP, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._seconds, self._clock = seconds, clock
        self._began = clock()

    async def pause(self) -> None:
        """Let other tasks run if this step has taken its time."""
        if self._clock() - self._began >= self._seconds:
            await asyncio.sleep(0)
            self._began = self._clock()
