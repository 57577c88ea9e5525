"""The figures of the study: correlations with the class, confusion, and times."""

from penstock.learn.detection.evaluation import Scores
from penstock.learn.detection.training import KINDS
from penstock.model.observation import PATTERNS
from penstock.report.findings import Bars, Figure
from penstock.studies.captions import load as captions_of
from penstock.studies.detection import thesis
from penstock.studies.detection.comparison import Comparison
from penstock.studies.panels import bars

figure = captions_of("detection")

SHORT = ("FPP", "SC", "SS")


def figures(compared: Comparison) -> list[Figure]:
    """Return all figures."""
    return [_correlations(compared), _confusion(compared), _folds(compared), _times(compared)]


def _correlations(compared: Comparison) -> Figure:
    correlations, y = compared.correlations, "Spearman's coefficient"
    names = [one.feature for one in correlations]
    ordered = {"ordered": [one.ordered for one in correlations]}
    by_class = {short: [one.by_class[k] for one in correlations] for k, short in enumerate(SHORT)}
    panels = [
        bars("With the class's number", names, ordered, y=y, colour_by="sign"),
        bars("With each class against the others", names, by_class, y=y, key=True),
    ]
    features = ", ".join(compared.features)
    return figure("fig-3-2-correlations", panels, stacked=True, features=features)


def _stack(title: str, scores: Scores) -> Bars:
    answers = {SHORT[k]: [row[k] for row in scores.matrix] for k in range(len(PATTERNS))}
    heights = {**answers, "unknown": scores.unknown}
    return bars(title, SHORT, heights, x="is", y="observations", stacked=True, key=True)


def _confusion(compared: Comparison) -> Figure:
    panels = [
        _stack(f"{kind}, {part}", compared.ours[kind].scores[part])
        for kind in KINDS
        for part in ("testing", "validation", "validation, all")
    ]
    return figure("fig-3-4-confusion", panels, columns=3)


def _folds(compared: Comparison) -> Figure:
    panels = []
    for title, folds, by_mtry in (
        ("Table 3.3: three classes", compared.layout, thesis.LAYOUT),
        ("Table 3.4: strided or not", compared.spatiality, thesis.SPATIALITY),
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
    return figure("tables-3-3-3-4-forests", panels, folds=compared.folds, trees=compared.trees)


def _times(compared: Comparison) -> Figure:
    ours = compared.ours
    train = {
        "thesis": [thesis.TRAIN[k] for k in KINDS],
        "ours": [ours[k].train for k in KINDS],
    }
    predict = {
        "thesis": [1e6 * thesis.PREDICT[k] for k in KINDS],
        "scikit-learn": [1e6 * ours[k].predict_sklearn for k in KINDS],
        "exported": [1e6 * ours[k].predict for k in KINDS],
    }
    limit = {"bar": 50.0}
    panels = [
        bars("Training", KINDS, train, y="seconds", log_y=True, key=True),
        bars("One prediction", KINDS, predict, y="microseconds", lines=limit, log_y=True, key=True),
    ]
    return figure("table-3-5-times", panels)
