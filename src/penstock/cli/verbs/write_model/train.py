"""penstock write-model train: train a model on samples."""

from pathlib import Path

import click

from penstock import __version__
from penstock.cli.common.options import PATH
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.verbs.write_model import scores
from penstock.errors import InputError, error_prefix, unknown
from penstock.files import check_writable
from penstock.learn.write_models import dataset, model, samples, training
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.dataset import Dataset
from penstock.progress import progress

MOST_SCALES = 10
"""The most scales whose subsets are tried: about a thousand."""


@click.command(short_help="Train a model on samples.")
@click.argument("file", metavar="SAMPLES.csv", type=click.Path(path_type=Path))
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
@click.option(
    "--seed",
    metavar="N",
    type=int,
    default=1,
    show_default=True,
    help="The seed of random numbers.",
)
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
    result = scores.score(learned, larger, by_source=by_source) if larger else {}
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
    click.echo(f"{out}: {technique}, trained on {len(data):,} samples of {described.name}")
    if len(data) < len(smaller):
        click.echo(
            f"left out   {len(smaller) - len(data):,} that have not converged or take below 5 s"
        )
    if learned.origin:
        click.echo(f"note       {learned.origin}")
    if result:
        click.echo()
        scores.show(result, f"tested on {len(larger):,} larger writes")
    click.echo(f"\nnext: penstock write-model show {out}")


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
