"""What the live runs of paper forwarding show: claims and figures from their rows."""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import fmean

from penstock.campaign.cells import Results
from penstock.campaign.journal import Row
from penstock.config import OWN
from penstock.report.findings import Claim, Figure, Findings, Series, TextTable
from penstock.studies.panels import bars, curves
from penstock.studies.table import each
from penstock.studies.texts import captions_of, claims_of, findings_of

claim = claims_of("live-forwarding")
figure = captions_of("live-forwarding")

SCENARIO = "figure-5-12-live"
CURVE, RUN, LEARNT, JOB, DECISION = "curve", "run", "learnt", "job", "decision"
"""What a row is about."""
MCKP, STATIC, SIZE, ONE, ALL = "where-known", "static", "size", "one", OWN
MIXED, LINKS = "with a shared file", "links alone"
"""The queues: in one, an application loses on several I/O nodes; in the other, links decide."""
NAMES = {MCKP: "MCKP", STATIC: "STATIC", SIZE: "SIZE", ONE: "ONE", ALL: "all to everybody"}
GAINS = "wide"
"""The application that gains from I/O nodes, as HACC does."""
NEAR = 0.15
SAME = 0.05
"""Bandwidths that differ by less are the same."""
EQUAL = 0.02
"""By how much the sum of an allocation may be below the best: what a flat curve's noise decides."""
MB = 1e6
HAS = "It has had"
"""How `penstock explain` begins the sentence on a job's I/O nodes."""
EXPLAINED = re.compile(
    rf"{HAS} (\d+) I/O nodes? \(([\d, ]+)\) for .+: {MCKP} gave the number from .+"
)


class Runs:
    """The rows of a campaign, by what they are about."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = list(rows)

    def of(self, what: str, **values: object) -> list[Row]:
        """Return the rows about something, in order."""
        return [
            row
            for row in self._rows
            if row["what"] == what and all(row[name] == value for name, value in values.items())
        ]

    @property
    def repetitions(self) -> list[object]:
        """Return the numbers of the repetitions."""
        return list(dict.fromkeys(row["workload"] for row in self._rows))

    def policies(self, queue: str) -> list[str]:
        """Return the policies that a queue was run under, in order."""
        return list(dict.fromkeys(str(row["policy"]) for row in self.of(JOB, queue=queue)))

    def queues(self, policy: str) -> list[str]:
        """Return the queues that were run under a policy."""
        return list(dict.fromkeys(str(row["queue"]) for row in self.of(JOB, policy=policy)))

    def total(self, queue: str, policy: str, how: str, repetition: object) -> float:
        """Return the sum of the jobs' bandwidths: Equation 5.2."""
        rows = self.of(JOB, queue=queue, policy=policy, workload=repetition)
        return sum(number(row, how) for row in rows)

    def ratios(self, queue: str, over: str, under: str, how: str) -> list[float]:
        """Return the sum under one policy over that under another, in each repetition."""
        return [
            self.total(queue, over, how, k) / self.total(queue, under, how, k)
            for k in self.repetitions
        ]


def number(row: Row, name: str) -> float:
    """Return a figure of a row."""
    return float(row[name] or 0)


def findings(results: Results) -> Findings:
    """Return what was learnt from nothing, and what it is good for."""
    runs = Runs(results.rows)
    return findings_of(
        "live-forwarding",
        claims=claims(runs),
        figures=[_curves(runs), _queues(runs)],
        tables=[_learning(runs), _decided(runs)],
        jobs=len(runs.of(JOB, queue=MIXED, policy=MCKP, workload=runs.repetitions[0])),
    )


def claims(runs: Runs) -> list[Claim]:
    """Return the thesis' claims on its live runs, and ours."""
    return [
        _no_single_best(runs),
        _improves(runs),
        _highest(runs),
        _gains(runs),
        _first_job(runs),
        _learnt(runs),
        _same_decisions(runs),
        _as_simulated(runs, STATIC),
        _as_simulated(runs, ALL),
        _sums_as_simulated(runs),
        _explained(runs),
    ]


def _no_single_best(runs: Runs) -> Claim:
    best = {
        application: _best({int(number(r, "io_nodes")): number(r, "true") for r in rows})
        for application, rows in _by_application(runs.of(CURVE, workload=runs.repetitions[0]))
    }
    return claim(
        "fig-5-8-no-single-best",
        f"best: {each(best)}",
        len(set(best.values())) > 1,
        same=100 * SAME,
    )


def _best(curve: Mapping[int, float]) -> int:
    """Return the smallest number of I/O nodes with the highest bandwidth, or nearly."""
    return min(n for n, b in curve.items() if b >= (1 - SAME) * max(curve.values()))


def _by_application(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    ordered = sorted(rows, key=lambda row: str(row["application"]))
    return [
        (name, list(some)) for name, some in groupby(ordered, lambda row: str(row["application"]))
    ]


def _improves(runs: Runs) -> Claim:
    ratios = {queue: runs.ratios(queue, MCKP, STATIC, "live") for queue in runs.queues(STATIC)}
    return claim(
        "mckp-improves-static",
        "; ".join(
            f"{_range(some)} times ({_sum(runs, queue, STATIC)} to {_sum(runs, queue, MCKP)} MB/s, "
            f"{queue})"
            for queue, some in ratios.items()
        ),
        min(min(some) for some in ratios.values()) > 1,
    )


def _highest(runs: Runs) -> Claim:
    ratios = {
        f"{NAMES[one]} ({queue})": min(runs.ratios(queue, MCKP, one, "live"))
        for queue in (MIXED, LINKS)
        for one in runs.policies(queue)
        if one != MCKP
    }
    return claim(
        "mckp-highest",
        ", ".join(f"{ratio:.2f} times {name}" for name, ratio in ratios.items()),
        min(ratios.values()) > 1,
    )


def _gains(runs: Runs) -> Claim:
    gains: dict[str, list[float]] = {}
    under = {
        (row["workload"], row["job"]): number(row, "live")
        for row in runs.of(JOB, queue=MIXED, policy=STATIC)
    }
    for row in runs.of(JOB, queue=MIXED, policy=MCKP):
        ratio = number(row, "live") / under[row["workload"], row["job"]]
        gains.setdefault(str(row["application"]), []).append(ratio)
    listed = "; ".join(
        f"{name} {', '.join(f'{gain:.2f}' for gain in some)}" for name, some in gains.items()
    )
    return claim("fig-5-12-gains", listed, min(gains[GAINS]) > 1, gains=GAINS)


def _first_job(runs: Runs) -> Claim:
    given, static = (
        [str(row["given"]) for row in runs.of(JOB, queue=MIXED, policy=policy, job=0)]
        for policy in (MCKP, STATIC)
    )

    def falls(counts: str) -> bool:
        numbers = [int(n) for n in counts.split()]
        return len(numbers) > 1 and numbers[1] < numbers[0]

    changes = [", then ".join(counts.split()) for counts in given]
    return claim(
        "fig-5-13-first-job",
        f"MCKP {'; '.join(changes)}; STATIC {'; '.join(static)}",
        all(map(falls, given)) and all(len(one.split()) == 1 for one in static),
    )


def _learnt(runs: Runs) -> Claim:
    rows = runs.of(LEARNT)
    worst = {
        application: max(_off(row) for row in some) for application, some in _by_application(rows)
    }
    runs_of = dict(_by_application(runs.of(RUN)))
    after = int(max(number(row, "run") for row in rows))
    texts = []
    for name, off in worst.items():
        first = _near_from(runs_of.get(name, []))
        near = "" if first is None else f"from run {first} on, "
        known = f"at most {100 * off:.0f}% off" if off < float("inf") else "not known"
        texts.append(f"{name}: {near}{known} after {after} runs")
    return claim(
        "ours-curves-learnt",
        "; ".join(texts),
        max(worst.values()) <= NEAR,
        near=100 * NEAR,
    )


def _near_from(rows: Sequence[Row]) -> int | None:
    """Return the run from which on a curve was near the true one; None: it was not at the end."""
    first = None
    for row in rows:
        is_near = row["off"] is not None and number(row, "off") <= NEAR
        first = (first or int(number(row, "run"))) if is_near else None
    return first


def _off(row: Row) -> float:
    """Return how far a learnt bandwidth is off, as a part; infinite: nothing was learnt."""
    if row["learnt"] is None:
        return float("inf")
    return abs(number(row, "learnt") / number(row, "true") - 1)


def _same_decisions(runs: Runs) -> Claim:
    rows = runs.of(DECISION)
    equal = sum(row["given"] == row["offline"] for row in rows)
    least = min(number(row, "live") / number(row, "simulated") for row in rows)
    return claim(
        "ours-same-decisions",
        f"{equal} of {len(rows)} sets of running jobs have the same counts; the sum of true "
        f"bandwidths is at least {100 * least:.1f}% of the best",
        least >= 1 - EQUAL,
        equal=100 * EQUAL,
    )


def _as_simulated(runs: Runs, under: str) -> Claim:
    texts, holds = [], {}
    for queue in runs.queues(under):
        live, simulated = (runs.ratios(queue, MCKP, under, how) for how in ("live", "simulated"))
        off = [ours / other - 1 for ours, other in zip(live, simulated, strict=True)]
        holds[f"the queue {queue}"] = max(map(abs, off)) <= NEAR
        text = f"{_range(live)} live, {_range(simulated)} simulated ({_percent(off)}, {queue})"
        if under == ALL:
            text += f", {_range(runs.ratios(queue, MCKP, under, 'occupied'))} where jobs occupy"
        texts.append(text)
    return claim.over(
        "ours-ratio-over-static" if under == STATIC else "ours-ratio-over-all",
        "; ".join(texts),
        holds,
        near=100 * NEAR,
    )


def _sums_as_simulated(runs: Runs) -> Claim:
    off = {
        f"{NAMES[policy]} ({queue})": [
            runs.total(queue, policy, "live", k) / runs.total(queue, policy, "simulated", k) - 1
            for k in runs.repetitions
        ]
        for queue in (MIXED, LINKS)
        for policy in runs.policies(queue)
        if policy != ALL
    }
    return claim(
        "ours-sums-as-simulated",
        "; ".join(f"{name} {_percent(some)}" for name, some in off.items()),
        all(abs(one) <= NEAR for some in off.values() for one in some),
        near=100 * NEAR,
    )


def _explained(runs: Runs) -> Claim:
    rows = runs.of(JOB, policy=MCKP)
    matches = [EXPLAINED.fullmatch(str(row["explained"])) for row in rows]
    complete = sum(one is not None and int(one[1]) == len(one[2].split(",")) for one in matches)
    return claim(
        "ours-explained",
        f'{complete} of {len(rows)} jobs; of the last: "{rows[-1]["explained"]}"',
        complete == len(rows),
    )


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.2f}" if len(values) == 1 else f"{low:.2f} to {high:.2f}"


def _percent(parts: Sequence[float]) -> str:
    low, high = 100 * min(parts), 100 * max(parts)
    return f"{low:+.0f}%" if len(parts) == 1 else f"{low:+.0f} to {high:+.0f}%"


def _sum(runs: Runs, queue: str, policy: str) -> str:
    return f"{fmean(runs.total(queue, policy, 'live', k) for k in runs.repetitions) / MB:.0f}"


def _curves(runs: Runs) -> Figure:
    panels = []
    for application, rows in _by_application(runs.of(LEARNT, workload=runs.repetitions[0])):
        counts = [number(row, "io_nodes") for row in rows]
        known = [row for row in rows if row["learnt"] is not None]
        series = [
            Series(label="true", x=counts, y=[number(row, "true") / MB for row in rows]),
            Series(
                label="learnt",
                x=[number(row, "io_nodes") for row in known],
                y=[number(row, "learnt") / MB for row in known],
            ),
        ]
        panels.append(curves(application, "I/O nodes", "MB/s", series, bottom=0.0))
    return figure("figure-5-8-live", panels, columns=2)


def _queues(runs: Runs) -> Figure:
    panels = []
    for queue in (MIXED, LINKS):
        policies = runs.policies(queue)
        heights = {
            how: [
                fmean(runs.total(queue, policy, how, k) for k in runs.repetitions) / MB
                for policy in policies
            ]
            for how in ("live", "simulated")
        }
        labels = [NAMES[policy] for policy in policies]
        panels.append(bars(f"The queue {queue}", labels, heights, y="MB/s", key=True))
    return figure("figure-5-12-live", panels, stacked=True)


def _learning(runs: Runs) -> TextTable:
    header = ["application", "run", "I/O nodes", "reason"]
    rows = [
        [str(row[name]) for name in ("application", "run", "io_nodes", "reason")]
        for row in runs.of(RUN, workload=runs.repetitions[0])
    ]
    return figure.table("runs", [header, *rows])


def _decided(runs: Runs) -> TextTable:
    header = ["running", "given live", "by the true curves", "reason"]
    rows = [
        [
            str(row["application"]),
            _listed(row["given"]),
            _listed(row["offline"]),
            str(row["reason"]),
        ]
        for row in runs.of(DECISION, workload=runs.repetitions[0])
    ]
    return figure.table("decisions", [header, *rows])


def _listed(counts: object) -> str:
    return ", ".join(map(str, json.loads(str(counts))))
