"""Paper forwarding, Section 5.6.3: I/O nodes arbitrated while jobs come and go.

A strict FIFO queue on 96 compute and 12 I/O nodes, without direct access. Every application is a
job that does nothing but I/O, in requests of 16 MB, so that a remap takes effect between two of
them; how fast it goes is its measured curve at the count it has then, and jobs that share an I/O
node share it evenly. A job's bandwidth is its volume over its run time (without its time in the
queue), and Equation 5.2 sums those.

The thesis does not print the order of its queue of HACC (four times), SIM and S3D (three times
each); here it is HACC, SIM, S3D, three times, and HACC, and other orders are tried beside it.

The thesis' measured curve of HACC (Fig. 5.8: 155 MB/s with one I/O node) and its live runs under
STATIC, which gives it one (about 1 GB/s, in text), do not agree: bandwidth times run time of the
companion data are 14.4 GB at every count, eight times Table 5.2's volume. The `-live` queues have
the live bandwidth in place of the curve's at one I/O node, the `-large` ones HACC with 14.4 GB, and
all else as before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.core.arbiter import Arbiter
from penstock.data import COUNTS, Application, g5k_applications
from penstock.model import Action, Assign, Curve, Event, JobId, Site, View
from penstock.sim.engine import simulate
from penstock.sim.workload import Workload
from penstock.studies.table import row

COMPUTE_NODES, IO_NODES = 96, 12
REQUEST = 16.0
"""MB of a request."""
DELAYS = (0.0, 5.0, 10.0, 60.0)
"""Seconds until a running job hears of its new I/O nodes. A client of GekkoFWD asks every 10 s: it
is 10 s late at most, and 5 s on average."""
GEKKOFWD, ON_AVERAGE = 10.0, 5.0
TIMES_AS_LONG = 100
LONGER_JOBS = GEKKOFWD / TIMES_AS_LONG
"""The delay that is to these jobs what GekkoFWD's is to jobs that run this many times as long."""
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "one": {},
    "static": {"measured": True, "rule": "ceil"},
    "size": {},
    "mckp": {},
}
THREE, FOURTEEN, LIVE, LARGE = "queue-three", "queue-fourteen", "-live", "-large"
ORDERS, RANDOM = "queue-orders", "queue-random"
QUEUES: Mapping[str, Sequence[str]] = {
    THREE: ("HACC", "SIM", "S3D") * 3 + ("HACC",),
    FOURTEEN: (
        "HACC",
        "IOR-MPI",
        "SIM",
        "IOR-MPI",
        "IOR-MPI",
        "POSIX-S",
        "POSIX-L",
        "BT-C",
        "MAD",
        "MAD",
        "S3D",
        "HACC",
        "HACC",
        "BT-D",
    ),
}


LIVE_HACC = {THREE: (1250.0 + 1250.0 + 883.37 + 898.7) / 4, FOURTEEN: 987.3}
"""MB/s of HACC under STATIC as 5.6.3 reports it: the mean of its four runs, and the first run."""


CURVE_VOLUME = 14_400.0
"""MB that HACC moved in the runs of its curve."""


def applications(
    queue: Sequence[str], hacc: float | None = None, volume: float | None = None
) -> list[Application]:
    """Return the applications of a queue.

    `hacc` is HACC's bandwidth with one I/O node instead, `volume` what it moves.
    """
    known = dict(g5k_applications())
    if volume is not None:
        known["HACC"] = replace(known["HACC"], volume=volume)
    if hacc is not None:
        curve = known["HACC"].curve
        points = {n: curve.bandwidth(n) for n in COUNTS} | {1: hacc}
        known["HACC"] = replace(known["HACC"], curve=Curve.of(points))
    return [known[name] for name in queue]


def names(queue: Sequence[str]) -> list[str]:
    """Return the jobs' names: an application that is there again has a number."""
    return [
        f"{name} {queue[: i + 1].count(name)}" if queue.count(name) > 1 else name
        for i, name in enumerate(queue)
    ]


def workload(jobs: Sequence[Application]) -> Workload:
    """Return the jobs of a queue, all released at once, with one I/O node each to begin with."""
    requests = [max(1, round(a.volume / REQUEST)) for a in jobs]
    isolated = [a.volume / n / a.curve.bandwidth(1) for a, n in zip(jobs, requests, strict=True)]
    return Workload(
        ids=names([a.label for a in jobs]),
        compute=np.zeros(sum(requests)),
        io=np.repeat(isolated, requests),
        offsets=np.concatenate(([0], np.cumsum(requests))),
        release=np.zeros(len(jobs)),
        nodes=[a.nodes for a in jobs],
        curves=[a.curve for a in jobs],
        details=[{"processes": a.processes, "executable": a.application} for a in jobs],
    )


class Recorded(Arbiter):
    """An arbiter that keeps when it gave which job how many I/O nodes."""

    given: dict[JobId, list[tuple[float, int]]]

    def handle(self, event: Event, view: View) -> list[Action]:
        """Decide, and keep what was decided."""
        actions = super().handle(event, view)
        for action in actions:
            if isinstance(action, Assign):
                history = self.given.setdefault(action.job, [])
                history.append((event.time, len(action.resources)))
        return actions


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A queue under a policy: one row per job, and how often running jobs were moved."""

    rows: list[dict[str, Value]]
    moves: int

    @property
    def bandwidth(self) -> float:
        """The sum over jobs of volume over run time: Equation 5.2."""
        return sum(float(row["bandwidth"] or 0) for row in self.rows)

    @property
    def makespan(self) -> float:
        """When the last job ended."""
        return max(float(row["end"] or 0) for row in self.rows)


def run(jobs: Sequence[Application], policy: str, delay: float) -> Outcome:
    """Run a queue under a policy."""
    arbiter = Recorded(
        allocator=registry.policy("allocation", policy, OPTIONS[policy]),
        placer=registry.policy("placement", "greedy-non-clairvoyant"),
        remap_delay=delay,
    )
    arbiter.given = {}
    queue = workload(jobs)
    done = simulate(
        queue,
        registry.sharing("fair-share"),
        site=Site(nodes=COMPUTE_NODES, resources=IO_NODES),
        arbitrate=arbiter.handle,
    )
    rows: list[dict[str, Value]] = [
        {
            "job": queue.id(j),
            "start": float(done.start[j]),
            "end": float(done.finish[j]),
            "bandwidth": application.volume / float(done.finish[j] - done.start[j]),
            "io_nodes": " ".join(f"{time:g}:{n}" for time, n in arbiter.given[queue.id(j)]),
        }
        for j, application in enumerate(jobs)
    ]
    return Outcome(rows=rows, moves=arbiter.moves)


def run_cell(cell: Cell, *, seed: int) -> list[dict[str, Value]]:
    """Return one row per job and policy for a printed queue, else one row per policy."""
    printed = cell.scenario.removesuffix(LIVE).removesuffix(LARGE)
    hacc = LIVE_HACC[printed] if cell.scenario.endswith(LIVE) else None
    volume = CURVE_VOLUME if cell.scenario.endswith(LARGE) else None
    jobs = applications(QUEUES.get(printed) or _other(cell, seed), hacc, volume)
    rows = []
    for policy in OPTIONS:
        outcome = run(jobs, policy, cell.x)
        sums: dict[str, Value] = {"bandwidth": outcome.bandwidth, "makespan": outcome.makespan}
        for values in outcome.rows if printed in QUEUES else [sums]:
            rows.append(row(cell, policy, **values, moves=outcome.moves))
    return rows


def _other(cell: Cell, seed: int) -> list[str]:
    """Return another order of the three applications, or a random queue of 14 jobs."""
    rng = np.random.default_rng([seed, cell.workload, len(cell.scenario)])
    if cell.scenario == ORDERS:
        return [str(name) for name in rng.permutation(QUEUES[THREE])]
    return [str(name) for name in rng.choice(list(g5k_applications()), len(QUEUES[FOURTEEN]))]
