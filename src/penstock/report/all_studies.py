"""All studies on one page: how many of the papers' claims hold, which do not and why, all figures.

The page needs no other file and no script, is light or dark as the reader's screen is, and prints.
"""

from collections.abc import Mapping, Sequence
from html import escape

from penstock.report import html, html_parts
from penstock.report.papers import OURS, PAPERS, Claimant
from penstock.report.summary import (
    Counted,
    Place,
    StudyResult,
    Tally,
    counted,
    not_judged,
    of_ours,
    of_papers,
    partial,
    tallies,
)

TITLE = "The papers' claims, held against our data"
NUMBERS = ("no", "one", "two", "three", "four", "five")
STYLE = """
.layout { display: block; }
nav.contents { font-size: .88rem; padding: 1rem 1.5rem; background: var(--card);
  border-bottom: 1px solid var(--line); }
nav.contents ol { list-style: none; margin: 0; padding: 0; columns: 14rem; }
nav.contents li { padding: .12rem 0; }
nav.contents .count { color: var(--faint); font-variant-numeric: tabular-nums; }
@media screen and (min-width: 1300px) {
  .layout { display: grid; grid-template-columns: 17rem minmax(0, 1fr); }
  nav.contents { position: sticky; top: 0; height: 100vh; overflow-y: auto; border-bottom: 0;
    border-right: 1px solid var(--line); padding: 2.5rem 1.2rem; }
  nav.contents ol { columns: 1; }
}
.totals { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.6rem 0; }
.total { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: 1rem 1.4rem; min-width: 15rem; }
.total strong { display: block; font-size: 2rem; line-height: 1.2; letter-spacing: -.01em; }
.total span { color: var(--faint); }
.bar { display: inline-block; width: 9rem; height: .7rem; border-radius: .35rem;
  background: var(--bad); overflow: hidden; vertical-align: middle; }
.bar i { display: block; height: 100%; background: var(--good); }
ul.differs { padding-left: 1.1rem; max-width: 62rem; }
ul.differs li { margin: 0 0 .8rem; }
ul.differs .why { color: var(--faint); font-size: .9rem; display: block; }
section.study { border-top: 3px solid var(--line); margin-top: 3.5rem; padding-top: 1rem; }
section.study h2 { margin-top: 1rem; font-size: 1.6rem; }
.top { font-size: .85rem; }
@media print { nav.contents, .top { display: none; } section.study { break-before: page; }
  .bar { border: 1px solid #666; print-color-adjust: exact; } }
"""


def page(
    studies: Sequence[StudyResult],
    *,
    absent: Mapping[str, str] | None = None,
    made: Sequence[tuple[str, str]] = (),
    caution: str = "",
) -> str:
    """Return the page of all studies that were asked for, those that failed too.

    `absent` are those that are not on it, each with what there is to say of it, or nothing.
    """
    absent = absent or {}
    found = counted(studies)
    part = partial(studies, absent)
    body = [
        '<div class="layout">',
        _contents(studies),
        "<main>",
        f'<h1 id="top">{TITLE}</h1>',
        *html_parts.cautioned(caution),
        _summary(found, part=part),
        *_unfinished(studies),
        *_not_asked(absent),
        *html_parts.cautioned(not_judged(studies)),
        _totals(found, part=part),
        '<h2 id="papers">Paper by paper</h2>',
        _papers(tallies(found)),
        '<h2 id="differs">What does not hold, and why</h2>',
        *_differs(of_papers(found)),
        '<h2 id="ours">Our own claims that do not hold</h2>',
        *_differs(of_ours(found)),
        '<h2 id="basis">What was simulated, emulated, measured</h2>',
        _basis(studies),
        '<h2 id="studies">Studies</h2>',
        _studies(studies),
        '<h2 id="made">How it was made</h2>',
        html_parts.made(made),
        *(piece for study in studies for piece in _study(study, caution)),
        "</main>",
        "</div>",
    ]
    return html_parts.document(TITLE, body, style=STYLE)


def named(by: Claimant) -> str:
    """Return who makes a claim, for people."""
    return "ours" if by == OURS else by


def _place(name: str) -> str:
    return f"study-{name}"


def _holding(study: StudyResult) -> str:
    claims = study.findings.claims if study.findings is not None else ()
    judged = [claim for claim in claims if claim.repeats is None]
    if claims and not judged:
        return "first look"
    return f"{sum(claim.holds for claim in judged)} / {len(judged)}" if judged else study.state


def _contents(studies: Sequence[StudyResult]) -> str:
    parts = {
        "top": "Summary",
        "papers": "Paper by paper",
        "differs": "What does not hold, and why",
        "ours": "Our own that do not hold",
        "basis": "Simulated, emulated, measured",
        "studies": "Studies",
        "made": "How it was made",
    }
    items = [f'<li><a href="#{place}">{title}</a></li>' for place, title in parts.items()]
    items += [
        f'<li><a href="#{_place(study.name)}">{escape(study.name)}</a> '
        f'<span class="count">{_holding(study)}</span></li>'
        for study in studies
    ]
    return '<nav class="contents" aria-label="Contents"><ol>' + "".join(items) + "</ol></nav>"


def _summary(found: Sequence[Counted], *, part: bool) -> str:
    papers = [one.by for one in tallies(found) if one.by != OURS]
    number = NUMBERS[len(papers)] if len(papers) < len(NUMBERS) else str(len(papers))
    of = f"{number} paper{'' if len(papers) == 1 else 's'}"
    if not papers:
        ran = "No paper's claim is judged here. Penstock held each claim of its own"
    elif part:
        names = ", ".join(papers)
        ran = f"Penstock ran evaluations of {of} again ({names}), not all, and held each claim"
    else:
        ran = f"Penstock ran the evaluations of {of} again and held each claim"
    return (
        f'<p class="summary">{ran} against its own data by a rule that stands beside it. What the '
        "papers claim and what we claim is counted apart; a claim that several studies tell counts "
        "once.</p>"
    )


def _not_asked(absent: Mapping[str, str]) -> list[str]:
    names = ", ".join(f"{name} ({said})" if said else name for name, said in absent.items())
    return html_parts.cautioned(f"Not asked for: {names}." if names else "")


def _unfinished(studies: Sequence[StudyResult]) -> list[str]:
    missing = [study for study in studies if study.findings is None]
    if not missing:
        return []
    names = ", ".join(
        f"{escape(study.name)} ({study.state}{': ' if study.problem else ''}"
        f"{escape(study.problem)})"
        for study in missing
    )
    return [f'<p class="caution">Not in these figures: {names}.</p>']


def _totals(found: Sequence[Counted], *, part: bool) -> str:
    def total(some: Sequence[Counted], whose: str) -> str:
        if not some:
            return f'<div class="total"><strong>none</strong><span>{whose} was judged</span></div>'
        hold = sum(one.claim.holds for one in some)
        return (
            f'<div class="total"><strong>{hold} of {len(some)}</strong>'
            f"<span>{whose} hold</span></div>"
        )

    return (
        '<div class="totals">'
        + total(of_papers(found), f"of {'these' if part else 'the'} papers' claims")
        + total(of_ours(found), "of our own claims")
        + "</div>"
    )


def _papers(found: Sequence[Tally]) -> str:
    rows = []
    for one in found:
        paper = PAPERS.get(one.by)
        cited = paper.cited if paper is not None else "what we claim beyond the papers"
        part = 100 * one.hold / one.claims
        rows.append(
            f"<tr><td><strong>{escape(named(one.by))}</strong><br>{escape(cited)}</td>"
            f'<td class="number">{one.claims}</td><td class="number">{one.hold}</td>'
            f'<td class="number">{one.claims - one.hold}</td>'
            f'<td><span class="bar" role="img" aria-label="{part:.0f}% hold">'
            f'<i style="width: {part:.0f}%"></i></span></td></tr>'
        )
    head = "<th>Whose</th>" + "".join(
        f'<th class="number">{name}</th>' for name in ("Claims", "Hold", "Do not")
    )
    return html_parts.scrolling("papers", f"{head}<th></th>", rows)


def _differs(found: Sequence[Counted]) -> list[str]:
    differ = [one for one in found if not one.claim.holds]
    if not differ:
        return ["<p>None.</p>"]
    pieces = []
    groups = [one.by for one in tallies(differ)]
    for by in groups:
        if by != OURS:
            paper = PAPERS[by]
            pieces.append(f"<h3>{by}: {escape(paper.authors)}</h3>")
        pieces.append('<ul class="differs">')
        pieces += [_differing(one) for one in differ if one.claim.by == by]
        pieces.append("</ul>")
    return pieces


def _link(place: Place, text: str) -> str:
    return f'<a href="#{html_parts.anchor(place.study, place.number)}">{escape(text)}</a>'


def _differing(one: Counted) -> str:
    claim = one.claim
    also = "".join(
        f" Told by {_link(place, place.study)} too"
        + (", where it holds." if other.holds else ", where it does not either.")
        for place, other in one.also
    )
    return (
        f"<li>{_link(one.place, claim.claim)} "
        f'<span class="whose">{escape(one.place.study)}</span><br>'
        f"<b>Paper:</b> {escape(claim.paper)}. <b>Ours:</b> {escape(claim.ours)}."
        f'<span class="why">{escape(claim.why)}{also}</span></li>'
    )


def _basis(studies: Sequence[StudyResult]) -> str:
    rows = [
        f'<tr><td><a href="#{_place(study.name)}">{escape(study.name)}</a></td>'
        f"<td>{escape(basis.simulated) or '-'}</td><td>{escape(basis.emulated) or '-'}</td>"
        f"<td>{escape(basis.measured) or '-'}</td></tr>"
        for study in studies
        if study.findings is not None
        for basis in (study.findings.basis,)
    ]
    head = "".join(f"<th>{name}</th>" for name in ("Study", "Simulated", "Emulated", "Measured"))
    return html_parts.scrolling("basis", head, rows)


def _studies(studies: Sequence[StudyResult]) -> str:
    rows = [
        f'<tr><td><a href="#{_place(study.name)}">{escape(study.name)}</a></td>'
        f"<td>{escape(study.title)}</td><td>{study.state}</td>"
        f'<td class="number">{_holding(study)}</td><td class="number">{study.cells}</td>'
        f'<td class="number">{study.seconds:.0f} s</td></tr>'
        for study in studies
    ]
    head = "<th>Study</th><th>What it is</th><th>State</th>" + "".join(
        f'<th class="number">{name}</th>' for name in ("Claims hold", "Cells", "Computing")
    )
    return html_parts.scrolling("studies", head, rows)


def _study(study: StudyResult, caution: str) -> list[str]:
    body = [
        f'<section class="study" id="{_place(study.name)}">',
        f"<h2>{escape(study.findings.title if study.findings else study.title)}</h2>",
        f'<p class="top"><code>{escape(study.command)}</code> · <a href="#top">to the top</a></p>',
    ]
    if study.findings is None:
        body.append(f'<p class="caution">{study.state}. {escape(study.problem)}</p>')
    else:
        made = html_parts.made((*study.made, *study.findings.made))
        body += [
            *html_parts.cautioned(caution),
            f'<p class="summary">{escape(study.findings.summary)}</p>',
            *html.content(study.findings, study.pictures, study=study.name, heading="h3"),
            "<h3>How it was made</h3>",
            made,
        ]
    return [*body, "</section>"]
