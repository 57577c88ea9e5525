"""penstock samples: samples of write times, simulated or imported."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from penstock.cli.common import live_options
from penstock.cli.common.options import PATH
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.errors import InputError
from penstock.files import check_writable, reason
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models import samples as sample_files
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.sources import archer, explorer, ior
from penstock.progress import progress
from penstock.sim.evaluate import write_samples


@click.group(no_args_is_help=False)
def samples() -> None:
    """Collect samples of write times, for write models; docs/formats/samples.md is the guide.

    \b
    Examples:
      penstock samples simulate titan --part 0.02 --out titan.csv     simulated, and marked so
      penstock samples import ior.txt --machine titan --out mine.csv  from the output of IOR
      penstock samples import curves/runs.jsonl --from explorer --machine here --out mine.csv
    """


@samples.command(short_help="Simulate runs of writes on a machine.")
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
    by_scale: dict[int, list[Sample]] = {}
    with progress("simulating", len(scales)) as bar:
        for scale in scales:
            by_scale[scale] = write_samples.samples(
                described, scale, plan.converged[scale], runs=plan.runs, seed=seed
            )
            bar.advance()
    sample_files.write(out, [sample for several in by_scale.values() for sample in several])
    rows = [
        {
            "nodes": scale,
            "samples": len(several),
            "converged": sum(sample.converged(write_samples.RULE) for sample in several),
            "seconds": math.fsum(sample.seconds for sample in several) / len(several),
        }
        for scale, several in by_scale.items()
    ]
    unknown = 1 - math.fsum(r["converged"] for r in rows) / math.fsum(r["samples"] for r in rows)
    if as_json:
        result = {
            "machine": described.name,
            "source": sample_files.SIMULATED,
            "seed": seed,
            "out": str(out),
        }
        emit_json(result | {"unconverged": unknown, "scales": rows})
        return
    columns = ("nodes", "samples", "converged", "mean seconds")
    emit_table(
        columns, [(*(str(v) for v in list(r.values())[:3]), f"{r['seconds']:.1f}") for r in rows]
    )
    echo(f"\n{out}: simulated, not measured; seed {seed}; {unknown:.1%} did not converge")


def _scales(text: str | None, valid: list[int]) -> list[int]:
    if text is None:
        return valid
    scales = list(dict.fromkeys(live_options.numbers(text, "--nodes")))
    for scale in scales:
        if scale not in valid:
            raise InputError(f"--nodes {scale}: the templates have {', '.join(map(str, valid))}")
    return scales


MAX_BYTES = 256 * 2**20


@samples.command(name="import", short_help="Import samples from the output of benchmarks.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@click.option(
    "--from",
    "form",
    type=click.Choice(["ior", "archer", "explorer"]),
    default="ior",
    show_default=True,
    help="The program that wrote FILE.",
)
@click.option("--machine", metavar="NAME", help="The machine of the runs; not needed for archer.")
@click.option("--out", metavar="FILE.csv", required=True, type=PATH, help="The file to write.")
@click.option("--cores", metavar="N", type=click.IntRange(1), help="IOR's CSV: processes per node.")
@click.option(
    "--shared/--file-per-process",
    default=None,
    help="IOR's CSV: one shared file, or one file per process.",
)
@json_option
def import_samples(
    *,
    files: Sequence[Path],
    form: str,
    machine: str | None,
    out: Path,
    cores: int | None,
    shared: bool | None,
    as_json: bool,
) -> None:
    """Convert the output of IOR, benchio or 'penstock explore' to samples.

    \b
    Examples:
      penstock samples import ior.txt --machine titan --out mine.csv
      penstock samples import sum.csv --machine titan --cores 16 --shared --out mine.csv
      penstock samples import curves/runs.jsonl --from explorer --machine here --out mine.csv

    Runs of the same write become one sample, even if they are in several files.
    """
    check_writable(out, not_one_of=files)
    if machine is None and form != "archer":
        raise InputError("give the machine of the runs with --machine NAME")
    name = machine or archer.MACHINE
    imported: list[Sample] = []
    sources: dict[str, Path] = {}
    for path in files:
        content = _read(path)
        if (before := sources.setdefault(content, path)) is not path:
            raise InputError(f"{path} has the same runs as {before}; give it once")
        match form:
            case "ior":
                layout = ior.Layout(cores=cores, shared=shared)
                imported += ior.samples(content, str(path), machine=name, layout=layout)
            case "archer":
                imported += archer.samples(content, str(path))
            case _:
                imported += explorer.samples(content, str(path), machine=name)
    merged = sample_files.merge(imported)
    sample_files.write(out, merged)
    converged = sum(sample.converged() for sample in merged)
    result: dict[str, Any] = {
        "samples": len(merged),
        "converged": converged,
        "runs": sum(len(sample.times) for sample in merged),
        "sources": sorted({sample.source for sample in merged}),
        "out": str(out),
    }
    if as_json:
        emit_json(result)
        return
    emit_table(("samples", "converged", "runs"), [tuple(str(v) for v in list(result.values())[:3])])
    echo(f"\n{out}: from {', '.join(result['sources'])}")


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(
                f"{path} is too large for the output of a benchmark; give another file"
            )
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error
