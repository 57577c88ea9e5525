"""Features of an observation that distinguish access patterns: numbers, by name.

The first five are the thesis' own (forwarding, 3.2). Most of the others have no unit: they are the
same for small requests and large ones, and for few clients and many.
"""

from collections.abc import Callable, Mapping

from penstock.model import Observation
from penstock.model.tuning import Operation

Feature = Callable[[Observation], float]
THESIS = ("handles", "smallest", "largest", "size", "distance")
_LIMIT = 2.0**63
ONE_SIDED = 0.9
"""Fraction of requests of one operation from which the observation has that operation."""


def _size(observation: Observation) -> float:
    return observation.asked / observation.requests


FEATURES: Mapping[str, Feature] = {
    "handles": lambda o: float(o.handles),
    "smallest": lambda o: float(o.smallest),
    "largest": lambda o: float(o.largest),
    "size": _size,
    "distance": lambda o: o.distance,
    "clients": lambda o: float(o.clients),
    "handles_per_client": lambda o: o.handles / o.clients,
    "jump": lambda o: o.distance / _size(o),
    "jump_per_client": lambda o: o.distance / _size(o) / o.clients,
    "forward": lambda o: o.forward,
    "evenness": lambda o: o.smallest / o.largest,
    "read_share": lambda o: o.reads / o.requests,
    "requests_per_second": lambda o: o.requests / o.seconds,
    "bytes_per_second": lambda o: o.moved / o.seconds,
    "queued": lambda o: o.queued,
    "busy_share": lambda o: o.busy / o.seconds,
}
"""They are defined for observations without `doubt`."""
SCALE_FREE = ("handles_per_client", "jump", "jump_per_client", "forward", "evenness", "read_share")
"""Features for a model that is used with other sizes and numbers than it was trained with."""


def doubt(observation: Observation) -> str:
    """Return why an observation is invalid or empty; "" if it is valid."""
    counts = (
        *(observation.reads, observation.writes, observation.read_bytes, observation.write_bytes),
        *(
            observation.handles,
            observation.clients,
            observation.smallest,
            observation.largest,
            observation.asked,
        ),
    )
    measured = (
        observation.seconds,
        observation.busy,
        observation.distance,
        observation.forward,
        observation.queued,
    )
    if not all(0 <= value < _LIMIT for value in (*counts, *measured)):
        return "a metric is not a number, or out of range"
    requests = observation.requests
    if not requests or not observation.asked or not observation.seconds:
        return "there are no requests"
    if not observation.smallest * requests <= observation.asked <= observation.largest * requests:
        return "the sizes of requests contradict each other"
    if not (1 <= observation.handles <= requests and 1 <= observation.clients <= requests):
        return "more files or clients than requests, or none"
    if observation.forward > 1 or observation.busy > 1.01 * observation.seconds + 0.001:
        return "a share is above one"
    return ""


def operation(observation: Observation) -> Operation:
    """Return the operation of most requests."""
    if observation.reads >= ONE_SIDED * observation.requests:
        return "read"
    return "write" if observation.writes >= ONE_SIDED * observation.requests else "mixed"
