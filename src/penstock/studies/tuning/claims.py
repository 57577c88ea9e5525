"""The thesis' claims, and ours, that rest on recorded rewards."""

from collections.abc import Mapping
from statistics import fmean

import numpy as np

from penstock.data.windows import Scenario
from penstock.report.findings import Claim
from penstock.sim.evaluate.bandits import Learning
from penstock.studies.claims import load as claims_of
from penstock.studies.tuning.choices import Choices
from penstock.studies.tuning.offline import (
    AGAIN_WITHIN,
    CHANGES_AT,
    EPSILONS,
    KIB,
    MATTERS,
    OURS,
    Last,
    Offline,
    last,
)

claim = claims_of("tuning")

LEARNT, AT_THE_END, SCENARIOS, AGAIN = 0.97, 0.98, 0.9, 0.95
REQUESTS = {"write": 32 * KIB, "read": 256 * KIB}
"""Where windows matter most on the emulated disks: small writes, and reads of whole stripes."""
KINDS = ("tree", "forest", "network")
DRAWN = "Drawn from rewards measured on an emulated file system."


def claims(offline: Offline, choices: Choices) -> list[Claim]:
    """Return all claims."""
    return [
        *_windows(offline),
        *_detected(choices),
        _faster(offline),
        _epsilon(offline),
        _interleaved(offline),
        _ucb1(offline),
        *_ours(offline),
        _changed(offline),
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


def _detected(choices: Choices) -> list[Claim]:
    up = {name: choices.total(choices.increased, name) for name in ("oracle", "static", *KINDS)}
    down = {name: choices.total(choices.decreased, name) for name in up}
    why = (
        f"1% more or less than with 1 ms counts; {choices.observations} observations of our I/O "
        "nodes, windows measured on an emulated file system. What is not told keeps 1 ms."
    )
    return [
        claim(
            "table-3-6-windows-detected-pattern",
            _counts(up),
            min(up[kind] for kind in KINDS) >= max(0.9 * up["oracle"], up["static"]),
            why=why,
        ),
        claim(
            "table-3-7-worsen-nearly-nothing",
            _counts(down),
            max(down[kind] for kind in KINDS) <= 0.1 * down["static"],
            why=why,
        ),
    ]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items())


def _early(learning: Learning) -> float:
    return float(learning.precision[:, : 100 // learning.bin].mean())


def _faster(offline: Offline) -> Claim:
    early = {epsilon: _early(learning) for epsilon, learning in offline.epsilons.items()}
    return claim(
        "fig-4-3-smaller-epsilon-slower",
        ", ".join(f"epsilon {e:g}: {p:.2f}" for e, p in early.items()),
        early[EPSILONS[0]] < early[EPSILONS[-1]],
    )


def best_epsilon(offline: Offline, letter: str) -> tuple[float, Last]:
    """Return the epsilon with the best last bin of a scenario, and that bin."""
    last_bins = {e: last(learning, letter) for e, learning in offline.epsilons.items()}
    best = max(last_bins, key=lambda e: last_bins[e].performance)
    return best, last_bins[best]


def _epsilon(offline: Offline) -> Claim:
    last_bins = {letter: best_epsilon(offline, letter)[1] for letter in offline.six}
    return claim(
        "table-4-2-epsilon-greedy-ends",
        _lasts(last_bins),
        min(one.performance for one in last_bins.values()) >= 0.95,
    )


def _interleaved(offline: Offline) -> Claim:
    last_bins = {letter: last(offline.interleaved, letter) for letter in offline.six}
    return claim(
        "table-4-3-so-does-when",
        _lasts(last_bins),
        min(one.performance for one in last_bins.values()) >= 0.92,
    )


def _ucb1(offline: Offline) -> Claim:
    last_bins = {letter: last(offline.policies["ucb1"], letter) for letter in offline.six}
    return claim(
        "table-4-4-ucb1-ends-nearer",
        _lasts(last_bins),
        min(one.performance for one in last_bins.values()) >= 0.98,
    )


def _lasts(last_bins: Mapping[str, Last]) -> str:
    return "; ".join(
        f"{k} {one.precision:.2f}, {one.performance:.3f}" for k, one in last_bins.items()
    )


def _ours(offline: Offline) -> list[Claim]:
    learning = offline.everywhere[OURS]
    others = {
        name: (float((one.after(200) >= LEARNT).mean()), float(one.after(200).mean()))
        for name, one in offline.everywhere.items()
        if name != OURS
    }
    after, end = learning.after(200), learning.performance[:, -1]
    beside = ", ".join(f"{name} {share:.0%} ({mean:.3f})" for name, (share, mean) in others.items())
    return [
        claim(
            "ours-discounted-ucb-has",
            f"on {np.mean(after >= LEARNT):.0%} of {len(after)} scenarios, mean "
            f"{after.mean():.3f}; {beside}",
            np.mean(after >= LEARNT) >= SCENARIOS,
        ),
        claim(
            "ours-discounted-ucb-has-2",
            f"mean {fmean(end):.3f}, on {np.mean(end >= AT_THE_END):.0%} of the scenarios, "
            f"after {offline.observations} observations",
            fmean(end) >= AT_THE_END and bool(np.mean(end >= AT_THE_END) >= SCENARIOS),
        ),
    ]


def _changed(offline: Offline) -> Claim:
    again = {name: offline.again(name) for name in offline.changed}
    return claim(
        "ours-when-best-window",
        f"{AGAIN_WITHIN} observations later: "
        + ", ".join(f"{name} {value:.3f}" for name, value in again.items()),
        again[OURS] > AGAIN >= again["ucb1"],
        changes_at=CHANGES_AT,
        offline=len(offline.mattering),
        matters=MATTERS,
    )
