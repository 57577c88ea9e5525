"""The scenarios of paper io-resources, Sections V and VI, and ours beyond it, as data.

A point is a load: the sets of a point have an I/O-load(pi_sys) within 0.05 of it, as the paper's
bins do. The paper does not print its thetas. Here theta is drawn evenly within 0.15 of the point,
again and again until the set's load falls into the bin. The paper evaluates "over 100" sets a
scenario: 100 a point at full size.

Where the environment variable PENSTOCK_DATA names a directory with `ost-curves.csv`, measured
curves over storage targets, Figure 13 is made with these too.
"""

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.campaign.sizes import FULL, QUICK, Size
from penstock.learn.curves import ClassCurves, Scale
from penstock.model import Curve, Job, Snapshot
from penstock.policies._support.local_search import METRICS, costs
from penstock.policies.allocation.search import Search, SearchResult
from penstock.sim.evaluate.judge import mean_verdict
from penstock.sim.evaluate.placements import JobSet, Outcome, Places
from penstock.sim.generators.io_resources import (
    JOBS,
    OST_FILE,
    SITE,
    OstProfile,
    io_resources,
    measured_ost_curves,
    mn4_curves,
    ost_curves,
)
from penstock.studies.table import row

BIN, AROUND = 0.05, 0.15
NOISE = 0.1
"""By how much phases vary where a search is tried on phases that its judge does not know."""
LOADS = tuple(round(0.1 * k, 1) for k in range(1, 11))
BEYOND = (1.2, 1.5, 1.8)
"""Loads past saturation."""
NON_CLAIRVOYANT, CLAIRVOYANT, RANDOM = "greedy-non-clairvoyant", "greedy-clairvoyant", "random"
PLACERS = (CLAIRVOYANT, NON_CLAIRVOYANT, RANDOM)
ALLOCATORS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "random": ("random", {}),
    "static": ("static", {}),
    "best-bandwidth": ("best-bandwidth", {}),
    "n-sys": ("n-sys", {}),
    "t-cpu": ("t-cpu", {}),
    "t-cpu, strict": ("t-cpu", {"strict": True}),
}
MCKP = "mckp + exclusive"
SCALES: Mapping[str, Scale] = {
    "approximate": "peak",
    "same function": "none",
    "scaled by b(1)": "first",
}
"""The ways to read Figure 11: what all jobs of a class have in common. The first is ours."""
STEEP_EXACT = "approximate but for n_sys > 1"
"""Classes only, except for the jobs whose least stress is at several resources."""
GENERATORS: Mapping[str, OstProfile] = {
    "s 0.1 to 0.6": OstProfile(),
    "near linear, s up to 0.1": OstProfile(serial=(0.0, 0.1)),
    "s up to 0.05, none flat": OstProfile(serial=(0.0, 0.05), flat=0.0),
    "half flat": OstProfile(flat=0.5),
    "s 0.4 to 1": OstProfile(serial=(0.4, 1.0)),
}
"""Ways to draw synthetic curves over storage targets; the first is the generator's own."""
OST, OST_MEASURED = "ost", "ost-measured"
TRIALS = 4
"""Trials of a placement, each with other starts and other phases."""
BUDGET: Mapping[Size, int] = {"full": 500, "fast": 200, "quick": 25}
"""Simulations that a search may make."""
NAMED = (0.1, 0.2, 0.3, 0.5, 0.6, 0.8, 0.9, 1.0, 1.8)
"""Loads that claims and figures name: those of the quick size."""
STEPS = (20, 50, 100, 200, 500)
"""After how many simulations the search's progress is reported."""


def pair(allocator: str, placer: str = NON_CLAIRVOYANT) -> str:
    """Return what rows call an allocator with a placer."""
    return f"{allocator} + {placer}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Sets of jobs over the load, met by several pairs of allocator and placer.

    `drawn` names the scenario whose sets these are, so that two can meet the same.
    """

    drawn: str
    full: Sequence[float]
    fast: Sequence[float]
    sets: Mapping[Size, int]
    curves: Callable[[], tuple[Curve, ...]] = mn4_curves
    jobs: int = JOBS
    placers: Sequence[str] = (NON_CLAIRVOYANT,)
    options: Mapping[str, object] = field(default_factory=dict)
    approximate: Sequence[tuple[str, str]] = ()
    searches: Sequence[str] = ()
    at_hand: Callable[[], bool] = lambda: True
    """Whether its curves are there."""

    def points(self, size: Size) -> Sequence[float]:
        """Return the loads of a size."""
        if size == QUICK:
            return [load for load in self.fast if load in NAMED]
        return self.full if size == FULL else self.fast


OWN = next(iter(GENERATORS))


def targets(generator: str = OWN) -> str:
    """Return the scenario of a generator of curves over storage targets."""
    return OST if generator == OWN else f"{OST}, {generator}"


def _ost_file() -> Path | None:
    folder = os.environ.get("PENSTOCK_DATA")
    file = Path(folder) / OST_FILE if folder else None
    return file if file is not None and file.exists() else None


@cache
def _measured_targets() -> tuple[Curve, ...]:
    file = _ost_file()
    assert file is not None, "a scenario that is not at hand has no cells"
    return measured_ost_curves(file)


SCENARIOS: Mapping[str, Scenario] = {
    "io-nodes": Scenario(
        drawn="io-nodes",
        full=(*LOADS, *BEYOND),
        fast=(*LOADS, *BEYOND),
        sets={"full": 100, "fast": 16, "quick": 2},
        placers=PLACERS,
        approximate=(
            ("best-bandwidth", NON_CLAIRVOYANT),
            ("best-bandwidth", CLAIRVOYANT),
            ("n-sys", NON_CLAIRVOYANT),
            ("t-cpu", NON_CLAIRVOYANT),
        ),
    ),
    **{
        name: Scenario(
            drawn=name,
            full=LOADS,
            fast=LOADS,
            sets={"full": 100, "fast": 16, "quick": 2},
            jobs=jobs,
            placers=PLACERS,
        )
        for name, jobs in (("twenty-jobs", 20), ("thirty-jobs", 30))
    },
    "measured-counts": Scenario(
        drawn="io-nodes",
        full=LOADS,
        fast=(0.2, 0.5, 0.8, 1.0),
        sets={"full": 100, "fast": 12, "quick": 2},
        options={"measured": True},
    ),
    **{
        targets(name): Scenario(
            drawn=OST,
            full=LOADS,
            fast=LOADS,
            sets={"full": 100, "fast": 16 if name == OWN else 8, "quick": 2},
            curves=partial(ost_curves, profile=profile),
        )
        for name, profile in GENERATORS.items()
    },
    OST_MEASURED: Scenario(
        drawn=OST_MEASURED,
        full=LOADS,
        fast=LOADS,
        sets={"full": 100, "fast": 16, "quick": 2},
        curves=_measured_targets,
        at_hand=lambda: _ost_file() is not None,
    ),
    "search": Scenario(
        drawn="io-nodes",
        full=LOADS,
        fast=LOADS,
        sets={"full": 20, "fast": 4, "quick": 1},
        placers=PLACERS,
        searches=METRICS,
    ),
    "search-ost": Scenario(
        drawn=OST,
        full=LOADS,
        fast=(0.2, 0.5, 0.8),
        sets={"full": 10, "fast": 3, "quick": 1},
        curves=partial(ost_curves, profile=GENERATORS[OWN]),
        placers=PLACERS,
        searches=METRICS[:1],
    ),
}


def draw(scenario: Scenario, load: float, seed: Sequence[int]) -> list[Job]:
    """Draw a set of jobs whose I/O-load(pi_sys) is in the bin around `load`."""
    rng = np.random.default_rng(seed)
    most = scenario.jobs / SITE.resources
    while True:
        theta = rng.uniform(max(0.01, load - AROUND), min(0.999 * most, load + AROUND))
        drawn = [*seed, int(rng.integers(2**31))]
        jobs = io_resources(theta, seed=drawn, jobs=scenario.jobs, curves=scenario.curves())
        if abs(JobSet(jobs, SITE).least_load - load) <= BIN:
            return jobs


@cache
def learnt(curves: Callable[[], tuple[Curve, ...]], scale: Scale = "peak") -> ClassCurves:
    """Return what can be learnt of a data set's classes."""
    return ClassCurves.fit(curves(), scale=scale)


def run_cell(cell: Cell, *, seed: int, budget: int) -> list[dict[str, Value]]:
    """Return a row for every pair that meets the cell's set of jobs."""
    scenario = SCENARIOS[cell.scenario]
    point = round(cell.x * 1000)
    drawn = (seed, zlib.crc32(scenario.drawn.encode()), point, cell.workload)
    met = _Met(cell, scenario, draw(scenario, cell.x, drawn), luck=zlib.crc32(repr(drawn).encode()))
    rows = met.rows(dict(met.pairs()))
    for metric in scenario.searches:
        rows += met.searched(metric, budget)
    return rows


def _policy(kind: str, name: str, options: Mapping[str, object]) -> Any:
    return _class(kind, name)(**options)


@cache
def _class(kind: str, name: str) -> type[Any]:
    """Return a policy's class; looking it up costs as much as a simulation."""
    return registry.load(kind, name)


class _Met:
    """A set of jobs, and the policies that meet it; `luck` seeds those that draw."""

    def __init__(self, cell: Cell, scenario: Scenario, jobs: list[Job], *, luck: int) -> None:
        self._cell, self._scenario, self._luck = cell, scenario, luck
        self._view = Snapshot.of(jobs, SITE)
        self._set = JobSet(jobs, SITE)
        most = max(job.nodes for job in jobs)
        self._large = [k for k, job in enumerate(jobs) if job.nodes == most]
        # Not the judge's own starts, whose seeds are single numbers.
        self._trials = [
            JobSet(jobs, SITE, noise=NOISE, apart=True, seed=(luck, k))
            for k in range(TRIALS if scenario.searches else 0)
        ]

    def _believed(self, scale: Scale = "peak", *, but_for: Iterable[str] = ()) -> Snapshot:
        """Return the jobs with the curves of their classes, some with their own."""
        classes, exact = learnt(self._scenario.curves, scale), set(but_for)
        return Snapshot.of(
            [
                job if job.id in exact else replace(job, curve=classes.approximate(job.curve))
                for job in self._view.jobs.values()
                if job.curve is not None
            ],
            SITE,
        )

    def pairs(self) -> Iterator[tuple[str, Places]]:
        """Yield the papers' pairs, and those that know jobs' classes only."""
        for name in ALLOCATORS:
            counts = self._counts(name, self._view)
            for placer in self._scenario.placers:
                yield pair(name, placer), self._places(placer, counts, self._view)
        counts = _policy("allocation", "mckp", {"shared": True}).allocate(self._view)
        yield MCKP, self._places("exclusive", counts, self._view)
        if not self._scenario.approximate:
            return
        several = [job for job, count in self._counts("n-sys", self._view).items() if count > 1]
        known = {label: self._believed(scale) for label, scale in SCALES.items()}
        known[STEEP_EXACT] = self._believed(but_for=several)
        for label, view in known.items():
            for name, placer in self._scenario.approximate:
                counts = self._counts(name, view)
                yield f"{pair(name, placer)}, {label}", self._places(placer, counts, view)

    def _counts(self, name: str, view: Snapshot) -> Mapping[str, int]:
        policy, options = ALLOCATORS[name]
        luck = {"seed": self._luck} if policy == "random" else {}
        made = _policy("allocation", policy, {**self._scenario.options, **options, **luck})
        counts: Mapping[str, int] = made.allocate(view)
        return counts

    def _places(self, placer: str, counts: Mapping[str, int], view: Snapshot) -> Places:
        luck = {"seed": self._luck} if placer == RANDOM else {}
        return self._set.places(_policy("placement", placer, luck).place(view, counts))

    def rows(self, named: Mapping[str, Places]) -> list[dict[str, Value]]:
        """Simulate placements and return what each gave."""
        outcomes = self._set.simulate_all(list(named.values()), occupancy=True)
        rows: list[dict[str, Value]] = [
            row(
                self._cell,
                name,
                **_values(outcome),
                spread=outcome.spread,
                follows_jobs=_follows_jobs(outcome, places),
                several=int((outcome.counts > 1).sum()),
                large_slowdown=float(outcome.slowdown[self._large].mean()),
                large_resources=float(outcome.counts[self._large].mean()),
                resources=int(outcome.counts.sum()),
                load=self._set.load(outcome.counts),
                least_load=self._set.least_load,
            )
            for (name, places), outcome in zip(named.items(), outcomes, strict=True)
        ]
        if self._trials:
            trials = [one.simulate_all(list(named.values())) for one in self._trials]
            for one, verdict in zip(
                rows, map(mean_verdict, zip(*trials, strict=True)), strict=True
            ):
                one |= {f"trial_{name}": getattr(verdict, name) for name in TRIED}
        return rows

    def searched(self, metric: str, budget: int) -> list[dict[str, Value]]:
        """Search with exact curves, and for the first metric with approximated ones too."""
        policy = {"metric": metric, "budget": budget, "seed": self._luck}
        rows: list[dict[str, Value]] = []
        for label in ("", ", approximate") if metric == METRICS[0] else ("",):
            search: Search = _policy("allocation", "search", policy)
            result = search.find(self._believed() if label else self._view)
            places = {f"search, {metric}{label}": self._set.places(result.places)}
            rows += [one | _account(result, metric, budget) for one in self.rows(places)]
        return rows


TRIED = ("mean_slowdown", "idle_time", "bandwidth")


def _follows_jobs(outcome: Outcome, places: Places) -> float | None:
    """Return the correlation of resources' occupancy with their numbers of jobs.

    None: all have the same number.
    """
    jobs = np.bincount([r for where in places for r in where], minlength=SITE.resources)
    if outcome.occupancy is None or np.ptp(jobs) == 0:
        return None
    return float(np.corrcoef(jobs, outcome.occupancy)[0, 1])


def _values(outcome: Outcome) -> dict[str, Value]:
    return {
        "mean_slowdown": outcome.mean_slowdown,
        "max_slowdown": outcome.max_slowdown,
        "slowdown_io": float(outcome.slowdown_io.mean()),
        "slowdown_congestion": float(outcome.slowdown_congestion.mean()),
        "idle_time": outcome.idle_time,
        "bandwidth": outcome.bandwidth,
        "extended": int(outcome.extended),
    }


def _account(result: SearchResult, metric: str, budget: int) -> dict[str, Value]:
    """Say what a search cost, how it got on, and what it saw that nothing else beats."""
    which = METRICS.index(metric)
    best_pair = min(costs(verdict)[which] for verdict in result.starts.values())
    after = {
        f"after_{step}": min(cost for at, cost in result.progress if at <= step) / best_pair
        for step in STEPS
        if step <= budget
    }
    front = sorted(
        (v.mean_slowdown, v.idle_time, v.bandwidth)
        for v in (verdict for _, verdict in result.front)
    )
    pairs = " ".join(
        f"{name.replace(' ', '_')}:{v.mean_slowdown:.6g}:{v.idle_time:.6g}"
        for name, v in result.starts.items()
    )
    return {
        "evaluations": result.evaluations,
        "pairs": pairs,
        **after,
        "front_size": len(front),
        "front": " ".join(":".join(f"{value:.6g}" for value in point) for point in front),
    }
