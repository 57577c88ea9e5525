"""One study in its directory: it is run there, and what it found is written there."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock import __version__
from penstock.errors import InputError
from penstock.files import make_directory
from penstock.progress import progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.campaign.campaign import Results
    from penstock.campaign.executors import Place
    from penstock.campaign.sizes import Size
    from penstock.report.findings import Findings
    from penstock.studies.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a study found, with the files of its figures and how it was made."""

    findings: "Findings"
    pictures: "Mapping[str, Path]"
    made: "Sequence[tuple[str, str]]"


def prepare(out: Path) -> None:
    """Make the directory, and see that it can be written to before any work is done."""
    make_directory(out)
    make_directory(out / "figures")


def finished(study: "Study", out: Path, *, size: "Size", seed: int) -> "Results | None":
    """Return the results there if the study has all, or None if there are none.

    InputError: there are some, but of another run, or not all.
    """
    from penstock.campaign.campaign import RESULTS, Results  # noqa: PLC0415
    from penstock.campaign.journal import Journal, rows_of  # noqa: PLC0415

    file = out / RESULTS
    if not file.exists():
        return None
    work = study.campaign(size=size, seed=seed)
    with Journal(file, work.header) as journal:
        wanted = {cell.id for cell in work.cells}
        entries = [journal.entries[cell] for cell in wanted & journal.entries.keys()]
    if len(entries) < len(wanted):
        raise InputError(f"{file} has {len(entries)} of {len(wanted)} cells")
    return Results(
        campaign=work,
        rows=rows_of(entries),
        seconds={entry.cell: entry.seconds for entry in entries},
    )


def run(
    study: "Study", out: Path, *, size: "Size", seed: int, place: "Place", label: str = ""
) -> "Results":
    """Run what is not there yet, with a bar that says how far it is."""
    from penstock.campaign import campaign  # noqa: PLC0415

    work = study.campaign(size=size, seed=seed)
    if work.alone and place.away:
        click.echo(f"{study.name}: measures time, and runs here instead of on others", err=True)
    done = 0

    def advance(steps: int) -> None:
        nonlocal done
        done += steps
        shown.advance(steps)

    with progress(label or study.name, len(work.cells)) as shown:
        try:
            executor = None if work.alone else place.executor()
            return campaign.run(work, out, executor=executor, advance=advance)
        except KeyboardInterrupt:
            click.echo(
                f"{study.name}: {done} of {len(work.cells)} cells are kept in "
                f"{out / campaign.RESULTS}; the same command goes on from there",
                err=True,
            )
            raise


def command(study: str, size: "Size", seed: int, *, only: str = "") -> str:
    """Return the command that makes a study, or of all `only` some, of that size and seed."""
    flags = ("" if size == "fast" else f" --{size}") + (f" --only {only}" if only else "")
    return f"penstock reproduce {study}{flags} --seed {seed} --out DIR"


def write(study: "Study", results: "Results", out: Path) -> Written:
    """Write results, claims, figures and the study's own page, and return what it found."""
    from penstock.campaign.sizes import CAUTION, QUICK  # noqa: PLC0415
    from penstock.report import html, plots, tables  # noqa: PLC0415

    size = results.campaign.size
    findings = study.findings(results)
    if size == QUICK:
        marked = [replace(one, source=f"{one.source}, quick") for one in findings.figures]
        findings = replace(findings, figures=marked)
    pictures = {
        figure.name: plots.save(figure, out / "figures")["svg"] for figure in findings.figures
    }
    made = (
        ("command", command(study.name, size, results.campaign.seed)),
        ("penstock", __version__),
        ("size", size),
        ("seed", str(results.campaign.seed)),
        ("cells", f"{len(results.campaign.cells)}, each a workload met by several policies"),
        ("computing time", f"{sum(results.seconds.values()):.0f} s over all cores"),
    )
    texts = {
        "results.csv": tables.rows_csv(results.rows),
        "claims.csv": tables.claims_csv(findings.claims),
        "claims.md": tables.claims_markdown(findings.claims),
        "report.html": html.page(findings, pictures, made=made, caution=CAUTION[size]),
    }
    for name, text in texts.items():
        write_text(out / name, text)
    return Written(findings=findings, pictures=pictures, made=made)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    from penstock.files import replacing  # noqa: PLC0415

    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
