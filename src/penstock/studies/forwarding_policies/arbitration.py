"""The claims of paper forwarding, Section 5.6.3, on queues of jobs."""

from collections.abc import Mapping

import numpy as np

from penstock.campaign.journal import Row
from penstock.report.findings import Claim
from penstock.studies.forwarding_policies.queues import (
    DELAYS,
    FOURTEEN,
    GEKKOFWD,
    LIVE,
    LIVE_HACC,
    ORDERS,
    QUEUES,
    RANDOM,
    THREE,
    names,
)
from penstock.studies.table import Floats, Table

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


def gains(table: Table, queues: str) -> Floats:
    """Return MCKP's aggregate bandwidth over STATIC's, an entry a queue."""
    return table.values(queues, GEKKOFWD, "mckp", "bandwidth") / table.values(
        queues, GEKKOFWD, "static", "bandwidth"
    )


def claims(table: Table) -> list[Claim]:
    """Return the claims on dynamic arbitration."""
    return [
        *(claim for queue in PAPER for claim in _aggregate(table, queue)),
        _orders(table),
        *_jobs(table),
        _delay(table),
        *_beyond(table),
    ]


def _aggregate(table: Table, queue: str) -> list[Claim]:
    static, mckp, ratio = PAPER[queue]
    ours = gain(table, queue)
    live = gain(table, queue + LIVE)
    hacc = [
        float(row["bandwidth"] or 0) / 1000
        for row in table.rows(queue, GEKKOFWD, "mckp")
        if str(row["job"]).startswith("HACC")
    ]
    by_delay = ", ".join(f"{gain(table, queue, d):.2f} with {d:g} s" for d in DELAYS)
    return [
        Claim(
            claim=f"{FIGURE[queue]} ({WHICH[queue]}): MCKP's aggregate bandwidth is {ratio:g} "
            "times STATIC's",
            by="forwarding",
            paper=f"{ratio:g} ({static:g} to {mckp:g} GB/s, live)",
            ours=f"{ours:.2f} ({total(table, queue, 'static'):.2f} to "
            f"{total(table, queue, 'mckp'):.2f} GB/s, simulated)",
            holds=abs(ours / ratio - 1) <= 0.2,
            why=f"Rule: within a fifth; remaps heard after {GEKKOFWD:g} s, as in GekkoFWD "
            f"({by_delay}). Simulated from the curves of Fig. 5.8, by which HACC has 155 MB/s with "
            "the one I/O node that STATIC gives it; the text's live runs had about 1 GB/s there. "
            f"HACC makes {100 * sum(hacc) / total(table, queue, 'mckp'):.0f}% of MCKP's sum: see "
            "the next claim.",
        ),
        Claim(
            claim=f"Ours: {FIGURE[queue]} with HACC's live bandwidth under STATIC in place of its "
            f"curve at one I/O node: MCKP's aggregate bandwidth is {ratio:g} times STATIC's",
            by="penstock",
            paper=f"{ratio:g} ({static:g} to {mckp:g} GB/s, live)",
            ours=f"{live:.2f} ({total(table, queue + LIVE, 'static'):.2f} to "
            f"{total(table, queue + LIVE, 'mckp'):.2f} GB/s, simulated)",
            holds=abs(live / ratio - 1) <= 0.2,
            why="Rule: within a fifth. It shows where the difference above comes from, and is no "
            "test of the thesis: partly circular, for the live figure is itself part of the "
            f"thesis' sum under STATIC. With it HACC has {LIVE_HACC[queue]:.0f} MB/s on one I/O "
            f"node, and STATIC's sum is {total(table, queue + LIVE, 'static'):.2f} GB/s (the "
            f"thesis: {static:g}). {_left(table, queue)}",
        ),
    ]


def _left(table: Table, queue: str) -> str:
    """Say what else differs from the live runs."""
    if queue != THREE:
        return (
            "A guess at what is left: live jobs start up and compute as well, and hold their I/O "
            "nodes for longer."
        )
    rows = table.rows(queue + LIVE, GEKKOFWD, "mckp")
    hacc = sum(float(r["bandwidth"] or 0) for r in rows if str(r["job"]).startswith("HACC")) / 1000
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
    ratios = gains(table, ORDERS)
    low, middle, high = np.percentile(ratios, [0, 50, 100])
    return Claim(
        claim="Fig. 5.12: MCKP improves on STATIC whatever the order of HACC, SIM and S3D",
        by="penstock",
        paper="1.85 (the order is not printed)",
        ours=f"{low:.1f} to {high:.1f}, median {middle:.1f}, in {len(ratios)} random orders",
        holds=bool(low > 1),
        why="Rule: a higher aggregate bandwidth in every order. The order alone does not explain "
        f"the thesis' ratio: the least of these is {low / PAPER[THREE][2]:.1f} times as large.",
    )


def _row(table: Table, queue: str, policy: str, job: str, delay: float = GEKKOFWD) -> Row:
    return next(row for row in table.rows(queue, delay, policy) if row["job"] == job)


def _history(row: Row) -> list[tuple[float, int]]:
    """Return when a job was given how many I/O nodes."""
    parts = str(row["io_nodes"]).split()
    return [(float(time), int(n)) for time, n in (part.split(":") for part in parts)]


def _jobs(table: Table) -> list[Claim]:
    hacc = [n for _, n in _history(_row(table, FOURTEEN, "mckp", "HACC 1"))]
    hacc_static = [n for _, n in _history(_row(table, FOURTEEN, "static", "HACC 1"))]
    posix = [n for _, n in _history(_row(table, FOURTEEN, "static", "POSIX-L"))]
    shares = {
        delay: _time_shares(_row(table, FOURTEEN, "mckp", "POSIX-L", delay)) for delay in DELAYS
    }
    ours = shares[GEKKOFWD]
    slow = {
        job: float(_row(table, THREE, "mckp", job)["bandwidth"] or 0)
        / float(_row(table, THREE, "static", job)["bandwidth"] or 1)
        for job in names(QUEUES[THREE])
    }
    return [
        Claim(
            claim="Fig. 5.13: STATIC gives the first HACC 1 I/O node, MCKP first 8, then 4",
            by="forwarding",
            paper="1; 8, then 4",
            ours=f"{', '.join(map(str, hacc_static))}; {', then '.join(map(str, hacc))}",
            holds=hacc_static == [1] and hacc == [8, 4],
            why="Rule: equal. All jobs that fit start at once here, so that the decisions for one "
            "job more each follow within no time.",
        ),
        Claim(
            claim="Fig. 5.13: STATIC gives POSIX-L 8 I/O nodes",
            by="forwarding",
            paper="8",
            ours=f"{', '.join(map(str, posix))}",
            holds=posix == [8],
            why="Rule: equal: ceil(64 x 12 / 96).",
        ),
        Claim(
            claim="Fig. 5.13: under MCKP POSIX-L has 8 I/O nodes for 9.7% of its time and 2 for "
            "the rest",
            by="forwarding",
            paper="8: 9.7%, 2: 90.3%",
            ours=_parts(ours),
            holds=abs(ours.get(8, 0.0) - 0.097) <= 0.1 and ours.get(2, 0.0) > 0.5,
            why="Rule: 8 within ten points of 9.7%, and 2 for most of the time. It depends on who "
            "runs beside it and until when, and so on the remap delay: "
            + "; ".join(f"with {delay:g} s {_parts(parts)}" for delay, parts in shares.items())
            + ".",
        ),
        Claim(
            claim="Fig. 5.12: HACC gains under MCKP, SIM and S3D hardly change",
            by="forwarding",
            paper="HACC 1.2, 1.32, 3.93, 2.17; SIM 0.94, 0.97, 1.18; S3D 0.98, 0.94, 1.00",
            ours="; ".join(
                f"{name} " + ", ".join(f"{v:.2f}" for k, v in slow.items() if k.startswith(name))
                for name in ("HACC", "SIM", "S3D")
            ),
            holds=all(
                value > 1 if job.startswith("HACC") else 0.8 <= value <= 1.2
                for job, value in slow.items()
            ),
            why="Rule: HACC gains in every run, SIM and S3D stay within a fifth. SIM gains too: a "
            "simulated HACC is gone in half a second, after which SIM has 4 I/O nodes or more for "
            "STATIC's 2, and its curve has 279 MB/s for 88.",
        ),
    ]


def _parts(shares: Mapping[int, float]) -> str:
    return ", ".join(f"{n}: {100 * part:.0f}%" for n, part in sorted(shares.items()))


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
    mckp = {q: [total(table, q, "mckp", delay) for delay in DELAYS] for q in PAPER}
    lost = {q: 1 - values[DELAYS.index(GEKKOFWD)] / values[0] for q, values in mckp.items()}
    static = {q: total(table, q, "static") for q in PAPER}
    return Claim(
        claim=f"5.6.3: hearing of a remap only every {GEKKOFWD:g} s should not pose an issue",
        by="forwarding",
        paper="no issue: jobs run for orders of magnitude longer",
        ours="MCKP's aggregate bandwidth lost against hearing at once: "
        + ", ".join(f"{WHICH[q]} {100 * v:.0f}%" for q, v in lost.items())
        + f" ({GEKKOFWD:g} s); "
        + ", ".join(f"{100 * (1 - mckp[q][-1] / mckp[q][0]):.0f}%" for q in mckp)
        + f" ({DELAYS[-1]:g} s)",
        holds=all(value < 0.05 for value in lost.values()),
        why=f"Rule: less than 5% lost with {GEKKOFWD:g} s, the most that a client asking every "
        f"{GEKKOFWD:g} s hears late. Jobs that begin while many others do are given little and "
        "keep it for that long; IOR and POSIX-S run for seconds to a minute, "
        "not for orders of magnitude longer. With any of the delays MCKP stays ahead of STATIC ("
        + ", ".join(f"{min(mckp[q]) / static[q]:.1f} times at least" for q in PAPER)
        + ").",
    )


def _beyond(table: Table) -> list[Claim]:
    ratios = gains(table, RANDOM)
    spans = table.values(RANDOM, GEKKOFWD, "static", "makespan") / table.values(
        RANDOM, GEKKOFWD, "mckp", "makespan"
    )
    low, middle, high = np.percentile(ratios, [5, 50, 95])
    return [
        Claim(
            claim="Ours: MCKP improves on STATIC in random queues of 14 jobs",
            by="penstock",
            paper="one queue was selected of random ones",
            ours=f"median {middle:.2f}, 90% from {low:.2f} to {high:.2f}; more in "
            f"{100 * (ratios > 1).mean():.0f}% of {len(ratios)} queues",
            holds=bool((ratios > 1).all()),
            why="Rule: a higher aggregate bandwidth in every queue.",
        ),
        Claim(
            claim="Ours: what the sum of bandwidths gains, the queue gains in time",
            by="penstock",
            paper="not looked at",
            ours=f"queues of 14 random jobs end {np.median(spans):.2f} times sooner (median), the "
            f"sum of bandwidths is {middle:.2f} times as high",
            holds=bool(np.median(spans) >= 0.8 * middle),
            why="Rule: the median gain in time is at least 0.8 of that in the sum of bandwidths. "
            "Equation 5.2 counts a job of 1.8 GB as much as one of 253 GB, and MCKP maximises it; "
            f"queues end sooner in {100 * (spans > 1).mean():.0f}% of the cases.",
        ),
    ]
