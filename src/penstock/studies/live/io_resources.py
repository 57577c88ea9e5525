"""Paper io-resources (Section V, Figure 5) on real processes: how many I/O nodes, and which.

Six jobs compute and write in turn on four I/O nodes, whose links set their curves. Compute times
are such that the I/O-load of n-sys is each of three values. All that policies need is known, as
`penstock curves import` tells it. The simulator has the same jobs, on the I/O nodes that they had.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell, Results, every
from penstock.campaign.journal import Row, Value
from penstock.campaign.sizes import Size
from penstock.core import answers
from penstock.learn.imported import Imported, ImportedApplication
from penstock.live.protocol.users import name_of
from penstock.model import Curve, Job, Site, Snapshot
from penstock.report.findings import Claim, Figure, Findings, TextTable
from penstock.sim.evaluate.placements import JobSet
from penstock.studies.live.emulated_site import (
    IO_NODES,
    LINK,
    Application,
    EmulatedSite,
    Times,
    emulated_site,
)
from penstock.studies.live.testbed import LEAD
from penstock.studies.panels import bars
from penstock.studies.study import Study
from penstock.studies.texts import captions_of, claims_of, findings_of
from penstock.studies.verdicts import at_limits

claim = claims_of("live-io-resources")
figure = captions_of("live-io-resources")

SCENARIO = "figure-5-live"
LOADS = (0.3, 0.6, 0.9)
"""I/O-load of n-sys, which is the least of all."""
ALLOCATORS = ("static", "best-bandwidth", "n-sys", "t-cpu")
PLACERS = ("greedy-non-clairvoyant", "greedy-clairvoyant")
MEASURED = {"measured": True}
"""Only numbers of I/O nodes at which curves have a point: three I/O nodes serve four processes no
better than two."""
NEAR = 0.15
MOST = 0.5
"""Best-bandwidth is best "in general" if it is at more than this part of the loads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A job: its application, and the seconds that a phase takes with one I/O node."""

    application: Application
    io: float

    def volume(self) -> int:
        """Return the bytes of a phase."""
        return self.application.whole(self.io * LINK)


MEMBERS = (
    Member(application=Application(name="wide-a", nodes=2, processes=4), io=1.0),
    Member(application=Application(name="wide-b", nodes=1, processes=4), io=0.75),
    Member(application=Application(name="uneven", nodes=2, processes=3), io=0.9),
    Member(application=Application(name="pair", nodes=1, processes=2), io=0.625),
    Member(application=Application(name="serial-a", nodes=5, processes=1), io=0.5),
    Member(application=Application(name="serial-b", nodes=1, processes=1), io=0.8125),
)
SITE = Site(nodes=sum(member.application.nodes for member in MEMBERS), resources=IO_NODES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a size runs, and for how long."""

    loads: Sequence[float]
    allocators: Sequence[str]
    placers: Sequence[str]
    seconds: float
    repetitions: int


PLANS: Mapping[Size, Plan] = {
    "quick": Plan(loads=(0.6,), allocators=("t-cpu",), placers=PLACERS, seconds=5.0, repetitions=1),
    "fast": Plan(loads=LOADS, allocators=ALLOCATORS, placers=PLACERS, seconds=6.0, repetitions=1),
    "full": Plan(loads=LOADS, allocators=ALLOCATORS, placers=PLACERS, seconds=30.0, repetitions=3),
}


def jobs(load: float, seconds: float) -> list[Job]:
    """Return the jobs as the paper has them: compute time and volume of all their phases.

    All spend the same part of their time on I/O with one I/O node, where all stress the site least.
    """
    part = load * IO_NODES / len(MEMBERS)
    result = []
    for k, member in enumerate(MEMBERS):
        period = member.io / part
        phases = max(round(seconds / period), 1)
        result.append(
            Job(
                id=member.application.name,
                serial=k,
                nodes=member.application.nodes,
                curve=Curve.of(member.application.links),
                volume=float(phases * member.volume()),
                compute=phases * (period - member.io),
                w_iter=period,
            )
        )
    return result


def phases_of(job: Job) -> int:
    """Return the number of phases of a job."""
    assert job.compute is not None
    assert job.volume is not None
    assert job.curve is not None
    assert job.w_iter is not None
    return round((job.compute + job.volume / job.curve.bandwidth(1)) / job.w_iter)


def known(job: Job) -> ImportedApplication:
    """Return what a site is told of a job's application: of one phase."""
    assert job.compute is not None
    assert job.volume is not None
    member = {one.application.name: one for one in MEMBERS}[job.id]
    phases = phases_of(job)
    return ImportedApplication(
        user=name_of(os.getuid()),
        application=job.id,
        nodes=job.nodes,
        imported=Imported(
            curve=dict(member.application.links),
            volume=job.volume / phases,
            compute=job.compute / phases,
        ),
    )


def run_cell(cell: Cell, *, plan: Plan) -> list[dict[str, Value]]:
    """Run the jobs at one load under each pair of policies, and simulate them."""
    members = jobs(cell.x, plan.seconds)
    job_set = JobSet(members, SITE)
    base: dict[str, Value] = {"scenario": cell.scenario, "x": cell.x, "workload": cell.workload}
    rows = []
    for allocator in plan.allocators:
        for placer in plan.placers:
            places, times = live(members, allocator, placer)
            offline = offline_places(members, allocator, placer)
            rows.append(
                base
                | {
                    "policy": allocator,
                    "placer": placer,
                    "live": slowdown(members, times),
                    "simulated": job_set.simulate(job_set.places(places)).mean_slowdown,
                    "offline": job_set.simulate(job_set.places(offline)).mean_slowdown,
                    "given": _shown(places),
                    "decided": _shown(offline),
                }
            )
    return rows


def _shown(places: Mapping[str, tuple[int, ...]]) -> str:
    return json.dumps([list(places[member.application.name]) for member in MEMBERS])


def live(
    members: Sequence[Job], allocator: str, placer: str
) -> tuple[dict[str, tuple[int, ...]], dict[str, Times]]:
    """Run the jobs; return the I/O nodes that they had, and their times."""
    with emulated_site() as site:
        site.tell([known(job) for job in members])
        with site.up(allocation=allocator, placement=placer, nodes=SITE.nodes, options=MEASURED):
            return _play(site, members)


def _play(
    site: EmulatedSite, members: Sequence[Job]
) -> tuple[dict[str, tuple[int, ...]], dict[str, Times]]:
    applications = {member.application.name: member for member in MEMBERS}
    started = []
    for job in members:
        assert job.compute is not None
        member, phases = applications[job.id], phases_of(job)
        started.append(
            site.start(
                member.application,
                volume=member.volume(),
                phases=phases,
                compute=job.compute / phases,
                waits=True,
            )
        )
    places = {
        job.executable: tuple(sorted(job.io_nodes))
        for job in site.status().jobs
        if job.state == "running"
    }
    zero = time.monotonic() + LEAD
    for one in started:
        one.begin(zero)
    return places, {one.application.name: one.wait() for one in started}


def offline_places(
    members: Sequence[Job], allocator: str, placer: str
) -> dict[str, tuple[int, ...]]:
    """Return what `penstock allocate` and `penstock place` give for the same jobs."""
    view = Snapshot.of(members, SITE)
    counts = answers.allocate(registry.policy("allocation", allocator, MEASURED), view)
    return answers.place(registry.policy("placement", placer), view, counts, {})


def slowdown(members: Sequence[Job], times: Mapping[str, Times]) -> float:
    """Return Mean-I/O-SlowDown (Equation 4) until the first job ends, and each has had a phase."""
    first_end = min(times[job.id].phases[-1][1] for job in members)
    until = max(first_end, *(times[job.id].phases[0][1] for job in members))
    parts = []
    for job in members:
        assert job.volume is not None
        assert job.curve is not None
        done = [end - begin for begin, end in times[job.id].phases if end <= until]
        best = job.volume / phases_of(job) / max(job.curve.at(job.curve.counts))
        parts.append(sum(done) / (len(done) * best))
    return float(np.mean(parts))


def findings(results: Results) -> Findings:
    """Return how near the simulations are, and the paper's claims."""
    rows = list(results.rows)
    return findings_of(
        "live-io-resources",
        claims=claims(rows),
        figures=[_figure(rows)],
        tables=[_table(rows)],
        jobs=len(MEMBERS),
    )


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Return the paper's claims of Section V, live, and ours."""
    return [
        _best_bandwidth(rows),
        _clairvoyant(rows),
        _more_important(rows),
        _same_counts(rows),
        _as_simulated(rows),
    ]


def _means(rows: Sequence[Row], *keys: str) -> dict[tuple[object, ...], float]:
    """Return the mean slowdown live over repetitions (and all that `keys` do not name)."""
    groups: dict[tuple[object, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(_number(row, "live"))
    return {key: fmean(values) for key, values in groups.items()}


def _best_bandwidth(rows: Sequence[Row]) -> Claim:
    means = _means(rows, "x", "placer", "policy")
    cases = list(dict.fromkeys(key[:2] for key in means))
    lowest = {
        case: min((key for key in means if key[:2] == case), key=means.__getitem__)[2]
        for case in cases
    }
    policies = {row["policy"] for row in rows}
    counts: dict[tuple[object, ...], list[int]] = {
        (row["x"], row["placer"], row["policy"]): _counts(row["decided"]) for row in rows
    }
    wins = sum(
        counts[*case, policy] == counts.get((*case, "best-bandwidth"))
        for case, policy in lowest.items()
    )
    return claim(
        "fig-5-best-bandwidth",
        f"lowest in {wins} of {len(cases)}: "
        + ", ".join(f"{x:g} {policy}" for (x, _), policy in lowest.items()),
        wins > MOST * len(cases) if policies == set(ALLOCATORS) else None,
    )


def _clairvoyant(rows: Sequence[Row]) -> Claim:
    means = _means(rows, "policy", "placer")
    policies = list(dict.fromkeys(policy for policy, _ in means))
    off = {str(one): means[one, PLACERS[1]] / means[one, PLACERS[0]] - 1 for one in policies}
    largest = max(map(abs, off.values()))
    return claim.over(
        "fig-5-clairvoyant",
        ", ".join(f"{name} {100 * part:+.1f}%" for name, part in off.items()),
        at_limits(lambda limit: largest <= limit),
    )


def _more_important(rows: Sequence[Row]) -> Claim:
    loads = list(dict.fromkeys(_number(row, "x") for row in rows))
    ratios = {}
    for load in loads:
        at = [row for row in rows if row["x"] == load]
        by = [list(_means(at, key).values()) for key in ("policy", "placer")]
        ratios[load] = [max(values) / min(values) for values in by]
    return claim(
        "viii-allocation-more-important",
        "; ".join(f"{x:g}: {a:.2f} and {p:.2f}" for x, (a, p) in ratios.items()),
        all(a > p for a, p in ratios.values()),
    )


def _same_counts(rows: Sequence[Row]) -> Claim:
    same = [_counts(row["given"]) == _counts(row["decided"]) for row in rows]
    placed = sum(row["given"] == row["decided"] for row in rows)
    return claim(
        "ours-same-counts",
        f"{sum(same)} of {len(same)} cases; the same I/O nodes in {placed}",
        all(same),
    )


def _as_simulated(rows: Sequence[Row]) -> Claim:
    off = {
        (_number(row, "x"), row["policy"], row["placer"]): _number(row, "live")
        / _number(row, "simulated")
        - 1
        for row in rows
    }
    worst = max(off, key=lambda key: abs(off[key]))
    return claim(
        "ours-as-simulated",
        f"{sum(abs(part) <= NEAR for part in off.values())} of {len(off)} within "
        f"{100 * NEAR:g}%; at most {100 * off[worst]:+.1f}% ({worst[1]} with {worst[2]}, load "
        f"{worst[0]:g})",
        all(abs(part) <= NEAR for part in off.values()),
        near=100 * NEAR,
    )


def _counts(places: object) -> list[int]:
    return [len(where) for where in json.loads(str(places))]


def _number(row: Row, name: str) -> float:
    return float(row[name] or 0)


def _figure(rows: Sequence[Row]) -> Figure:
    panels = []
    for load in dict.fromkeys(_number(row, "x") for row in rows):
        for placer in PLACERS:
            some = [row for row in rows if row["x"] == load and row["placer"] == placer]
            labels = list(dict.fromkeys(str(row["policy"]) for row in some))
            heights = {
                how: [
                    fmean(_number(row, how) for row in some if row["policy"] == policy)
                    for policy in labels
                ]
                for how in ("live", "simulated")
            }
            title = f"load {load:g}, {placer}"
            panels.append(bars(title, labels, heights, y="Mean-I/O-SlowDown", key=True))
    return figure("figure-5-live", panels, columns=2)


def _table(rows: Sequence[Row]) -> TextTable:
    header = ["load", "allocation", "placement", "given live", "offline", "live", "simulated"]
    cells = [
        [
            f"{_number(row, 'x'):g}",
            *(str(row[name]) for name in ("policy", "placer", "given", "decided")),
            *(f"{_number(row, how):.2f}" for how in ("live", "simulated")),
        ]
        for row in rows
    ]
    return figure.table("places", [header, *cells])


STUDY = Study(
    name="live-io-resources",
    title="How many I/O nodes, and which, on real processes (Bandet et al. 2024): live",
    version=1,
    cells=lambda size: every(SCENARIO, PLANS[size].loads, PLANS[size].repetitions),
    run_cell=lambda size, _: partial(run_cell, plan=PLANS[size]),
    findings=findings,
    alone=True,
)
