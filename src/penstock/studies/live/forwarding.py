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
from dataclasses import dataclass, field
from functools import partial
from statistics import median

import numpy as np

from penstock.campaign.cells import Cell, every
from penstock.campaign.journal import Value
from penstock.config import OWN
from penstock.live.controller.explain import explain
from penstock.live.protocol import messages
from penstock.studies.live.emulated_site import (
    COUNTS,
    LINK,
    Application,
    EmulatedSite,
    RunningJob,
    Times,
    emulated_site,
)
from penstock.studies.live.forwarding_claims import (
    CURVE,
    DECISION,
    HAS,
    JOB,
    LEARNT,
    MCKP,
    RUN,
    SCENARIO,
    findings,
)
from penstock.studies.live.forwarding_predicted import allocated, predicted
from penstock.studies.live.forwarding_scenario import (
    IN_SERVICE,
    NODES,
    OTHER,
    PLANS,
    QUEUED,
    VOLUMES,
    Bandwidths,
    Plan,
    Queue,
)
from penstock.studies.live.testbed import TestbedError
from penstock.studies.study import Study

PHASES, PAUSE = 3, 0.4
OTHER_PERIOD, OTHER_VOLUME = 4.0, 2 * 2**20
"""The job beside those that are learnt writes for an eighth of a second every so often."""
POLL, LONGEST = 0.05, 300.0
"""Seconds between two looks at the jobs of a queue, and until it must have ended."""
Rows = list[dict[str, Value]]


def run_cell(cell: Cell, *, plan: Plan) -> Rows:
    """Measure, learn, and run the queue under each policy: all of it once."""
    base: dict[str, Value] = {"scenario": cell.scenario, "x": cell.x, "workload": cell.workload}
    rows: Rows = []
    with emulated_site(in_service=IN_SERVICE) as site:
        true = true_curves(site, plan)
    for application, bandwidths in true.items():
        for n, bandwidth in bandwidths.items():
            rows.append(
                {"what": CURVE, "application": application, "io_nodes": n, "true": bandwidth}
            )
    with emulated_site(in_service=IN_SERVICE) as site:
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
    """Run each application a number of times, beside another job; return what is known then."""
    rows: Rows = []
    with site.up(allocation=MCKP, nodes=NODES):
        other = site.start(
            OTHER, volume=OTHER_VOLUME, phases=round(LONGEST / OTHER_PERIOD), compute=OTHER_PERIOD
        )
        for run in range(1, plan.runs + 1):
            for application in plan.applications:
                row = learn(site, plan, application)
                error = off(site, application.name, true)
                rows.append(row | {"run": run, "off": None if np.isinf(error) else error})
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
                    "run": plan.runs,
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
    """Run an application once; return what it was given when it began."""
    job = site.start(
        application,
        volume=plan.scale * VOLUMES[application.name] * LINK,
        phases=PHASES,
        compute=PAUSE,
    )
    given = None
    while job.process.poll() is None:
        given = given or _given(site.status()).get(job.name)
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
    explained: str = field(compare=False)  # the sentence of `penstock explain`; it has the time


def _given(status: messages.Status) -> dict[str, Given]:
    return {
        job.name: Given(
            application=job.executable,
            count=len(job.io_nodes),
            reason=OWN if job.allocation is None else job.allocation.reason,
            explained=next((s for s in explain(status, job.id).through if HAS in s), ""),
        )
        for job in status.jobs
        if job.state == "running"
    }


def run_queue(
    site: EmulatedSite, plan: Plan, queue: Queue, policy: str, true: Mapping[str, Bandwidths]
) -> Rows:
    """Run the queue under a policy, and simulate it."""
    # Jobs of a few seconds are what it compares: none of them counts as short.
    with site.up(allocation=policy, nodes=NODES, settle="1 s"):
        jobs, seen = _play(site, plan, queue.jobs)
        times = {job.name: job.wait() for job in jobs}
    start_up = median(one.start_up for one in times.values())
    volumes = [_volume(plan, one) for one in queue.jobs]
    simulated, occupied = (
        predicted(queue.jobs, volumes, policy, true, start_up, work_conserving=shared)
        for shared in (True, False)
    )
    rows: Rows = []
    for k, job in enumerate(jobs):
        had = [given[job.name] for given in seen if job.name in given]
        counts = [one.count for one in had]
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
                "occupied": occupied[k],
                "given": " ".join(map(str, changes)),
                "explained": had[-1].explained if had else "",
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


STUDY = Study(
    name="live-forwarding",
    title="Arbitration of I/O nodes on real processes (Bez 2020, 5.6.3): from a cold start, live",
    version=2,
    cells=lambda size: every(SCENARIO, (0,), PLANS[size].repetitions),
    run_cell=lambda size, _: partial(run_cell, plan=PLANS[size]),
    findings=findings,
    alone=True,
)
