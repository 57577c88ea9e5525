"""Random sites and workloads for the property tests."""

import os
from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from penstock.model import Curve, Site
from penstock.sim.workload import Workload

# Halves collide all the time, which is where ties are decided; the others almost never do.
HALVES = st.integers(0, 6).map(lambda k: k / 2)
REALS = st.floats(0.0, 20.0).map(lambda x: x if x > 1e-6 else 0.0)
SOAK = int(os.environ.get("PENSTOCK_SOAK", "1"))
CAPS = st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.7, 1.0])


def examples(count: int) -> settings:
    """Return settings for this number of examples, and PENSTOCK_SOAK times as many in a soak."""
    return settings(max_examples=count * SOAK, deadline=None)


@dataclass(frozen=True, kw_only=True)
class Case:
    workload: Workload
    site: Site


@st.composite
def workloads(
    draw: st.DrawFn,
    *,
    resources: int = 1,
    caps: bool = False,
    queued: bool = False,
    max_jobs: int = 7,
    times: st.SearchStrategy[float] | None = None,
) -> Workload:
    seconds = draw(st.sampled_from([HALVES, REALS])) if times is None else times
    n = draw(st.integers(1, max_jobs))
    counts = [draw(st.integers(1, 5)) for _ in range(n)]
    offsets = np.concatenate(([0], np.cumsum(counts)))
    compute = np.array([draw(seconds) for _ in range(offsets[-1])])
    io = np.array([draw(seconds) for _ in range(offsets[-1])])
    compute[offsets[:-1]] += 0.5  # no job may do nothing at all
    places = [
        draw(st.lists(st.integers(0, resources - 1), min_size=1, unique=True)) for _ in range(n)
    ]
    barrier = np.full(n, -1)
    if queued and draw(st.booleans()):
        barrier = np.array([draw(st.integers(-1, min(2, n - 1))) for _ in range(n)])
    return Workload(
        compute=compute,
        io=io,
        offsets=offsets,
        release=[draw(seconds) for _ in range(n)],
        nodes=[draw(st.integers(1, 4)) for _ in range(n)],
        max_share=[draw(CAPS) for _ in range(n)] if caps else None,
        resource_offsets=np.concatenate(([0], np.cumsum([len(p) for p in places]))),
        resources=np.concatenate(places),
        barrier=barrier,
        after=np.where(barrier > 0, barrier - 1, -1),
        profile=[draw(st.sampled_from([1.0, 10.0, 100.0])) for _ in range(n)],
        curves=[draw(st.none() | curves(resources)) for _ in range(n)],
    )


def curves(resources: int) -> st.SearchStrategy[Curve]:
    """Bandwidths, rising and falling, at every count up to `resources`, and direct."""
    bandwidths = st.lists(
        st.sampled_from([0.5, 1.0, 1.5, 3.0]), min_size=resources + 1, max_size=resources + 1
    )
    return bandwidths.map(lambda values: Curve.of(dict(enumerate(values))))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Everything the engine can do at once: resources, caps, interference, barriers, a queue."""
    resources = draw(st.integers(1, 3))
    site = Site(
        resources=resources,
        nodes=draw(st.sampled_from([0, 4, 8])),
        capacity=draw(st.sampled_from([(1.0,), (1.0, 0.98), (1.0, 0.9, 0.8), (0.75,)])),
        direct=draw(st.booleans()),
        bandwidth=(link := draw(st.sampled_from([None, 2.8, 7.0]))),
        work_conserving=link is not None,
    )
    workload = draw(workloads(resources=resources, caps=draw(st.booleans()), queued=True))
    return Case(workload=workload, site=site)
