"""Every study, one after the other, each in a directory of its own, and one page of all."""

import os
import platform
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock import __version__
from penstock.cli import one_study, places
from penstock.cli.output import emit_json, emit_table
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.config import Loaded
    from penstock.report.summary import Studied
    from penstock.studies.campaign import Study
    from penstock.studies.executors import Place
    from penstock.studies.sizes import Size

PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")
ERROR = "error.txt"


def asked(only: str | None) -> "list[Study]":
    """Return the studies of a list of names, or all, in the order in which they are run."""
    from penstock import studies  # noqa: PLC0415 - so that --help stays quick

    names = [name.strip() for name in only.split(",")] if only is not None else studies.IN_ORDER
    found = {name: studies.load(name) for name in names}
    return [found[name] for name in studies.IN_ORDER if name in found]


def reproduce_all(
    chosen: "Sequence[Study]",
    out: Path,
    loaded: "Loaded",
    *,
    size: "Size",
    seed: int,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Run studies, keep what each has, and write one page, whatever becomes of any of them."""
    one_study.prepare(out)
    (out / "figures").rmdir()
    for study in chosen:
        _check(study, out / study.name, size=size, seed=seed)
    began = time.time()
    told: list[Studied] = []
    interrupted = False
    with ExitStack() as whole:
        kept = whole.enter_context(places.opened(loaded, jobs)) if _away(loaded) else None
        for number, study in enumerate(chosen, start=1):
            label = f"[{number}/{len(chosen)}] {study.name}"
            try:
                # A place of this machine for each: one that breaks takes no other with it.
                with ExitStack() as own:
                    place = kept or own.enter_context(places.opened(loaded, jobs))
                    told.append(
                        _done(study, out / study.name, place, size=size, seed=seed, label=label)
                    )
            except KeyboardInterrupt:
                interrupted = True
                told.append(_unfinished(study, size, seed, "interrupted"))
                told += [_unfinished(one, size, seed, "not run") for one in chosen[number:]]
                break
            except Exception as error:
                told.append(_failed(study, out / study.name, size, seed, error))
    _write(out, told, size=size, seed=seed, began=began)
    if as_json:
        emit_json(_as_data(told))
    else:
        _show(told, out)
    if interrupted:
        raise KeyboardInterrupt
    failed = [study.name for study in told if study.state == "failed"]
    if failed:
        raise click.ClickException(
            f"{len(failed)} of {len(chosen)} studies failed: {', '.join(failed)}; the same "
            "command tries them again and keeps the others"
        )


def _away(loaded: "Loaded") -> bool:
    from penstock.config.campaign import LOCAL  # noqa: PLC0415

    return loaded.config.campaign.on != LOCAL


def _check(study: "Study", out: Path, *, size: "Size", seed: int) -> None:
    """Refuse a directory with results of another run before any work is done."""
    from penstock.studies.campaign import RESULTS  # noqa: PLC0415
    from penstock.studies.journal import Journal  # noqa: PLC0415

    if (out / RESULTS).exists():
        with Journal(out / RESULTS, study.campaign(size=size, seed=seed).header):
            pass


def _done(
    study: "Study", out: Path, place: "Place", *, size: "Size", seed: int, label: str
) -> "Studied":
    from penstock.report.summary import Studied  # noqa: PLC0415

    click.echo(label, err=True)
    one_study.prepare(out)
    results = one_study.run(study, out, size=size, seed=seed, place=place, label=label)
    written = one_study.write(study, results, out)
    (out / ERROR).unlink(missing_ok=True)
    return Studied(
        name=study.name,
        title=study.title,
        command=one_study.command(study.name, size, seed),
        findings=written.findings,
        pictures=written.pictures,
        made=written.made,
        cells=len(results.campaign.cells),
        seconds=sum(results.seconds.values()),
    )


def _unfinished(study: "Study", size: "Size", seed: int, state: str) -> "Studied":
    from penstock.report.summary import Studied  # noqa: PLC0415

    return Studied(
        name=study.name,
        title=study.title,
        command=one_study.command(study.name, size, seed),
        state="interrupted" if state == "interrupted" else "not run",
        problem="the same command goes on from what is kept" if state == "interrupted" else "",
    )


def _failed(study: "Study", out: Path, size: "Size", seed: int, error: Exception) -> "Studied":
    """Return that a study failed; all that is known of an error of ours is kept in a file."""
    from penstock.report.summary import Studied  # noqa: PLC0415

    said = error.format_message() if isinstance(error, click.ClickException) else str(error)
    if not isinstance(error, InputError | click.ClickException):
        said = f"{type(error).__name__}: {said}"
        out.mkdir(parents=True, exist_ok=True)
        one_study.write_text(out / ERROR, "".join(traceback.format_exception(error)))
    click.echo(f"{study.name} failed: {said}; the others go on", err=True)
    return Studied(
        name=study.name,
        title=study.title,
        command=one_study.command(study.name, size, seed),
        state="failed",
        problem=said,
    )


def _write(out: Path, told: "Sequence[Studied]", *, size: "Size", seed: int, began: float) -> None:
    from penstock.report import tables, whole  # noqa: PLC0415
    from penstock.studies.sizes import CAUTION  # noqa: PLC0415

    now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    made = (
        ("command", one_study.command("all", size, seed)),
        ("penstock", __version__),
        ("python", platform.python_version()),
        *((name, metadata.version(name)) for name in PACKAGES),
        ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
        (
            "load",
            f"{os.getloadavg()[2]:.1f}, mean of the last 15 minutes; what is measured by the clock "
            "depends on it",
        ),
        ("size", size),
        ("seed", str(seed)),
        ("cells", str(sum(study.cells for study in told))),
        ("computing time", f"{sum(study.seconds for study in told):.0f} s over all cores"),
        (
            "this run",
            f"{time.time() - began:.0f} s, ended {now} UTC; what was there already is kept",
        ),
    )
    texts = {
        "report.html": whole.page(told, made=made, caution=CAUTION[size]),
        "summary.csv": tables.rows_csv(_summary(told)),
        "claims.csv": tables.rows_csv(_claims(told)),
        "claims.md": tables.rows_markdown(_claims(told)),
    }
    for name, text in texts.items():
        one_study.write_text(out / name, text)


def _summary(told: "Sequence[Studied]") -> list[dict[str, object]]:
    """Return how many claims hold: of each paper, of all papers, of ours."""
    from penstock.report.summary import counted, of_papers, tallies  # noqa: PLC0415

    found = counted(told)
    rows: list[dict[str, object]] = [
        {"by": one.by, "claims": one.claims, "hold": one.hold} for one in tallies(found)
    ]
    papers = of_papers(found)
    hold = sum(one.claim.holds for one in papers)
    return [*rows, {"by": "all papers", "claims": len(papers), "hold": hold}]


def _claims(told: "Sequence[Studied]") -> list[dict[str, object]]:
    """Return all claims of all studies; those that another study counts say so."""
    from penstock.report import tables  # noqa: PLC0415
    from penstock.report.summary import counted  # noqa: PLC0415

    counts = {(one.place.study, one.place.number) for one in counted(told)}
    return [
        {
            "study": study.name,
            **tables.cells(claim),
            "counted": tables.YES if (study.name, number) in counts else tables.NO,
        }
        for study in told
        if study.findings is not None
        for number, claim in enumerate(study.findings.claims, start=1)
    ]


def _as_data(told: "Sequence[Studied]") -> dict[str, object]:
    return {
        "summary": _summary(told),
        "studies": [
            {
                "study": study.name,
                "title": study.title,
                "state": study.state,
                "problem": study.problem,
                "command": study.command,
                "cells": study.cells,
                "seconds": study.seconds,
            }
            for study in told
        ],
        "claims": [
            claim | {"holds": claim["holds"] == "yes", "counted": claim["counted"] == "yes"}
            for claim in _claims(told)
        ],
    }


def _show(told: "Sequence[Studied]", out: Path) -> None:
    rows = [(str(row["by"]), str(row["claims"]), str(row["hold"])) for row in _summary(told)]
    emit_table(("whose", "claims", "hold"), rows)
    for study in told:
        if study.findings is None:
            click.echo(f"{study.name}: {study.state}. {study.problem}")
    click.echo(f"report: {out / 'report.html'}")
