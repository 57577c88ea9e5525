"""Claims that rest on recorded rewards: the thesis', and ours."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from statistics import fmean, median

import numpy as np
from scipy.stats import spearmanr

from penstock.data.windows import Scenario
from penstock.report.findings import Claim
from penstock.sim.evaluate.bandits import TIE, Learning
from penstock.studies.table import each
from penstock.studies.texts import claims_of
from penstock.studies.tuning.offline import (
    AGAIN_WITHIN,
    CHANGES_AT,
    EPSILONS,
    KIB,
    MATTERS,
    OURS,
    Choices,
    Last,
    Offline,
    last,
)
from penstock.studies.verdicts import over

claim = claims_of("tuning")

LEARNT, AT_THE_END, SCENARIOS, AGAIN = 0.97, 0.98, 0.9, 0.95
NEARLY, HARDLY = (0.998, 0.99, 0.9), (0.01, 0.1)
"""Tables 3.6 and 3.7: the thesis' worst figures, and kinder ones."""
EARLY = (100, 50, 200)
"""Observations in which a policy may be said to learn fast or slowly; the thesis has curves."""
MORE = 0.17
"""The thesis' summary of Table 3.6: detection improves more observations than a static window."""
STATIC_IMPROVES = (579_714 + 536_228) / (654_480 + 654_478)
"""The part of the oracle's that the static window improves: sums of Table 3.6."""
REQUESTS = {"write": 32 * KIB, "read": 256 * KIB}
"""Where windows matter most on the emulated disks: small writes, and reads of whole stripes."""
KINDS = ("tree", "forest", "network")


def claims(offline: Offline, choices: Choices, held_out: Choices) -> list[Claim]:
    """Return all claims; `held_out` are choices by observations that trained no model."""
    return [
        *_windows(offline),
        *_detected(choices, held_out),
        *_thesis(offline),
        *_ours(offline),
    ]


def strided(operation: str, *, request: int | None = None) -> Scenario:
    """Return strided requests of 16 processes through 4 I/O nodes; else those of REQUESTS."""
    return Scenario(
        pattern="shared-strided",
        operation=operation,
        request=request or REQUESTS[operation],
        processes=16,
        io_nodes=4,
    )


def show(window: float) -> str:
    """Return a window in words."""
    return f"{window * 1e6:g} us" if window < 1e-3 else f"{window * 1e3:g} ms"


def _best(means: Mapping[float, float]) -> float:
    return max(means, key=lambda window: means[window])


def _lost(means: Mapping[float, float], other: Mapping[float, float]) -> float:
    """Return what is lost with windows that are good for the other, on the mean over these."""
    good = [window for window, mean in other.items() if mean >= 0.95 * max(other.values())]
    return 1 - fmean(means[window] for window in good) / max(means.values())


def _windows(offline: Offline) -> list[Claim]:
    by_operation = {does: offline.means[strided(does)] for does in ("write", "read")}
    best = {does: _best(means) for does, means in by_operation.items()}
    fifo = {does: offline.baselines[strided(does), "fifo"] for does in by_operation}
    small = offline.means[strided("read", request=32 * KIB)]
    lost = {
        "write": _lost(by_operation["write"], by_operation["read"]),
        "read": _lost(by_operation["read"], by_operation["write"]),
    }
    single = {
        does: 1 - by_operation[does][best[other]] / by_operation[does][best[does]]
        for does, other in (("write", "read"), ("read", "write"))
    }
    gain = max(by_operation["read"].values()) / fifo["read"] - 1
    loss = 1 - min(by_operation["write"].values()) / fifo["write"]
    return [
        claim(
            "fig-3-8-right-window-makes",
            f"reads: best +{gain:.0%}; writes: worst -{loss:.0%}",
            gain >= 0.10 and loss >= 0.10,
        ),
        claim(
            "4-2-3-best-window-writes",
            f"best {show(best['write'])} and {show(best['read'])}; with windows good for the "
            f"other writes lose {lost['write']:.0%} and reads {lost['read']:.0%}, with the other's "
            f"single best {single['write']:.0%} and {single['read']:.0%}; reads of 32 KiB: best "
            f"{show(_best(small))}, {_lost(small, by_operation['write']):.0%} lost",
            min(lost.values()) >= 0.15,
        ),
    ]


def _detected(choices: Choices, held_out: Choices) -> Iterator[Claim]:
    of = {"all observations, as in the thesis": choices, "held-out observations": held_out}
    numbers = (
        f"{choices.observations} observations of our I/O nodes, of which 70% trained the models; "
        f"{held_out.observations} were held out"
    )
    for key, judge, changed, limits, form in (
        ("table-3-6-windows-detected-pattern", _improves, "increased", NEARLY, "{:.1%} or more"),
        ("table-3-7-worsen-nearly-nothing", _spares, "decreased", HARDLY, "{:.0%} at most"),
    ):
        yield claim.over(
            key,
            "; ".join(f"{name}: {each(_totals(one, changed))}" for name, one in of.items()),
            over(limits, form, partial(judge, choices)),
            numbers=numbers,
            farthest=_farthest(choices, changed),
        )
    up = _totals(choices, "increased")
    more = {kind: up[kind] / up["static"] - 1 for kind in KINDS}
    yield claim.over(
        "3-5-more-than-static",
        each(more, "{} {:+.0%}"),
        over(
            (5, 2, 10),
            "within {:g} points",
            lambda points: all(abs(gain - MORE) <= points / 100 for gain in more.values()),
        ),
        numbers=numbers,
        part=up["static"] / up["oracle"],
        printed=STATIC_IMPROVES,
        otherwise=each(
            {kind: up[kind] / (STATIC_IMPROVES * up["oracle"]) - 1 for kind in KINDS}, "{} {:+.0%}"
        ),
    )


def _farthest(choices: Choices, changed: str) -> str:
    """Return the counts of the column in which detection is farthest from what it is held against.

    It is held against the oracle in what is improved, and the static window in what is worsened.
    """
    counts = getattr(choices, changed)
    other, farthest = ("oracle", min) if changed == "increased" else ("static", max)
    does, kind, n = farthest(
        ((does, kind, n) for does, n in choices.columns for kind in KINDS),
        key=lambda key: counts[key] / max(1, counts[key[0], other, key[2]]),
    )
    detected, held_against = counts[does, kind, n], counts[does, other, n]
    return f"{does}s with {n} I/O nodes, {kind} {detected}, {other} {held_against}"


def _totals(choices: Choices, changed: str) -> dict[str, int]:
    counts = getattr(choices, changed)
    return {name: choices.total(counts, name) for name in ("oracle", "static", *KINDS)}


def _improves(choices: Choices, part: float) -> bool:
    """Return whether detection improves such a part of the oracle's, in every column."""
    up = choices.increased
    return all(
        up[does, kind, n] >= max(part * up[does, "oracle", n], up[does, "static", n])
        for does, n in choices.columns
        for kind in KINDS
    )


def _spares(choices: Choices, part: float) -> bool:
    """Return whether detection worsens at most such a part of what a static window does."""
    down = choices.decreased
    return all(
        down[does, kind, n] <= part * down[does, "static", n]
        for does, n in choices.columns
        for kind in KINDS
    )


def best_epsilon(offline: Offline, letter: str) -> tuple[float, Last]:
    """Return the epsilon with the best last bin of a scenario, and that bin."""
    last_bins = {e: last(learning, letter) for e, learning in offline.epsilons.items()}
    best = max(last_bins, key=lambda e: last_bins[e].performance)
    return best, last_bins[best]


def _thesis(offline: Offline) -> Iterator[Claim]:
    def early(learning: Learning, first: float) -> float:
        """Return the mean precision of the first observations."""
        return float(learning.precision[:, : int(first) // learning.bin].mean())

    def in_order(first: float) -> bool:
        by_epsilon = [early(offline.epsilons[epsilon], first) for epsilon in EPSILONS]
        return all(one < other for one, other in pairwise(by_epsilon))

    shown = {epsilon: early(offline.epsilons[epsilon], EARLY[0]) for epsilon in EPSILONS}
    yield claim.over(
        "fig-4-3-smaller-epsilon-slower",
        each(shown, "epsilon {:g}: {:.2f}"),
        over(EARLY, "the first {:g} observations", in_order),
    )
    ucb1 = offline.units["MiB/s"]
    yield claim.over(
        "4-2-3-ucb1-finds-faster",
        f"UCB1 {early(ucb1, EARLY[0]):.2f}, epsilon 0.07 {shown[EPSILONS[0]]:.2f}",
        over(
            EARLY,
            "the first {:g} observations",
            lambda first: early(ucb1, first) > early(offline.epsilons[EPSILONS[0]], first),
        ),
    )
    yield _distinct(offline)
    six = offline.six
    greedy = {letter: best_epsilon(offline, letter)[1] for letter in six}
    interleaved = {letter: last(offline.interleaved, letter) for letter in six}
    by_unit = {
        unit: {letter: last(learning, letter) for letter in six}
        for unit, learning in offline.units.items()
    }
    for key, last_bins, least in (
        ("table-4-2-epsilon-greedy-ends", greedy, 0.96),
        ("table-4-3-so-does-when", interleaved, 0.92),
    ):
        yield claim(key, _bins(last_bins), _worst(last_bins) >= least)
    yield claim.over(
        "table-4-4-ucb1-ends-nearer",
        "; ".join(f"in {unit}: {_bins(bins)}" for unit, bins in by_unit.items()),
        {f"rewards in {unit}": _worst(bins) >= 0.98 for unit, bins in by_unit.items()},
    )
    behind = {
        unit: [k for k in six if bins[k].performance < greedy[k].performance]
        for unit, bins in by_unit.items()
    }
    yield claim.over(
        "tables-4-2-and-4-4",
        each({unit: ", ".join(some) or "none" for unit, some in behind.items()}, "{}: {}", "; ")
        + " behind",
        {f"rewards in {unit}": not some for unit, some in behind.items()},
        short=_short(greedy, by_unit, behind),
        greedy=each({k: one.performance for k, one in greedy.items()}, "{} {:.3f}"),
        tie=TIE,
        ties=each({letter: offline.ties[one] for letter, one in six.items()}, "{} {}"),
    )
    for table, last_bins, words, paper in (
        ("4.2", greedy, "epsilon-greedy", (0.60, 0.91)),
        ("4.3", interleaved, "epsilon-greedy, in random order,", (0.49, 0.88)),
        ("4.4", by_unit["MiB/s"], "UCB1", (0.68, 0.97)),
    ):
        precision = {letter: one.precision for letter, one in last_bins.items()}
        yield claim(
            "tables-4-2-to-4-4-precision",
            each(precision, "{} {:.2f}"),
            min(precision.values()) >= paper[0],
            table=table,
            words=words,
            least=paper[0],
            most=paper[1],
            near_best=each(
                {letter: one.near_best for letter, one in last_bins.items()}, "{} {:.2f}"
            ),
            tie=TIE,
            ties=each({letter: offline.ties[one] for letter, one in six.items()}, "{} {}"),
        )
    learnt = {name: offline.everywhere[name] for name in ("ucb1", "epsilon-greedy")}
    ends = {
        name: (float(one.precision[:, -1].mean()), float(one.performance[:, -1].mean()))
        for name, one in learnt.items()
    }
    distinct = [one.name for one, ties in offline.ties.items() if ties == 1]
    yield claim.over(
        "chapter-7-88-and-99",
        each(ends, "{0}: precision {1[0]:.2f}, performance {1[1]:.3f}", "; "),
        {
            f"{name}, within {points:g} points": abs(precision - 0.88) <= points / 100
            and performance >= 0.985
            for points in (5, 2, 10)
            for name, (precision, performance) in ends.items()
        },
        scenarios=len(offline.rewards),
        tie=TIE,
        ties=median(offline.ties.values()),
        near_best=each(
            {name: float(one.near_best[:, -1].mean()) for name, one in learnt.items()}, "{} {:.2f}"
        ),
        distinct=len(distinct),
        precise=each(
            {name: fmean(last(one, k).precision for k in distinct) for name, one in learnt.items()},
            "{} {:.2f}",
        )
        if distinct
        else "none",
    )


def _short(
    greedy: Mapping[str, Last],
    by_unit: Mapping[str, Mapping[str, Last]],
    behind: Mapping[str, Sequence[str]],
) -> str:
    """Say by how much performance UCB1 is behind, and how often both choose a near-best window."""
    texts = (
        f"{letter} ({unit}) {greedy[letter].performance - by_unit[unit][letter].performance:.3f}, "
        f"near-best choices {by_unit[unit][letter].near_best:.2f} against "
        f"{greedy[letter].near_best:.2f}"
        for unit, letters in behind.items()
        for letter in letters
    )
    return "; ".join(texts) or "nowhere"


def _distinct(offline: Offline) -> Claim:
    """Judge whether precision is higher where one window is better than all others by more."""
    learning = offline.everywhere["epsilon-greedy"]
    gap = {}
    for scenario, means in offline.means.items():
        best, second = sorted(means.values(), reverse=True)[:2]
        gap[scenario.name] = 1 - second / best
    result = spearmanr([gap[name] for name in learning.scenarios], learning.precision[:, -1])
    return claim(
        "4-2-2-easier-where-distinct",
        f"Spearman {result.statistic:+.2f} (p {result.pvalue:.1g}) over {len(gap)} scenarios",
        result.statistic > 0 and result.pvalue <= 0.05,
    )


def _bins(last_bins: Mapping[str, Last]) -> str:
    return each(last_bins, "{0} {1.precision:.2f}, {1.performance:.3f}", "; ")


def _worst(last_bins: Mapping[str, Last]) -> float:
    return min(one.performance for one in last_bins.values())


def _ours(offline: Offline) -> Iterator[Claim]:
    learnt = {name: one.after(200) for name, one in offline.everywhere.items()}
    after, end = learnt.pop(OURS), offline.everywhere[OURS].performance[:, -1]
    beside = ", ".join(
        f"{name} {np.mean(other >= LEARNT):.0%} ({other.mean():.3f})"
        for name, other in learnt.items()
    )
    yield claim(
        "ours-discounted-ucb-has",
        f"on {np.mean(after >= LEARNT):.0%} of {len(after)} scenarios, mean {after.mean():.3f}; "
        f"{beside}",
        np.mean(after >= LEARNT) >= SCENARIOS,
    )
    yield claim(
        "ours-discounted-ucb-has-2",
        f"mean {fmean(end):.3f}, on {np.mean(end >= AT_THE_END):.0%} of the scenarios, "
        f"after {offline.observations} observations",
        fmean(end) >= AT_THE_END and bool(np.mean(end >= AT_THE_END) >= SCENARIOS),
    )
    again = {name: offline.again(name) for name in offline.changed}
    yield claim(
        "ours-when-best-window",
        f"{AGAIN_WITHIN} observations later: {each(again, '{} {:.3f}')}",
        again[OURS] > AGAIN >= again["ucb1"],
        changes_at=CHANGES_AT,
        offline=len(offline.mattering),
        matters=MATTERS,
    )
