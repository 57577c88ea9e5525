"""All studies on one page: how many of the papers' claims hold, which do not and why, all figures.

The page needs no other file and no script, is light or dark as the reader's screen is, and prints.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Literal

from penstock.report import html
from penstock.report.findings import (
    NO,
    OURS,
    PAPERS,
    YES,
    Claim,
    Claimant,
    ClaimReference,
    Findings,
    Items,
    Tally,
)
from penstock.report.html import tag

State = Literal["done", "failed", "interrupted", "not run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """A study of a run: its findings, or why it has none."""

    name: str
    title: str
    command: str
    state: State = "done"
    problem: str = ""
    findings: Findings | None = None
    pictures: Mapping[str, Path] = field(default_factory=dict)
    """The SVG files of its figures by name."""
    provenance: Items = ()
    cells: int = 0
    seconds: float = 0.0
    """Computing time over all cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimId:
    """A claim by its study and its number there, from one."""

    study: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedClaim:
    """A claim that counts, and where else it is made."""

    place: ClaimId
    claim: Claim
    also: Sequence[tuple[ClaimId, Claim]] = ()


def counted(studies: Sequence[StudyResult]) -> list[CountedClaim]:
    """Return every claim once.

    A claim that repeats one of another study counts there, or nowhere if that study is not in this
    run: a first look judges nothing. A claim that studies make in the same words counts where it
    first does not hold, or else in the first study that makes it.
    """
    claims = list(_claims(studies))
    first: dict[tuple[str, str], ClaimId] = {}
    for place, claim in claims:
        if claim.repeats is None:
            first.setdefault((place.study, claim.claim), place)
    groups: dict[ClaimId, list[tuple[ClaimId, Claim]]] = {}
    by_words: dict[tuple[Claimant, str], ClaimId] = {}
    repeating: list[tuple[ClaimId, tuple[ClaimId, Claim]]] = []
    for place, claim in claims:
        other = claim.repeats
        target = first.get((other.study, other.claim)) if other is not None else None
        if target is not None:
            repeating.append((target, (place, claim)))
        elif other is None:
            main = by_words.setdefault((claim.by, claim.claim), place)
            groups.setdefault(main, []).append((place, claim))
    heads = {place: head for head, group in groups.items() for place, _ in group}
    result = {head: _merge(group) for head, group in groups.items()}
    for target, repeated in repeating:
        head = heads[target]
        result[head] = replace(result[head], also=(*result[head].also, repeated))
    return list(result.values())


def first_looks(studies: Sequence[StudyResult]) -> list[tuple[ClaimId, ClaimReference]]:
    """Return the claims of a first look whose judging study is not here, with that study's."""
    here = {
        (place.study, claim.claim) for place, claim in _claims(studies) if claim.repeats is None
    }
    return [
        (place, claim.repeats)
        for place, claim in _claims(studies)
        if claim.repeats is not None and (claim.repeats.study, claim.repeats.claim) not in here
    ]


def not_judged(studies: Sequence[StudyResult]) -> str:
    """Return a sentence on claims of a first look without their judging study, or ""."""
    looks = Counter((place.study, judge.study) for place, judge in first_looks(studies))
    text = ", ".join(f"{n} of {study} ({judge} judges)" for (study, judge), n in looks.items())
    return f"Seen at a first look only, neither judged nor counted here: {text}." if text else ""


def partial(studies: Sequence[StudyResult], absent: Mapping[str, str]) -> bool:
    """Whether some studies are missing: they failed, or were not selected."""
    return bool(absent) or any(study.findings is None for study in studies)


def _claims(studies: Sequence[StudyResult]) -> Iterator[tuple[ClaimId, Claim]]:
    for study in studies:
        if study.findings is not None:
            for number, claim in enumerate(study.findings.claims, start=1):
                yield ClaimId(study=study.name, number=number), claim


def _merge(group: Sequence[tuple[ClaimId, Claim]]) -> CountedClaim:
    main = next((one for one in group if one[1].verdict != YES), group[0])
    return CountedClaim(
        place=main[0], claim=main[1], also=tuple(one for one in group if one is not main)
    )


def tallies(claims: Sequence[CountedClaim]) -> dict[Claimant, Tally]:
    """Return how many claims hold, of each paper that has any and, last, of ours."""
    return {
        by: Tally.of(own)
        for by in (*PAPERS, OURS)
        if (own := [one.claim for one in claims if one.claim.by == by])
    }


def of_papers(claims: Sequence[CountedClaim]) -> list[CountedClaim]:
    """Return the claims of the papers."""
    return [one for one in claims if one.claim.by != OURS]


def of_ours(claims: Sequence[CountedClaim]) -> list[CountedClaim]:
    """Return our own claims."""
    return [one for one in claims if one.claim.by == OURS]


TITLE = "The papers' claims, held against our data"
COUNTING = (
    "Depend: the paper leaves a choice open, and the claim holds for some readings, not for all. "
    "Not judged: it compares measured times, and the machine was busy. Not counted: it holds by "
    "construction, or rests on synthetic data."
)
NUMBERS = ("no", "one", "two", "three", "four", "five")
SECTIONS = {
    "top": "Summary",
    "papers": "Paper by paper",
    "differs": "What does not hold, and why",
    "ours": "Our own claims that do not hold",
    "basis": "What was simulated, emulated, measured",
    "studies": "Studies",
    "made": html.PROVENANCE,
}


def page(
    studies: Sequence[StudyResult],
    *,
    absent: Mapping[str, str] | None = None,
    provenance: Items = (),
    caution: str = "",
) -> str:
    """Return the page of all studies of a run, failed ones included.

    `absent` are not on it, each with the reason, or "" where there are no results.
    """
    absent = absent or {}
    claims = counted(studies)
    part = partial(studies, absent)
    sections = {
        "papers": [_papers(tallies(claims))],
        "differs": _differing(of_papers(claims)),
        "ours": _differing(of_ours(claims)),
        "basis": [_basis(studies)],
        "studies": [_studies(studies)],
        "made": [html.provenance_table(provenance)],
    }
    body = [
        '<div class="layout">',
        _contents(studies),
        "<main>",
        tag("h1", TITLE, id="top"),
        *html.warning(caution),
        tag("p", _summary(claims, part=part), class_="summary"),
        *html.warning(_unfinished(studies)),
        *html.warning(_absent(absent)),
        *html.warning(not_judged(studies)),
        _totals(claims, part=part),
        *(
            piece
            for key, pieces in sections.items()
            for piece in (tag("h2", SECTIONS[key], id=key), *pieces)
        ),
        *(piece for study in studies for piece in _study(study, caution)),
        "</main>",
        "</div>",
    ]
    return html.document(TITLE, body, style="all_studies.css")


def _anchor(study: str) -> str:
    return f"study-{study}"


def _link(target: str, text: str) -> str:
    return tag("a", escape(text), href=f"#{target}")


def _claim_link(place: ClaimId, text: str) -> str:
    return _link(html.anchor(place.study, place.number), text)


def _score(study: StudyResult) -> str:
    """Return how many claims of a study hold."""
    claims = study.findings.claims if study.findings is not None else ()
    own = [claim for claim in claims if claim.repeats is None]
    if claims and not own:
        return "first look"
    if not own:
        return study.state
    tally = Tally.of(own)
    return f"{tally.hold} / {tally.claims}"


def _contents(studies: Sequence[StudyResult]) -> str:
    items = [_link(target, title) for target, title in SECTIONS.items()]
    items += [
        f"{_link(_anchor(study.name), study.name)} {tag('span', _score(study), class_='count')}"
        for study in studies
    ]
    lines = tag("ol", *(tag("li", item) for item in items))
    return f'<nav class="contents" aria-label="Contents">{lines}</nav>'


def _summary(claims: Sequence[CountedClaim], *, part: bool) -> str:
    papers = [by for by in tallies(claims) if by != OURS]
    number = NUMBERS[len(papers)] if len(papers) < len(NUMBERS) else str(len(papers))
    count = f"{number} paper{'' if len(papers) == 1 else 's'}"
    if not papers:
        first = "No paper's claim is judged here. Penstock held each claim of its own"
    elif part:
        names = ", ".join(papers)
        first = f"Penstock ran evaluations of {count} again ({names}), not all, and held each claim"
    else:
        first = f"Penstock ran the evaluations of {count} again and held each claim"
    return (
        f"{first} against its own data by a rule that stands beside it. The papers' claims and our "
        "own are counted separately; a claim of several studies counts once."
    )


def _absent(absent: Mapping[str, str]) -> str:
    names = ", ".join(f"{name} ({reason})" if reason else name for name, reason in absent.items())
    return f"Not asked for: {names}." if names else ""


def _unfinished(studies: Sequence[StudyResult]) -> str:
    names = ", ".join(
        f"{study.name} ({study.state}{': ' if study.problem else ''}{study.problem})"
        for study in studies
        if study.findings is None
    )
    return f"Not in these figures: {names}." if names else ""


def _totals(claims: Sequence[CountedClaim], *, part: bool) -> str:
    def total(some: Sequence[CountedClaim], owner: str) -> str:
        tally = Tally.of(one.claim for one in some)
        of = f"{tally.hold} of {tally.claims}"
        count, verb = (of, "hold") if some else ("none", "was judged")
        return tag("div", tag("strong", count), tag("span", f"{owner} {verb}"), class_="total")

    return tag(
        "div",
        total(of_papers(claims), f"of {'these' if part else 'the'} papers' claims"),
        total(of_ours(claims), "of our own claims"),
        class_="totals",
    )


def _papers(rows: Mapping[Claimant, Tally]) -> str:
    def row(by: Claimant, one: Tally) -> Sequence[str]:
        paper = PAPERS.get(by)
        name = "ours" if by == OURS else by
        citation = paper.cited if paper is not None else "what we claim beyond the papers"
        part = f"{100 * one.hold / max(1, one.claims):.0f}%"
        bar = f'<span class="bar" role="img" aria-label="{part} hold"><i style="width: {part}">'
        return (
            f"{tag('strong', escape(name))}<br>{escape(citation)}",
            *map(str, (one.claims, one.hold, one.differ, one.depend, one.not_judged, one.apart)),
            f"{bar}</i></span>",
        )

    columns = ("Whose", "Claims", "Hold", "Do not", "Depend", "Not judged", "Not counted", "")
    lines = [row(by, one) for by, one in rows.items()]
    return html.table(columns, lines, kind="papers", numbers=range(1, 7)) + tag("p", COUNTING)


def _differing(claims: Sequence[CountedClaim]) -> list[str]:
    """Return the claims without a plain yes, paper by paper."""
    differ = [one for one in claims if one.claim.verdict != YES]
    if not differ:
        return ["<p>None.</p>"]
    pieces = []
    for by in tallies(differ):
        if by != OURS:
            pieces.append(tag("h3", f"{by}: {escape(PAPERS[by].authors)}"))
        items = (_difference(one) for one in differ if one.claim.by == by)
        pieces.append(tag("ul", *items, class_="differs"))
    return pieces


def _difference(one: CountedClaim) -> str:
    claim = one.claim
    also = "".join(
        f" {_claim_link(place, place.study)} has it too"
        + (", and there it holds." if other.verdict == YES else ", with the same result.")
        for place, other in one.also
    )
    return tag(
        "li",
        f"{_claim_link(one.place, claim.claim)} ",
        tag("span", escape(one.place.study), class_="whose"),
        tag("span", escape(claim.verdict), class_="whose") if claim.verdict != NO else "",
        f"<br><b>Paper:</b> {escape(claim.paper)}. <b>Ours:</b> {escape(claim.ours)}.",
        tag("span", escape(claim.why), also, class_="why"),
    )


def _basis(studies: Sequence[StudyResult]) -> str:
    rows = [
        (
            _link(_anchor(study.name), study.name),
            escape(basis.simulated) or "-",
            escape(basis.emulated) or "-",
            escape(basis.measured) or "-",
        )
        for study in studies
        if study.findings is not None
        for basis in (study.findings.basis,)
    ]
    return html.table(("Study", "Simulated", "Emulated", "Measured"), rows, kind="basis")


def _studies(studies: Sequence[StudyResult]) -> str:
    rows = [
        (
            _link(_anchor(study.name), study.name),
            escape(study.title),
            study.state,
            _score(study),
            str(study.cells),
            f"{study.seconds:.0f} s",
        )
        for study in studies
    ]
    columns = ("Study", "What it is", "State", "Claims hold", "Cells", "Computing")
    return html.table(columns, rows, kind="studies", numbers=(3, 4, 5))


def _study(study: StudyResult, caution: str) -> list[str]:
    findings = study.findings
    title = findings.title if findings else study.title
    command = tag("code", escape(study.command))
    body = [
        f'<section class="study" id="{_anchor(study.name)}">',
        tag("h2", escape(title)),
        tag("p", f"{command} · {_link('top', 'to the top')}", class_="top"),
    ]
    if findings is None:
        body += html.warning(f"{study.state}. {study.problem}")
    else:
        body += [
            *html.warning(caution),
            tag("p", escape(findings.summary), class_="summary"),
            *html.content(findings, study.pictures, study=study.name, heading="h3"),
            tag("h3", html.PROVENANCE),
            html.provenance_table((*study.provenance, *findings.provenance)),
        ]
    return [*body, "</section>"]
