"""Claims on adaptation and advice: what is promised, and what the simulator says then."""

from collections.abc import Sequence

import numpy as np

from penstock.report.findings import Claim
from penstock.studies.write_models import paper
from penstock.studies.write_models.adaptation import RUNS, Gain
from penstock.studies.write_models.comparison import Compared
from penstock.studies.write_models.work import ADAPTED, ADVISED, BY_LASSO


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
    times, theirs = paper.GAINS[one.machine]
    gains = one.gains[ADAPTED]
    ours = float(np.mean([gain.promised >= times for gain in gains]))
    return Claim(
        claim=f"Fig. 7: adaptation promises {times:g} times the speed to most, {one.where}",
        by="write-models",
        paper=f"{theirs:.1%}",
        ours=f"{ours:.1%} of {len(gains)}",
        holds=ours >= theirs - 0.1,
        why="Rule: at most 0.1 below the paper's. t / (t'' - e) with e = t' - t, by the chosen "
        "lasso; bringing data to the aggregators costs nothing, as in the paper.",
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
    return Claim(
        claim=f"Ours: what is promised is what the adapted write gains, {one.where}",
        by="penstock",
        paper="left as future work",
        ours=f"{really:.1%} gain {times:g} or more, {slower:.1%} lose; median promised "
        f"{promised:.2f}, simulated {simulated:.2f}",
        holds=abs(simulated / promised - 1) <= 0.1,
        why=f"Rule: the medians are at most a tenth apart. {RUNS} simulated runs of the write as "
        "it is and as adapted. The best of many candidates is likely one that the model errs on.",
    )


def _advised(one: Compared) -> Claim:
    gains = one.gains[ADVISED]
    slower = _losing(gains)
    return Claim(
        claim=f"Ours: advice by our model seldom makes a write slower, {one.where}",
        by="penstock",
        paper="not asked",
        ours=_gained(gains),
        holds=slower <= 0.1,
        why=f"Rule: at most a tenth lose. {len(gains)} test samples, advised as 'penstock advise' "
        "does: what the model has not seen does not count, and bringing data to aggregators does.",
    )


def _advised_by_lasso(one: Compared) -> Claim:
    gains, other = one.gains[BY_LASSO], one.gains[ADVISED]
    ours, theirs = (float(np.median([g.simulated for g in some])) for some in (other, gains))
    return Claim(
        claim=f"Ours: advice by our model gains more than advice by the chosen lasso, {one.where}",
        by="penstock",
        paper="not asked",
        ours=f"lasso: {_gained(gains)}; ours has a median of {ours:.2f}",
        holds=ours >= theirs and _losing(other) <= _losing(gains),
        why="Rule: the median gain is as large or larger, and as few or fewer lose a twentieth. "
        "'penstock write-model train' makes our model unless asked for another.",
    )


def _gain_intervals(one: Compared) -> Claim:
    changed = [gain for gain in one.gains[ADVISED] if gain.high > gain.low]
    held = float(np.mean([g.low <= g.simulated <= g.high for g in changed])) if changed else 1.0
    above = float(np.mean([g.simulated > g.high for g in changed])) if changed else 0.0
    sure = [gain for gain in changed if gain.low >= 1]
    wrong = float(np.mean([g.simulated < 1 for g in sure])) if sure else 0.0
    return Claim(
        claim=f"Ours: intervals of gains hold for 85 to 95% of advice, {one.where}",
        by="penstock",
        paper="not asked",
        ours=f"{held:.1%} of {len(changed)} ({above:.1%} gain more); {len(sure)} are said to be "
        f"no slower, of which {wrong:.1%} are",
        holds=0.85 <= held <= 0.95,
        why=f"Rule: as the claim says. By means of {RUNS} simulated runs. The best of hundreds is "
        "likely one that the model errs on in its favour.",
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
