"""Claims and figures that rest on recorded rewards: the thesis', and ours."""

from collections.abc import Iterator, Mapping
from statistics import fmean, median

import numpy as np

from penstock.data.windows import Scenario
from penstock.report.findings import Bars, Claim, Curves, Figure, Series
from penstock.sim.evaluate.bandits import Learning
from penstock.studies.panels import bars, curves
from penstock.studies.table import each
from penstock.studies.texts import captions_of, claims_of
from penstock.studies.tuning.offline import (
    AGAIN_WITHIN,
    CHANGES_AT,
    EPSILONS,
    KIB,
    MATTERS,
    OURS,
    TIE,
    Choices,
    Last,
    Offline,
    last,
)

claim, figure = claims_of("tuning"), captions_of("tuning")

LEARNT, AT_THE_END, SCENARIOS, AGAIN = 0.97, 0.98, 0.9, 0.95
MORE = 0.17
"""The thesis' summary of Table 3.6: detection improves more observations than a static window."""
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
    for key, judge, changed in (
        ("table-3-6-windows-detected-pattern", _improves, "increased"),
        ("table-3-7-worsen-nearly-nothing", _spares, "decreased"),
    ):
        verdicts = {name: judge(one) for name, one in of.items()}
        yield claim(
            key,
            "; ".join(f"{name}: {each(_totals(one, changed))}" for name, one in of.items()),
            next(iter(verdicts.values())),
            readings=verdicts,
            numbers=numbers,
        )
    up = _totals(choices, "increased")
    more = {kind: up[kind] / up["static"] - 1 for kind in KINDS}
    yield claim(
        "3-5-more-than-static",
        each(more, "{} {:+.0%}"),
        all(abs(gain - MORE) <= 0.05 for gain in more.values()),
        numbers=numbers,
    )


def _totals(choices: Choices, changed: str) -> dict[str, int]:
    counts = getattr(choices, changed)
    return {name: choices.total(counts, name) for name in ("oracle", "static", *KINDS)}


def _improves(choices: Choices) -> bool:
    """Return whether detection improves nearly as many as the oracle, in every column."""
    up = choices.increased
    return all(
        up[does, kind, n] >= max(0.9 * up[does, "oracle", n], up[does, "static", n])
        for does, n in choices.columns
        for kind in KINDS
    )


def _spares(choices: Choices) -> bool:
    """Return whether detection worsens at most a tenth of what a static window does."""
    down = choices.decreased
    return all(
        down[does, kind, n] <= 0.1 * down[does, "static", n]
        for does, n in choices.columns
        for kind in KINDS
    )


def best_epsilon(offline: Offline, letter: str) -> tuple[float, Last]:
    """Return the epsilon with the best last bin of a scenario, and that bin."""
    last_bins = {e: last(learning, letter) for e, learning in offline.epsilons.items()}
    best = max(last_bins, key=lambda e: last_bins[e].performance)
    return best, last_bins[best]


def _thesis(offline: Offline) -> Iterator[Claim]:
    early = {
        epsilon: float(learning.precision[:, : 100 // learning.bin].mean())
        for epsilon, learning in offline.epsilons.items()
    }
    yield claim(
        "fig-4-3-smaller-epsilon-slower",
        each(early, "epsilon {:g}: {:.2f}"),
        early[EPSILONS[0]] < early[EPSILONS[-1]],
    )
    six = offline.six
    greedy = {letter: best_epsilon(offline, letter)[1] for letter in six}
    interleaved = {letter: last(offline.interleaved, letter) for letter in six}
    by_unit = {
        unit: {letter: last(learning, letter) for letter in six}
        for unit, learning in offline.units.items()
    }
    for key, last_bins, least in (
        ("table-4-2-epsilon-greedy-ends", greedy, 0.95),
        ("table-4-3-so-does-when", interleaved, 0.92),
    ):
        yield claim(key, _bins(last_bins), _worst(last_bins) >= least)
    yield claim(
        "table-4-4-ucb1-ends-nearer",
        "; ".join(f"in {unit}: {_bins(bins)}" for unit, bins in by_unit.items()),
        _worst(next(iter(by_unit.values()))) >= 0.98,
        readings={f"rewards in {unit}": _worst(bins) >= 0.98 for unit, bins in by_unit.items()},
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
            tie=TIE,
            ties=each({letter: offline.ties[one] for letter, one in six.items()}, "{} {}"),
        )
    learnt = {name: offline.everywhere[name] for name in ("ucb1", "epsilon-greedy")}
    ends = {
        name: (float(one.precision[:, -1].mean()), float(one.performance[:, -1].mean()))
        for name, one in learnt.items()
    }
    verdicts = {
        name: abs(precision - 0.88) <= 0.05 and performance >= 0.98
        for name, (precision, performance) in ends.items()
    }
    yield claim(
        "chapter-7-88-and-99",
        each(ends, "{0}: precision {1[0]:.2f}, performance {1[1]:.3f}", "; "),
        verdicts["ucb1"],
        readings=verdicts,
        scenarios=len(offline.rewards),
        tie=TIE,
        ties=median(offline.ties.values()),
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


SHORT = {"oracle": "O", "static": "S", "tree": "T", "forest": "F", "network": "N"}


def figures(offline: Offline, choices: Choices) -> list[Figure]:
    """Return all figures."""
    return [_figure_3_8(offline), _tables_3_6_and_3_7(choices), *_learning(offline)]


def _figure_3_8(offline: Offline) -> Figure:
    def panel(operation: str) -> Bars:
        scenario = strided(operation)
        means = offline.means[scenario]
        base = {name: offline.baselines[scenario, name] for name in ("fifo", "hbrr")}
        rewards = [*base.values(), *means.values()]
        return bars(
            operation,
            [*base, *map(show, means)],
            {operation: [scenario.io_nodes * each for each in rewards]},
            x="scheduler, or window of TWINS",
            y="MiB/s in all",
            lines={"fifo": scenario.io_nodes * base["fifo"]},
        )

    return figure("fig-3-8-windows", [panel("read"), panel("write")])


def _tables_3_6_and_3_7(choices: Choices) -> Figure:
    names = ("oracle", "static", *KINDS)
    io_nodes = sorted({n for _, _, n in choices.increased})
    labels = [str(n) for n in io_nodes]
    panels = []
    for word, counts in (("improved", choices.increased), ("worsened", choices.decreased)):
        for does in ("read", "write"):
            heights = {SHORT[name]: [counts[does, name, n] for n in io_nodes] for name in names}
            title = f"{does}s {word}"
            panels.append(bars(title, labels, heights, x="I/O nodes", y="observations", key=True))
    return figure("tables-3-6-3-7-choices", panels, columns=2, count=choices.observations)


def _x(learning: Learning) -> list[float]:
    return [learning.bin * (k + 1) for k in range(learning.precision.shape[1])]


def _series(label: str, learning: Learning, letter: str, *, precise: bool = True) -> Series:
    k = learning.scenarios.index(letter)
    values = learning.precision if precise else learning.performance
    return Series(label=label, x=_x(learning), y=values[k].tolist())


def _panel(title: str, series: list[Series], y: str = "precision") -> Curves:
    return curves(title, "observations", y, series, bottom=0, top=1)


def _by_letter(offline: Offline, policies: Mapping[str, Learning]) -> list[Curves]:
    """Return one panel per access pattern with one curve per policy."""
    return [
        _panel(letter, [_series(name, each, letter) for name, each in policies.items()])
        for letter in offline.six
    ]


def _letters(offline: Offline) -> str:
    return "; ".join(f"{letter}: {one.name}" for letter, one in offline.six.items()) + "."


def _learning(offline: Offline) -> Iterator[Figure]:
    panels = _by_letter(offline, {f"epsilon {e:g}": each for e, each in offline.epsilons.items()})
    letters, repetitions = _letters(offline), offline.repetitions
    yield figure("fig-4-3-epsilon", panels, columns=3, repetitions=repetitions, letters=letters)

    learning, y = offline.interleaved, "share of the best window's"
    precision, performance = (
        [_series(letter, learning, letter, precise=precise) for letter in offline.six]
        for precise in (True, False)
    )
    panels = [_panel("precision", precision), _panel("performance", performance, y=y)]
    yield figure("fig-4-4-interleaved", panels, letters=_letters(offline))

    ours = {name: offline.policies[name] for name in ("ucb1", OURS)}
    panels = _by_letter(offline, {"epsilon 0.1": offline.epsilons[0.10], **ours})
    letters, repetitions = _letters(offline), offline.repetitions
    yield figure("fig-4-5-ucb1", panels, columns=3, repetitions=repetitions, letters=letters)

    series = [
        Series(label=name, x=_x(each), y=each.performance.mean(axis=0).tolist())
        for name, each in offline.changed.items()
    ]
    y = "share of the best window's performance"
    yield figure(
        "changing-world",
        [curves("mean over scenarios", "observations", y, series, lines={"0.95": 0.95})],
        count=len(offline.mattering),
        changes_at=CHANGES_AT,
        again_within=AGAIN_WITHIN,
    )
