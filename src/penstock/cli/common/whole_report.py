"""What all studies say together: the page, its tables, and what the terminal shows."""

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock import __version__
from penstock.cli.common import one_study
from penstock.cli.common.output import emit_json, emit_table

if TYPE_CHECKING:
    from penstock.campaign.sizes import Size
    from penstock.report.summary import Studied

PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")
SUMMARY = "summary.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """All that is on the page, and how it came about.

    `ran` were asked for, the other `studies` were finished there; `absent` are on no page, each
    with what there is to say of it, or nothing.
    """

    studies: "Sequence[Studied]"
    absent: Mapping[str, str]
    ran: Sequence[str]
    size: "Size"
    seed: int
    began: float

    @property
    def taken_in(self) -> list[str]:
        """Return the names of those that were finished there."""
        return [study.name for study in self.studies if study.name not in self.ran]

    @property
    def command(self) -> str:
        """Return the command that makes such a page."""
        only = ",".join(study.name for study in self.studies) if self.absent else ""
        return one_study.command("all", self.size, self.seed, only=only)


def write(out: Path, whole: Whole) -> None:
    """Write the page and its tables."""
    from penstock.campaign.sizes import CAUTION  # noqa: PLC0415
    from penstock.report import tables  # noqa: PLC0415
    from penstock.report.all_studies import page  # noqa: PLC0415

    claims = _claims(whole)
    texts = {
        "report.html": page(
            whole.studies, absent=whole.absent, made=_made(whole), caution=CAUTION[whole.size]
        ),
        SUMMARY: tables.rows_csv(_summary(whole)),
        "claims.csv": tables.rows_csv(claims),
        "claims.md": tables.rows_markdown(claims),
    }
    for name, text in texts.items():
        one_study.write_text(out / name, text)


def show(out: Path, whole: Whole, *, as_json: bool) -> None:
    """Print how many claims hold, and what is missing."""
    from penstock.report.summary import not_judged  # noqa: PLC0415

    if as_json:
        emit_json(_as_data(whole))
        return
    rows = [(str(row["by"]), str(row["claims"]), str(row["hold"])) for row in _summary(whole)]
    emit_table(("whose", "claims", "hold"), rows)
    for study in whole.studies:
        if study.findings is None:
            click.echo(f"{study.name}: {study.state}. {study.problem}")
    if said := not_judged(whole.studies):
        click.echo(said)
    if whole.absent:
        click.echo(f"Not asked for: {', '.join(whole.absent)}.")
    click.echo(f"report: {out / 'report.html'}")


def _made(whole: Whole) -> list[tuple[str, str]]:
    now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    taken = whole.taken_in
    return [
        ("command", whole.command),
        *([("taken in", f"{', '.join(taken)}: finished there before")] if taken else []),
        ("penstock", __version__),
        ("python", platform.python_version()),
        *((name, metadata.version(name)) for name in PACKAGES),
        ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
        (
            "load",
            f"{os.getloadavg()[2]:.1f}, mean of the last 15 minutes; what is measured by the clock "
            "depends on it",
        ),
        ("size", whole.size),
        ("seed", str(whole.seed)),
        ("cells", str(sum(study.cells for study in whole.studies))),
        ("computing time", f"{sum(study.seconds for study in whole.studies):.0f} s over all cores"),
        (
            "this run",
            f"{time.time() - whole.began:.0f} s, ended {now} UTC; what was there already is kept",
        ),
    ]


def _summary(whole: Whole) -> list[dict[str, object]]:
    """Return how many claims hold: of each paper, of ours, of all papers or those that are here."""
    from penstock.report.summary import counted, of_papers, partial, tallies  # noqa: PLC0415

    found = counted(whole.studies)
    rows: list[dict[str, object]] = [
        {"by": one.by, "claims": one.claims, "hold": one.hold} for one in tallies(found)
    ]
    papers = of_papers(found)
    hold = sum(one.claim.holds for one in papers)
    which = "these papers" if partial(whole.studies, whole.absent) else "all papers"
    return [*rows, {"by": which, "claims": len(papers), "hold": hold}]


def _claims(whole: Whole) -> list[dict[str, object]]:
    """Return all claims of all studies; those that another study counts say so."""
    from penstock.report import tables  # noqa: PLC0415
    from penstock.report.summary import counted  # noqa: PLC0415

    counts = {(one.place.study, one.place.number) for one in counted(whole.studies)}
    return [
        {
            "study": study.name,
            **tables.cells(claim),
            "counted": tables.YES if (study.name, number) in counts else tables.NO,
        }
        for study in whole.studies
        if study.findings is not None
        for number, claim in enumerate(study.findings.claims, start=1)
    ]


def _as_data(whole: Whole) -> dict[str, object]:
    return {
        "summary": _summary(whole),
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
            for study in whole.studies
        ],
        "taken_in": whole.taken_in,
        "not_asked_for": list(whole.absent),
        "claims": [
            claim | {"holds": claim["holds"] == "yes", "counted": claim["counted"] == "yes"}
            for claim in _claims(whole)
        ],
    }
