"""The paper's numbers, its claims and ours, held against simulated machines and measured data."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from penstock.campaign.journal import Row
from penstock.learn.write_models.intervals import COVERAGE
from penstock.learn.write_models.regressors import PAPER_TECHNIQUES
from penstock.learn.write_models.training import EXTRAPOLATING
from penstock.report.findings import Claim
from penstock.sim.evaluate.write_samples import TEST_SCALES
from penstock.studies.table import each
from penstock.studies.texts import claims_of
from penstock.studies.verdicts import over
from penstock.studies.write_models import accuracy, interpretation, measured
from penstock.studies.write_models.adaptation import RUNS, Gain
from penstock.studies.write_models.cells import ADAPTED, ADVISED, BY_LASSO
from penstock.studies.write_models.comparison import NAMES, Compared, Floats, ModelErrors
from penstock.studies.write_models.unconverged import PRINTED

claim = claims_of("write-models")

LOSING = 0.95
"""A write that was advised and is slower than this part of its speed loses."""
ENOUGH = 20
"""Pieces of advice needed to judge how often intervals hold: of five, none is 85 to 95%."""
INACCURATE = (0.5, 0.25, 0.75)
"""A model with a smaller part of its samples within 0.3 is inaccurate; the paper has no limit."""
BELOW = (0.0, 0.05, 0.1)
"""How far below the paper's a part may be."""
BETTER: Mapping[str, tuple[float, float]] = {"cetus": (1.34, 52.6), "titan": (1.21, 1.62)}
"""IV-C1: base model's mean square error over the chosen one's, least and most."""
GAINS: Mapping[str, tuple[float, float]] = {"cetus": (1.1, 0.824), "titan": (1.15, 0.716)}
"""Figure 7: a gain, and the part of samples that have it or more."""
ABSTRACT = (0.15, 0.70)
"""Abstract: the least improvement by adaptation, and of which part of the samples."""
ACCURATE = 0.1
"""A write that the lasso predicts with at most this error is predicted well as it is."""
MOST = 10.0
"""Abstract: adaptation improves some writes as many times."""


def claims(compared: Sequence[Compared], rows: Sequence[Row]) -> Iterator[Claim]:
    """Return all claims."""
    medians = {NAMES[one.machine]: float(np.median(one.spreads)) for one in compared}
    yield claim(
        "fig-1-identical-runs-differ",
        each(medians, "{} median {:.2f}"),
        medians["Cetus"] < medians["Titan"],
    )
    for one in compared:
        yield _unconverged(one)
        yield from accuracy.claims(one)
        yield from _search(one)
        yield from _lasso_wins(one)
        yield from interpretation.claims(one)
        yield _failing(one)
    for one in compared:
        yield from _adapted(one)
        yield from _advised(one)
        yield from _ours(one)
    yield from archer(rows)
    yield from _tokio(rows)


def _unconverged(one: Compared) -> Claim:
    few, all_ = PRINTED[one.machine]
    total = sum(map(len, one.tests.values()))
    return claim(
        "iv-a-part-samples-200",
        f"{len(one.tests['unconverged'])} of {total} ({one.unconverged:.1%})",
        abs(one.unconverged - few / all_) <= 0.06,
        one=one.where,
        few=few,
        all_=all_,
        few_2=few / all_,
    )


def _search(one: Compared) -> Iterator[Claim]:
    low, high = BETTER[one.machine]
    better, by_default = (
        {name: _times(base[name], one.best[name]) for name in PAPER_TECHNIQUES}
        for base in (one.base, one.default)
    )
    searches = list(one.searched.items())
    times = "{0} {1[0]:.2f} and {1[1]:.2f}"
    verdicts = {
        words: all(min(both) > 1 for both in ratios.values())
        for words, ratios in (("options that validate best", better), ("default", by_default))
    }
    yield claim(
        "fig-4-chosen-models-beat",
        f"{each(better, times)}; by default options {each(by_default, times)}",
        next(iter(verdicts.values())),
        readings=verdicts,
        one=one.where,
        trained=one.trained,
        low=low,
        high=high,
        ranks=each(
            {name: rank_correlation(some["error"], some["converged"]) for name, some in searches},
            "{} {:.2f}",
        ),
        instead=each(
            {
                name: one.base[name].squares["unconverged"]
                / some["unconverged"][np.argmin(some["converged"])]
                for name, some in searches
            },
            "{} {:.2f}",
        ),
    )
    # Why: a subset that validates better than all scales is only sometimes better.
    texts, shares = [], []
    for name in PAPER_TECHNIQUES:
        searched, base = one.searched[name], one.base[name]
        validated = searched["error"] < base.result.error
        if validated.any():
            really = (searched["converged"] < base.squares["converged"])[validated]
            shares.append(float(really.mean()))
            texts.append(f"{name} {really.sum()} of {validated.sum()}")
    yield claim(
        "fig-4-why-what-validates-better",
        ", ".join(texts) + " subsets",
        min(shares, default=1.0) >= 0.5,
        one=one.where,
    )


def _times(base: ModelErrors, best: ModelErrors) -> tuple[float, float]:
    """Return the base model's mean square error over the best one's, for both parts."""
    converged, unconverged = (
        base.squares[part] / best.squares[part] for part in ("converged", "unconverged")
    )
    return converged, unconverged


def rank_correlation(one: Floats, other: Floats) -> float:
    """Return Spearman's rank correlation; equal values keep the order of their places."""
    ranks = [np.argsort(np.argsort(values, kind="stable")) for values in (one, other)]
    count = len(one)
    return 1 - 6 * float(((ranks[0] - ranks[1]) ** 2).sum()) / (count * (count**2 - 1))


def _lasso_wins(one: Compared) -> Iterator[Claim]:
    for part in ("converged", "unconverged"):
        squares = {name: one.best[name].squares[part] for name in PAPER_TECHNIQUES}
        first = min(squares, key=lambda name: squares[name])
        relative = {name: x / squares[first] for name, x in squares.items()}
        yield claim(
            "fig-4-five-lasso-most",
            each(relative, "{} {:.3g}"),
            first == "lasso",
            one=one.where,
            part=part,
            penalty=one.best["lasso"].result.options["penalty"],
            trained=one.trained,
            scales=len(one.best["lasso"].result.cell.scales),
            instead=one.searched["lasso"][part][np.argmin(one.searched["lasso"]["converged"])]
            / squares[first],
            more=each(
                {
                    reading: _first_draw(one, reading, part) / squares[first]
                    for reading in one.lasso
                },
                "{}: {:.3g}",
                "; ",
            ),
        )


def _first_draw(one: Compared, reading: str, part: str) -> float:
    """Return the mean square error of a reading's lasso on the test samples of the other models."""
    sets = TEST_SCALES if part == "converged" else (part,)
    sizes = np.array([len(one.tests[set_]) for set_ in sets])
    errors = np.array([one.lasso[reading][set_].squares[0] for set_ in sets])
    return float((sizes * errors).sum() / sizes.sum())


def _failing(one: Compared) -> Claim:
    shares = {
        name: max(errors.share(set_, 0.3) for set_ in ("medium", "large"))
        for name, errors in one.failing.items()
    }
    return claim(
        "iii-c1-svr-gaussian-processes",
        each(shares, "{} {:.0%} within 0.3"),
        all(share < INACCURATE[0] for share in shares.values()),
        readings=over(INACCURATE, "less than {:.0%}", lambda x: max(shares.values()) < x),
        one=one.where,
    )


def _ours(one: Compared) -> Iterator[Claim]:
    ours = {set_: accuracy.shares(one.ours, set_) for set_ in accuracy.SETS}
    best = {set_: max(j.share(set_, 0.3) for j in one.best.values()) for set_ in accuracy.SETS}
    covered = ", ".join(f"{x:.0%}" for x in one.ours.covered.values())
    yield claim(
        "ours-physical-term-boosted",
        "; ".join(f"{set_} {accuracy.both(shares)}" for set_, shares in ours.items())
        + f"; intervals of 90% for means hold {covered}",
        all(ours[set_][1] >= best[set_] - 0.02 for set_ in ("small", "medium", "large")),
        one=one.where,
    )
    held = {set_: one.ours.covered_runs[set_] for set_ in accuracy.SETS}
    sizes = {set_: len(one.tests[set_]) for set_ in accuracy.SETS}
    whole = sum(held[set_] * sizes[set_] for set_ in sizes) / sum(sizes.values())
    yield claim(
        "ours-intervals-90-one",
        f"{whole:.1%}; {each(held, '{} {:.0%}')}",
        0.85 <= whole <= 0.95,
        one=one.where,
    )


def archer(rows: Sequence[Row]) -> list[Claim]:
    """Return what models of at most 1,536 processes say of more, by kind of samples."""
    own = [row for row in rows if row["machine"] == measured.ARCHER]
    others = [_number(row, "others") for row in own if row["model"] == measured.FLOOR]
    floor = ", ".join(
        f"a job by the median of its configuration {_number(row, 'own'):.3f}, by that of the "
        f"others {_number(row, 'others'):.3f} ({_number(row, 'jobs'):g} jobs)"
        for row in own
        if row["model"] == measured.FLOOR
    )
    return [
        claim
        for kind in measured.KINDS
        for claim in _extrapolated(own, kind, floor, max(others, default=0.0))
    ]


def _extrapolated(rows: Sequence[Row], kind: str, floor: str, others: float) -> Iterator[Claim]:
    errors: dict[tuple[str, str], list[float]] = {}
    held: list[bool] = []
    by_nodes: dict[int, list[float]] = {}
    factors: list[float] = []
    inside = 1.0
    for row in (row for row in rows if row.get("samples") == kind):
        predicted, low, high, observed = (
            _number(row, n) for n in ("seconds", "low", "high", "observed")
        )
        own = errors.setdefault((str(row["model"]), str(row["tags"])), [])
        own.append(abs(predicted / observed - 1))
        if row["model"] == EXTRAPOLATING:
            held.append(low <= observed <= high)
            by_nodes.setdefault(int(_number(row, "nodes")), []).append(own[-1])
            factors.append(max(predicted / observed, observed / predicted))
            inside = _number(row, "inside")
    if not held:
        return
    medians: dict[str, float] = {}
    for (name, _), values in errors.items():
        medians[name] = min(float(np.median(values)), medians.get(name, np.inf))
    half = min(medians[name] for name in PAPER_TECHNIQUES) / 2
    yield claim(
        "archer-measured-has-most-half",
        f"{each(medians, '{} {:.3f}')}; floor: {floor}",
        all(2 * medians[EXTRAPOLATING] <= medians[name] for name in PAPER_TECHNIQUES),
        kind=kind,
        measured=measured.LARGEST,
        held=len(held),
        half=half,
        reason=(
            "The median of other measured jobs of the same configuration errs by more, "
            f"{others:.3f}."
            if half < others
            else "The median of other measured jobs of the same configuration errs by less, "
            f"{others:.3f}: a model could reach it, and ours does not."
        ),
        by_nodes=each(
            {nodes: np.median(some) for nodes, some in sorted(by_nodes.items())}, "{} {:.3f}"
        ),
    )
    covered = float(np.mean(held))
    yield claim(
        "archer-measured-intervals-90-hold",
        f"{covered:.1%}",
        0.85 <= covered <= 0.95,
        kind=kind,
        inside=inside,
        narrow=float(np.mean(np.array(factors) <= inside)),
        enough=float(np.quantile(factors, COVERAGE)),
    )


def _tokio(rows: Sequence[Row]) -> Iterator[Claim]:
    for row in (row for row in rows if row["machine"] == measured.TOKIO):
        usual, model, explained, floor = (
            _number(row, name) for name in ("usual", "known", "explained", "floor")
        )
        yield claim(
            "tokio-measured-what-known-beforehand",
            f"median error {model:.1%}, by the configuration's usual bandwidth "
            f"{usual:.1%}; with the load during the run {explained:.1%}; floor {floor:.1%}",
            model < usual,
            row=row["system"],
            number=_number(row, "runs"),
            reason=_load_before_and_during(usual, explained, floor),
        )


def _load_before_and_during(usual: float, explained: float, floor: float) -> str:
    """Say what the errors leave for the state of the file system to explain."""
    if usual <= floor:
        return "The usual bandwidth errs by no more than the floor: nothing is left to explain."
    return (
        f"Of the {usual - floor:.1%} by which the usual bandwidth errs more than the floor, the "
        f"load during the run explains {max(usual - explained, 0):.1%}; it is not known before."
    )


def _number(row: Row, name: str) -> float:
    return float(str(row[name]))


def _column(gains: Sequence[Gain], name: str) -> Floats:
    return np.array([getattr(gain, name) for gain in gains], float)


def _adapted(one: Compared) -> Iterator[Claim]:
    """Yield the claims on adaptation: the predicted gain, and the gain in the simulator."""
    times, paper = GAINS[one.machine]
    promised, simulated = (_column(one.gains[ADAPTED], of) for of in ("promised", "simulated"))
    error, typical = (_column(one.gains[ADAPTED], of) for of in ("error", "typical"))
    near, adapted = np.abs(error) <= ACCURATE, promised > 1
    ours = float(np.mean(promised >= times))
    yield claim(
        "fig-7-adaptation-promises-times",
        f"{ours:.1%} of {len(promised)}",
        ours >= paper,
        readings=over(BELOW, "at most {:g} below", lambda limit: ours >= paper - limit),
        times=times,
        one=one.where,
        other=paper,
    )
    most = float(np.mean(promised >= 1 + ABSTRACT[0]))
    yield claim(
        "abstract-15-of-70",
        f"{most:.1%} of {len(promised)}",
        most >= ABSTRACT[1],
        readings=over(BELOW, "at most {:g} below", lambda limit: most >= ABSTRACT[1] - limit),
        one=one.where,
        printed="; ".join(
            f"{NAMES[machine]} {part:.1%} with {gain:g} times or more"
            for machine, (gain, part) in GAINS.items()
        ),
    )
    yield claim(
        "abstract-ten-times",
        f"{promised.max():.1f} predicted, {simulated.max():.1f} simulated, of {len(promised)}",
        MOST / 2 <= promised.max() <= 2 * MOST,
        one=one.where,
        most=MOST,
        top=simulated[promised.argmax()],
        ranks=rank_correlation(promised, simulated),
        near=len(promised[near]),
        error=ACCURATE,
        largest=promised[near].max(initial=1.0),
        by_ours=_column(one.gains[ADVISED], "promised").max(),
    )
    yield claim(
        "ours-what-promised-what",
        f"{np.mean(simulated >= times):.1%} gain {times:g} or more, {np.mean(simulated < 1):.1%} "
        f"lose; median promised {np.median(promised):.2f}, simulated {np.median(simulated):.2f}",
        abs(np.median(simulated) / np.median(promised) - 1) <= 0.1,
        one=one.where,
        runs=RUNS,
        error=ACCURATE,
        near=_medians(promised[near], simulated[near]),
        far=_medians(promised[~near], simulated[~near]),
        best=np.median((promised / simulated)[adapted]) if adapted.any() else 1.0,
        typical=np.median(typical[adapted]) if adapted.any() else 1.0,
    )


def _medians(promised: Floats, simulated: Floats) -> str:
    if not promised.size:
        return "no write"
    return (
        f"promised {np.median(promised):.2f}, simulated {np.median(simulated):.2f} "
        f"({promised.size} writes)"
    )


def _advised(one: Compared) -> Iterator[Claim]:
    gains, by_lasso = one.gains[ADVISED], one.gains[BY_LASSO]
    losing = [gain for gain in gains if gain.simulated < LOSING]
    yield claim(
        "ours-advice-our-model",
        _gained(gains),
        _losing(gains) <= 0.1,
        one=one.where,
        gains=len(gains),
        losing=len(losing),
        unsure=sum(gain.low < 1 for gain in losing),
        followed=sum(gain.simulated < LOSING and gain.low >= 1 for gain in gains) / len(gains),
    )
    ours, lasso = (float(np.median(_column(some, "simulated"))) for some in (gains, by_lasso))
    yield claim(
        "ours-advice-our-model-2",
        f"lasso: {_gained(by_lasso)}; ours has a median of {ours:.2f}",
        ours >= lasso and _losing(gains) <= _losing(by_lasso),
        one=one.where,
    )
    changed = [gain for gain in gains if gain.high > gain.low]
    held = float(np.mean([g.low <= g.simulated <= g.high for g in changed])) if changed else 1.0
    above = float(np.mean([g.simulated > g.high for g in changed])) if changed else 0.0
    sure = [gain for gain in changed if gain.low >= 1]
    wrong = float(np.mean([g.simulated < 1 for g in sure])) if sure else 0.0
    yield claim(
        "ours-intervals-gains-hold",
        f"{held:.1%} of {len(changed)} ({above:.1%} gain more); {len(sure)} are said to be "
        f"no slower, of which {wrong:.1%} are",
        0.85 <= held <= 0.95 if len(changed) >= ENOUGH else None,
        one=one.where,
        runs=RUNS,
        enough=ENOUGH,
    )


def _losing(gains: Sequence[Gain]) -> float:
    return float(np.mean(_column(gains, "simulated") < LOSING))


def _gained(gains: Sequence[Gain]) -> str:
    promised, really = (_column(gains, name) for name in ("promised", "simulated"))
    return (
        f"{_losing(gains):.1%} lose a twentieth or more, {np.mean(really >= 1.1):.1%} gain 1.1 or "
        f"more; median promised {np.median(promised):.2f}, simulated {np.median(really):.2f}"
    )
