"""Scores of a write model by number of nodes."""

from collections.abc import Sequence
from typing import Any

from penstock.cli.common.output import emit_table
from penstock.learn.write_models import evaluation
from penstock.learn.write_models.evaluation import Scores
from penstock.learn.write_models.model import TrainedModel
from penstock.learn.write_models.samples import Sample


def score(model: TrainedModel, samples: Sequence[Sample], *, by_source: bool) -> dict[str, Any]:
    """Return the scores of a model by number of nodes, and of all samples together."""
    tags = [one.source if by_source else "" for one in samples]
    pairs = evaluation.predictions(model, samples, tags)
    scales = sorted({one.write.nodes for one in samples})
    by_scale = {
        f"{scale:,} nodes": _figures(
            evaluation.scores([pair for pair in pairs if pair[0].write.nodes == scale])
        )
        for scale in scales
    }
    return {**by_scale, "all": _figures(evaluation.scores(pairs))}


def _figures(scores: Scores) -> dict[str, Any]:
    return {
        "samples": scores.samples,
        "median_error": scores.median_error,
        "within": {f"{limit:g}": share for limit, share in scores.within.items()},
        "covered": scores.covered,
        "coverage": scores.coverage,
        "outside": scores.outside,
    }


def show(scores: dict[str, Any], title: str) -> None:
    """Print scores as a table."""
    rows = [
        (
            name,
            f"{one['samples']:,}",
            f"{one['median_error']:.3f}",
            *(f"{share:.1%}" for share in one["within"].values()),
            f"{one['covered']:.1%}",
            f"{one['outside']:,}",
        )
        for name, one in scores.items()
    ]
    coverage = next(iter(scores.values()))["coverage"]
    limits = [f"within {limit}" for limit in next(iter(scores.values()))["within"]]
    covered = f"in the {coverage:.0%} interval"
    columns = ("", "samples", "median error", *limits, covered, "outside")
    emit_table(columns, rows, title=title)
