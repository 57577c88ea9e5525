"""Paper forwarding, Section 5.6.3: I/O nodes arbitrated while jobs come and go.

A strict FIFO queue on 96 compute and 12 I/O nodes, without direct access. Every application is a
job that does nothing but I/O, in requests of 16 MB, so that a remap takes effect between two of
them; how fast it goes is its measured curve at the count it has then, and jobs that share an I/O
node share it evenly. A job's bandwidth is its volume over its run time (without its time in the
queue), and Equation 5.2 sums those.

The thesis does not print the order of its queue of HACC (four times), SIM and S3D (three times
each); here it is HACC, SIM, S3D, three times, and HACC, and other orders are tried beside it.

The thesis' measured curve of HACC (Fig. 5.8: 155 MB/s with one I/O node) and its live runs under
STATIC, which gives it one (about 1 GB/s, in text), do not agree. The `-live` queues have the latter
in place of the former, and all else as before.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock import registry
from penstock.campaign.cells import Cell
from penstock.campaign.journal import Row, Value
from penstock.core.arbiter import Arbiter
from penstock.data import COUNTS, Application, g5k_applications
from penstock.model import Action, Assign, Curve, Event, JobId, Site, View
from penstock.report.findings import Claim
from penstock.sim.engine import simulate
from penstock.sim.workload import Workload
from penstock.studies.table import Floats, Table, row
from penstock.studies.texts import claims_of

COMPUTE_NODES, IO_NODES = 96, 12
REQUEST = 16.0
"""MB of a request."""
DELAYS = (0.0, 10.0, 60.0)
"""Seconds until a running job hears of its new I/O nodes; 10 is GekkoFWD's default."""
GEKKOFWD = 10.0
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "one": {},
    "static": {"measured": True, "rule": "ceil"},
    "size": {},
    "mckp": {},
}
THREE, FOURTEEN, LIVE = "queue-three", "queue-fourteen", "-live"
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


def applications(queue: Sequence[str], hacc: float | None = None) -> list[Application]:
    """Return the applications of a queue; `hacc` is HACC's bandwidth with one I/O node instead."""
    known = dict(g5k_applications())
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
    printed = cell.scenario.removesuffix(LIVE)
    hacc = LIVE_HACC[printed] if cell.scenario.endswith(LIVE) else None
    jobs = applications(QUEUES.get(printed) or _other(cell, seed), hacc)
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


claim = claims_of("forwarding-policies")

PAPER = {THREE: (4.95, 9.18, 1.85), FOURTEEN: (8.41, 16.02, 1.9)}
"""GB/s under STATIC and MCKP, and their ratio."""
HACC_UNDER_MCKP = (1.51, 1.66, 3.47, 1.9)
"""GB/s of HACC's four runs, live."""
VOLUME = 1.8
"""GB that HACC writes."""
FIGURE = {THREE: "Fig. 5.12", FOURTEEN: "Fig. 5.13"}
WHICH = {THREE: "HACC, SIM and S3D", FOURTEEN: "14 jobs of nine applications"}


def total(table: Table, queue: str, policy: str, delay: float = GEKKOFWD) -> float:
    """Return the aggregate bandwidth of a queue in GB/s."""
    return float(table.values(queue, delay, policy, "bandwidth").sum()) / 1000


def gain(table: Table, queue: str, delay: float = GEKKOFWD) -> float:
    """Return MCKP's aggregate bandwidth over STATIC's."""
    return total(table, queue, "mckp", delay) / total(table, queue, "static", delay)


def ratios(table: Table, queues: str, metric: str, over: str, under: str) -> Floats:
    """Return a metric of one policy over that of another, one entry per queue."""
    one, other = (table.values(queues, GEKKOFWD, policy, metric) for policy in (over, under))
    return one / other


def claims(table: Table) -> list[Claim]:
    """Return the claims on dynamic arbitration."""
    return [
        *(claim for queue in PAPER for claim in _aggregate(table, queue)),
        _orders(table),
        *_jobs(table),
        _delay(table),
        *_beyond(table),
    ]


def _aggregate(table: Table, queue: str) -> Iterator[Claim]:
    static, mckp, ratio = PAPER[queue]
    rows = table.rows(queue, GEKKOFWD, "mckp")
    by_delay = ", ".join(f"{gain(table, queue, d):.2f} with {d:g} s" for d in DELAYS)
    shared: dict[str, Any] = {
        "queue": FIGURE[queue],
        "ratio": ratio,
        "static": static,
        "mckp": mckp,
    }

    def reached(queue: str) -> str:
        low, high = (total(table, queue, policy) for policy in ("static", "mckp"))
        return f"{gain(table, queue):.2f} ({low:.2f} to {high:.2f} GB/s, simulated)"

    yield claim(
        "mckp-aggregate-bandwidth",
        reached(queue),
        abs(gain(table, queue) / ratio - 1) <= 0.2,
        **shared,
        queue_2=WHICH[queue],
        gekkofwd=GEKKOFWD,
        by_delay=by_delay,
        hacc=100 * _hacc(rows) / total(table, queue, "mckp"),
    )
    yield claim(
        "ours-hacc-live-bandwidth",
        reached(queue + LIVE),
        abs(gain(table, queue + LIVE) / ratio - 1) <= 0.2,
        **shared,
        queue_2=LIVE_HACC[queue],
        queue_3=total(table, queue + LIVE, "static"),
        left=_left(table, queue),
    )


def _hacc(rows: Sequence[Row]) -> float:
    """Return the sum of the bandwidths of HACC's runs in GB/s."""
    return sum(float(r["bandwidth"] or 0) for r in rows if str(r["job"]).startswith("HACC")) / 1000


def _left(table: Table, queue: str) -> str:
    """Say what else differs from the live runs."""
    if queue != THREE:
        return (
            "A guess at what is left: live jobs start up and compute as well, and hold their I/O "
            "nodes for longer."
        )
    hacc = _hacc(table.rows(queue + LIVE, GEKKOFWD, "mckp"))
    others = total(table, queue + LIVE, "mckp") - hacc
    seconds = [VOLUME / bandwidth for bandwidth in HACC_UNDER_MCKP]
    return (
        f"What is left is HACC under MCKP: its four runs make {hacc:.1f} GB/s here, and "
        f"{sum(HACC_UNDER_MCKP):.2f} GB/s live; with those, MCKP's sum would be "
        f"{others + sum(HACC_UNDER_MCKP):.2f} GB/s. HACC moves {VOLUME:g} GB: "
        f"{min(seconds):.1f} to {max(seconds):.1f} s live, 0.4 to 0.5 s by its curve with 8 or 4 "
        "I/O nodes, so that whatever takes some tenths of a second decides."
    )


def _orders(table: Table) -> Claim:
    gains = ratios(table, ORDERS, "bandwidth", "mckp", "static")
    low, middle, high = np.percentile(gains, [0, 50, 100])
    return claim(
        "fig-5-12-mckp-improves-static",
        f"{low:.1f} to {high:.1f}, median {middle:.1f}, in {len(gains)} random orders",
        low > 1,
        low=low / PAPER[THREE][2],
    )


def _job(table: Table, queue: str, policy: str, job: str, delay: float = GEKKOFWD) -> Row:
    return next(row for row in table.rows(queue, delay, policy) if row["job"] == job)


def _history(row: Row) -> list[tuple[float, int]]:
    """Return when a job was given how many I/O nodes."""
    parts = str(row["io_nodes"]).split()
    return [(float(time), int(n)) for time, n in (part.split(":") for part in parts)]


def _jobs(table: Table) -> Iterator[Claim]:
    hacc, hacc_static, posix = (
        [n for _, n in _history(_job(table, FOURTEEN, policy, job))]
        for policy, job in (("mckp", "HACC 1"), ("static", "HACC 1"), ("static", "POSIX-L"))
    )
    yield claim(
        "fig-5-13-static-gives-first",
        f"{', '.join(map(str, hacc_static))}; {', then '.join(map(str, hacc))}",
        hacc_static == [1] and hacc == [8, 4],
    )
    yield claim("fig-5-13-static-gives-posix", f"{', '.join(map(str, posix))}", posix == [8])

    shares = {d: _time_shares(_job(table, FOURTEEN, "mckp", "POSIX-L", d)) for d in DELAYS}
    ours = shares[GEKKOFWD]
    yield claim(
        "fig-5-13-under-mckp-posix",
        _parts(ours),
        abs(ours.get(8, 0.0) - 0.097) <= 0.1 and ours.get(2, 0.0) > 0.5,
        delay="; ".join(f"with {delay:g} s {_parts(parts)}" for delay, parts in shares.items()),
    )
    slow = {
        job: float(_job(table, THREE, "mckp", job)["bandwidth"] or 0)
        / float(_job(table, THREE, "static", job)["bandwidth"] or 1)
        for job in names(QUEUES[THREE])
    }
    yield claim(
        "fig-5-12-hacc-gains-under",
        "; ".join(
            f"{name} " + ", ".join(f"{v:.2f}" for k, v in slow.items() if k.startswith(name))
            for name in ("HACC", "SIM", "S3D")
        ),
        all(v > 1 if job.startswith("HACC") else 0.8 <= v <= 1.2 for job, v in slow.items()),
    )


def _parts(shares: Mapping[int, float]) -> str:
    return ", ".join(f"{n}: {part:.0%}" for n, part in sorted(shares.items()))


def _time_shares(row: Row) -> dict[int, float]:
    """Return for which part of its run time a job had each number of I/O nodes."""
    start, end = float(row["start"] or 0), float(row["end"] or 0)
    history = _history(row)
    untils = [time for time, _ in history[1:]] + [end]
    shares: dict[int, float] = {}
    for (time, count), until in zip(history, untils, strict=True):
        shares[count] = shares.get(count, 0.0) + (until - time) / (end - start)
    return {count: part for count, part in shares.items() if part > 0}


def _delay(table: Table) -> Claim:
    mckp = {q: {d: total(table, q, "mckp", d) for d in DELAYS} for q in PAPER}
    lost, most_lost = (
        {q: 1 - mckp[q][delay] / mckp[q][DELAYS[0]] for q in PAPER}
        for delay in (GEKKOFWD, DELAYS[-1])
    )
    least = [min(mckp[q].values()) / total(table, q, "static") for q in PAPER]
    return claim(
        "5-6-3-hearing-remap-only",
        "MCKP's aggregate bandwidth lost against hearing at once: "
        + ", ".join(f"{WHICH[q]} {value:.0%}" for q, value in lost.items())
        + f" ({GEKKOFWD:g} s); {', '.join(f'{v:.0%}' for v in most_lost.values())}"
        f" ({DELAYS[-1]:g} s)",
        all(value < 0.05 for value in lost.values()),
        gekkofwd=GEKKOFWD,
        mckp=", ".join(f"{value:.1f} times at least" for value in least),
    )


def _beyond(table: Table) -> Iterator[Claim]:
    gains = ratios(table, RANDOM, "bandwidth", "mckp", "static")
    spans = ratios(table, RANDOM, "makespan", "static", "mckp")
    low, middle, high = np.percentile(gains, [5, 50, 95])
    yield claim(
        "ours-mckp-improves-static",
        f"median {middle:.2f}, 90% from {low:.2f} to {high:.2f}; more in {(gains > 1).mean():.0%} "
        f"of {len(gains)} queues",
        (gains > 1).all(),
    )
    yield claim(
        "ours-what-sum-bandwidths",
        f"queues of 14 random jobs end {np.median(spans):.2f} times sooner (median), the "
        f"sum of bandwidths is {middle:.2f} times as high",
        np.median(spans) >= 0.8 * middle,
        spans=100 * (spans > 1).mean(),
    )
