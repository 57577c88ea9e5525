"""penstock samples simulate: training and test sets of a machine's simulated writes."""

import math
from pathlib import Path

import click

from penstock.cli.common import live_options
from penstock.cli.common.options import PATH
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.errors import InputError
from penstock.files import check_writable
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models import samples as files
from penstock.progress import progress
from penstock.sim.evaluate import write_samples


@click.command(short_help="Simulate runs of writes on a machine.")
@click.argument("machine", metavar="MACHINE")
@click.option("--out", metavar="FILE.csv", required=True, type=PATH, help="The file to write.")
@click.option(
    "--part",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="The part of the paper's number of samples.",
)
@click.option(
    "--nodes", metavar="N,...", help="Numbers of compute nodes; by default all of the paper's."
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="The seed of random numbers.",
)
@json_option
def simulate(
    *, machine: str, out: Path, part: float, nodes: str | None, seed: int, as_json: bool
) -> None:
    """Simulate the times of writes on MACHINE, a name ('cetus', 'titan') or a file (NAME.toml).

    \b
    Examples:
      penstock samples simulate cetus --out cetus.csv
      penstock samples simulate titan --part 0.1 --nodes 64,128 --out some.csv

    The writes are those of the paper's templates, repeated until their mean has converged. Those
    that never converge are kept: they are the paper's test set of that name. Every sample has the
    source "simulated", as nothing is measured (docs/formats/machines.md).
    """
    check_writable(out, not_one_of=[machine] if machine.endswith(".toml") else ())
    described = machines.load(machine)
    plan = write_samples.plan(described, part=part)
    scales = _scales(nodes, list(plan.converged))
    samples: dict[int, list[files.Sample]] = {}
    with progress("simulating", len(scales)) as bar:
        for scale in scales:
            samples[scale] = write_samples.samples(
                described, scale, plan.converged[scale], runs=plan.runs, seed=seed
            )
            bar.advance()
    files.write(out, [sample for several in samples.values() for sample in several])
    rows = [
        {
            "nodes": scale,
            "samples": len(several),
            "converged": sum(sample.converged(write_samples.RULE) for sample in several),
            "seconds": math.fsum(sample.seconds for sample in several) / len(several),
        }
        for scale, several in samples.items()
    ]
    unknown = 1 - math.fsum(r["converged"] for r in rows) / math.fsum(r["samples"] for r in rows)
    if as_json:
        result = {
            "machine": described.name,
            "source": files.SIMULATED,
            "seed": seed,
            "out": str(out),
        }
        emit_json(result | {"unconverged": unknown, "scales": rows})
        return
    columns = ("nodes", "samples", "converged", "mean seconds")
    emit_table(
        columns, [(*(str(v) for v in list(r.values())[:3]), f"{r['seconds']:.1f}") for r in rows]
    )
    click.echo(f"\n{out}: simulated, not measured; seed {seed}; {unknown:.1%} did not converge")


def _scales(text: str | None, valid: list[int]) -> list[int]:
    if text is None:
        return valid
    scales = list(dict.fromkeys(live_options.numbers(text, "--nodes")))
    for scale in scales:
        if scale not in valid:
            raise InputError(f"--nodes {scale}: the templates have {', '.join(map(str, valid))}")
    return scales
