"""penstock write-model train: a model, made of samples."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock import __version__
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.verbs.write_model import scores
from penstock.errors import InputError, unknown
from penstock.files import check_writable
from penstock.progress import progress

if TYPE_CHECKING:
    from penstock.learn.write_models.dataset import Dataset

MOST_SCALES = 10
"""Subsets of more scales than this are too many to try: a thousand."""


@click.command(short_help="Make a model of samples.")
@click.argument("file", metavar="SAMPLES.csv", type=click.Path(path_type=Path))
@click.option("--machine", metavar="NAME", required=True, help="Where they were measured.")
@click.option(
    "--out", metavar="MODEL.json", required=True, type=click.Path(path_type=Path), help="The model."
)
@click.option(
    "--technique",
    metavar="NAME",
    default="extrapolating",
    show_default=True,
    help="Or one of the paper's: linear, ridge, lasso, tree, forest.",
)
@click.option(
    "--up-to",
    metavar="NODES",
    type=click.IntRange(1),
    help="Learn from writes of so many nodes, and judge by the larger ones.",
)
@click.option(
    "--by-source",
    is_flag=True,
    help="Samples of other sources (libraries, say) differ; predict then takes --tag SOURCE.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of all draws.")
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
    """Learn what writes take from SAMPLES.csv, whose columns docs/formats/samples.md has.

    \b
    Examples:
      penstock write-model train runs.csv --machine titan --out model.json
      penstock write-model train runs.csv --machine ./ours.toml --out model.json --technique lasso
      penstock write-model train runs.csv --machine titan --out model.json --up-to 128

    'extrapolating' is a physical term over the machine's stages with boosted residuals, made for
    scales that were never measured. The paper's techniques are tried on every subset of the scales.
    Those see samples that have converged and take 5 s or more, as in the paper; ours sees all, and
    what is not well known counts less. Runs of the same write and source are one sample. The model
    is arrays in JSON, with an interval from samples that were left out.
    """
    from penstock.learn.write_models import dataset, model, samples, training  # noqa: PLC0415
    from penstock.learn.write_models import machine as machines  # noqa: PLC0415 - quick --help

    check_writable(out, not_one_of=(file, machine if machine.endswith(".toml") else None))
    if technique not in training.TECHNIQUES:
        raise unknown("technique", technique, training.TECHNIQUES)
    where = machines.load(machine)
    found = samples.merge(samples.read_for(where, file))
    seen = [one for one in found if up_to is None or one.write.nodes <= up_to]
    larger = [one for one in found if up_to is not None and one.write.nodes > up_to]
    if up_to is not None and not larger:
        raise InputError(f"--up-to {up_to}: no sample has more nodes to judge by; take a smaller")
    tags = [one.source for one in seen] if by_source else None
    try:
        known = dataset.Dataset.from_samples(where, seen, tags)
        if papers := technique != training.EXTRAPOLATING:
            known = _as_the_paper(known)
        cells = 2 ** len(known.distinct_scales) - 1 if papers else 0
        with progress(f"training {technique}", cells) as shown:
            learned = training.train(known, technique, seed=seed, advance=shown.advance)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    learned.model.provenance.update({"of": file.name, "penstock": __version__})
    model.save(learned, out)
    judged = scores.of(learned, larger, by_source=by_source) if larger else {}
    if as_json:
        emit_json(
            {
                "out": str(out),
                "machine": where.name,
                "technique": technique,
                "samples": len(known),
                "left_out": len(seen) - len(known),
                "sources": learned.model.sources,
                "simulated": bool(learned.origin),
                "made": learned.model.provenance,
                "judged": judged,
            }
        )
        return
    click.echo(f"{out}: {technique}, of {len(known):,} samples of {where.name}")
    if len(known) < len(seen):
        click.echo(
            f"left out   {len(seen) - len(known):,} that have not converged or take below 5 s"
        )
    if learned.origin:
        click.echo(f"note       {learned.origin}")
    if judged:
        click.echo()
        scores.show(judged, f"judged by {len(larger):,} larger writes")
    click.echo(f"\nwhat it says: penstock write-model show {out}")


def _as_the_paper(known: "Dataset") -> "Dataset":
    """Return the samples that the paper learns from; InputError where these are none to search."""
    from penstock.learn.write_models import dataset  # noqa: PLC0415

    kept = known.converged().long_enough()
    if len(kept) < dataset.FEWEST:
        raise InputError(
            f"{len(kept)} of {len(known)} samples have converged and take 5 s or more: too few for "
            "the paper's techniques; repeat runs, or take the technique 'extrapolating'"
        )
    if (scales := len(kept.distinct_scales)) > MOST_SCALES:
        raise InputError(
            f"writes of {scales} numbers of nodes have too many subsets to try; "
            f"give {MOST_SCALES} or fewer, or take the technique 'extrapolating'"
        )
    return kept
