"""What should come out of the live runs of paper forwarding, from curves that are known."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from penstock import registry
from penstock.core import answers
from penstock.core.arbiter import Arbiter
from penstock.model import Curve, Job, JobId, Site, Snapshot, View
from penstock.sim.engine import simulate
from penstock.sim.workload import Workload
from penstock.studies.live.emulated_site import IO_NODES, LINK, Application
from penstock.studies.live.forwarding_claims import ALL, ONE, SIZE, STATIC
from penstock.studies.live.forwarding_scenario import EACH, NODES, Bandwidths

PIECES = 64
"""Parts of a simulated job: a new number of I/O nodes takes effect between two of them."""


def allocated(
    curves: Mapping[JobId, Bandwidths], applications: Mapping[JobId, str]
) -> Mapping[JobId, int]:
    """Return what `penstock allocate` gives for curves."""
    nodes = {one.name: one.nodes for one in EACH}
    jobs = [
        Job(id=name, serial=k, nodes=nodes[applications[name]], curve=Curve.of(curve))
        for k, (name, curve) in enumerate(curves.items())
    ]
    site = Site(nodes=NODES, resources=IO_NODES)
    return answers.allocate(registry.policy("allocation", "mckp"), Snapshot.of(jobs, site))


class All:
    """Every job may use all I/O nodes, and uses one for each of its processes."""

    needs: ClassVar[frozenset[str]] = frozenset()
    sticky: ClassVar[bool] = False

    def allocate(self, view: View) -> Mapping[JobId, int]:
        """Return as many as a job has processes."""
        most = view.site.resources
        return {name: min(job.processes or most, most) for name, job in view.jobs.items()}


def predicted(
    queue: Sequence[Application],
    volumes: Sequence[int],
    policy: str,
    true: Mapping[str, Bandwidths],
    start_up: float,
    *,
    work_conserving: bool = True,
) -> list[float]:
    """Return the bandwidth of each job of a queue by simulation from curves.

    The time that a job takes to start is computation, as it is live: its I/O nodes wait for it.
    Not `work_conserving`: a job that transfers occupies its I/O nodes (paper io-resources, Fig. 4).
    """
    curves = [Curve.of(true[one.name]) for one in queue]
    compute = np.zeros(PIECES * len(queue))
    compute[::PIECES] = start_up
    workload = Workload(
        ids=[f"{one.name}-{k}" for k, one in enumerate(queue)],
        compute=compute,
        io=np.repeat(
            [v / PIECES / c.bandwidth(1) for v, c in zip(volumes, curves, strict=True)], PIECES
        ),
        offsets=PIECES * np.arange(len(queue) + 1),
        release=np.zeros(len(queue)),
        nodes=[one.nodes for one in queue],
        curves=curves,
        details=[{"processes": one.processes} for one in queue],
    )
    # Live, counts between those of a curve are given by policies that ask for no curve.
    options = {"measured": False} if policy in (STATIC, SIZE, ONE) else {}
    arbitrate = Arbiter(
        allocator=All() if policy == ALL else registry.policy("allocation", policy, options),
        placer=registry.policy("placement", "greedy-non-clairvoyant"),
    )
    done = simulate(
        workload,
        registry.sharing("fair-share"),
        site=Site(nodes=NODES, resources=IO_NODES, bandwidth=LINK, work_conserving=work_conserving),
        arbitrate=arbitrate.handle,
    )
    seconds = done.finish - done.start - start_up
    bandwidths: list[float] = (np.array(volumes) / seconds).tolist()
    return bandwidths
