"""A report as one page that needs no other file: it can be mailed, archived and opened anywhere."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from penstock.report.findings import Claim, Findings
from penstock.report.tables import cells, tally

STYLE = """
:root { color-scheme: light; --ink: #1d2329; --faint: #5d6670; --line: #dde2e7; --blue: #0072B2; }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  color: var(--ink); background: #fff; }
main { max-width: 1180px; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
h1 { font-size: 2rem; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; margin: 2.8rem 0 .8rem; }
p.summary { max-width: 46rem; color: var(--faint); margin: 0; }
p.tally { margin: 0 0 .8rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; }
th, td { text-align: left; vertical-align: top; padding: .5rem .7rem .5rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--faint); white-space: nowrap; }
td.ours { font-variant-numeric: tabular-nums; }
td.why { color: var(--faint); }
.mark { display: inline-block; min-width: 3.2rem; padding: .05rem .5rem; border-radius: 1rem;
  text-align: center; font-weight: 600; }
.yes { color: #0b5f45; background: #d9f1e8; }
.no { color: #8a3b00; background: #fbe5d5; }
figure { margin: 0 0 2.2rem; }
figure img { max-width: 100%; height: auto; display: block; }
figcaption { max-width: 58rem; color: var(--faint); font-size: .88rem; margin-top: .5rem; }
table.claims { min-width: 60rem; table-layout: fixed; }
table.made { width: auto; }
table.made th { padding-right: 2rem; }
code { font: .92em ui-monospace, Menlo, Consolas, monospace; }
@media print { main { max-width: none; padding: 0; } figure, tr { break-inside: avoid; } }
"""


def page(
    findings: Findings, pictures: Mapping[str, Path], *, made: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the page; `pictures` are the SVG files of the figures by name."""
    body = [
        f"<h1>{escape(findings.title)}</h1>",
        f'<p class="summary">{escape(findings.summary)}</p>',
    ]
    if findings.table:
        body += ["<h2>Means</h2>", _table(findings.table)]
    figures = [
        f'<figure><img alt="{escape(figure.title)} ({escape(figure.source)})" '
        f'src="{_embedded(pictures[figure.name])}">'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
        for figure in findings.figures
    ]
    claims = [_claims(findings.claims)] if findings.claims else []
    # Where there are many claims, they are what the page is about.
    parts = [("Claims", claims), ("Figures", figures)]
    for title, content in reversed(parts) if findings.table else parts:
        body += [f"<h2>{title}</h2>", *content] if content else []
    body += ["<h2>How it was made</h2>", _made((*made, *findings.made))]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(findings.title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        "<body>\n<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def _claims(claims: Sequence[Claim]) -> str:
    rows = []
    for claim in claims:
        text, paper, ours, holds, why = (escape(cell) for cell in cells(claim))
        rows.append(
            f'<tr><td>{text}</td><td>{paper}</td><td class="ours">{ours}</td>'
            f'<td><span class="mark {holds}">{holds}</span></td><td class="why">{why}</td></tr>'
        )
    head = "".join(
        f"<th>{name}</th>" for name in ("Claim", "Paper", "Ours", "Holds?", "Rule, and why")
    )
    widths = "".join(f'<col style="width: {part}%">' for part in (20, 12, 27, 6, 35))
    return "\n".join(
        (
            f'<p class="tally">{tally(claims)}.</p>',
            f'<div class="scroll"><table class="claims">{widths}',
            f"<thead><tr>{head}</tr></thead><tbody>",
            *rows,
            "</tbody></table></div>",
        )
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body]
    return (
        '<div class="scroll"><table><thead><tr>'
        + "".join(f"<th>{escape(cell)}</th>" for cell in head)
        + "</tr></thead><tbody>\n"
        + "\n".join(lines)
        + "\n</tbody></table></div>"
    )


def _made(items: Sequence[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td><code>{escape(value)}</code></td></tr>"
        for name, value in items
    )
    return f'<table class="made">{rows}</table>'


def _embedded(picture: Path) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.read_bytes()).decode()}"
