"""`penstock reproduce`: a study's figures and its table of claims."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock import __version__
from penstock.cli import places, told
from penstock.cli.output import console, emit_json, emit_table, progress
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.report.findings import Findings
    from penstock.studies.campaign import Results, Study
    from penstock.studies.executors import Place
    from penstock.studies.sizes import Size


@click.command()
@click.argument("study", required=False)
@click.option("--full", is_flag=True, help="The paper's size; takes up to hours. Else minutes.")
@click.option(
    "--quick",
    is_flag=True,
    help="All figures and claims of very few workloads, in seconds: for a look, not to judge by.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where results, figures and the report go; made if it is not there.",
)
@places.cores
@places.on
@told.configured
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all random draws."
)
@click.option("--list", "show_list", is_flag=True, help="Show the studies there are.")
@click.option("--json", "as_json", is_flag=True, help="Print the claims as JSON.")
def reproduce(
    *,
    study: str | None,
    full: bool,
    quick: bool,
    out: Path | None,
    jobs: int | None,
    on: str | None,
    config_file: Path | None,
    settings: tuple[str, ...],
    seed: int,
    show_list: bool,
    as_json: bool,
) -> None:
    """Run a paper's evaluation and hold its claims against the results.

    \b
    Examples:
      penstock reproduce --list
      penstock reproduce io-sets --out study                about a minute on two cores
      penstock reproduce io-sets --full --out study-full    the paper's size
      penstock reproduce io-sets --out study --json         the claims, for machines
      penstock reproduce io-sets --full --out study --on tcp://head:8786    by Dask's workers
      penstock reproduce io-sets --full --out study --on slurm --set campaign.jobs=20

    DIR gets cells.jsonl (each finished piece of work), results.csv, claims.csv and .md, figures and
    report.html, a page that needs no other file. When it is interrupted, the same command goes on
    where it stopped, wherever it runs: the results are the same. docs/campaigns.md tells more.
    """
    from penstock import studies  # noqa: PLC0415 - so that --help stays quick
    from penstock.studies import sizes  # noqa: PLC0415

    if show_list:
        _list(as_json=as_json)
        return
    if study is None:
        raise InputError("name a study: " + ", ".join(studies.STUDIES))
    if quick and full:
        raise InputError("--quick and --full are two sizes: choose one")
    size = sizes.chosen(quick=quick, full=full)
    chosen = studies.load(study)
    if out is None:
        raise InputError(f"say where the results go: penstock reproduce {study} --out DIR")
    with places.opened(places.load(config_file, settings, on), jobs) as place:
        _prepare(out)
        results = _run(chosen, out, size=size, seed=seed, place=place)
    findings = chosen.findings(results)
    flag = "" if size == "fast" else f" --{size}"
    command = f"penstock reproduce {study}{flag} --seed {seed} --out DIR"
    _write(out, findings, results, command)
    if as_json:
        emit_json(findings.claims)
    else:
        _show(findings, out)


def _list(*, as_json: bool) -> None:
    from penstock import studies  # noqa: PLC0415

    titles = {name: studies.load(name).title for name in studies.STUDIES}
    if as_json:
        emit_json([{"study": name, "title": title} for name, title in titles.items()])
    else:
        emit_table(("study", "what it is"), list(titles.items()), text={"what it is"})


def _prepare(out: Path) -> None:
    """Make the directory, and see that it can be written to before any work is done."""
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        probe = out / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"--out {out} cannot be written to ({reason}); choose another") from error


def _run(study: "Study", out: Path, *, size: "Size", seed: int, place: "Place") -> "Results":
    from penstock.studies import campaign  # noqa: PLC0415

    work = study.campaign(size=size, seed=seed)
    if work.alone and place.away:
        click.echo(f"{study.name}: measures time, and runs here instead of on others", err=True)
    done = 0

    def advance(steps: int) -> None:
        nonlocal done
        done += steps
        shown.advance(steps)

    with progress(study.name, len(work.cells)) as shown:
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


def _write(out: Path, findings: "Findings", results: "Results", command: str) -> None:
    from penstock.report import html, plots, tables  # noqa: PLC0415

    pictures = {
        figure.name: plots.save(figure, out / "figures")["svg"] for figure in findings.figures
    }
    made = (
        ("command", command),
        ("penstock", __version__),
        ("size", results.campaign.size),
        ("seed", str(results.campaign.seed)),
        ("cells", f"{len(results.campaign.cells)}, each a workload met by several policies"),
        ("computing time", f"{sum(results.seconds.values()):.0f} s over all cores"),
    )
    texts = {
        "results.csv": tables.rows_csv(results.rows),
        "claims.csv": tables.claims_csv(findings.claims),
        "claims.md": tables.claims_markdown(findings.claims),
        "report.html": html.page(findings, pictures, made=made),
    }
    for name, text in texts.items():
        _write_text(out / name, text)


def _write_text(path: Path, text: str) -> None:
    from penstock.files import replacing  # noqa: PLC0415

    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _show(findings: "Findings", out: Path) -> None:
    from penstock.report import tables  # noqa: PLC0415

    if findings.table:
        head, *rows = findings.table
        emit_table(head, rows, title=findings.title)
        click.echo(f"{tables.tally(findings.claims)}.")
    else:
        click.echo(tables.claims_text(findings.claims, width=console().width), nl=False)
    click.echo(f"report: {out / 'report.html'}")
