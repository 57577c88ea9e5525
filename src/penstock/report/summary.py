"""The claims of several studies together: each counts once, for whoever makes it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from penstock.report.findings import Claim, ClaimReference, Findings, Items
from penstock.report.papers import OURS, PAPERS, Claimant

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many claims a paper makes, and how many of them hold."""

    by: Claimant
    claims: int
    hold: int


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
    """Say whether some studies are missing: they failed, or were not asked for."""
    return bool(absent) or any(study.findings is None for study in studies)


def _claims(studies: Sequence[StudyResult]) -> Iterator[tuple[ClaimId, Claim]]:
    for study in studies:
        if study.findings is not None:
            for number, claim in enumerate(study.findings.claims, start=1):
                yield ClaimId(study=study.name, number=number), claim


def _merge(group: Sequence[tuple[ClaimId, Claim]]) -> CountedClaim:
    main = next((one for one in group if not one[1].holds), group[0])
    return CountedClaim(
        place=main[0], claim=main[1], also=tuple(one for one in group if one is not main)
    )


def tallies(claims: Sequence[CountedClaim]) -> list[Tally]:
    """Return how many claims hold, of each paper that has any and, last, of ours."""
    return [
        Tally(by=by, claims=len(own), hold=sum(one.claim.holds for one in own))
        for by in (*PAPERS, OURS)
        if (own := [one for one in claims if one.claim.by == by])
    ]


def of_papers(claims: Sequence[CountedClaim]) -> list[CountedClaim]:
    """Return the claims of the papers."""
    return [one for one in claims if one.claim.by != OURS]


def of_ours(claims: Sequence[CountedClaim]) -> list[CountedClaim]:
    """Return our own claims."""
    return [one for one in claims if one.claim.by == OURS]
