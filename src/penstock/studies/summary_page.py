"""The results of all studies together: the page, its tables, and the same as data."""

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from penstock import __version__
from penstock.campaign.sizes import CAUTION, Size
from penstock.report import tables
from penstock.report.all_studies import page
from penstock.report.findings import Items
from penstock.report.summary import StudyResult, counted, of_papers, partial, tallies
from penstock.studies import run_study

PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")
SUMMARY = "summary.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All studies on the page: those that `ran` now, and others that were finished earlier.

    `absent` are not on the page, each with the reason, or "" where there are no results.
    """

    studies: Sequence[StudyResult]
    absent: Mapping[str, str]
    ran: Sequence[str]
    size: Size
    seed: int
    began: float

    @property
    def taken_in(self) -> list[str]:
        """Return the names of the studies that were finished earlier."""
        return [study.name for study in self.studies if study.name not in self.ran]

    @property
    def failed(self) -> list[str]:
        """Return the names of the studies that failed."""
        return [study.name for study in self.studies if study.state == "failed"]

    @property
    def command(self) -> str:
        """Return the command that makes such a page."""
        only = ",".join(study.name for study in self.studies) if self.absent else ""
        return run_study.command("all", self.size, self.seed, only=only)


def write(out: Path, summary: Summary) -> None:
    """Write the page and its tables."""
    claims = _claims(summary)
    texts = {
        "report.html": page(
            summary.studies,
            absent=summary.absent,
            provenance=_provenance(summary),
            caution=CAUTION[summary.size],
        ),
        SUMMARY: tables.rows_csv(tally(summary)),
        "claims.csv": tables.rows_csv(claims),
        "claims.md": tables.rows_markdown(claims),
    }
    for name, text in texts.items():
        run_study.write_text(out / name, text)


def tally(summary: Summary) -> list[dict[str, object]]:
    """Return how many claims hold: of each paper, of ours, and of all papers on the page."""
    claims = counted(summary.studies)
    rows: list[dict[str, object]] = [
        {"by": one.by, "claims": one.claims, "hold": one.hold} for one in tallies(claims)
    ]
    papers = of_papers(claims)
    hold = sum(one.claim.holds for one in papers)
    which = "these papers" if partial(summary.studies, summary.absent) else "all papers"
    return [*rows, {"by": which, "claims": len(papers), "hold": hold}]


def as_data(summary: Summary) -> dict[str, object]:
    """Return the summary as the JSON of `reproduce all --json`."""
    fields = ("title", "state", "problem", "command", "cells", "seconds")
    return {
        "summary": tally(summary),
        "studies": [
            {"study": study.name} | {field: getattr(study, field) for field in fields}
            for study in summary.studies
        ],
        "taken_in": summary.taken_in,
        "not_asked_for": list(summary.absent),
        "claims": [
            claim | {"holds": claim["holds"] == "yes", "counted": claim["counted"] == "yes"}
            for claim in _claims(summary)
        ],
    }


def _claims(summary: Summary) -> list[dict[str, object]]:
    """Return the claims of all studies; `counted` is "no" where another study counts it."""
    counts = {(one.place.study, one.place.number) for one in counted(summary.studies)}
    return [
        {
            "study": study.name,
            **tables.cells(claim),
            "counted": tables.YES if (study.name, number) in counts else tables.NO,
        }
        for study in summary.studies
        if study.findings is not None
        for number, claim in enumerate(study.findings.claims, start=1)
    ]


def _provenance(summary: Summary) -> Items:
    now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    earlier = ", ".join(summary.taken_in)
    seconds = sum(study.seconds for study in summary.studies)
    return [
        ("command", summary.command),
        *([("taken in", f"{earlier}: finished there before")] if earlier else []),
        ("penstock", __version__),
        ("python", platform.python_version()),
        *((name, metadata.version(name)) for name in PACKAGES),
        ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
        (
            "load",
            f"{os.getloadavg()[2]:.1f}, mean of the last 15 minutes; measured times depend on it",
        ),
        ("size", summary.size),
        ("seed", str(summary.seed)),
        ("cells", str(sum(study.cells for study in summary.studies))),
        ("computing time", f"{seconds:.0f} s over all cores"),
        (
            "this run",
            f"{time.time() - summary.began:.0f} s, ended {now} UTC; existing results were reused",
        ),
    ]
