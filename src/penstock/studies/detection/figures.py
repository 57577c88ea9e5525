"""The study's figures: what goes with the class, what is confused, and the times."""

from penstock.learn.detection.evaluation import Scores
from penstock.learn.detection.training import KINDS
from penstock.model.observation import PATTERNS
from penstock.report.findings import Bars, Figure, Reference, Series
from penstock.studies.detection import thesis
from penstock.studies.detection.comparison import Comparison

SHORT = ("FPP", "SC", "SS")
SOURCE = "Measured by our I/O nodes on an emulated file system"
STAND_INS = "CART stands in for C5.0, scikit-learn's perceptron for Keras"


def figures(compared: Comparison) -> list[Figure]:
    """Return all figures."""
    return [_correlations(compared), _confusion(compared), _folds(compared), _times(compared)]


def _correlations(compared: Comparison) -> Figure:
    found = compared.correlations
    names = [one.feature for one in found]
    panels = [
        Bars(
            title="With the class's number",
            x="",
            y="Spearman's coefficient",
            labels=names,
            series=[Series(label="ordered", x=(), y=[one.ordered for one in found])],
            colour_by="sign",
        ),
        Bars(
            title="With each class against the others",
            x="",
            y="Spearman's coefficient",
            labels=names,
            series=[
                Series(label=short, x=(), y=[one.by_class[k] for one in found])
                for k, short in enumerate(SHORT)
            ],
            key=True,
        ),
    ]
    return Figure(
        name="fig-3-2-correlations",
        title="Fig. 3.2: what goes with the access pattern",
        caption=f"{SOURCE}; requests of 32 and 256 KiB. Classes are numbered file per process, "
        f"strided, contiguous. Chosen of those without units: {', '.join(compared.chosen)}.",
        panels=panels,
        stacked=True,
        source="measured",
    )


def _stack(title: str, scores: Scores) -> Bars:
    said = [[row[k] for row in scores.matrix] for k in range(len(PATTERNS))]
    series = [Series(label=SHORT[k], x=(), y=column) for k, column in enumerate(said)]
    series.append(Series(label="unknown", x=(), y=scores.unknown))
    return Bars(
        title=title,
        x="is",
        y="observations",
        labels=SHORT,
        series=series,
        stacked=True,
        key=True,
    )


def _confusion(compared: Comparison) -> Figure:
    panels = [
        _stack(f"{kind}, {part}", compared.ours[kind].scores[part])
        for kind in KINDS
        for part in ("testing", "validation", "validation, all")
    ]
    return Figure(
        name="fig-3-4-confusion",
        title="Figs. 3.4 and 3.7: what is said of each class",
        caption=f"{SOURCE}; {STAND_INS}. Colours are what was said. FPP: file per process, SC: "
        "shared contiguous, SS: shared strided. Validation: request sizes never seen. 'All' has "
        "the runs with one client an I/O node, where FPP and SC are the same requests.",
        panels=panels,
        columns=3,
        source="measured",
    )


def _folds(compared: Comparison) -> Figure:
    panels = []
    for title, folded, theirs in (
        ("Table 3.3: three classes", compared.layout, thesis.LAYOUT),
        ("Table 3.4: strided or not", compared.spatiality, thesis.SPATIALITY),
    ):
        panels.append(
            Bars(
                title=title,
                x="",
                y="wrong, per cent",
                labels=[
                    f"mtry {one.mtry}" if one.mtry == mtry else f"mtry {mtry} (ours {one.mtry})"
                    for one, mtry in zip(folded, theirs, strict=True)
                ],
                series=[
                    Series(label="thesis", x=(), y=[100 * (1 - a) for a, _ in theirs.values()]),
                    Series(label="ours", x=(), y=[100 * (1 - one.accuracy) for one in folded]),
                ],
                key=True,
            )
        )
    return Figure(
        name="tables-3-3-3-4-forests",
        title="Tables 3.3 and 3.4: forests by the metrics that a split chooses from",
        caption=f"{SOURCE}; {compared.folds} folds, {compared.trees} trees. The thesis' are of "
        "Grid'5000, 25 folds and 500 trees.",
        panels=panels,
        source="measured",
    )


def _times(compared: Comparison) -> Figure:
    ours = compared.ours
    return Figure(
        name="table-3-5-times",
        title="Table 3.5: time to train and to predict",
        caption=f"{SOURCE}; {STAND_INS}. One fit, and single predictions; the exported forest has "
        "500 trees. The thesis' times are of another machine and of more observations.",
        panels=[
            Bars(
                title="Training",
                x="",
                y="seconds",
                labels=list(KINDS),
                series=[
                    Series(label="thesis", x=(), y=[thesis.TRAIN[k] for k in KINDS]),
                    Series(label="ours", x=(), y=[ours[k].train for k in KINDS]),
                ],
                log_y=True,
                key=True,
            ),
            Bars(
                title="One prediction",
                x="",
                y="microseconds",
                labels=list(KINDS),
                series=[
                    Series(label="thesis", x=(), y=[1e6 * thesis.PREDICT[k] for k in KINDS]),
                    Series(
                        label="scikit-learn",
                        x=(),
                        y=[1e6 * ours[k].predict_sklearn for k in KINDS],
                    ),
                    Series(label="exported", x=(), y=[1e6 * ours[k].predict for k in KINDS]),
                ],
                references=[Reference(y=50.0, label="bar")],
                log_y=True,
                key=True,
            ),
        ],
        source="measured",
    )
