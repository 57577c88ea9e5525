"""`penstock reproduce`: run a study, show its claims and figures.

The only module outside `studies` that imports it, and only when the verb runs.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.common import executor_options
from penstock.cli.common.options import Configuration
from penstock.cli.common.output import emit_json, emit_table
from penstock.cli.common.terminal import echo
from penstock.config import Loaded
from penstock.config.campaign import LOCAL
from penstock.errors import InputError
from penstock.progress import console

if TYPE_CHECKING:
    from penstock.campaign.sizes import Size
    from penstock.report.findings import Findings
    from penstock.studies.run_all import Summary

ALL = "all"


@click.command()
@click.argument("study", required=False)
@click.option("--full", is_flag=True, help="Run at the paper's size; takes up to several hours.")
@click.option(
    "--quick",
    is_flag=True,
    help="Run very few workloads, in seconds: a preview of the figures and claims, not a result.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Directory of results, figures and the report; created if missing.",
)
@executor_options.jobs("jobs")
@Configuration({"--on": "campaign.on"})
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="The seed of the random numbers.",
)
@click.option(
    "--only",
    metavar="STUDIES",
    help="With 'all': run only these studies, for example 'io-sets,packs'.",
)
@click.option("--list", "show_list", is_flag=True, help="List the studies.")
@click.option("--json", "as_json", is_flag=True, help="Print the claims as JSON.")
def reproduce(
    *,
    study: str | None,
    full: bool,
    quick: bool,
    out: Path | None,
    jobs: int | None,
    loaded: Loaded,
    seed: int,
    only: str | None,
    show_list: bool,
    as_json: bool,
) -> None:
    """Run a paper's evaluation and check its claims against the results.

    \b
    Examples:
      penstock reproduce --list
      penstock reproduce io-sets --out study                about a minute on two cores
      penstock reproduce io-sets --quick --out look         a preview, not a result
      penstock reproduce io-sets --full --out study-full    the paper's size
      penstock reproduce io-sets --out study --json         the claims, for machines
      penstock reproduce all --out report                   every study, and one report
      penstock reproduce all --quick --out look             a preview of all, in minutes
      penstock reproduce io-sets --full --out study --on tcp://head:8786    on Dask workers
      penstock reproduce io-sets --full --out study --on slurm --set campaign.jobs=20

    DIR gets cells.jsonl (one line per finished cell), results.csv, claims.csv and .md, figures and
    report.html, a page that needs no other file. After an interruption the same command continues
    where it stopped, with the same results wherever it runs. See docs/simulate/campaigns.md.

    With 'all' each study has a directory of its own in DIR. DIR/report.html has all figures and
    claims, and shows how many of the papers' claims hold, which do not, and why. If a study fails,
    the report says so and the other studies continue. With --only the report covers these studies
    and any that are finished in DIR, and lists the missing ones. See docs/simulate/report.md.
    """
    from penstock import studies  # noqa: PLC0415 - so that --help stays quick
    from penstock.campaign.sizes import size_of  # noqa: PLC0415

    if show_list:
        _list(as_json=as_json)
        return
    if study is None:
        raise InputError(f"name a study: {', '.join(studies.STUDIES)}; or {ALL}")
    if quick and full:
        raise InputError("--quick and --full are two sizes: choose one")
    if only and study != ALL:
        raise InputError(f"--only is for 'all'; to run {study} alone, leave it out")

    from penstock.studies import run_all, run_study  # noqa: PLC0415

    size = size_of(quick=quick, full=full)
    # One process per core already: threads of the linear algebra would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    selected = run_all.select(only) if study == ALL else [studies.load(study)]
    if out is None:
        raise InputError(f"say where the results go: penstock reproduce {study} --out DIR")
    if study != ALL and (out / run_all.SUMMARY).exists():
        raise InputError(f"{out} has the page of all studies; choose another --out")
    if study == ALL:
        where = loaded.config.campaign.on
        workers = run_all.Workers(
            lambda: executor_options.pool(loaded, jobs), remote="" if where == LOCAL else where
        )
        with executor_options.executor_errors():
            summary, interrupted = run_all.run_all(selected, out, workers, size=size, seed=seed)
        _show_all(summary, out, as_json=as_json)
        if interrupted:
            raise KeyboardInterrupt
        if summary.failed:
            raise click.ClickException(
                f"{len(summary.failed)} of {len(selected)} studies failed: "
                f"{', '.join(summary.failed)}; the same command tries them again and keeps the "
                "others"
            )
        return
    with executor_options.executor(loaded, jobs) as pool:
        run_study.prepare(out)
        results = run_study.run(selected[0], out, size=size, seed=seed, pool=pool)
    findings = run_study.write(selected[0], results, out).findings
    if as_json:
        emit_json([claim.as_data() for claim in findings.claims])
    else:
        _show(findings, out, size)


def _list(*, as_json: bool) -> None:
    from penstock import studies  # noqa: PLC0415

    titles = {name: studies.load(name).title for name in studies.STUDIES}
    if as_json:
        emit_json([{"study": name, "title": title} for name, title in titles.items()])
    else:
        emit_table(("study", "title"), list(titles.items()), text={"title"})


def _show(findings: "Findings", out: Path, size: "Size") -> None:
    from penstock.report import tables  # noqa: PLC0415

    if findings.table:
        head, *rows = findings.table
        emit_table(head, rows, title=findings.title)
        echo(f"{tables.tally(findings.claims)}.")
    else:
        echo(tables.claims_text(findings.claims, width=console().width), nl=False)
    echo(_report(out, size))


def _show_all(summary: "Summary", out: Path, *, as_json: bool) -> None:
    from penstock.report.all_studies import not_judged  # noqa: PLC0415
    from penstock.studies import run_all  # noqa: PLC0415

    if as_json:
        emit_json(run_all.as_data(summary))
        return
    columns = ("by", "claims", "hold", "differ", "depend", "not_judged", "apart")
    rows = [[str(row[column]) for column in columns] for row in run_all.tally(summary)]
    heads = ("whose", "claims", "hold", "do not", "depend", "not judged", "not counted")
    emit_table(heads, rows)
    for study in summary.studies:
        if study.findings is None:
            echo(f"{study.name}: {study.state}. {study.problem}")
    if sentence := not_judged(summary.studies):
        echo(sentence)
    if summary.absent:
        echo(f"Not asked for: {', '.join(summary.absent)}.")
    echo(_report(out, summary.size))


def _report(out: Path, size: "Size") -> str:
    """Return the last line: where the page is, and whether it is a preview only."""
    from penstock.campaign.sizes import CAUTION  # noqa: PLC0415

    caution = f" (a preview; {CAUTION[size]})" if CAUTION[size] else ""
    return f"report: {out / 'report.html'}{caution}"
