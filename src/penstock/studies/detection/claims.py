"""The thesis' claims on detection, and ours, held against models of our observations."""

from collections.abc import Mapping, Sequence

from penstock.learn.detection.evaluation import Scores
from penstock.learn.detection.training import KINDS, FoldScores, Kind
from penstock.report.findings import Claim
from penstock.studies.claims import load as claims_of
from penstock.studies.detection import thesis
from penstock.studies.detection.comparison import Comparison

claim = claims_of("detection")

GOOD = 0.99
FAST = 50e-6
NAMES = {"tree": "tree (CART)", "forest": "forest", "network": "network"}


def claims(compared: Comparison) -> list[Claim]:
    """Return all claims."""
    return [
        *_metrics(compared),
        *_tree(compared),
        *_forests(compared),
        _network(compared),
        _all_kinds(compared),
        *_times(compared),
        *_ours(compared),
    ]


def _metrics(compared: Comparison) -> list[Claim]:
    ordered = {one.feature: one.ordered for one in compared.correlations}
    sizes = ("smallest", "size")
    return [
        claim(
            "fig-3-2-number-file-handles",
            f"Spearman {ordered['handles']:+.2f}",
            ordered["handles"] <= -0.5,
        ),
        claim(
            "fig-3-2-mean-offset-distance",
            f"Spearman {ordered['distance']:+.2f}; over size and clients "
            f"{ordered['jump_per_client']:+.2f}",
            ordered["distance"] >= 0.3,
        ),
        claim(
            "fig-3-2-smallest-mean-request",
            ", ".join(f"{name} {ordered[name]:+.2f}" for name in sizes),
            all(ordered[name] >= 0.3 for name in sizes),
        ),
    ]


def _tree(compared: Comparison) -> list[Claim]:
    tree = compared.thesis["tree"]
    tested, validated = tree.sklearn["testing"], tree.sklearn["validation"]
    return [
        claim("fig-3-4-tree-tells-998", _accuracy(tested), tested.accuracy >= GOOD),
        claim(
            "table-3-2-sensitivity-specificity-every",
            _by_class(tested.sensitivity) + " and " + _by_class(tested.specificity),
            min(*tested.sensitivity, *tested.specificity) >= GOOD,
            by_class=_by_class(thesis.SENSITIVITY),
            by_class_2=_by_class(thesis.SPECIFICITY),
        ),
        claim("fig-3-4-tree-tells-patterns", _accuracy(validated), validated.accuracy >= GOOD),
    ]


def _forests(compared: Comparison) -> list[Claim]:
    best = max(compared.layout, key=lambda one: one.kappa)
    return [
        claim(
            "table-3-3-forests-tell-three",
            _by_mtry({f.mtry: (f.accuracy, f.kappa) for f in compared.layout}),
            _all_good(compared.layout),
            by_mtry=_by_mtry({m: thesis.LAYOUT[m] for m in thesis.LAYOUT}),
            folds=compared.folds,
            best=best.mtry,
        ),
        claim(
            "table-3-4-without-looking-files",
            _by_mtry({f.mtry: (f.accuracy, f.kappa) for f in compared.spatiality}),
            _all_good(compared.spatiality),
            by_mtry=_by_mtry({m: thesis.SPATIALITY[m] for m in thesis.SPATIALITY}),
            folds=compared.folds,
        ),
    ]


def _network(compared: Comparison) -> Claim:
    scores = compared.thesis["network"].sklearn
    return claim(
        "fig-3-7-network-tells-training",
        ", ".join(f"{scores[part].accuracy:.4f}" for part in scores),
        min(scores.accuracy for scores in scores.values()) >= GOOD,
    )


def _all_kinds(compared: Comparison) -> Claim:
    accuracy = {kind: compared.ours[kind].sklearn["validation"].accuracy for kind in KINDS}
    return claim(
        "3-3-all-three-kinds",
        ", ".join(f"{kind} {value:.4f}" for kind, value in accuracy.items()),
        max(accuracy.values()) - min(accuracy.values()) <= 0.01,
        kind=", ".join((f"{kind} {value:.4f}" for kind, value in thesis.VALIDATED.items())),
    )


def _times(compared: Comparison) -> list[Claim]:
    train = {kind: compared.ours[kind].train for kind in KINDS}
    predict = {kind: compared.ours[kind].predict_sklearn for kind in KINDS}
    exported = {kind: compared.ours[kind].predict for kind in KINDS}
    return [
        claim(
            "table-3-5-tree-trained-far",
            _seconds(train),
            10 * train["tree"] <= min(train["forest"], train["network"]),
            seconds=_seconds(thesis.TRAIN),
        ),
        claim(
            "table-3-5-prediction-takes-milliseconds",
            f"scikit-learn {_seconds(predict)}; as exported {_seconds(exported)}",
            max(exported.values()) <= 10e-3,
            seconds=_seconds(thesis.PREDICT),
        ),
    ]


def _ours(compared: Comparison) -> list[Claim]:
    several, everything = compared.shipped["validation"], compared.shipped["validation, all"]
    alone = everything.observations - several.observations
    return [
        claim(
            "ours-shipped-model-tells",
            f"{_accuracy(several)}, of {several.observations} nothing is said of "
            f"{sum(several.unknown)}",
            several.accuracy >= GOOD and several.coverage >= GOOD,
        ),
        claim(
            "ours-shipped-model-takes",
            f"{1e6 * compared.shipped_seconds:.1f} us",
            compared.shipped_seconds <= FAST,
        ),
        claim(
            "ours-where-io-node",
            f"of {alone} observations unknown {sum(everything.unknown) - sum(several.unknown)}"
            f", accuracy of all that is said {everything.accuracy:.4f}",
            everything.accuracy >= GOOD,
        ),
        claim(
            "ours-shipped-model-tells-2",
            _coverage(compared.shipped_held_out),
            compared.shipped_held_out.accuracy >= GOOD,
        ),
        claim(
            "ours-outside-grid-metrics",
            _kinds(compared.held_out),
            all(
                scores.right >= compared.held_out["the thesis' five"][kind].right
                for kind, scores in compared.held_out["chosen"].items()
            ),
            kinds=_kinds(compared.beyond),
        ),
    ]


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
