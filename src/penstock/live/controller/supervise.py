"""Work that a controller does as long as it lives, whatever it raises meanwhile."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

AGAIN_AFTER = 0.5
"""Seconds, doubled with every failure that follows soon."""
SLOWEST = 30.0
STEP = 0.002
"""Seconds of work in the loop after which others go first."""
log = logging.getLogger("penstock.controller")


async def run_forever(work: Callable[[], Awaitable[None]], name: str) -> None:
    """Do what shall never end, until cancelled; if it ends all the same, say so and begin anew."""
    delay = AGAIN_AFTER
    while True:
        began = time.monotonic()
        try:
            await work()
            log.error("%s has ended; it begins anew", name)
        except Exception:
            log.exception("%s has failed; it begins anew", name)
        if time.monotonic() - began > SLOWEST:
            delay = AGAIN_AFTER
        await asyncio.sleep(delay)
        delay = min(2 * delay, SLOWEST)


class Steps:
    """Long work in the controller's loop, cut into steps: turns are given between them."""

    def __init__(self, seconds: float = STEP) -> None:
        self._seconds = seconds
        self._began = time.perf_counter()

    async def pause(self) -> None:
        """Let others go first if this step has taken its time."""
        if time.perf_counter() - self._began >= self._seconds:
            await asyncio.sleep(0)
            self._began = time.perf_counter()
