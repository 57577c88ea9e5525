"""The live runs of paper forwarding (Section 5.6, Figures 5.8, 5.12 and 5.13) on an emulated site.

Each application runs pinned to 1, 2 and 4 I/O nodes: that is its true curve, by its own clock. Then
a controller that knows nothing runs them one after the other, beside another job, until what it has
learnt of each is near its true curve. What it knows by then serves a queue of jobs (FIFO, as in
5.6.3), under MCKP and under other policies, each of which is simulated from the true curves too.

The applications stand for those of Figure 5.12: one that gains from I/O nodes and is small (wide,
for HACC), and two that are as large or larger and do not gain. On Grid'5000 they are real codes.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import ClassVar

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell, every
from penstock.campaign.journal import Value
from penstock.campaign.sizes import Size
from penstock.config import OWN
from penstock.core import arbiter
from penstock.core.arbiter import Arbiter
from penstock.live.protocol import messages
from penstock.model import Curve, Job, JobId, Site, Snapshot, View
from penstock.sim.engine import simulate
from penstock.sim.workload import Workload
from penstock.studies.live.emulated_site import (
    COUNTS,
    IO_NODES,
    LINK,
    Application,
    EmulatedSite,
    RunningJob,
    Times,
    emulated_site,
)
from penstock.studies.live.forwarding_claims import (
    ALL,
    CURVE,
    DECISION,
    JOB,
    LEARNT,
    LINKS,
    MCKP,
    MIXED,
    NEAR,
    ONE,
    RUN,
    SCENARIO,
    SIZE,
    STATIC,
    findings,
)
from penstock.studies.live.testbed import TestbedError
from penstock.studies.study import Study

NODES = 8
"""Compute nodes."""
WIDE = Application(name="wide", nodes=2, processes=4)
SERIAL = Application(name="serial", nodes=2, processes=1)
SHARED = Application(name="shared", nodes=4, processes=4, shared=True, request=128 * 2**10)
UNEVEN = Application(name="uneven", nodes=4, processes=3)
OTHER = Application(name="other", nodes=1, processes=1)
VOLUMES = {WIDE.name: 2.0, SERIAL.name: 0.75, SHARED.name: 0.75, UNEVEN.name: 1.5}
"""What a phase moves, in seconds of one link."""
QUEUED = {WIDE.name: 8.0, SERIAL.name: 4.0, SHARED.name: 4.0}
"""What a job of the queue moves, in one phase."""
PHASES, PAUSE = 3, 0.4
OTHER_PERIOD, OTHER_VOLUME = 4.0, 2 * 2**20
"""The job beside those that are learnt writes for an eighth of a second every so often."""
MOST_RUNS = 10
"""Runs of an application after which learning is given up: a busy machine may never show enough."""
POLL, LONGEST = 0.05, 300.0
"""Seconds between two looks at the jobs of a queue, and until it must have ended."""
PIECES = 64
"""Parts of a simulated job: a new number of I/O nodes takes effect between two of them."""


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
    most_runs: int = MOST_RUNS


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
        most_runs=4,
    ),
    "fast": Plan(applications=EACH, queues=QUEUES, scale=1.0, repetitions=1),
    "full": Plan(applications=EACH, queues=QUEUES, scale=2.0, repetitions=5),
}
Bandwidths = dict[int, float]
Rows = list[dict[str, Value]]


def run_cell(cell: Cell, *, plan: Plan) -> Rows:
    """Measure, learn, and run the queue under each policy: all of it once."""
    base: dict[str, Value] = {"scenario": cell.scenario, "x": cell.x, "workload": cell.workload}
    rows: Rows = []
    with emulated_site() as site:
        true = true_curves(site, plan)
    for application, bandwidths in true.items():
        for n, bandwidth in bandwidths.items():
            rows.append(
                {"what": CURVE, "application": application, "io_nodes": n, "true": bandwidth}
            )
    with emulated_site() as site:
        rows += cold_start(site, plan, true)
        for queue in plan.queues:
            for policy in queue.policies:
                rows += run_queue(site, plan, queue, policy, true)
    return [base | row for row in rows]


def true_curves(site: EmulatedSite, plan: Plan) -> dict[str, Bandwidths]:
    """Return each application's bandwidth by number of I/O nodes, by its own clock."""
    curves = {}
    with site.up(nodes=NODES):
        for application in plan.applications:
            volume = plan.scale * VOLUMES[application.name] * LINK
            curves[application.name] = {
                n: application.whole(volume) / median(_phases(site, application, volume, n).io)
                for n in COUNTS
            }
    return curves


def _phases(
    site: EmulatedSite, application: Application, volume: float, io_nodes: int | None = None
) -> Times:
    return site.run(application, volume=volume, phases=PHASES, compute=PAUSE, io_nodes=io_nodes)


def cold_start(site: EmulatedSite, plan: Plan, true: Mapping[str, Bandwidths]) -> Rows:
    """Run the applications until their curves are known, beside another job."""
    rows: Rows = []
    runs = dict.fromkeys((one.name for one in plan.applications), 0)
    with site.up(allocation=MCKP, nodes=NODES):
        other = site.start(
            OTHER, volume=OTHER_VOLUME, phases=round(LONGEST / OTHER_PERIOD), compute=OTHER_PERIOD
        )
        for _ in range(plan.most_runs):
            for application in plan.applications:
                if off(site, application.name, true) <= NEAR:
                    continue
                runs[application.name] += 1
                rows.append(learn(site, plan, application) | {"run": runs[application.name]})
        if other.process.poll() is not None:
            raise TestbedError("the other job has ended")
        other.process.terminate()
        other.process.wait()
        known = site.curves()
    for name, bandwidths in true.items():
        curve = known[name].curve if name in known else {}
        for n, bandwidth in bandwidths.items():
            point = curve.get(str(n))
            rows.append(
                {
                    "what": LEARNT,
                    "application": name,
                    "io_nodes": n,
                    "true": bandwidth,
                    "learnt": None if point is None else point.median,
                    "observations": 0 if point is None else point.observations,
                    "run": runs[name],
                }
            )
    return rows


def off(site: EmulatedSite, application: str, true: Mapping[str, Bandwidths]) -> float:
    """Return how far what is known of an application is off its true curve, at its worst point."""
    known = site.curves().get(application)
    points = {} if known is None else known.curve
    return max(
        abs(points[str(n)].median / bandwidth - 1) if str(n) in points else np.inf
        for n, bandwidth in true[application].items()
    )


def learn(site: EmulatedSite, plan: Plan, application: Application) -> dict[str, Value]:
    """Run an application once; return what it was given."""
    job = site.start(
        application,
        volume=plan.scale * VOLUMES[application.name] * LINK,
        phases=PHASES,
        compute=PAUSE,
    )
    given = None
    while job.process.poll() is None:
        given = _given(site.status()).get(job.name) or given
        time.sleep(POLL)
    job.wait()
    if given is None:
        raise TestbedError(f"job {job.name} was never seen to run")
    return {
        "what": RUN,
        "application": application.name,
        "io_nodes": given.count,
        "reason": given.reason,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a running job has."""

    application: str
    count: int
    reason: str


def _given(status: messages.Status) -> dict[str, Given]:
    return {
        job.name: Given(
            application=job.executable,
            count=len(job.io_nodes),
            reason=OWN if job.allocation is None else job.allocation.reason,
        )
        for job in status.jobs
        if job.state == "running"
    }


def run_queue(
    site: EmulatedSite, plan: Plan, queue: Queue, policy: str, true: Mapping[str, Bandwidths]
) -> Rows:
    """Run the queue under a policy, and simulate it."""
    with site.up(allocation=policy, nodes=NODES):
        jobs, seen = _play(site, plan, queue.jobs)
        times = {job.name: job.wait() for job in jobs}
    start_up = median(one.start_up for one in times.values())
    volumes = [_volume(plan, one) for one in queue.jobs]
    simulated = predicted(queue.jobs, volumes, policy, true, start_up)
    rows: Rows = []
    for k, job in enumerate(jobs):
        counts = [given[job.name].count for given in seen if job.name in given]
        changes = [n for i, n in enumerate(counts) if i == 0 or n != counts[i - 1]]
        rows.append(
            {
                "what": JOB,
                "queue": queue.name,
                "policy": policy,
                "job": k,
                "application": job.application.name,
                "live": volumes[k] / times[job.name].seconds,
                "simulated": simulated[k],
                "given": " ".join(map(str, changes)),
            }
        )
    if policy == MCKP:
        rows += [{"queue": queue.name, **row} for row in _decisions(seen, true)]
    return rows


def _volume(plan: Plan, application: Application) -> int:
    return application.whole(plan.scale * QUEUED[application.name] * LINK)


def _play(
    site: EmulatedSite, plan: Plan, queue: Sequence[Application]
) -> tuple[list[RunningJob], list[dict[str, Given]]]:
    """Start jobs in order as compute nodes become free; return them and what they were given."""
    started: list[RunningJob] = []
    seen: list[dict[str, Given]] = []
    until = time.monotonic() + LONGEST
    while True:
        running = [job for job in started if job.process.poll() is None]
        free = NODES - sum(job.application.nodes for job in running)
        left = queue[len(started) :]
        given = _given(site.status())
        if given and (not seen or given != seen[-1]):
            seen.append(given)
        # The next job is started once the controller has the last one: in the queue's order.
        arrived = not started or started[-1].name in given or started[-1] not in running
        if left and arrived and left[0].nodes <= free:
            started.append(site.start(left[0], volume=_volume(plan, left[0])))
        elif not left and not running:
            return started, seen
        elif time.monotonic() > until:
            raise TestbedError(f"the queue has not ended after {LONGEST:g} s")
        else:
            time.sleep(POLL)


def _decisions(seen: Sequence[Mapping[str, Given]], true: Mapping[str, Bandwidths]) -> Rows:
    """Return what was given to each set of jobs that ran together, and what the truth gives."""
    rows: dict[tuple[str, ...], dict[str, Value]] = {}
    for given in seen:
        curves = {name: true[one.application] for name, one in given.items()}
        counts = {name: one.count for name, one in given.items()}
        offline = allocated(curves, {name: one.application for name, one in given.items()})
        sums = [sum(curves[name][n] for name, n in one.items()) for one in (counts, offline)]
        rows[tuple(given)] = {
            "what": DECISION,
            "policy": MCKP,
            "application": " ".join(sorted(one.application for one in given.values())),
            "given": _by_application(given, counts),
            "offline": _by_application(given, offline),
            "live": sums[0],
            "simulated": sums[1],
            "reason": " ".join(sorted({one.reason for one in given.values()})),
        }
    return list(rows.values())


def _by_application(given: Mapping[str, Given], counts: Mapping[str, int]) -> str:
    """Return counts in the order of the applications: which of two equal jobs has more is open."""
    ordered = sorted((one.application, counts[name]) for name, one in given.items())
    return json.dumps([count for _, count in ordered])


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
    return arbiter.allocate(registry.policy("allocation", "mckp"), Snapshot.of(jobs, site))


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
) -> list[float]:
    """Return the bandwidth of each job of a queue by simulation from curves.

    The time that a job takes to start is computation, as it is live: its I/O nodes wait for it.
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
        site=Site(nodes=NODES, resources=IO_NODES),
        arbitrate=arbitrate.handle,
    )
    seconds = done.finish - done.start - start_up
    bandwidths: list[float] = (np.array(volumes) / seconds).tolist()
    return bandwidths


STUDY = Study(
    name="live-forwarding",
    title="Arbitration of I/O nodes on real processes (Bez 2020, 5.6.3): from a cold start, live",
    version=1,
    cells=lambda size: every(SCENARIO, (0,), PLANS[size].repetitions),
    run_cell=lambda size, _: partial(run_cell, plan=PLANS[size]),
    findings=findings,
    alone=True,
)
