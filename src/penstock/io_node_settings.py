"""The settings of an I/O node: the one definition in Python.

The control message `Settings`, the configuration and the flags of the command line use it; its
twin in C++ is `penstock::Settings`. Every setting is optional: None leaves it as it is, which for a
new I/O node is its default. `extra["unit"]` says how people write a value: bytes and seconds have
units, as in '1 MiB' and '250 us'.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

_BYTES = {"unit": "bytes"}
_Positive = Annotated[int, Meta(gt=0)]


class IoNodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How an I/O node orders, groups and serves requests."""

    scheduler: Annotated[str | None, Meta(description="Order of requests; fifo by default.")] = None
    window: Annotated[
        float | None,
        Meta(
            description="twins: time for which one storage target is served; 1 ms by default.",
            extra={"unit": "seconds"},
        ),
    ] = None
    quantum: Annotated[
        int | None,
        Meta(description="Bytes of one file served in a row; 64 KiB by default.", extra=_BYTES),
    ] = None
    aggregation: Annotated[
        int | None,
        Meta(
            description="Maximum size of a batch of adjacent requests; 4 MiB by default.",
            extra=_BYTES,
        ),
    ] = None
    servers: Annotated[
        _Positive | None, Meta(description="Number of storage targets; 1 by default.")
    ] = None
    stripe_size: Annotated[
        _Positive | None,
        Meta(
            description="Bytes in a row on one storage target; 1 MiB by default.",
            extra=_BYTES,
        ),
    ] = None
    depth: Annotated[
        _Positive | None, Meta(description="Batches in service at once; 16 by default.")
    ] = None
    shares: Annotated[
        Literal["bytes", "concurrency"] | None,
        Meta(description="What job weights apportion: bytes served, or requests in service."),
    ] = None
    dirty_window: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Maximum unwritten data per file; 0, the default, is unlimited.",
            extra=_BYTES,
        ),
    ] = None


KEYS: Mapping[str, str] = MappingProxyType(
    {name.replace("_", "-"): name for name in IoNodeSettings.__struct_fields__}
)
"""Names of the settings in the configuration, 'stripe-size', and the fields that they set."""
