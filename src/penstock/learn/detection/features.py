"""What of an observation tells access patterns apart: numbers, by name.

The first five are the thesis' own (forwarding, 3.2). Most of the others are free of units: they say
the same of small requests as of large ones, and of few clients as of many.
"""

from collections.abc import Callable, Mapping

from penstock.model import Observation
from penstock.model.tuning import Operation

Feature = Callable[[Observation], float]
THESIS = ("handles", "smallest", "largest", "size", "distance")
_LIMIT = 2.0**63
ONE_SIDED = 0.9
"""Where so large a part of requests is of one operation, that is the operation."""


def _size(seen: Observation) -> float:
    return seen.asked / seen.requests


FEATURES: Mapping[str, Feature] = {
    "handles": lambda seen: float(seen.handles),
    "smallest": lambda seen: float(seen.smallest),
    "largest": lambda seen: float(seen.largest),
    "size": _size,
    "distance": lambda seen: seen.distance,
    "clients": lambda seen: float(seen.clients),
    "handles_per_client": lambda seen: seen.handles / seen.clients,
    "jump": lambda seen: seen.distance / _size(seen),
    "jump_per_client": lambda seen: seen.distance / _size(seen) / seen.clients,
    "forward": lambda seen: seen.forward,
    "evenness": lambda seen: seen.smallest / seen.largest,
    "read_share": lambda seen: seen.reads / seen.requests,
    "requests_per_second": lambda seen: seen.requests / seen.seconds,
    "bytes_per_second": lambda seen: seen.moved / seen.seconds,
    "queued": lambda seen: seen.queued,
    "busy_share": lambda seen: seen.busy / seen.seconds,
}
"""Of an observation that `doubt` has nothing against."""
SCALE_FREE = ("handles_per_client", "jump", "jump_per_client", "forward", "evenness", "read_share")
"""Those that a model may look at which is to serve other sizes and numbers than it was made of."""


def doubt(seen: Observation) -> str:
    """Return why an observation cannot be right; nothing: it can, and has requests in it."""
    counts = (
        *(seen.reads, seen.writes, seen.read_bytes, seen.write_bytes),
        *(seen.handles, seen.clients, seen.smallest, seen.largest, seen.asked),
    )
    measured = (seen.seconds, seen.busy, seen.distance, seen.forward, seen.queued)
    if not all(0 <= value < _LIMIT for value in (*counts, *measured)):
        return "a metric is no number, or out of range"
    requests = seen.requests
    if not requests or not seen.asked or not seen.seconds:
        return "nothing was asked for"
    if not seen.smallest * requests <= seen.asked <= seen.largest * requests:
        return "requests are not of the sizes that they are said to be of"
    if not (1 <= seen.handles <= requests and 1 <= seen.clients <= requests):
        return "more files or clients than requests, or none"
    if seen.forward > 1 or seen.busy > 1.01 * seen.seconds + 0.001:
        return "a share is more than all"
    return ""


def operation(seen: Observation) -> Operation:
    """Return what the requests of an observation are, by their number."""
    if seen.reads >= ONE_SIDED * seen.requests:
        return "read"
    return "write" if seen.writes >= ONE_SIDED * seen.requests else "mixed"
