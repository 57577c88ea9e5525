"""A report as one page that needs no other file: it can be mailed, archived and opened anywhere."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from penstock.report import html_parts
from penstock.report.findings import Findings


def page(
    findings: Findings,
    pictures: Mapping[str, Path],
    *,
    made: Sequence[tuple[str, str]] = (),
    caution: str = "",
) -> str:
    """Return the page; `pictures` are the SVG files of the figures by name."""
    body = [
        "<main>",
        f"<h1>{escape(findings.title)}</h1>",
        *html_parts.cautioned(caution),
        f'<p class="summary">{escape(findings.summary)}</p>',
        *content(findings, pictures),
        "<h2>How it was made</h2>",
        html_parts.made((*made, *findings.made)),
        "</main>",
    ]
    return html_parts.document(findings.title, body)


def content(
    findings: Findings, pictures: Mapping[str, Path], *, study: str = "study", heading: str = "h2"
) -> list[str]:
    """Return table, claims and figures, each under its heading."""
    parts: list[tuple[str, list[str]]] = [
        ("Claims", [html_parts.claims(findings.claims, study=study)] if findings.claims else []),
        ("Figures", html_parts.figures(findings.figures, pictures)),
    ]
    # Where there are many claims, they are what the page is about.
    if findings.table:
        parts = [("Means", [html_parts.table(findings.table)]), *reversed(parts)]
    return [
        piece
        for title, pieces in parts
        if pieces
        for piece in (f"<{heading}>{title}</{heading}>", *pieces)
    ]
