"""Work that a controller does as long as it lives, whatever it raises meanwhile."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

AGAIN_AFTER = 0.5
"""Seconds, doubled with every failure that follows soon."""
SLOWEST = 30.0
log = logging.getLogger("penstock.controller")


async def for_ever(work: Callable[[], Awaitable[None]], name: str) -> None:
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
