"""The pieces of a page that needs no other file: claims, figures, tables, how it was made."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from penstock.report.findings import Claim, Figure
from penstock.report.papers import OURS
from penstock.report.tables import NO, YES, tally

STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --faint: #5d6670; --line: #dde2e7; --page: #fff;
  --card: #f6f8fa; --link: #0067a3; --yes: #0b5f45; --yes-back: #d9f1e8; --no: #8a3b00;
  --no-back: #fbe5d5; --good: #2a9d76; --bad: #e08a4c; --warn: #6b4e00; --warn-back: #fff3cd; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7eb; --faint: #9aa5b0; --line: #333b44;
  --page: #14181c; --card: #1c2228; --link: #6cb8ec; --yes: #8fe0c0; --yes-back: #123a2d;
  --no: #ffb98a; --no-back: #46250f; --good: #3fb98e; --bad: #d98245; --warn: #ffe08a;
  --warn-back: #3d3310; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  color: var(--ink); background: var(--page); }
main { max-width: 1180px; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
:target { background: var(--warn-back); }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; margin: 2.8rem 0 .8rem; }
h3 { font-size: 1.05rem; margin: 2rem 0 .6rem; }
p.summary { max-width: 46rem; color: var(--faint); margin: 0; }
p.tally { margin: 0 0 .8rem; }
p.caution { color: var(--warn); background: var(--warn-back); padding: .6rem .9rem;
  border-radius: .4rem; font-weight: 600; margin: 1rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; }
th, td { text-align: left; vertical-align: top; padding: .5rem .7rem .5rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--faint); white-space: nowrap; }
td.ours, td.number { font-variant-numeric: tabular-nums; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.why { color: var(--faint); }
.mark { display: inline-block; min-width: 3.2rem; padding: .05rem .5rem; border-radius: 1rem;
  text-align: center; font-weight: 600; }
.yes { color: var(--yes); background: var(--yes-back); }
.no { color: var(--no); background: var(--no-back); }
.whose { display: inline-block; font-size: .75rem; padding: 0 .45rem; border-radius: 1rem;
  border: 1px solid var(--line); color: var(--faint); white-space: nowrap; }
figure { margin: 0 0 2.2rem; }
figure img { max-width: 100%; height: auto; display: block; background: #fff;
  border-radius: .4rem; }
figcaption { max-width: 58rem; color: var(--faint); font-size: .88rem; margin-top: .5rem; }
table.claims { min-width: 60rem; table-layout: fixed; overflow-wrap: break-word; }
table.made { width: auto; }
table.made th { padding-right: 2rem; }
code { font: .92em ui-monospace, Menlo, Consolas, monospace; }
@media print { :root { --page: #fff; --ink: #000; --faint: #444; --line: #ccc; --card: #fff;
    --yes: #0b5f45; --no: #8a3b00; --yes-back: #fff; --no-back: #fff; }
  body { font-size: 11px; } main { max-width: none; padding: 0; }
  table.claims { min-width: 0; } .scroll { overflow: visible; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""
WIDTHS = (20, 12, 27, 6, 35)


def document(title: str, body: Sequence[str], *, style: str = "") -> str:
    """Return a whole page of some pieces."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n"
        "<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def cautioned(text: str) -> list[str]:
    """Return what a reader must know first, where there is something."""
    return [f'<p class="caution">{escape(text)}</p>'] if text else []


def anchor(study: str, number: int) -> str:
    """Return where a claim stands in a page: it is the study's so many-th."""
    return f"{study}-claim-{number}"


def mark(*, holds: bool) -> str:
    """Return yes or no, in its colour."""
    word = YES if holds else NO
    return f'<span class="mark {word}">{word}</span>'


def claims(claims: Sequence[Claim], *, study: str = "study") -> str:
    """Return the table of claims, each with a place that can be linked to."""
    rows = []
    for number, claim in enumerate(claims, start=1):
        text, paper, ours, why = map(escape, (claim.claim, claim.paper, claim.ours, claim.why))
        tags = ["ours"] if claim.by == OURS else []
        tags += [f"first look; {claim.repeats.study} judges"] if claim.repeats else []
        whose = "".join(f' <span class="whose">{escape(tag)}</span>' for tag in tags)
        rows.append(
            f'<tr id="{anchor(study, number)}"><td>{text}{whose}</td><td>{paper}</td>'
            f'<td class="ours">{ours}</td><td>{mark(holds=claim.holds)}</td>'
            f'<td class="why">{why}</td></tr>'
        )
    head = "".join(
        f"<th>{name}</th>" for name in ("Claim", "Paper", "Ours", "Holds?", "Rule, and why")
    )
    widths = "".join(f'<col style="width: {part}%">' for part in WIDTHS)
    return "\n".join(
        (
            f'<p class="tally">{tally(claims)}{_apart(claims)}.</p>',
            f'<div class="scroll"><table class="claims"><colgroup>{widths}</colgroup>',
            f"<thead><tr>{head}</tr></thead><tbody>",
            *rows,
            "</tbody></table></div>",
        )
    )


def _apart(claims: Sequence[Claim]) -> str:
    ours, theirs = (
        [c for c in claims if c.repeats is None and (c.by == OURS) is own] for own in (True, False)
    )
    if not ours or not theirs:
        return ""
    return (
        f": {sum(c.holds for c in theirs)} of {len(theirs)} of the paper's, "
        f"{sum(c.holds for c in ours)} of {len(ours)} of ours"
    )


def figure(figure: Figure, picture: Path) -> str:
    """Return a figure with its caption and what it rests on."""
    rests = "" if figure.source in figure.caption.lower() else f" ({escape(figure.source)})"
    return (
        f'<figure><img alt="{escape(figure.title)} ({escape(figure.source)})" '
        f'src="{_embedded(picture)}">'
        f"<figcaption>{escape(figure.caption)}{rests}</figcaption></figure>"
    )


def figures(figures: Sequence[Figure], pictures: Mapping[str, Path]) -> list[str]:
    """Return all figures; `pictures` are their SVG files by name."""
    return [figure(one, pictures[one.name]) for one in figures]


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table of a head and rows of text."""
    head, *body = rows
    lines = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body]
    return scrolling("", "".join(f"<th>{escape(cell)}</th>" for cell in head), lines)


def scrolling(kind: str, head: str, rows: Sequence[str]) -> str:
    """Return a table that scrolls where it is wider than the page, of cells and rows that are made.

    `kind` is the class that its looks go by.
    """
    named = f' class="{kind}"' if kind else ""
    return (
        f'<div class="scroll"><table{named}><thead><tr>{head}</tr></thead><tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div>"
    )


def made(items: Sequence[tuple[str, str]]) -> str:
    """Return how results came about, item by item."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td><code>{escape(value)}</code></td></tr>"
        for name, value in items
    )
    return f'<table class="made">{rows}</table>'


def _embedded(picture: Path) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.read_bytes()).decode()}"
