"""What several studies say together: each claim once, counted for who makes it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from penstock.report.findings import Claim, ClaimReference, Findings
from penstock.report.papers import OURS, PAPERS, Claimant

State = Literal["done", "failed", "interrupted", "not run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """A study that was asked for: what it found, or why it found nothing."""

    name: str
    title: str
    command: str
    state: State = "done"
    problem: str = ""
    findings: Findings | None = None
    pictures: Mapping[str, Path] = field(default_factory=dict)
    """The SVG files of its figures by name."""
    made: Sequence[tuple[str, str]] = ()
    cells: int = 0
    seconds: float = 0.0
    """Of computing, over all cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A claim's place: it is the study's so many-th, from one."""

    study: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A claim that counts, and where else it is told."""

    place: Place
    claim: Claim
    also: Sequence[tuple[Place, Claim]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many claims somebody makes, and how many of them hold."""

    by: Claimant
    claims: int
    hold: int


def counted(studies: Sequence[StudyResult]) -> list[Counted]:
    """Return every claim once.

    One that repeats a claim of another study counts there, or, where that one is not here, nowhere:
    a first look judges nothing. One that studies make in
    the same words counts where it first does not hold, or else where it is first made.
    """
    told = list(_told(studies))
    first: dict[tuple[str, str], Place] = {}
    for place, claim in told:
        if claim.repeats is None:
            first.setdefault((place.study, claim.claim), place)
    groups: dict[Place, list[tuple[Place, Claim]]] = {}
    in_words: dict[tuple[Claimant, str], Place] = {}
    repeating: list[tuple[Place, tuple[Place, Claim]]] = []
    for place, claim in told:
        other = claim.repeats
        target = first.get((other.study, other.claim)) if other is not None else None
        if target is not None:
            repeating.append((target, (place, claim)))
        elif other is None:
            main = in_words.setdefault((claim.by, claim.claim), place)
            groups.setdefault(main, []).append((place, claim))
    heads = {place: head for head, group in groups.items() for place, _ in group}
    found = {head: _of_words(group) for head, group in groups.items()}
    for target, repeated in repeating:
        head = heads[target]
        found[head] = Counted(
            place=found[head].place, claim=found[head].claim, also=(*found[head].also, repeated)
        )
    return list(found.values())


def first_looks(studies: Sequence[StudyResult]) -> list[tuple[Place, ClaimReference]]:
    """Return the claims that are seen in small alone, each with where it would be judged."""
    here = {(place.study, claim.claim) for place, claim in _told(studies) if claim.repeats is None}
    return [
        (place, claim.repeats)
        for place, claim in _told(studies)
        if claim.repeats is not None and (claim.repeats.study, claim.repeats.claim) not in here
    ]


def not_judged(studies: Sequence[StudyResult]) -> str:
    """Return a sentence on claims seen in small without the study that judges them, or nothing."""
    looks = Counter((place.study, judge.study) for place, judge in first_looks(studies))
    told = ", ".join(f"{n} of {study} ({judge} judges)" for (study, judge), n in looks.items())
    return f"Seen at a first look only, neither judged nor counted here: {told}." if told else ""


def partial(studies: Sequence[StudyResult], absent: Mapping[str, str]) -> bool:
    """Say whether there is less than all studies: some failed, or some were not asked for."""
    return bool(absent) or any(study.findings is None for study in studies)


def _told(studies: Sequence[StudyResult]) -> Iterator[tuple[Place, Claim]]:
    for study in studies:
        if study.findings is not None:
            for number, claim in enumerate(study.findings.claims, start=1):
                yield Place(study=study.name, number=number), claim


def _of_words(group: Sequence[tuple[Place, Claim]]) -> Counted:
    main = next((one for one in group if not one[1].holds), group[0])
    return Counted(
        place=main[0], claim=main[1], also=tuple(one for one in group if one is not main)
    )


def tallies(found: Sequence[Counted]) -> list[Tally]:
    """Return how many claims hold, of each paper that has any and, last, of ours."""
    return [
        Tally(by=by, claims=len(own), hold=sum(one.claim.holds for one in own))
        for by in (*PAPERS, OURS)
        if (own := [one for one in found if one.claim.by == by])
    ]


def of_papers(found: Sequence[Counted]) -> list[Counted]:
    """Return the claims of the papers."""
    return [one for one in found if one.claim.by != OURS]


def of_ours(found: Sequence[Counted]) -> list[Counted]:
    """Return our own."""
    return [one for one in found if one.claim.by == OURS]
