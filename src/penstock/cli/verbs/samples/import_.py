"""penstock samples import: samples from the output of benchmarks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from penstock.cli.common.options import PATH
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.errors import InputError
from penstock.files import check_writable, reason
from penstock.learn.write_models import samples
from penstock.learn.write_models.samples import Sample
from penstock.learn.write_models.sources import archer, explorer, ior

MAX_BYTES = 256 * 2**20


@click.command(name="import", short_help="Import samples from the output of benchmarks.")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
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
    merged = samples.merge(imported)
    samples.write(out, merged)
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
    click.echo(f"\n{out}: from {', '.join(result['sources'])}")


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(
                f"{path} is too large for the output of a benchmark; give another file"
            )
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error
