"""penstock write-model: models of write times, trained on measured runs."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from penstock import __version__, units
from penstock.cli.common import options
from penstock.cli.common.options import PATH
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.errors import InputError, error_prefix, unknown
from penstock.files import check_writable
from penstock.learn.write_models import dataset, evaluation, model, samples, training
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.dataset import Dataset
from penstock.learn.write_models.evaluation import Scores
from penstock.learn.write_models.machine import OPERATIONS
from penstock.learn.write_models.model import TrainedModel
from penstock.learn.write_models.samples import Sample
from penstock.progress import progress

MOST_SCALES = 10
"""The most scales whose subsets are tried: about a thousand."""


@click.group(name="write-model", no_args_is_help=False)
def write_model() -> None:
    """Train, evaluate and show models of write times; docs/writes/write-models.md is the guide.

    \b
    Examples:
      penstock write-model train runs.csv --machine titan --out model.json
      penstock write-model evaluate model.json later.csv      test it on other samples
      penstock write-model show model.json                    show what costs time
      penstock predict --model model.json --nodes 256 --cores 16 --burst "100 MB"
    """


@write_model.command(short_help="Train a model on samples.")
@click.argument("file", metavar="SAMPLES.csv", type=PATH)
@click.option("--machine", metavar="NAME", required=True, help="The machine of the samples.")
@click.option("--out", metavar="MODEL.json", required=True, type=PATH, help="The file to write.")
@click.option(
    "--technique",
    metavar="NAME",
    default="extrapolating",
    show_default=True,
    help="extrapolating, or one of the paper's: linear, ridge, lasso, tree, forest.",
)
@click.option(
    "--up-to",
    metavar="NODES",
    type=click.IntRange(1),
    help="Train on writes of at most this many nodes, and test on the larger ones.",
)
@click.option(
    "--by-source",
    is_flag=True,
    help="Distinguish the sources of samples (such as libraries); 'predict' then takes --tag.",
)
@options.seed("seed")
@json_option
def train(
    *,
    file: Path,
    machine: str,
    out: Path,
    technique: str,
    up_to: int | None,
    by_source: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Train a model of write times on SAMPLES.csv; docs/formats/samples.md describes its columns.

    \b
    Examples:
      penstock write-model train runs.csv --machine titan --out model.json
      penstock write-model train runs.csv --machine ./ours.toml --out model.json --technique lasso
      penstock write-model train runs.csv --machine titan --out model.json --up-to 128

    'extrapolating' is a physical term over the machine's stages with boosted residuals, for scales
    that were not measured. It uses all samples, and gives less weight to uncertain ones. The
    paper's techniques are tried on every subset of the scales, and use only samples that have
    converged and take 5 s or more. Runs of the same write and source are one sample. The model is a
    JSON file of arrays, with an interval from samples that were held out.
    """
    check_writable(out, not_one_of=(file, machine if machine.endswith(".toml") else None))
    if technique not in training.TECHNIQUES:
        raise unknown("technique", technique, training.TECHNIQUES)
    described = machines.load(machine)
    merged = samples.merge(samples.read_for(described, file))
    smaller = [one for one in merged if up_to is None or one.write.nodes <= up_to]
    larger = [one for one in merged if up_to is not None and one.write.nodes > up_to]
    if up_to is not None and not larger:
        raise InputError(
            f"--up-to {up_to}: no sample has more nodes to test on; give a smaller one"
        )
    tags = [one.source for one in smaller] if by_source else None
    with error_prefix(file):
        data = dataset.Dataset.from_samples(described, smaller, tags)
        from_paper = technique != training.EXTRAPOLATING
        if from_paper:
            data = _as_the_paper(data)
        cells = 2 ** len(data.distinct_scales) - 1 if from_paper else 0
        with progress(f"training {technique}", cells) as bar:
            learned = training.train(data, technique, seed=seed, advance=bar.advance)
    learned.model.provenance.update({"of": file.name, "penstock": __version__})
    model.save(learned, out)
    result = _score(learned, larger, by_source=by_source) if larger else {}
    if as_json:
        emit_json(
            {
                "out": str(out),
                "machine": described.name,
                "technique": technique,
                "samples": len(data),
                "left_out": len(smaller) - len(data),
                "sources": learned.model.sources,
                "simulated": bool(learned.origin),
                "made": learned.model.provenance,
                "judged": result,
            }
        )
        return
    echo(f"{out}: {technique}, trained on {len(data):,} samples of {described.name}")
    if len(data) < len(smaller):
        echo(f"left out   {len(smaller) - len(data):,} that have not converged or take below 5 s")
    if learned.origin:
        echo(f"note       {learned.origin}")
    if result:
        echo()
        _show_scores(result, f"tested on {len(larger):,} larger writes")
    echo(f"\nnext: penstock write-model show {out}")


def _as_the_paper(data: Dataset) -> Dataset:
    """Return the samples that the paper trains on; InputError if too few or too many."""
    selected = data.converged().long_enough()
    if len(selected) < dataset.FEWEST:
        raise InputError(
            f"{len(selected)} of {len(data)} samples have converged and take 5 s or more, too few "
            "for the paper's techniques; repeat runs, or use the technique 'extrapolating'"
        )
    if (scales := len(selected.distinct_scales)) > MOST_SCALES:
        raise InputError(
            f"writes of {scales} numbers of nodes have too many subsets to try; "
            f"give {MOST_SCALES} or fewer, or use the technique 'extrapolating'"
        )
    return selected


@write_model.command(short_help="Test a model on samples.")
@click.argument("model_file", metavar="MODEL.json", type=PATH)
@click.argument("file", metavar="SAMPLES.csv", type=PATH)
@click.option(
    "--shortest",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=5.0,
    show_default=True,
    help="Ignore shorter writes (paper, IV-A): caches hide them.",
)
@json_option
def evaluate(*, model_file: Path, file: Path, shortest: float, as_json: bool) -> None:
    """Test a model on SAMPLES.csv, which it should not have been trained on.

    \b
    Examples:
      penstock write-model evaluate model.json later.csv
      penstock write-model evaluate model.json later.csv --shortest 0 --json

    The error is (predicted - measured) / measured. A 90% interval should contain about 90% of the
    samples; 'outside' counts samples that lie outside of the model's training data.
    """
    learned = model.load(model_file)
    measured = samples.read_for(learned.machine, file)
    selected = [one for one in measured if one.seconds >= shortest]
    if not selected:
        raise InputError(f"{file}: no sample takes {shortest:g} s; --shortest 0 uses all")
    with error_prefix(file):
        result = _score(learned, selected, by_source=learned.model.tags != [""])
    if as_json:
        emit_json({"machine": learned.machine.name, "judged": result})
    else:
        _show_scores(result, f"{learned.model.technique}, {learned.machine.name}")


@write_model.command(short_help="Show a model and what costs time.")
@click.argument("model_file", metavar="MODEL.json", type=PATH)
@json_option
def show(*, model_file: Path, as_json: bool) -> None:
    """Show a model: its training data, their range, and what costs time.

    \b
    Examples:
      penstock write-model show model.json
      penstock write-model show model.json --json

    A linear model (such as lasso) is shown by its features, each with its stage and the seconds per
    unit. An extrapolating model is shown by the rate of every stage, trees by how often they split
    on a feature.
    """
    learned = model.load(model_file)
    features = _features(learned)
    one = learned.model
    if as_json:
        emit_json(
            {
                "machine": one.machine.name,
                "technique": one.technique,
                "tags": one.tags,
                "sources": one.sources,
                "simulated": bool(learned.origin),
                "seen": one.range.axes,
                "coverage": one.interval.coverage,
                "factor": math.exp(one.interval.half),
                "made": one.provenance,
                "looks_at": features,
            }
        )
        return
    echo(f"{one.technique}, for {one.machine.name}")
    echo(f"sources    {', '.join(one.sources)}")
    if learned.origin:
        echo(f"note       {learned.origin}")
    for name, (low, high) in one.range.axes.items():
        shown = f"{dataset.show(name, low)} to {dataset.show(name, high)}"
        echo(f"range      {dataset.LABELS.get(name, name)}: {shown}")
    if one.tags != [""]:
        echo(f"tags       {', '.join(one.tags)}")
    echo(
        f"interval   {one.interval.coverage:.0%} within a factor of "
        f"{math.exp(one.interval.half):.2f}, wider outside of the training data"
    )
    for name, value in one.provenance.items():
        echo(f"{name}: {value}")
    echo()
    columns = tuple(features[0]) if features else ()
    emit_table(
        columns,
        [tuple(_plain(value) for value in row.values()) for row in features],
        text={"stage", "meaning"},
    )


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _features(learned: TrainedModel) -> list[dict[str, Any]]:
    """Return the features of a model, one row each."""
    one = learned.model
    if one.linear is not None:
        rows: list[dict[str, Any]] = [
            {
                "feature": feature.name,
                "stage": feature.stage,
                "meaning": feature.meaning,
                "seconds a unit": feature.coefficient,
            }
            for feature in learned.selected_features
        ]
        return [*rows, _intercept(one.linear.intercept)]
    if one.extrapolating is not None:
        return _rates(learned, one.extrapolating.term.level)
    splits = Counter(at for tree in one.trees for at in tree.feature if at >= 0)
    names = [*one.features, *(f"tag {tag}" for tag in one.tags[1:])]
    return [{"feature": names[at], "splits": count} for at, count in splits.most_common()]


def _intercept(value: float) -> dict[str, Any]:
    return {"feature": "1", "stage": "", "meaning": "constant", "seconds a unit": value}


def _rates(learned: TrainedModel, levels: list[float]) -> list[dict[str, Any]]:
    """Return the rate of every stage."""
    rows: list[dict[str, Any]] = []
    for stage, level in zip(learned.machine.stage, levels, strict=False):
        rate = math.exp(min(-level, 700.0))
        counted = stage.kind in OPERATIONS
        load = "operations" if counted else "bytes of the busiest"
        text = f"{rate:,.4g}/s" if counted else units.show_bandwidth(rate)
        rows.append({"stage": stage.name, "load": load, "pace": text})
    latency = units.show_seconds(math.exp(min(levels[-1], 700.0)))
    return [*rows, {"stage": "latency", "load": "none", "pace": latency}]


def _score(learned: TrainedModel, samples: Sequence[Sample], *, by_source: bool) -> dict[str, Any]:
    """Return the scores of a model by number of nodes, and of all samples together."""
    tags = [one.source if by_source else "" for one in samples]
    pairs = evaluation.predictions(learned, samples, tags)
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


def _show_scores(scores: dict[str, Any], title: str) -> None:
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
