"""penstock samples import: what others measured, as samples."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.errors import InputError
from penstock.files import check_writable, reason

if TYPE_CHECKING:
    from penstock.learn.write_models.samples import Sample

MOST = 256 * 2**20
"""Bytes of a file: more is not an output of these."""


@click.command(name="import", short_help="Samples of what others measured.")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--from",
    "form",
    type=click.Choice(["ior", "archer", "explorer"]),
    default="ior",
    show_default=True,
    help="What FILE is.",
)
@click.option("--machine", metavar="NAME", help="Where it ran; ARCHER's say so themselves.")
@click.option("--out", metavar="FILE.csv", required=True, type=click.Path(path_type=Path))
@click.option("--cores", metavar="N", type=click.IntRange(1), help="IOR's CSV: processes a node.")
@click.option(
    "--shared/--file-per-process", default=None, help="IOR's CSV: one file, or one a process."
)
@json_option
def bring(
    *,
    files: Sequence[Path],
    form: str,
    machine: str | None,
    out: Path,
    cores: int | None,
    shared: bool | None,
    as_json: bool,
) -> None:
    """Turn outputs of IOR, benchio or 'penstock explore' into samples.

    \b
    Examples:
      penstock samples import ior.txt --machine titan --out mine.csv
      penstock samples import sum.csv --machine titan --cores 16 --shared --out mine.csv
      penstock samples import curves/runs.jsonl --from explorer --machine here --out mine.csv

    Runs of the same write are one sample, also of several files.
    """
    from penstock.learn.write_models import samples as kept  # noqa: PLC0415
    from penstock.learn.write_models.sources import archer, explorer, ior  # noqa: PLC0415

    check_writable(out, not_one_of=files)
    if machine is None and form != "archer":
        raise InputError("where did it run? give --machine NAME")
    where = machine or archer.MACHINE
    found: list[Sample] = []
    read: dict[str, Path] = {}
    for path in files:
        content = _read(path)
        if (before := read.setdefault(content, path)) is not path:
            raise InputError(f"{path} has the same runs as {before}; give it once")
        match form:
            case "ior":
                layout = ior.Layout(cores=cores, shared=shared)
                found += ior.samples(content, str(path), machine=where, layout=layout)
            case "archer":
                found += archer.samples(content, str(path))
            case _:
                found += explorer.samples(content, str(path), machine=where)
    merged = kept.merge(found)
    kept.write(out, merged)
    converged = sum(sample.converged() for sample in merged)
    told: dict[str, Any] = {
        "samples": len(merged),
        "converged": converged,
        "runs": sum(len(sample.times) for sample in merged),
        "sources": sorted({sample.source for sample in merged}),
        "out": str(out),
    }
    if as_json:
        emit_json(told)
        return
    emit_table(("samples", "converged", "runs"), [tuple(str(v) for v in list(told.values())[:3])])
    click.echo(f"\n{out}: of {', '.join(told['sources'])}")


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MOST:
            raise InputError(f"{path} is larger than any such output; give another")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error
