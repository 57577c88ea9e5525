"""Panels of figures from estimates: the short way to write what most figures show."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from penstock.campaign.journal import Row
from penstock.report.findings import Bars, Curves, Dots, Reference, Series, Stretch
from penstock.studies.table import Estimate, Table, curve

Lines = Mapping[str, float]
"""Horizontal lines to read a panel against: label and height."""
NONE: Lines = {}


def references(lines: Lines) -> list[Reference]:
    """Return the horizontal lines of a panel."""
    return [Reference(y=y, label=label) for label, y in lines.items()]


def curves(
    title: str, x: str, y: str, series: Sequence[Series], *, lines: Lines = NONE, **options: Any
) -> Curves:
    """Return curves over a parameter."""
    return Curves(title=title, x=x, y=y, series=series, references=references(lines), **options)


def dots(
    title: str,
    estimates: Mapping[str, Estimate],
    *,
    better: Literal["higher", "lower"] = "lower",
    **options: Any,
) -> Dots:
    """Return one dot with its interval per label."""
    values = estimates.values()
    return Dots(
        title=title,
        labels=list(estimates),
        value=[e.value for e in values],
        low=[e.low for e in values],
        high=[e.high for e in values],
        better=better,
        **options,
    )


def bars(
    title: str,
    labels: Sequence[str],
    heights: Mapping[str, Sequence[float]] | Sequence[Series],
    *,
    x: str = "",
    y: str = "",
    lines: Lines = NONE,
    **options: Any,
) -> Bars:
    """Return bars over labels: one height per label for each series."""
    if isinstance(heights, Mapping):
        heights = [Series(label=label, x=(), y=values) for label, values in heights.items()]
    return Bars(
        title=title,
        x=x,
        y=y,
        labels=labels,
        series=heights,
        references=references(lines),
        **options,
    )


def stretch(row: Row) -> Stretch:
    """Return what a job did between two times, from a row."""
    return Stretch(
        job=str(row["job"]),
        start=float(row["start"] or 0),
        end=float(row["end"] or 0),
        doing=row["doing"],  # type: ignore[arg-type]
        share=float(row["share"] or 0),
    )


def means(table: Table, scenario: str, policy: str, metric: str, label: str = "") -> Series:
    """Return the means of a policy at the points of a scenario."""
    by_point = {x: table.mean(scenario, x, policy, metric) for x in table.points(scenario)}
    return curve(label or policy, by_point)


def ratios(
    table: Table, scenario: str, metric: str, over: str, under: str, *, label: str = ""
) -> Series:
    """Return the means of one policy over those of another at the points of a scenario."""
    points = table.points(scenario)
    return curve(
        label or over, {x: table.ratio(scenario, metric, over, under, [x]) for x in points}
    )
