"""Paper forwarding, Section 5.1.1: what 189 access patterns gain from how many I/O nodes.

Measured data alone: nothing is drawn and nothing simulated.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.data import COUNTS, Pattern, Statistic, mn4_patterns
from penstock.report.findings import Claim
from penstock.studies.table import Table, row
from penstock.studies.texts import claims_of

claim = claims_of("forwarding-policies")

SCENARIO = "patterns"
BEST, SPREAD, CHOICES, DIRECT, SHOWN = "best-count", "spread", "choices", "direct", "pattern"
FORCED = "forwarding by its maximum"
REPETITIONS, DIFFERS, SAME = "repetitions", "direct_differs", "direct_same"
STATISTICS: tuple[Statistic, ...] = ("max", "mean", "median")
Differ = NDArray[np.bool_]
PUBLISHED = {0: 62, 1: 12, 2: 83, 4: 15, 8: 17}
"""Fig. 5.3(b): of how many patterns a count is the best."""
DIRECT_WINS, FIVE = 18, 5
"""5.1.1: patterns that are best without forwarding; the least number of repetitions."""
CORES = 48
"""Of a compute node of MareNostrum 4."""
TABLE_5_1 = {
    "A": (32, 1536, "file-per-process", "contiguous", 1024),
    "B": (32, 1536, "file-per-process", "contiguous", 128),
    "C": (32, 1536, "shared", "contiguous", 1024),
    "D": (32, 1536, "shared", "contiguous", 4096),
    "E": (32, 1536, "shared", "1d-strided", 512),
    "F": (16, 192, "shared", "contiguous", 32),
    "G": (16, 192, "shared", "1d-strided", 128),
    "H": (8, 192, "file-per-process", "contiguous", 8192),
    "I": (8, 192, "shared", "1d-strided", 8192),
    "J": (16, 384, "shared", "contiguous", 128),
    "K": (16, 384, "shared", "contiguous", 8192),
    "L": (32, 384, "shared", "1d-strided", 4096),
    "M": (32, 384, "shared", "1d-strided", 512),
    "N": (8, 384, "shared", "contiguous", 4096),
    "O": (16, 768, "shared", "contiguous", 1024),
    "P": (32, 768, "shared", "contiguous", 1024),
    "Q": (16, 768, "shared", "1d-strided", 1024),
    "R": (8, 96, "file-per-process", "contiguous", 8192),
    "S": (8, 96, "shared", "1d-strided", 6144),
    "T": (8, 96, "shared", "contiguous", 512),
}
"""Nodes, processes, layout, spatiality and request size in KB of the patterns of Table 5.1."""
BEST_OF_SHOWN = {0: "A", 1: "LM", 2: "CDEFIKNPQST", 4: "JO", 8: "BGHR"}
"""The text on Fig. 5.2 (and 1.1): which of them do best with which count."""


def similar_sets(differ: Differ) -> int:
    """Count the maximal sets of counts no two of which differ; each is one choice, its smallest."""
    counts = range(len(differ))
    alike = [
        set(some)
        for size in range(1, len(differ) + 1)
        for some in combinations(counts, size)
        if not any(differ[i, j] for i, j in combinations(some, 2))
    ]
    return sum(not any(one < other for other in alike) for one in alike)


def mutually_distinct(differ: Differ) -> int:
    """Count the counts that differ from all smaller distinct ones."""
    distinct: list[int] = []
    for i in range(len(differ)):
        if all(differ[i, j] for j in distinct):
            distinct.append(i)
    return len(distinct)


def step_by_step(differ: Differ) -> int:
    """Count the counts that differ from the last distinct one."""
    distinct = [0]
    for i in range(1, len(differ)):
        if differ[i, distinct[-1]]:
            distinct.append(i)
    return len(distinct)


READINGS: Mapping[str, Callable[[Differ], int]] = {
    "similar sets": similar_sets,
    "mutually distinct": mutually_distinct,
    "step by step": step_by_step,
}
"""How many choices a pattern has: the thesis does not say how it counts them."""
READING = "similar sets"


def table_5_1() -> dict[str, Pattern]:
    """Return the patterns of Table 5.1 by their letter."""
    by_key = {
        (p.nodes, p.processes, p.layout, p.spatiality, p.request_kb): p for p in mn4_patterns()
    }
    return {letter: by_key[key] for letter, key in TABLE_5_1.items()}


def best_count(pattern: Pattern, statistic: Statistic) -> int:
    """Return the count with the highest bandwidth; of equals the smaller."""
    return max(COUNTS, key=pattern.curve(statistic).bandwidth)


def direct_beats_maximum(pattern: Pattern, statistic: Statistic) -> bool:
    """Say whether direct access, by a statistic, beats the best repetition of any forwarding."""
    direct = pattern.curve(statistic).bandwidth(0)
    return direct > max(max(pattern.repetitions[n]) for n in COUNTS if n)


def fully_packed(pattern: Pattern) -> bool:
    """Say whether a pattern has a process on each of the 48 cores of its nodes."""
    return pattern.processes == CORES * pattern.nodes


def run_cell(cell: Cell) -> list[dict[str, Value]]:
    """Return the counts of both parts of Fig. 5.3, and the curves of Fig. 5.2."""
    rows: list[dict[str, Value]] = []

    def add(scenario: str, x: float, policy: str, **values: Value) -> None:
        rows.append(row(replace(cell, scenario=scenario, x=x), policy, **values))

    for statistic in STATISTICS:
        best = Counter(best_count(pattern, statistic) for pattern in mn4_patterns())
        for count in COUNTS:
            add(BEST, count, statistic, patterns=best[count])
        beats = sum(direct_beats_maximum(pattern, statistic) for pattern in mn4_patterns())
        add(FORCED, 0, statistic, patterns=beats)
    for count in COUNTS:
        repetitions = [pattern.repetitions[count] for pattern in mn4_patterns()]
        over_mean = np.median([max(values) / np.mean(values) for values in repetitions])
        add(SPREAD, count, "max over mean", median=float(over_mean))
    differ = [distinct([p.repetitions[n] for n in COUNTS]) for p in mn4_patterns()]
    for reading, count_choices in READINGS.items():
        choices = Counter(map(count_choices, differ))
        for number in range(1, len(COUNTS) + 1):
            add(CHOICES, number, reading, patterns=choices[number])
    add(DIRECT, 0, "differs from some", patterns=sum(bool(d[0].any()) for d in differ))
    add(DIRECT, 0, "differs from all", patterns=sum(bool(d[0, 1:].all()) for d in differ))
    add(DIRECT, 0, "nothing differs", patterns=sum(not d.any() for d in differ))
    kinder = [distinct([p.repetitions[n] for n in COUNTS], 2 * ALPHA) for p in mn4_patterns()]
    add(DIRECT, 0, "differs at twice the level", patterns=sum(bool(d[0].any()) for d in kinder))
    for name, wanted in ((DIFFERS, True), (SAME, False)):
        own = [
            pattern
            for pattern, d in zip(mn4_patterns(), differ, strict=True)
            if bool(d[0].any()) is wanted
        ]
        ratios = [max(p.repetitions[0]) / min(p.repetitions[0]) for p in own]
        runs = float(np.median([len(p.repetitions[0]) for p in own]))
        apart = float(np.median([_apart(p) for p in own]))
        add(DIRECT, 0, name, repetitions=runs, spread=float(np.median(ratios)), apart=apart)
    for count in COUNTS:
        numbers = [len(pattern.repetitions[count]) for pattern in mn4_patterns()]
        add(REPETITIONS, count, "fewest", runs=min(numbers))
        fewer = [p for p, n in zip(mn4_patterns(), numbers, strict=True) if n < FIVE]
        add(REPETITIONS, count, "fewer than five", patterns=len(fewer))
        packed = sum(fully_packed(pattern) for pattern in fewer)
        add(REPETITIONS, count, "fewer than five, fully packed", patterns=packed)
    for letter, pattern in table_5_1().items():
        for count in COUNTS:
            values = pattern.repetitions[count]
            mean = pattern.curve("mean").bandwidth(count)
            best_by = {f"best_{s}": best_count(pattern, s) for s in STATISTICS}
            add(SHOWN, count, letter, mean=mean, low=min(values), high=max(values), **best_by)
    return rows


def _apart(pattern: Pattern) -> float:
    """Return how far the median of direct access is from the farthest one of forwarding."""
    curve = pattern.curve("median")
    ratios = [curve.bandwidth(0) / curve.bandwidth(n) for n in COUNTS if n]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def patterns_by(table: Table, scenario: str, policy: str) -> dict[int, int]:
    """Return the number of patterns by x."""
    return {
        int(x): int(table.values(scenario, x, policy, "patterns")[0])
        for x in table.points(scenario)
    }


def _split(patterns: Mapping[int, int]) -> str:
    return " / ".join(str(n) for n in patterns.values())


def claims(table: Table) -> Iterator[Claim]:
    """Return the claims on the measured patterns."""
    best = {statistic: patterns_by(table, BEST, statistic) for statistic in STATISTICS}
    direct = {statistic: best[statistic][0] for statistic in STATISTICS}
    over_mean = {
        int(x): table.values(SPREAD, x, "max over mean", "median")[0] for x in table.points(SPREAD)
    }
    forwarded = [value for count, value in over_mean.items() if count]
    letters = {statistic: _best_of_shown(table, statistic) for statistic in STATISTICS}
    yield claim.over(
        "fig-5-3-b-0-1",
        f"{_split(best['max'])} by the maximum over repetitions "
        f"({_split(best['mean'])} by the mean, {_split(best['median'])} by the median)",
        {f"by the {s}": best[s] == PUBLISHED for s in STATISTICS},
        split=_split(PUBLISHED),
        over_mean=over_mean[0],
        forwarded=min(forwarded),
        forwarded_2=max(forwarded),
    )
    patterns = len(mn4_patterns())
    forced = {s: patterns_by(table, FORCED, s)[0] for s in STATISTICS}
    yield claim.over(
        "5-1-1-best-count-io",
        ", ".join(f"{patterns - n} / {n} by the {s}" for s, n in direct.items()),
        {f"by the {s}": direct[s] == DIRECT_WINS for s in STATISTICS},
        forced=", ".join(f"{patterns - n} / {n} by the {s}" for s, n in forced.items()),
    )
    yield claim.over(
        "fig-5-2-which-patterns-t",
        "; ".join(f"by the {s}: {_by_count(letters[s])}" for s in reversed(STATISTICS)),
        {f"by the {s}": letters[s] == BEST_OF_SHOWN for s in STATISTICS},
        by_count=_by_count(BEST_OF_SHOWN),
    )

    by_reading = {reading: patterns_by(table, CHOICES, reading) for reading in READINGS}
    ours = by_reading[READING]
    total = sum(ours.values())
    some, all_ = (
        int(table.values(DIRECT, 0, f"differs from {which}", "patterns")[0])
        for which in ("some", "all")
    )
    others = "; ".join(
        f"{reading}: {_split(by_number)}"
        for reading, by_number in by_reading.items()
        if reading != READING
    )
    yield claim.over(
        "fig-5-3-a-88-patterns-46",
        f"{ours[3]} of {total} ({ours[3] / total:.0%}) have three; 1 to 5 choices: {_split(ours)}",
        {
            f"{reading}, {words}": _three_choices(by_number, limit)
            for words, limit in (("within five points", 0.05), ("88 exactly", 0.0))
            for reading, by_number in by_reading.items()
        },
        alpha=ALPHA / 2,
        others=others,
    )
    yield claim(
        "5-1-1-direct-access-always",
        f"differs significantly from some count of I/O nodes for {some} of {total} "
        f"patterns, from all for {all_}",
        some == total,
        nothing=int(table.values(DIRECT, 0, "nothing differs", "patterns")[0]),
        rest=total - some,
        kinder=int(table.values(DIRECT, 0, "differs at twice the level", "patterns")[0]),
        **{
            f"{what}_{where}": table.values(DIRECT, 0, where, what)[0]
            for what in ("repetitions", "spread", "apart")
            for where in (DIFFERS, SAME)
        },
    )
    fewest = {int(x): int(table.values(REPETITIONS, x, "fewest", "runs")[0]) for x in COUNTS}
    fewer = patterns_by(table, REPETITIONS, "fewer than five")
    packed = patterns_by(table, REPETITIONS, "fewer than five, fully packed")
    yield claim(
        "5-1-1-five-repetitions",
        "fewest, and patterns with fewer than five: "
        + ", ".join(f"{n} I/O nodes {fewest[n]}, {fewer[n]}" for n in COUNTS),
        min(fewest.values()) >= FIVE,
        fewer=fewer[0],
        packed=packed[0],
        all_packed=sum(map(fully_packed, mn4_patterns())),
        cores=CORES,
    )


def _three_choices(patterns: Mapping[int, int], limit: float) -> bool:
    """Say whether three is the most frequent number of choices, and of how many patterns."""
    share = patterns[3] / sum(patterns.values())
    return max(patterns, key=patterns.__getitem__) == 3 and abs(share - 88 / 189) <= limit


def _best_of_shown(table: Table, statistic: Statistic) -> dict[int, str]:
    best = {letter: table.rows(SHOWN, 0, letter)[0][f"best_{statistic}"] for letter in TABLE_5_1}
    return {count: "".join(k for k, v in best.items() if v == count) for count in COUNTS}


def _by_count(letters: Mapping[int, str]) -> str:
    return ", ".join(f"{count} {label}" for count, label in letters.items())


Floats = NDArray[np.float64]
ALPHA = 0.05


def dunn(groups: Sequence[ArrayLike]) -> Floats:
    """Return the one-sided p of every pair of groups, as a symmetric matrix with ones inside.

    O. J. Dunn, "Multiple comparisons using rank sums", Technometrics 6(3), 1964. All measurements
    are ranked together; with N of them, the mean ranks of groups i and j are compared by

        z = (R_i - R_j) / sqrt((N (N + 1) / 12 - sum(t^3 - t) / (12 (N - 1))) (1 / n_i + 1 / n_j)),

    t over the sizes of the ties. The p is P(Z >= |z|), as R's dunn.test reports it: it is held
    against alpha / 2. No adjustment for the number of pairs.
    """
    sizes = np.array([np.size(group) for group in groups])
    values = np.concatenate([np.asarray(group, np.float64) for group in groups])
    total = len(values)
    _, ties = np.unique(values, return_counts=True)
    spread = total * (total + 1) / 12 - (ties**3 - ties).sum() / (12 * (total - 1))
    starts = np.cumsum(sizes) - sizes
    mean_rank = np.add.reduceat(stats.rankdata(values), starts) / sizes
    error = np.sqrt(spread * (1 / sizes[:, None] + 1 / sizes))
    p: Floats = stats.norm.sf(np.abs(mean_rank[:, None] - mean_rank) / error)
    np.fill_diagonal(p, 1.0)
    return p


def distinct(groups: Sequence[ArrayLike], alpha: float = ALPHA) -> NDArray[np.bool_]:
    """Return which pairs of groups differ; none where Kruskal-Wallis rejects nothing."""
    if stats.kruskal(*groups).pvalue > alpha:
        return np.zeros((len(groups), len(groups)), bool)
    differ: NDArray[np.bool_] = dunn(groups) <= alpha / 2
    return differ
