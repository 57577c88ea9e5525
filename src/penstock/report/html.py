"""A report as one page that needs no other file: mail it, archive it, open it anywhere."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from penstock.report.findings import (
    NO,
    OURS,
    YES,
    Claim,
    ClaimLeftOut,
    Figure,
    Findings,
    Items,
    Tally,
    TextTable,
)
from penstock.report.tables import tally

PROVENANCE = "How it was made"


def page(
    findings: Findings, pictures: Mapping[str, Path], *, provenance: Items = (), caution: str = ""
) -> str:
    """Return the page; `pictures` are the SVG files of the figures by name."""
    body = [
        "<main>",
        tag("h1", escape(findings.title)),
        *warning(caution),
        tag("p", escape(findings.summary), class_="summary"),
        *content(findings, pictures),
        tag("h2", PROVENANCE),
        provenance_table((*provenance, *findings.provenance)),
        "</main>",
    ]
    return document(findings.title, body)


def content(
    findings: Findings, pictures: Mapping[str, Path], *, study: str = "study", heading: str = "h2"
) -> list[str]:
    """Return table, claims and figures, each under its heading."""
    parts: list[tuple[str, list[str]]] = [
        ("Claims", [claims_table(findings.claims, study=study)] if findings.claims else []),
        ("Claims of the paper that are not checked", left_out_list(findings.left_out)),
        ("Tables", [piece for one in findings.tables for piece in _text_table(one)]),
        ("Figures", figure_list(findings.figures, pictures)),
    ]
    # Claims come first, unless the study compares rather than claims.
    if findings.table:
        columns, *rows = ([escape(cell) for cell in row] for row in findings.table)
        parts = [("Means", [table(columns, rows)]), *reversed(parts)]
    return [piece for title, pieces in parts if pieces for piece in (tag(heading, title), *pieces)]


def _text_table(one: TextTable) -> list[str]:
    columns, *rows = ([escape(cell) for cell in row] for row in one.rows)
    text = f"{tag('strong', escape(one.title))} {escape(one.caption)}"
    return [tag("p", text), table(columns, rows, numbers=range(1, len(columns)))]


WIDTHS = (20, 12, 27, 6, 35)
"""Per cent of the table of claims that each column takes."""


def tag(name: str, *content: str, **attributes: str) -> str:
    """Return an element of markup; `class_` stands for the attribute class."""
    pairs = "".join(f' {key.rstrip("_")}="{value}"' for key, value in attributes.items() if value)
    return f"<{name}{pairs}>{''.join(content)}</{name}>"


def document(title: str, body: Sequence[str], *, style: str = "") -> str:
    """Return a whole page; `style` names a file with more rules for its looks."""
    css = "".join(
        (resources.files(__package__) / file).read_text(encoding="utf-8")
        for file in ("page.css", style)
        if file
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{css}</style>\n</head>\n"
        "<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def warning(text: str) -> list[str]:
    """Return what a reader must know first, where there is something."""
    return [tag("p", escape(text), class_="caution")] if text else []


def anchor(study: str, number: int) -> str:
    """Return the anchor of a study's claim, by its number."""
    return f"{study}-claim-{number}"


def cells(*content: str, kind: str = "td", numbers: Sequence[int] = ()) -> str:
    """Return the cells of a row; those at `numbers` are right-aligned."""
    return "".join(
        tag(kind, text, class_="number" if i in numbers else "") for i, text in enumerate(content)
    )


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    kind: str = "",
    numbers: Sequence[int] = (),
) -> str:
    """Return a table of markup that scrolls where it is wider than the page."""
    head = tag("thead", tag("tr", cells(*columns, kind="th", numbers=numbers)))
    lines = "\n".join(tag("tr", cells(*row, numbers=numbers)) for row in rows)
    return tag(
        "div", tag("table", head, tag("tbody", "\n", lines, "\n"), class_=kind), class_="scroll"
    )


def claims_table(claims: Sequence[Claim], *, study: str = "study") -> str:
    """Return the table of claims; each row has an anchor."""
    rows = []
    for number, claim in enumerate(claims, start=1):
        labels = ["ours"] if claim.by == OURS else []
        labels += [f"first look; {claim.repeats.study} judges"] if claim.repeats else []
        labels += [f"not counted: {claim.apart}"] if claim.apart else []
        marks = "".join(f" {tag('span', escape(one), class_='whose')}" for one in labels)
        word = claim.verdict
        mark = word if word in (YES, NO) else "open"
        row = (
            tag("td", escape(claim.claim), marks),
            tag("td", escape(claim.paper)),
            tag("td", escape(claim.ours), class_="ours"),
            tag("td", tag("span", word, class_=f"mark {mark}")),
            tag("td", escape(claim.why), class_="why"),
        )
        rows.append(tag("tr", *row, id=anchor(study, number)))
    head = cells("Claim", "Paper", "Ours", "Holds?", "Rule, and why", kind="th")
    widths = "".join(f'<col style="width: {part}%">' for part in WIDTHS)
    lines = "\n".join(rows)
    content = (
        tag("colgroup", widths),
        tag("thead", tag("tr", head)),
        tag("tbody", "\n", lines, "\n"),
    )
    return (
        tag("p", f"{tally(claims)}{_paper_and_ours(claims)}.", class_="tally")
        + "\n"
        + tag("div", tag("table", *content, class_="claims"), class_="scroll")
    )


def _paper_and_ours(claims: Sequence[Claim]) -> str:
    ours, papers = (
        [c for c in claims if c.repeats is None and (c.by == OURS) is own] for own in (True, False)
    )
    if not ours or not papers:
        return ""
    paper, own = Tally.of(papers), Tally.of(ours)
    return f": {paper.hold} of {paper.claims} of the paper's, {own.hold} of {own.claims} of ours"


def left_out_list(claims: Sequence[ClaimLeftOut]) -> list[str]:
    """Return the claims that no study checks, each with the reason."""
    items = (
        tag("li", escape(claim.claim), tag("span", escape(claim.reason), class_="why"))
        for claim in claims
    )
    return [tag("ul", *items, class_="differs")] if claims else []


def figure_list(figures: Sequence[Figure], pictures: Mapping[str, Path]) -> list[str]:
    """Return figures with their captions; `pictures` are their SVG files by name."""
    return [_figure(one, pictures[one.name]) for one in figures]


def _figure(figure: Figure, picture: Path) -> str:
    data = base64.b64encode(picture.read_bytes()).decode()
    alt = f"{escape(figure.title)} ({escape(figure.source)})"
    source = "" if figure.source in figure.caption.lower() else f" ({escape(figure.source)})"
    caption = tag("figcaption", escape(figure.caption), source)
    return tag("figure", f'<img alt="{alt}" src="data:image/svg+xml;base64,{data}">', caption)


def provenance_table(items: Items) -> str:
    """Return how the results were made, item by item."""
    rows = (
        tag("tr", tag("th", escape(name)), tag("td", tag("code", escape(value))))
        for name, value in items
    )
    return tag("table", *rows, class_="provenance")
