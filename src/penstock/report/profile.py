"""Profiles of runs as a page: what was moved, in which patterns, and when."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from penstock import units
from penstock.files import replacing
from penstock.learn.profiles import Profile
from penstock.learn.profiles.profile import CLASSES
from penstock.report import html, plots
from penstock.report.findings import Bars, Figure, Findings, HeatMap, Panel, Series

MIB = 2**20


def write(profiles: Sequence[Profile], left_out: int, path: Path) -> None:
    """Write the page, whole or not at all."""
    content = findings(profiles, left_out)
    with tempfile.TemporaryDirectory() as folder, replacing(path) as partial:
        pictures = {f.name: plots.save(f, Path(folder))["svg"] for f in content.figures}
        partial.write_text(html.page(content, pictures), encoding="utf-8")


def findings(profiles: Sequence[Profile], left_out: int = 0) -> Findings:
    """Return what the page says; `left_out` logs are only counted."""
    head = ("run", "processes", "seconds", "read", "written", "phases", "w_iter", "times from")
    rows = [
        (
            one.name,
            f"{one.processes:,}",
            f"{one.seconds:,.4g}",
            units.show_volume(one.read),
            units.show_volume(one.written),
            str(len(one.phases) or "-"),
            "-" if one.w_iter is None else units.show_seconds(one.w_iter),
            one.source,
        )
        for one in profiles
    ]
    more = f" {left_out:,} more logs are not shown." if left_out else ""
    return Findings(
        title="I/O profiles",
        summary=f"What {len(profiles)} runs did to their files, by their Darshan logs.{more}",
        table=(head, *rows),
        figures=[_figure(k, one) for k, one in enumerate(profiles)],
        provenance=(("logs", ", ".join(one.log for one in profiles)),),
    )


def _figure(k: int, one: Profile) -> Figure:
    notes = "".join(f" {note[:1].upper()}{note[1:]}." for note in one.notes)
    return Figure(
        name=f"profile-{k}",
        title=one.name,
        caption=f"{one.executable}, {one.processes:,} processes.{notes}",
        panels=[*_heat(one), _sizes(one)],
        stacked=True,
        source="measured by Darshan",
    )


def _heat(one: Profile) -> list[Panel]:
    if one.heat is None:
        return []
    return [
        HeatMap(
            title=title,
            x="seconds since the run began",
            y="ranks",
            rows=one.heat.ranks,
            cells=[[value / MIB for value in row] for row in cells],
            window=(0.0, one.seconds),
            unit="MiB",
        )
        for title, cells in (("written", one.heat.written), ("read", one.heat.read))
        if any(map(any, cells))
    ]


def _sizes(one: Profile) -> Panel:
    x = list(range(len(CLASSES)))
    return Bars(
        title="request sizes",
        x="bytes",
        y="requests",
        labels=CLASSES,
        series=[
            Series(label="read", x=x, y=one.read_sizes),
            Series(label="write", x=x, y=one.write_sizes),
        ],
        key=True,
    )
