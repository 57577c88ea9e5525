"""Observations as an I/O node would make them: the observer's rules, in Python."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
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
    steps, shared = _steps(received), Counter(file for _, file in _streams(received))
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
        sequential=steps["sequential"] / max(len(received), 1),
        strided=steps["strided"] / max(len(received), 1),
        shared=sum(shared[one.file] > 1 for one in received) / max(len(received), 1),
    )


def _streams(requests: Iterable[Request]) -> dict[tuple[int, object], list[Request]]:
    streams: dict[tuple[int, object], list[Request]] = {}
    for one in requests:
        streams.setdefault((one.client, one.file), []).append(one)
    return streams


def _steps(requests: Iterable[Request]) -> Counter[str]:
    """Count what clients' requests do after those before them to the same file.

    Runs without a gap that begin at equal distances are strides.
    """
    result: Counter[str] = Counter()
    for stream in _streams(requests).values():
        begin, length, stride, strides = stream[0].offset, 0, 0, False
        for before, after in pairwise(stream):
            end = before.offset + before.bytes
            if after.offset == end:
                strides = strides and end + after.bytes - begin <= length
                result["strided" if strides else "sequential"] += 1
                continue
            strides = after.offset > end and after.offset - begin == stride
            result["strided"] += strides
            stride, length, begin = after.offset - begin, end - begin, after.offset
    return result


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
