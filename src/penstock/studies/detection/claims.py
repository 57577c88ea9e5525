"""The thesis' numbers, claims and figures on detection, and ours, of models of our observations."""

from collections.abc import Iterator, Mapping, Sequence

from penstock.learn.detection import features
from penstock.learn.detection.evaluation import Scores
from penstock.learn.detection.training import KINDS, FoldScores, Kind
from penstock.model.observation import PATTERNS
from penstock.report.findings import Bars, Claim, Figure
from penstock.studies.detection.comparison import Comparison
from penstock.studies.detection.sizes import PER_RUN, RUNS, SIZES
from penstock.studies.detection.times import Times
from penstock.studies.panels import bars
from penstock.studies.table import each
from penstock.studies.texts import captions_of, claims_of
from penstock.studies.verdicts import over

claim = claims_of("detection")

GOOD = 0.99
"""3.3: "0.99 accuracy for the training, testing, and validation datasets" """
STRONG = (0.5, 0.4, 0.6, 0.7)
"""Coefficients from which a relation may be called strong; the thesis prints none."""
RELATED = features.WEAK
"""A coefficient up to this counts as no relation."""
APART = (0.01, 0.005, 0.02)
"""How far apart accuracies may be that are called equivalent; the thesis' own are 0.0042."""
FASTER = (1, 10, 100)
FAST = 50e-6
SLOWER = 7.2
"""Times that the network's prediction takes of the others' (3.3)."""
NAMES = {"tree": "tree (CART)", "forest": "forest", "network": "network"}


def claims(compared: Comparison, times: Times) -> list[Claim]:
    """Return all claims."""
    return [*_metrics(compared), *_forests(compared), *_times(times), *_ours(compared, times)]


def _metrics(compared: Comparison) -> Iterator[Claim]:
    orders = {
        "classes in the order of the list in 3.2": compared.correlations,
        "in that of Table 3.2": compared.reordered,
    }
    by_order = {words: {one.feature: one.ordered for one in c} for words, c in orders.items()}
    ordered = next(iter(by_order.values()))
    yield claim.over(
        "fig-3-2-number-file-handles",
        f"Spearman {ordered['handles']:+.2f}",
        over(STRONG, "-{:g} or less", lambda limit: ordered["handles"] <= -limit),
    )
    yield claim.over(
        "fig-3-2-mean-offset-distance",
        each({words: one["distance"] for words, one in by_order.items()}, "{}: {:+.2f}", "; ")
        + f"; over size and clients {ordered['jump_per_client']:+.2f}",
        {words: one["distance"] > RELATED for words, one in by_order.items()},
        related=RELATED,
    )
    yield claim.over(
        "fig-3-2-smallest-mean-request",
        "; ".join(
            f"{words}: " + each({name: one[name] for name in SIZES}, "{} {:+.2f}")
            for words, one in by_order.items()
        ),
        {words: all(one[name] > RELATED for name in SIZES) for words, one in by_order.items()},
        related=RELATED,
        sizes=each(
            {name: f"{s / 1024:.0f} and {m / 1024:.0f}" for name, (s, m) in compared.sizes.items()}
        ),
        runs=RUNS,
        per_run=PER_RUN,
        changed="; ".join(
            f"{words} {_by_order(some)}" for words, some in compared.changed_sizes.items()
        ),
        larger=_by_order(compared.larger_if_shared),
    )

    tree = compared.thesis["tree"]
    tested, validated = tree.sklearn["testing"], tree.sklearn["validation"]
    yield claim("fig-3-4-tree-tells-998", _accuracy(tested), tested.accuracy >= GOOD)
    yield claim(
        "table-3-2-sensitivity-specificity-every",
        _by_class(tested.sensitivity) + " and " + _by_class(tested.specificity),
        min(*tested.sensitivity, *tested.specificity) >= GOOD,
        by_class=_by_class(SENSITIVITY),
        by_class_2=_by_class(SPECIFICITY),
    )
    yield claim("fig-3-4-tree-tells-patterns", _accuracy(validated), validated.accuracy >= GOOD)
    yield claim(
        "fig-3-5-tree-without-files",
        ", ".join(f"{part} {x:.4f}" for part, x in compared.spatiality_tree.items()),
        min(compared.spatiality_tree.values()) >= GOOD,
    )


def _forests(compared: Comparison) -> Iterator[Claim]:
    best = max(compared.layout, key=lambda one: one.kappa)
    yield claim(
        "table-3-3-forests-tell-three",
        _by_mtry({f.mtry: (f.accuracy, f.kappa) for f in compared.layout}),
        _all_good(compared.layout),
        by_mtry=_by_mtry({m: LAYOUT[m] for m in LAYOUT}),
        folds=compared.folds,
        best=best.mtry,
    )
    yield claim(
        "table-3-4-without-looking-files",
        _by_mtry({f.mtry: (f.accuracy, f.kappa) for f in compared.spatiality}),
        _all_good(compared.spatiality),
        by_mtry=_by_mtry({m: SPATIALITY[m] for m in SPATIALITY}),
        folds=compared.folds,
    )

    scores = compared.thesis["network"].sklearn
    yield claim(
        "fig-3-7-network-tells-training",
        ", ".join(f"{scores[part].accuracy:.4f}" for part in scores),
        min(scores.accuracy for scores in scores.values()) >= GOOD,
    )

    forest = compared.thesis["forest"].sklearn
    yield claim(
        "3-2-2-forest-of-best-mtry",
        ", ".join(f"{part} {forest[part].accuracy:.4f}" for part in ("training", "testing")),
        min(forest[part].accuracy for part in ("training", "testing")) >= GOOD,
    )
    accuracy = {
        words: {kind: models[kind].sklearn["validation"].accuracy for kind in KINDS}
        for words, models in (("the thesis' metrics", compared.thesis), ("ours", compared.ours))
    }
    judged = accuracy["the thesis' metrics"].values()
    yield claim.over(
        "3-3-all-three-kinds",
        each({words: each(a, "{} {:.4f}") for words, a in accuracy.items()}, "{}: {}", "; "),
        over(APART, "{:g} apart", lambda limit: max(judged) - min(judged) <= limit),
        kind=each(VALIDATED, "{} {:.4f}"),
    )


def _times(times: Times) -> Iterator[Claim]:
    train, exported = times.train, times.exported
    yield claim.over(
        "table-3-5-tree-trained-far",
        _seconds(train),
        over(
            FASTER,
            "{:g} times as fast or more",
            lambda times: times * train["tree"] < min(train["forest"], train["network"]),
        ),
        seconds=_seconds(TRAIN),
    )
    yield claim(
        "table-3-5-prediction-takes-milliseconds",
        f"scikit-learn {_seconds(times.sklearn)}; as exported {_seconds(exported)}",
        max(exported.values()) <= 10e-3,
        seconds=_seconds(PREDICT),
    )
    measured = {"scikit-learn": times.sklearn, "as exported": exported}
    slower = {
        name: by_kind["network"] / max(by_kind["tree"], by_kind["forest"])
        for name, by_kind in measured.items()
    }
    yield claim.over(
        "table-3-5-network-7-times",
        ", ".join(f"{name} {ratio:.2f}" for name, ratio in slower.items()),
        {name: SLOWER / 2 <= ratio <= 2 * SLOWER for name, ratio in slower.items()},
        seconds=_seconds(PREDICT),
        slower=SLOWER,
        forest=each(
            {name: by_kind["forest"] / by_kind["tree"] for name, by_kind in measured.items()},
            "{} {:.0f}",
        ),
        forest_printed=PREDICT["forest"] / PREDICT["tree"],
        tree=each(
            {name: by_kind["network"] / by_kind["tree"] for name, by_kind in measured.items()},
            "{} {:.1f}",
        ),
    )


def _ours(compared: Comparison, times: Times) -> Iterator[Claim]:
    several, everything = compared.shipped["validation"], compared.shipped["validation, all"]
    alone = everything.observations - several.observations
    yield claim(
        "ours-shipped-model-tells",
        f"{_accuracy(several)}, no answer for {sum(several.unknown)} of {several.observations} "
        "observations",
        several.accuracy >= GOOD and several.coverage >= GOOD,
    )
    yield claim(
        "ours-shipped-model-takes",
        f"{1e6 * times.shipped:.1f} us",
        times.shipped <= FAST,
    )
    yield claim(
        "ours-where-io-node",
        f"no answer for {sum(everything.unknown) - sum(several.unknown)} of {alone} observations, "
        f"accuracy of all answers {everything.accuracy:.4f}",
        everything.accuracy >= GOOD,
    )
    yield claim(
        "ours-shipped-model-tells-2",
        _coverage(compared.shipped_held_out),
        compared.shipped_held_out.accuracy >= GOOD,
    )
    yield claim(
        "ours-outside-grid-metrics",
        _kinds(compared.held_out),
        all(
            scores.right >= compared.held_out["the thesis' five"][kind].right
            for kind, scores in compared.held_out["chosen"].items()
        ),
        kinds=_kinds(compared.beyond),
        withheld=each(
            {kind: 1 - s.coverage for kind, s in compared.held_out["chosen"].items()}, "{} {:.0%}"
        ),
        always=_kinds(compared.held_out_sklearn),
    )


def _by_order(coefficients: Sequence[float]) -> str:
    """Return a coefficient by the list in 3.2 and by Table 3.2."""
    return " and ".join(f"{one:+.2f}" for one in coefficients)


def _accuracy(scores: Scores) -> str:
    return f"accuracy {scores.accuracy:.4f}, kappa {scores.kappa:.4f}"


def _coverage(scores: Scores) -> str:
    return f"{scores.accuracy:.3f} of {scores.coverage:.0%}"


def _kinds(outside: Mapping[str, Mapping[str, Scores]]) -> str:
    return "; ".join(
        f"{name}: " + ", ".join(f"{kind} {_coverage(s)}" for kind, s in kinds.items())
        for name, kinds in outside.items()
    )


def _by_class(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


def _by_mtry(by_mtry: Mapping[int, tuple[float, float]]) -> str:
    return "; ".join(f"mtry {m}: {a:.4f}, kappa {k:.4f}" for m, (a, k) in by_mtry.items())


def _all_good(folds: Sequence[FoldScores]) -> bool:
    return min(one.accuracy for one in folds) >= GOOD


def _seconds(by_kind: Mapping[Kind, float]) -> str:
    return ", ".join(f"{kind} {_time(value)}" for kind, value in by_kind.items())


def _time(seconds: float) -> str:
    if seconds >= 0.1:
        return f"{seconds:.2f} s"
    return f"{1e3 * seconds:.2g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} us"


SENSITIVITY = (1.0, 0.9972, 0.9977)
SPECIFICITY = (1.0, 0.9988, 0.9986)
"""Table 3.2."""
LAYOUT: Mapping[int, tuple[float, float]] = {
    2: (0.99801, 0.99701),
    3: (0.99818, 0.99728),
    5: (0.99733, 0.99600),
}
"""Accuracy and kappa by mtry, Table 3.3."""
SPATIALITY: Mapping[int, tuple[float, float]] = {
    2: (0.99827, 0.99614),
    3: (0.99823, 0.99606),
    5: (0.99765, 0.99478),
}
"""Table 3.4."""
TRAIN: Mapping[Kind, float] = {"tree": 0.369, "forest": 364.505, "network": 54.177}
PREDICT: Mapping[Kind, float] = {"tree": 1.371e-3, "forest": 1.363e-3, "network": 9.825e-3}
"""Seconds, Table 3.5."""
VALIDATED: Mapping[Kind, float] = {"tree": 0.9989, "network": 1 - 286 / 54210}
"""Accuracy on sizes outside the training set, 3.2.1 and 3.2.3; none for the forest."""


figure = captions_of("detection")

SHORT = ("FPP", "SC", "SS")


def figures(compared: Comparison, times: Times) -> Iterator[Figure]:
    """Return all figures."""
    correlations, y = compared.correlations, "Spearman's coefficient"
    names = [one.feature for one in correlations]
    ordered = {"ordered": [one.ordered for one in correlations]}
    by_class = {short: [one.by_class[k] for one in correlations] for k, short in enumerate(SHORT)}
    panels = [
        bars("With the class's number", names, ordered, y=y, colour_by="sign"),
        bars("With each class against the others", names, by_class, y=y, key=True),
    ]
    features = ", ".join(compared.features)
    yield figure("fig-3-2-correlations", panels, stacked=True, features=features)

    panels = [
        _stack(f"{kind}, {part}", compared.ours[kind].scores[part])
        for kind in KINDS
        for part in ("testing", "validation", "validation, all")
    ]
    yield figure("fig-3-4-confusion", panels, columns=3)

    panels = []
    for title, folds, by_mtry in (
        ("Table 3.3: three classes", compared.layout, LAYOUT),
        ("Table 3.4: strided or not", compared.spatiality, SPATIALITY),
    ):
        labels = [
            f"mtry {one.mtry}" if one.mtry == mtry else f"mtry {mtry} (ours {one.mtry})"
            for one, mtry in zip(folds, by_mtry, strict=True)
        ]
        heights = {
            "thesis": [100 * (1 - accuracy) for accuracy, _ in by_mtry.values()],
            "ours": [100 * (1 - one.accuracy) for one in folds],
        }
        panels.append(bars(title, labels, heights, y="wrong, per cent", key=True))
    yield figure("tables-3-3-3-4-forests", panels, folds=compared.folds, trees=compared.trees)

    train = {"thesis": [TRAIN[k] for k in KINDS], "ours": [times.train[k] for k in KINDS]}
    predict = {
        "thesis": [1e6 * PREDICT[k] for k in KINDS],
        "scikit-learn": [1e6 * times.sklearn[k] for k in KINDS],
        "exported": [1e6 * times.exported[k] for k in KINDS],
    }
    limit = {"bar": 50.0}
    panels = [
        bars("Training", KINDS, train, y="seconds", log_y=True, key=True),
        bars("One prediction", KINDS, predict, y="microseconds", lines=limit, log_y=True, key=True),
    ]
    yield figure("table-3-5-times", panels)


def _stack(title: str, scores: Scores) -> Bars:
    answers = {SHORT[k]: [row[k] for row in scores.matrix] for k in range(len(PATTERNS))}
    heights = {**answers, "unknown": scores.unknown}
    return bars(title, SHORT, heights, x="is", y="observations", stacked=True, key=True)
