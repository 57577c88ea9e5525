"""penstock samples simulate: training and test sets of a machine's write path."""

import math
from pathlib import Path

import click

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.errors import InputError
from penstock.files import check_writable
from penstock.progress import progress


@click.command(short_help="Simulate runs of writes on a machine.")
@click.argument("machine", metavar="MACHINE")
@click.option(
    "--out", metavar="FILE.csv", required=True, type=click.Path(path_type=Path), help="The samples."
)
@click.option(
    "--part",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="Of the paper's number of samples.",
)
@click.option("--nodes", metavar="N,...", help="Compute nodes; else all of the paper's.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of all draws.")
@json_option
def simulate(
    *, machine: str, out: Path, part: float, nodes: str | None, seed: int, as_json: bool
) -> None:
    """Simulate what writes take on MACHINE, a name ('cetus', 'titan') or a file (NAME.toml).

    \b
    Examples:
      penstock samples simulate cetus --out cetus.csv
      penstock samples simulate titan --part 0.1 --nodes 64,128 --out some.csv

    Writes are those of the paper's templates, repeated until their mean is known. Those that never
    converge are kept: they are the test set of that name. Nothing here is measured, and every
    sample says so: its source is "simulated" (docs/formats/machines.md).
    """
    from penstock.learn.write_models import machine as machines  # noqa: PLC0415
    from penstock.learn.write_models import samples as files  # noqa: PLC0415
    from penstock.sim.evaluate import write_samples  # noqa: PLC0415

    check_writable(out, not_one_of=[machine] if machine.endswith(".toml") else ())
    found = machines.load(machine)
    plan = write_samples.plan(found, part=part)
    wanted = _scales(nodes, list(plan.converged))
    made: dict[int, list[files.Sample]] = {}
    with progress("simulating", len(wanted)) as shown:
        for scale in wanted:
            made[scale] = write_samples.samples(
                found, scale, plan.converged[scale], runs=plan.runs, seed=seed
            )
            shown.advance()
    files.write(out, [sample for several in made.values() for sample in several])
    rows = [
        {
            "nodes": scale,
            "samples": len(several),
            "converged": sum(sample.converged(write_samples.RULE) for sample in several),
            "seconds": math.fsum(sample.seconds for sample in several) / len(several),
        }
        for scale, several in made.items()
    ]
    unknown = 1 - math.fsum(r["converged"] for r in rows) / math.fsum(r["samples"] for r in rows)
    if as_json:
        told = {"machine": found.name, "source": files.SIMULATED, "seed": seed, "out": str(out)}
        emit_json(told | {"unconverged": unknown, "scales": rows})
        return
    columns = ("nodes", "samples", "converged", "mean seconds")
    emit_table(
        columns, [(*(str(v) for v in list(r.values())[:3]), f"{r['seconds']:.1f}") for r in rows]
    )
    click.echo(f"\n{out}: simulated, not measured; seed {seed}; {unknown:.1%} did not converge")


def _scales(text: str | None, known: list[int]) -> list[int]:
    if text is None:
        return known
    asked = list(dict.fromkeys(live_options.numbers(text, "--nodes")))
    for scale in asked:
        if scale not in known:
            raise InputError(f"--nodes {scale}: the templates have {', '.join(map(str, known))}")
    return asked
