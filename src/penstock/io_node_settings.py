"""The settings of an I/O node: the section [io-node] and the message that changes a running one.

The C++ side has the same nine, with the same defaults, in `native/ionode/scheduler.hpp` and
`shared.hpp`; tests/live/ionode/test_settings.py compares them. Every process of a site imports this
module, so it imports little.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock import units
from penstock.errors import InputError

Positive = Annotated[int, Meta(gt=0)]
SCHEDULERS = (
    *("fifo", "time-order", "twins", "twins-busy", "twins-priority"),
    *("hbrr", "aioli", "sjf", "mlf"),
)


def _scheduler(name: str) -> str:
    if name not in SCHEDULERS:
        raise InputError(f"there is no scheduler {name!r}")
    return name


def _bytes(value: float | str) -> int:
    return round(units.volume(value))


TIME = {"metavar": "TIME", "parse": units.seconds, "show": units.show_seconds}
SIZE = {"metavar": "SIZE", "parse": _bytes, "show": units.show_volume}
"""How a value is written by people: with a unit, or as a number of seconds or bytes."""


class IoNodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the I/O nodes serve requests; a key that is not set keeps the I/O node's default."""

    scheduler: Annotated[
        str | None,
        Meta(
            description=f"the order in which requests are served: {', '.join(SCHEDULERS)}",
            extra={"metavar": "NAME", "parse": _scheduler},
        ),
    ] = None
    window: Annotated[
        float | None,
        Meta(description="the time for which twins serves one storage target", extra=TIME),
    ] = None
    quantum: Annotated[
        int | None,
        Meta(
            description="the bytes that hbrr, aioli and mlf serve from one file before the next",
            extra=SIZE,
        ),
    ] = None
    aggregation: Annotated[
        int | None,
        Meta(description="the largest batch of neighbouring requests, in bytes", extra=SIZE),
    ] = None
    servers: Annotated[
        Positive | None,
        Meta(description="the number of storage targets", extra={"metavar": "N"}),
    ] = None
    stripe_size: Annotated[
        Positive | None,
        Meta(description="the consecutive bytes of a file on one storage target", extra=SIZE),
    ] = None
    depth: Annotated[
        Positive | None,
        Meta(description="the number of batches in service at once", extra={"metavar": "N"}),
    ] = None
    shares: Annotated[
        Literal["bytes", "concurrency"] | None,
        Meta(description="what job weights apportion: bytes served, or requests in service"),
    ] = None
    dirty_window: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="the most unwritten data of one file; 0 for no limit", extra=SIZE),
    ] = None


DEFAULTS = IoNodeSettings(
    scheduler="fifo",
    window=1e-3,
    quantum=64 << 10,
    aggregation=4 << 20,
    servers=1,
    stripe_size=1 << 20,
    depth=16,
    shares="bytes",
    dirty_window=0,
)
"""What an I/O node uses where nothing is set."""
