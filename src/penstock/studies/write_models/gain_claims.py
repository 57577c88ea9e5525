"""Claims on adaptation and advice: what is promised, and what the simulator says then."""

from collections.abc import Sequence

import numpy as np

from penstock.report.findings import Claim
from penstock.studies.claims import load as claims_of
from penstock.studies.write_models import paper
from penstock.studies.write_models.adaptation import RUNS, Gain
from penstock.studies.write_models.comparison import Compared
from penstock.studies.write_models.work import ADAPTED, ADVISED, BY_LASSO

claim = claims_of("write-models")


def claims(one: Compared) -> list[Claim]:
    """Return the claims of a machine."""
    return [
        _adapted(one),
        _adapted_simulated(one),
        _advised(one),
        _advised_by_lasso(one),
        _gain_intervals(one),
    ]


def _adapted(one: Compared) -> Claim:
    times, other = paper.GAINS[one.machine]
    gains = one.gains[ADAPTED]
    ours = float(np.mean([gain.promised >= times for gain in gains]))
    return claim(
        "fig-7-adaptation-promises-times",
        f"{ours:.1%} of {len(gains)}",
        ours >= other - 0.1,
        times=times,
        one=one.where,
        other=other,
    )


def _adapted_simulated(one: Compared) -> Claim:
    times, _ = paper.GAINS[one.machine]
    gains = one.gains[ADAPTED]
    really = float(np.mean([gain.simulated >= times for gain in gains]))
    slower = float(np.mean([gain.simulated < 1 for gain in gains]))
    promised, simulated = (
        float(np.median([getattr(gain, name) for gain in gains]))
        for name in ("promised", "simulated")
    )
    return claim(
        "ours-what-promised-what",
        f"{really:.1%} gain {times:g} or more, {slower:.1%} lose; median promised "
        f"{promised:.2f}, simulated {simulated:.2f}",
        abs(simulated / promised - 1) <= 0.1,
        one=one.where,
        runs=RUNS,
    )


def _advised(one: Compared) -> Claim:
    gains = one.gains[ADVISED]
    slower = _losing(gains)
    return claim(
        "ours-advice-our-model", _gained(gains), slower <= 0.1, one=one.where, gains=len(gains)
    )


def _advised_by_lasso(one: Compared) -> Claim:
    gains, advised = one.gains[BY_LASSO], one.gains[ADVISED]
    ours, lasso = (float(np.median([g.simulated for g in some])) for some in (advised, gains))
    return claim(
        "ours-advice-our-model-2",
        f"lasso: {_gained(gains)}; ours has a median of {ours:.2f}",
        ours >= lasso and _losing(advised) <= _losing(gains),
        one=one.where,
    )


def _gain_intervals(one: Compared) -> Claim:
    changed = [gain for gain in one.gains[ADVISED] if gain.high > gain.low]
    held = float(np.mean([g.low <= g.simulated <= g.high for g in changed])) if changed else 1.0
    above = float(np.mean([g.simulated > g.high for g in changed])) if changed else 0.0
    sure = [gain for gain in changed if gain.low >= 1]
    wrong = float(np.mean([g.simulated < 1 for g in sure])) if sure else 0.0
    return claim(
        "ours-intervals-gains-hold",
        f"{held:.1%} of {len(changed)} ({above:.1%} gain more); {len(sure)} are said to be "
        f"no slower, of which {wrong:.1%} are",
        0.85 <= held <= 0.95,
        one=one.where,
        runs=RUNS,
    )


def _losing(gains: Sequence[Gain]) -> float:
    return float(np.mean([gain.simulated < 0.95 for gain in gains]))


def _gained(gains: Sequence[Gain]) -> str:
    promised, really = (
        np.array([getattr(gain, name) for gain in gains]) for name in ("promised", "simulated")
    )
    return (
        f"{_losing(gains):.1%} lose a twentieth or more, {np.mean(really >= 1.1):.1%} gain 1.1 or "
        f"more; median promised {np.median(promised):.2f}, simulated {np.median(really):.2f}"
    )
