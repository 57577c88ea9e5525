"""The claims on dynamic arbitration (paper forwarding, 5.6.3), judged from simulated queues."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.campaign.journal import Row
from penstock.data import COUNTS, g5k_applications, g5k_runtimes
from penstock.report.findings import Claim
from penstock.studies.forwarding_policies.queues import (
    CURVE_VOLUME,
    DELAYS,
    FOURTEEN,
    GEKKOFWD,
    LARGE,
    LIVE,
    LIVE_HACC,
    LONGER_JOBS,
    ON_AVERAGE,
    ORDERS,
    QUEUES,
    RANDOM,
    THREE,
    TIMES_AS_LONG,
    applications,
    names,
)
from penstock.studies.table import Floats, Table, each
from penstock.studies.texts import claims_of
from penstock.studies.verdicts import over

claim = claims_of("forwarding-policies")

PAPER = {THREE: (4.95, 9.18, 1.85), FOURTEEN: (8.41, 16.02, 1.9)}
"""GB/s under STATIC and MCKP, and their ratio."""
HACC_UNDER_MCKP = (1.51, 1.66, 3.47, 1.9)
"""GB/s of HACC's four runs, live."""
HACC_FIRST = 3.9
"""Fig. 5.13: HACC's first run, MCKP over STATIC."""
NEAR = (0.2, 0.1, 0.3)
"""How far a ratio of simulated bandwidths may be from the live one; the thesis has no range."""
LOST = (0.05, 0.02, 0.1)
"""Parts of the bandwidth that may be lost without being an issue; the thesis prints none."""
POSIX_L = 5.8
"""5.6.3: POSIX-L with 4 I/O nodes (MCKP) over 2 (SIZE)."""
LIVE_FIRST_HACC, LIVE_POSIX_L = 3.8507, {"static": 1.9639, "mckp": 0.3917}
"""5.6.3: GB/s of HACC's first run under MCKP, and of POSIX-L, in the live queue of 14 jobs."""
LIVE_POSIX_L_ON_8 = 0.097
"""Part of its time in which POSIX-L had 8 I/O nodes under MCKP, live."""
LIVE_SIM = {"static": (139.1, 123.1, 176.2), "mckp": (132.0, 120.6, 208.1)}
"""5.6.3: MB/s of SIM's three runs, live."""
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
        _volumes(),
        *(claim for queue in PAPER for claim in _aggregate(table, queue)),
        _orders(table),
        *_jobs(table),
        _delay(table),
        *_beyond(table),
    ]


def _volumes() -> Claim:
    """Judge from the companion data alone what the runs of the curves moved."""
    moved = {
        name: [one.curve.bandwidth(n) * g5k_runtimes()[name][n] / 1000 for n in COUNTS]
        for name, one in g5k_applications().items()
    }
    table = {name: one.volume / 1000 for name, one in g5k_applications().items()}
    hacc = moved["HACC"]
    agree = [n for n, some in moved.items() if all(abs(x / table[n] - 1) <= 0.1 for x in some)]
    return claim(
        "ours-hacc-curve-is-of-larger-runs",
        f"HACC {min(hacc):.1f} to {max(hacc):.1f} GB (Table 5.2: {table['HACC']:g}); "
        f"as in Table 5.2: {', '.join(agree)}",
        all(abs(x / (CURVE_VOLUME / 1000) - 1) <= 0.1 for x in hacc) and "HACC" not in agree,
        others=", ".join(name for name in moved if name not in (*agree, "HACC")),
    )


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

    by_volume = {"1.8 GB by HACC, as Table 5.2 has it": queue, "14.4 GB": queue + LARGE}
    low, high = _with_live_figures(table, queue)
    yield claim.over(
        "mckp-aggregate-bandwidth",
        "; ".join(f"{words}: {reached(q)}" for words, q in by_volume.items()),
        over(NEAR, "within {:.0%}", lambda part: abs(gain(table, queue) / ratio - 1) <= part),
        **shared,
        queue_2=WHICH[queue],
        gekkofwd=GEKKOFWD,
        by_delay=by_delay,
        hacc=100 * _hacc(rows) / total(table, queue, "mckp"),
        on_one=g5k_applications()["HACC"].curve.bandwidth(1),
        live_on_one=LIVE_HACC[queue],
        live_on_one_gain=gain(table, queue + LIVE),
        live_gain=high / low,
    )
    yield claim(
        "ours-hacc-live-bandwidth",
        reached(queue + LIVE),
        abs(gain(table, queue + LIVE) / ratio - 1) <= NEAR[0],
        **shared,
        queue_2=LIVE_HACC[queue],
        queue_3=total(table, queue + LIVE, "static"),
        left=_left(table, queue),
    )


def _hacc(rows: Sequence[Row]) -> float:
    """Return the sum of the bandwidths of HACC's runs in GB/s."""
    return sum(float(r["bandwidth"] or 0) for r in rows if str(r["job"]).startswith("HACC")) / 1000


def _with_live_figures(table: Table, queue: str) -> tuple[float, float]:
    """Return the sums in GB/s under STATIC and MCKP with all live figures that the thesis prints.

    Of the last two HACC runs among 14 jobs it prints none: they have the mean of Fig. 5.12's.
    """
    static, mckp = (total(table, queue + LIVE, policy) for policy in ("static", "mckp"))
    mckp -= _hacc(table.rows(queue + LIVE, GEKKOFWD, "mckp"))
    if queue == THREE:
        return static, mckp + sum(HACC_UNDER_MCKP)
    posix = {
        policy: float(_job(table, queue + LIVE, policy, "POSIX-L")["bandwidth"] or 0) / 1000
        for policy in LIVE_POSIX_L
    }
    hacc = LIVE_FIRST_HACC + 2 * float(np.mean(HACC_UNDER_MCKP))
    return (
        static - posix["static"] + LIVE_POSIX_L["static"],
        mckp - posix["mckp"] + LIVE_POSIX_L["mckp"] + hacc,
    )


def _left(table: Table, queue: str) -> str:
    """Say what else differs from the live runs."""
    hacc = _hacc(table.rows(queue + LIVE, GEKKOFWD, "mckp"))
    low, high = _with_live_figures(table, queue)
    if queue == THREE:
        what = (
            f"HACC under MCKP: its four runs make {hacc:.1f} GB/s here, by the curve of 14.4 GB "
            f"runs, and {sum(HACC_UNDER_MCKP):.2f} GB/s live, with 1.8 GB"
        )
    else:
        what = (
            "HACC under MCKP, which by Fig. 5.12 has "
            f"{np.mean(HACC_UNDER_MCKP):.2f} GB/s a run live and {hacc / 3:.2f} here, and POSIX-L, "
            f"which has {LIVE_POSIX_L['static']:.2f} and {LIVE_POSIX_L['mckp']:.2f} GB/s live"
        )
    return (
        f"What is left is {what}. With these live figures the sums are {low:.2f} and {high:.2f} "
        f"GB/s, {high / low:.2f} times."
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

    yield _posix_l(table)
    first = {
        policy: float(_job(table, FOURTEEN, policy, "HACC 1")["bandwidth"] or 0)
        for policy in ("mckp", "static")
    }
    yield claim.over(
        "fig-5-13-first-hacc",
        f"{first['mckp'] / first['static']:.1f} ({first['static']:.0f} to {first['mckp']:.0f} "
        "MB/s, simulated)",
        over(
            NEAR,
            "within {:.0%}",
            lambda part: abs(first["mckp"] / first["static"] / HACC_FIRST - 1) <= part,
        ),
        on_one=first["static"],
        live=LIVE_HACC[FOURTEEN],
        live_gain=_bandwidth_gain(table, FOURTEEN + LIVE, "HACC 1"),
    )
    curve = g5k_applications()["POSIX-L"].curve
    ratio = {
        policy: float(_job(table, FOURTEEN, policy, "POSIX-L")["bandwidth"] or 0)
        for policy in ("mckp", "size")
    }
    yield claim.over(
        "5-6-3-posix-l-over-size",
        f"{ratio['mckp'] / ratio['size']:.2f} simulated ({ratio['size']:.0f} to "
        f"{ratio['mckp']:.0f} MB/s); {curve.bandwidth(4) / curve.bandwidth(2):.2f} by its curve "
        f"({curve.bandwidth(2):.0f} to {curve.bandwidth(4):.0f} MB/s)",
        over(
            NEAR,
            "within {:.0%}",
            lambda part: abs(ratio["mckp"] / ratio["size"] / POSIX_L - 1) <= part,
        ),
        steepest=max(curve.bandwidth(b) / curve.bandwidth(a) for a, b in pairwise(COUNTS[1:])),
    )
    slow = {job: _bandwidth_gain(table, THREE, job) for job in names(QUEUES[THREE])}
    sim, runtimes = g5k_applications()["SIM"], g5k_runtimes()["SIM"]
    yield claim.over(
        "fig-5-12-hacc-gains-under",
        "; ".join(
            f"{name} " + ", ".join(f"{v:.2f}" for k, v in slow.items() if k.startswith(name))
            for name in ("HACC", "SIM", "S3D")
        ),
        over(NEAR, "within {:.0%}", lambda part: _hacc_alone_gains(slow, part)),
        on_two=sim.curve.bandwidth(2),
        on_four=sim.curve.bandwidth(4),
        by_curve=sim.curve.bandwidth(4) / sim.curve.bandwidth(2),
        by_runtime=runtimes[2] / runtimes[4],
        live=each({p.upper(): f"{min(x):.0f} to {max(x):.0f}" for p, x in LIVE_SIM.items()}),
    )


def _bandwidth_gain(table: Table, queue: str, job: str) -> float:
    """Return a job's bandwidth under MCKP over that under STATIC."""
    mckp, static = (
        float(_job(table, queue, policy, job)["bandwidth"] or 0) for policy in ("mckp", "static")
    )
    return mckp / static


def _posix_l(table: Table) -> Claim:
    """Judge for which part of its time POSIX-L has 8 I/O nodes under MCKP."""
    rows = {d: _job(table, FOURTEEN, "mckp", "POSIX-L", d) for d in DELAYS}
    shares = {d: _time_shares(row) for d, row in rows.items()}
    ours, row = shares[GEKKOFWD], rows[GEKKOFWD]
    posix = g5k_applications()["POSIX-L"]
    on_two, on_eight = (posix.curve.bandwidth(n) for n in (2, 8))
    printed = 1000 * LIVE_POSIX_L["mckp"]
    switch, _ = _history(row)[-1]
    before = min(
        table.rows(FOURTEEN, GEKKOFWD, "mckp"),
        key=lambda other: abs(float(other["end"] or 0) + GEKKOFWD - switch),
    )
    return claim.over(
        "fig-5-13-under-mckp-posix",
        _parts(ours),
        over(
            (10, 5, 20),
            "within {:g} points",
            lambda points: (
                abs(ours.get(8, 0.0) - LIVE_POSIX_L_ON_8) <= points / 100 and ours.get(2, 0.0) > 0.5
            ),
        ),
        delay="; ".join(f"with {delay:g} s {_parts(parts)}" for delay, parts in shares.items()),
        printed=printed,
        before=before["job"],
        on_two=on_two,
        by_curve=LIVE_POSIX_L_ON_8 * on_eight + (1 - LIVE_POSIX_L_ON_8) * on_two,
        live_seconds=(1 - LIVE_POSIX_L_ON_8) * posix.volume / printed,
        seconds=ours.get(2, 0.0) * (float(row["end"] or 0) - float(row["start"] or 0)),
    )


def _hacc_alone_gains(ratios: Mapping[str, float], part: float) -> bool:
    """Say whether HACC gains in every run, and no other changes by more than a part."""
    return all(x > 1 if job.startswith("HACC") else abs(x - 1) <= part for job, x in ratios.items())


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
    lost = {
        delay: {q: 1 - mckp[q][delay] / mckp[q][DELAYS[0]] for q in PAPER} for delay in DELAYS[1:]
    }
    least = [min(mckp[q].values()) / total(table, q, "static") for q in PAPER]
    longer = {
        WHICH[q]: 1 - total(table, q, "mckp", LONGER_JOBS) / mckp[q][DELAYS[0]] for q in PAPER
    }
    seconds = [
        float(row["end"] or 0) - float(row["start"] or 0)
        for row in table.rows(FOURTEEN, DELAYS[0], "mckp")
    ]
    return claim.over(
        "5-6-3-hearing-remap-only",
        "MCKP's aggregate bandwidth lost against hearing at once: "
        + "; ".join(
            f"{delay:g} s late: " + ", ".join(f"{WHICH[q]} {part:.1%}" for q, part in by.items())
            for delay, by in lost.items()
        ),
        {
            f"{delay:g} s late, {words}, less than {limit:.0%} lost": max(lost[delay].values())
            < limit
            for limit in LOST
            for delay, words in ((GEKKOFWD, "the most"), (ON_AVERAGE, "the mean"))
        },
        gekkofwd=GEKKOFWD,
        mckp=", ".join(f"{value:.1f} times at least" for value in least),
        half=np.median(seconds),
        times=TIMES_AS_LONG,
        longer=each(longer, "{} {:.1%}"),
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
    gained, moved = _small_jobs(table)
    yield claim(
        "ours-what-sum-bandwidths",
        f"queues of 14 random jobs end {np.median(spans):.2f} times sooner (median), the "
        f"sum of bandwidths is {middle:.2f} times as high",
        np.median(spans) >= 0.8 * middle,
        spans=100 * (spans > 1).mean(),
        gained=gained,
        moved=moved,
    )


def _small_jobs(table: Table) -> tuple[float, float]:
    """Return HACC's parts of what MCKP gains over STATIC in Fig. 5.13's queue, and of its bytes."""
    sums = {policy: total(table, FOURTEEN, policy) for policy in ("mckp", "static")}
    hacc = {policy: _hacc(table.rows(FOURTEEN, GEKKOFWD, policy)) for policy in sums}
    jobs = applications(QUEUES[FOURTEEN])
    volume = sum(one.volume for one in jobs if one.label == "HACC")
    gained = (hacc["mckp"] - hacc["static"]) / (sums["mckp"] - sums["static"])
    return gained, volume / sum(one.volume for one in jobs)
