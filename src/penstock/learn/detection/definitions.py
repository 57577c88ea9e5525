"""What the classes of access patterns mean, in terms of each process's own requests.

A model is trained on three patterns, and finds one of them in everything. Requests at random
offsets of a shared file are as far apart as those to segments of it: no metric of the file as a
whole tells them apart. A process's own requests do, whatever their size and number: they go on
where the last one ended, leap by one stride, or do neither.
"""

from penstock.model import Observation
from penstock.model.observation import UNKNOWN

NEARLY_ALL = 0.9
"""Part of the requests that must do what a pattern means."""
FEWEST = 2
"""Requests of each client without which none is said to be sequential. A large request is carried
in parts, and one part of each client may be all that an interval has: one that follows another part
of the same request. With n requests of c clients at most (n + c) / 2 follow so: not nearly all."""


def pattern(observation: Observation) -> tuple[str, float] | None:
    """Return the pattern and the part of requests that agree; None: streams were not observed."""
    sequential, strided, shared = observation.sequential, observation.strided, observation.shared
    if sequential is None or strided is None or shared is None:
        return None
    # With one client nothing shows whether others use its file elsewhere.
    alone = observation.clients == 1
    few = observation.reads + observation.writes < FEWEST * observation.clients
    if sequential >= NEARLY_ALL and not alone and not few:
        if shared >= NEARLY_ALL:
            return "shared-contiguous", sequential
        if shared <= 1 - NEARLY_ALL:
            return "file-per-process", sequential
    elif strided >= NEARLY_ALL and (alone or shared >= NEARLY_ALL):
        return "shared-strided", strided
    return UNKNOWN, 0.0
