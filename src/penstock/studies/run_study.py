"""Run one study in its directory, and write its results, figures and page there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from penstock import __version__
from penstock.campaign import cells
from penstock.campaign.cells import RESULTS, Results
from penstock.campaign.executors import WorkerPool
from penstock.campaign.journal import Journal
from penstock.campaign.machine_load import MachineLoad
from penstock.campaign.sizes import CAUTION, QUICK, Size
from penstock.errors import InputError
from penstock.files import make_directory, replacing
from penstock.progress import message, progress
from penstock.report import html, plots, tables
from penstock.report.findings import Claim, Findings, Items
from penstock.studies.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The findings of a study, the files of its figures, and how the results were made."""

    findings: Findings
    pictures: Mapping[str, Path]
    provenance: Items


def prepare(out: Path) -> None:
    """Create the directory, so that one that cannot be written to fails before any work."""
    make_directory(out)
    make_directory(out / "figures")


def finished(study: Study, out: Path, *, size: Size, seed: int) -> Results | None:
    """Return the complete results in `out`, or None if it has no results.

    InputError: the results are of another run, or incomplete.
    """
    file = out / RESULTS
    if not file.exists():
        return None
    campaign = study.campaign(size=size, seed=seed)
    with Journal(file, campaign.header) as journal:
        entries = journal.finished(cell.id for cell in campaign.cells)
    if len(entries) < len(campaign.cells):
        raise InputError(f"{file} has {len(entries)} of {len(campaign.cells)} cells")
    return Results.from_entries(campaign, entries)


def run(
    study: Study,
    out: Path,
    *,
    size: Size,
    seed: int,
    pool: WorkerPool,
    label: str = "",
    say: Callable[[str], None] = message,
) -> Results:
    """Run the cells that `out` has no results of yet, with a progress bar."""
    campaign = study.campaign(size=size, seed=seed)
    if campaign.alone and pool.remote:
        say(f"{study.name}: measures time, and runs here instead of on others")
    done = 0

    def advance(steps: int) -> None:
        nonlocal done
        done += steps
        bar.advance(steps)

    with progress(label or study.name, len(campaign.cells)) as bar:
        try:
            executor = None if campaign.alone else pool.executor()
            return cells.run(campaign, out, executor=executor, advance=advance)
        except KeyboardInterrupt:
            say(
                f"{study.name}: {done} of {len(campaign.cells)} cells are kept in "
                f"{out / RESULTS}; the same command goes on from there"
            )
            raise


def command(study: str, size: Size, seed: int, *, only: str = "") -> str:
    """Return the command that repeats a run."""
    flags = ("" if size == "fast" else f" --{size}") + (f" --only {only}" if only else "")
    return f"penstock reproduce {study}{flags} --seed {seed} --out DIR"


def write(study: Study, results: Results, out: Path) -> Written:
    """Write results, claims, figures and the study's page."""
    campaign = results.campaign
    findings = study.findings(results)
    if results.machine is not None and not results.machine.quiet:
        claims = [without_verdict(claim, results.machine) for claim in findings.claims]
        findings = replace(findings, claims=claims)
    if campaign.size == QUICK:
        marked = [replace(one, source=f"{one.source}, quick") for one in findings.figures]
        findings = replace(findings, figures=marked)
    pictures = {
        figure.name: plots.save(figure, out / "figures")["svg"] for figure in findings.figures
    }
    provenance = (
        ("command", command(study.name, campaign.size, campaign.seed)),
        ("penstock", __version__),
        ("size", campaign.size),
        ("seed", str(campaign.seed)),
        ("cells", f"{len(campaign.cells)}, each a workload run under several policies"),
        ("computing time", f"{sum(results.seconds.values()):.0f} s over all cores"),
        *([("other load", _load(results.machine))] if results.machine is not None else []),
    )
    texts = {
        "results.csv": tables.rows_csv(results.rows),
        "claims.csv": tables.claims_csv(findings.claims),
        "claims.md": tables.claims_markdown(findings.claims, findings.left_out),
        "report.html": html.page(
            findings, pictures, provenance=provenance, caution=CAUTION[campaign.size]
        ),
    }
    if findings.tables:
        texts["tables.md"] = tables.text_tables_markdown(findings.tables)
    for name, text in texts.items():
        write_text(out / name, text)
    return Written(findings=findings, pictures=pictures, provenance=provenance)


def without_verdict(claim: Claim, machine: MachineLoad) -> Claim:
    """Return a claim on measured times as not judged, since the machine was busy."""
    if not claim.by_clock:
        return claim
    why = f"{claim.why} Not judged: the machine was busy ({_load(machine)})."
    return replace(claim, holds=None, why=why)


def _load(machine: MachineLoad) -> str:
    return (
        f"at most {machine.busy:.0%} of the cores in use by others around a measurement, "
        f"{machine.steal:.1%} stolen during one"
    )


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
