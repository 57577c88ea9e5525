"""Observations as an I/O node would make them: the observer's rules, in Python."""

import random
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penstock.live.measure.access_patterns import Pattern
from penstock.model import Observation


class Request(NamedTuple):
    client: int
    file: object
    offset: int
    bytes: int
    read: bool = False


def observation(requests: Iterable[Request], seconds: float = 1.0) -> Observation:
    """Return what an I/O node sees of requests that arrive in this order."""
    received = list(requests)
    last: dict[object, Request] = {}
    distances, continued = [], 0
    for one in received:
        if (before := last.get(one.file)) is not None:
            distances.append(abs(one.offset - before.offset))
            continued += one.offset == before.offset + before.bytes
        last[one.file] = one
    sizes = [one.bytes for one in received]
    reads = sum(one.read for one in received)
    read_bytes = sum(one.bytes for one in received if one.read)
    return Observation(
        seconds=seconds,
        busy=seconds if received else 0.0,
        reads=reads,
        writes=len(received) - reads,
        read_bytes=read_bytes,
        write_bytes=sum(sizes) - read_bytes,
        handles=len(last),
        clients=len({one.client for one in received}),
        smallest=min(sizes, default=0),
        largest=max(sizes, default=0),
        asked=sum(sizes),
        distance=sum(distances) / len(distances) if distances else 0.0,
        forward=continued / len(distances) if distances else 0.0,
        queued=1.0 if received else 0.0,
    )


def requests_of(
    pattern: Pattern, ranks: int, *, requests: int, seed: int = 0, job: str = ""
) -> Iterator[Request]:
    """Yield the requests of ranks that all go to one I/O node, each rank as fast as the others."""
    rng = random.Random(seed)
    for k in range(requests):
        for rank in rng.sample(range(ranks), ranks):
            yield Request(
                hash((job, rank)),
                pattern.file(job, rank),
                pattern.offset(k, rank, ranks),
                pattern.request_size,
                pattern.operation == "read",
            )
