"""The paper's claims, and ours, held against simulated machines and measured data."""

from collections.abc import Iterator, Sequence

import numpy as np

from penstock.campaign.journal import Row
from penstock.learn.write_models.regressors import PAPER_TECHNIQUES
from penstock.learn.write_models.training import EXTRAPOLATING
from penstock.report.findings import Claim
from penstock.studies.claims import load as claims_of
from penstock.studies.write_models import gain_claims, measured, paper
from penstock.studies.write_models.comparison import NAMES, Compared, ModelErrors

claim = claims_of("write-models")

GOOD = 0.5
"""Of samples within 0.3, below which a model is called inaccurate."""


def claims(compared: Sequence[Compared], rows: Sequence[Row]) -> list[Claim]:
    """Return all claims."""
    result = [_variation(compared)]
    for one in compared:
        result += [_unconverged(one), *_accuracy(one)]
        result += [_search(one), _search_by_default(one), _search_chooses(one)]
    result += [_lasso_wins(one) for one in compared]
    result += [_selected(one) for one in compared]
    result += [_failing(one) for one in compared]
    for one in compared:
        result += [*gain_claims.claims(one), _ours(one), _runs(one)]
    return [*result, *archer(rows), *_tokio(rows)]


def _variation(compared: Sequence[Compared]) -> Claim:
    medians = {one.machine: float(np.median(one.spreads)) for one in compared}
    return claim(
        "fig-1-identical-runs-differ",
        ", ".join(f"{NAMES[name]} median {x:.2f}" for name, x in medians.items()),
        medians["cetus"] < medians["titan"],
    )


def _unconverged(one: Compared) -> Claim:
    few, all_ = paper.UNCONVERGED[one.machine]
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


def _accuracy(one: Compared) -> list[Claim]:
    lasso = one.best["lasso"]
    result = []
    for set_, other in paper.SHARES[one.machine].items():
        ours = (lasso.share(set_, 0.2), lasso.share(set_, 0.3))
        result.append(
            claim(
                "table-vii-chosen-lasso-set",
                _both(ours),
                all(o >= t - 0.1 for o, t in zip(ours, other, strict=True)),
                set_=set_,
                one=one.where,
                both=_both(other),
                one_2=len(one.tests[set_]),
                leaning=_leaning(one, set_),
            )
        )
    return result


def _leaning(one: Compared, set_: str) -> str:
    """Say which way the best lasso errs on a set, and what that of all scales reaches."""
    best, whole = one.best["lasso"], one.base["lasso"]
    shares = _both((whole.share(set_, 0.2), whole.share(set_, 0.3)))
    return (
        f"The median prediction is {np.median(best.errors[set_]):+.0%} off; the lasso of all "
        f"scales has {shares}. Both are made of {one.trained} samples of a simulated machine."
    )


def _search(one: Compared) -> Claim:
    low, high = paper.BETTER[one.machine]
    better = {name: _times(one.base[name], one.best[name]) for name in PAPER_TECHNIQUES}
    return claim(
        "fig-4-chosen-models-beat",
        ", ".join(f"{name} {_pair(times)}" for name, times in better.items()),
        all(min(times) >= 1 for times in better.values()),
        one=one.where,
        low=low,
        high=high,
    )


def _search_by_default(one: Compared) -> Claim:
    better = {name: _times(one.default[name], one.best[name]) for name in PAPER_TECHNIQUES}
    return claim(
        "fig-4-read-otherwise-they-beat-base",
        ", ".join(f"{name} {_pair(times)}" for name, times in better.items()),
        all(min(times) >= 1 for times in better.values()),
        one=one.where,
    )


def _search_chooses(one: Compared) -> Claim:
    """Say why: a subset that validates better than all scales is only sometimes better."""
    texts, shares = [], []
    for name in PAPER_TECHNIQUES:
        searched = one.searched[name]
        better = searched["converged"] < one.base[name].squares["converged"]
        validated = searched["error"] < one.base[name].result.error
        if validated.any():
            shares.append(float(better[validated].mean()))
            texts.append(f"{name} {better[validated].sum()} of {validated.sum()}")
    return claim(
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


def _pair(times: tuple[float, float]) -> str:
    return f"{times[0]:.2f} and {times[1]:.2f}"


def _lasso_wins(one: Compared) -> Claim:
    squares = {name: one.best[name].squares["converged"] for name in PAPER_TECHNIQUES}
    first = min(squares, key=lambda name: squares[name])
    return claim(
        "fig-4-five-lasso-most",
        ", ".join(f"{name} {x / squares[first]:.3g}" for name, x in squares.items()),
        first == "lasso",
        one=one.where,
    )


def _selected(one: Compared) -> Claim:
    scales, other = paper.FEATURES[one.machine]
    ours = [feature.name for feature, _ in one.features]
    same = [name for name in ours if name in other]
    result = one.best["lasso"].result
    return claim(
        "table-vi-load-skew-inside",
        f"trained on {', '.join(map(str, result.cell.scales))} nodes, lambda "
        f"{result.options['penalty']}: {', '.join(ours[:8])} "
        f"({len(same)} of these are the paper's)",
        bool(ours) and ours[0].startswith("s_"),
        one=one.where,
        scales=scales,
        other=", ".join(other),
    )


def _failing(one: Compared) -> Claim:
    shares = {
        name: max(errors.share(set_, 0.3) for set_ in ("medium", "large"))
        for name, errors in one.failing.items()
    }
    return claim(
        "iii-c1-svr-gaussian-processes",
        ", ".join(f"{name} {share:.0%} within 0.3" for name, share in shares.items()),
        all(share < GOOD for share in shares.values()),
        one=one.where,
    )


def _ours(one: Compared) -> Claim:
    ours = {set_: (one.ours.share(set_, 0.2), one.ours.share(set_, 0.3)) for set_ in paper.SETS}
    best = {set_: max(j.share(set_, 0.3) for j in one.best.values()) for set_ in paper.SETS}
    covered = ", ".join(f"{x:.0%}" for x in one.ours.covered.values())
    return claim(
        "ours-physical-term-boosted",
        "; ".join(f"{set_} {_both(shares)}" for set_, shares in ours.items())
        + f"; intervals of 90% for means hold {covered}",
        all(ours[set_][1] >= best[set_] - 0.02 for set_ in ("small", "medium", "large")),
        one=one.where,
    )


def _runs(one: Compared) -> Claim:
    held = one.ours.covered_runs
    sizes = {set_: len(one.tests[set_]) for set_ in paper.SETS}
    whole = sum(held[set_] * sizes[set_] for set_ in sizes) / sum(sizes.values())
    return claim(
        "ours-intervals-90-one",
        f"{whole:.1%}; " + ", ".join(f"{set_} {held[set_]:.0%}" for set_ in sizes),
        0.85 <= whole <= 0.95,
        one=one.where,
    )


def archer(rows: Sequence[Row]) -> list[Claim]:
    """Return what models of at most 1,536 processes say of more, by kind of samples."""
    own = [row for row in rows if row["machine"] == measured.ARCHER]
    floors = [row for row in own if row["model"] == measured.FLOOR]
    return [claim for kind in measured.KINDS for claim in _extrapolated(own, kind, floors)]


def _extrapolated(rows: Sequence[Row], kind: str, floors: Sequence[Row]) -> Iterator[Claim]:
    errors: dict[tuple[str, str], list[float]] = {}
    held: list[bool] = []
    for row in (row for row in rows if row.get("samples") == kind):
        predicted, low, high, observed = (
            _number(row, n) for n in ("seconds", "low", "high", "observed")
        )
        errors.setdefault((str(row["model"]), str(row["tags"])), []).append(
            abs(predicted / observed - 1)
        )
        if row["model"] == EXTRAPOLATING:
            held.append(low <= observed <= high)
    if not held:
        return
    medians: dict[str, float] = {}
    for (name, _), values in errors.items():
        medians[name] = min(float(np.median(values)), medians.get(name, np.inf))
    floor = ", ".join(
        f"a job by the median of its configuration {_number(row, 'own'):.3f}, by that of the "
        f"others {_number(row, 'others'):.3f} ({_number(row, 'jobs'):g} jobs)"
        for row in floors
    )
    yield claim(
        "archer-measured-has-most-half",
        ", ".join(f"{name} {x:.3f}" for name, x in medians.items()) + f"; floor: {floor}",
        all(2 * medians[EXTRAPOLATING] <= medians[name] for name in PAPER_TECHNIQUES),
        kind=kind,
        measured=measured.LARGEST,
        held=len(held),
    )
    covered = float(np.mean(held))
    yield claim(
        "archer-measured-intervals-90-hold", f"{covered:.1%}", 0.85 <= covered <= 0.95, kind=kind
    )


def _tokio(rows: Sequence[Row]) -> list[Claim]:
    result = []
    for row in rows:
        if row["machine"] != measured.TOKIO:
            continue
        usual, model, explained, floor = (
            _number(row, name) for name in ("usual", "known", "explained", "floor")
        )
        result.append(
            claim(
                "tokio-measured-what-known-beforehand",
                f"median error {model:.1%}, by the configuration's usual bandwidth "
                f"{usual:.1%}; with the load during the run {explained:.1%}; floor {floor:.1%}",
                model < usual,
                row=row["system"],
                number=_number(row, "runs"),
            )
        )
    return result


def _number(row: Row, name: str) -> float:
    return float(str(row[name]))


def _both(shares: tuple[float, float]) -> str:
    return f"{shares[0]:.1%} and {shares[1]:.1%}"
