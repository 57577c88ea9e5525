"""A report as one page that needs no other file: mail it, archive it, open it anywhere."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from penstock.report import html_parts
from penstock.report.findings import Findings, Items
from penstock.report.html_parts import tag

PROVENANCE = "How it was made"


def page(
    findings: Findings, pictures: Mapping[str, Path], *, provenance: Items = (), caution: str = ""
) -> str:
    """Return the page; `pictures` are the SVG files of the figures by name."""
    body = [
        "<main>",
        tag("h1", escape(findings.title)),
        *html_parts.warning(caution),
        tag("p", escape(findings.summary), class_="summary"),
        *content(findings, pictures),
        tag("h2", PROVENANCE),
        html_parts.provenance((*provenance, *findings.provenance)),
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
    # Claims come first, unless the study compares rather than claims.
    if findings.table:
        columns, *rows = ([escape(cell) for cell in row] for row in findings.table)
        parts = [("Means", [html_parts.table(columns, rows)]), *reversed(parts)]
    return [piece for title, pieces in parts if pieces for piece in (tag(heading, title), *pieces)]
