"""The applications, queues and sizes of the live runs of paper forwarding (Section 5.6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.campaign.sizes import Size
from penstock.studies.live.emulated_site import Application
from penstock.studies.live.forwarding_claims import ALL, LINKS, MCKP, MIXED, ONE, SIZE, STATIC

NODES = 8
"""Compute nodes."""
WIDE = Application(name="wide", nodes=2, processes=4)
SERIAL = Application(name="serial", nodes=2, processes=1)
SHARED = Application(name="shared", nodes=4, processes=12, shared=True, request=128 * 2**10)
UNEVEN = Application(name="uneven", nodes=4, processes=3)
OTHER = Application(name="other", nodes=1, processes=1)
IN_SERVICE = 4
"""Requests in service at an I/O node. On one of four, `shared` has three processes: others are
served while their requests wait for the target. Alone on one, eight of its twelve requests wait,
and are put in order; with four processes and two in service, a request that came late made it 12.9
instead of 16.7 MB/s for the rest of a phase."""
VOLUMES = {WIDE.name: 2.0, SERIAL.name: 0.75, SHARED.name: 0.75, UNEVEN.name: 1.5}
"""What a phase moves, in seconds of one link."""
QUEUED = {WIDE.name: 8.0, SERIAL.name: 4.0, SHARED.name: 4.0}
"""What a job of the queue moves, in one phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Jobs in order, and the policies under which they are run."""

    name: str
    jobs: Sequence[Application]
    policies: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a size runs."""

    applications: Sequence[Application]
    queues: Sequence[Queue]
    scale: float  # of all volumes
    repetitions: int
    runs: int = 5
    """Runs of each application from which it is learnt, whatever comes out."""


EACH = (WIDE, SERIAL, SHARED, UNEVEN)
IN_ORDER = (WIDE, SERIAL, SHARED) * 3 + (WIDE,)
"""As HACC, SIM and S3D in Figure 5.12."""
# The second queue was chosen by simulation: others of these applications gain less from MCKP.
POLICIES = (MCKP, STATIC, SIZE, ONE, ALL)
QUEUES = (
    Queue(name=MIXED, jobs=IN_ORDER, policies=POLICIES),
    Queue(name=LINKS, jobs=(WIDE, SERIAL, WIDE) * 2, policies=(MCKP, STATIC, ALL)),
)
PLANS: Mapping[Size, Plan] = {
    "quick": Plan(
        applications=EACH[:3],
        queues=(
            Queue(name=MIXED, jobs=IN_ORDER[:4], policies=(MCKP, STATIC)),
            Queue(name=LINKS, jobs=(WIDE, SERIAL, WIDE), policies=(MCKP, ALL)),
        ),
        scale=0.5,
        repetitions=1,
        runs=3,
    ),
    "fast": Plan(applications=EACH, queues=QUEUES, scale=1.0, repetitions=1),
    "full": Plan(applications=EACH, queues=QUEUES, scale=2.0, repetitions=5),
}
Bandwidths = dict[int, float]
"""A curve: bytes per second by number of I/O nodes."""
