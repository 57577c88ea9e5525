"""CITATION.cff is what the Citation File Format 1.2.0 allows, and has the five papers."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

import penstock

FILE = Path(__file__).parents[2] / "CITATION.cff"
PAPERS = {
    "Boito": ("article", 2023),
    "Bandet": ("report", 2024),
    "Bez": ("thesis", 2020),
    "Carretero": ("conference-paper", 2020),
    "Xie": ("conference-paper", 2021),
}
"""First authors, and how their work appeared."""
STUDIED = {"io-sets", "io-resources", "forwarding-policies", "packs", "write-models"}

Text = Annotated[str, Meta(min_length=1)]


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """No keys but those that the format has, as far as we use it."""


class Person(Strict, frozen=True):
    family_names: Text
    given_names: Text


class Entity(Strict, frozen=True):
    name: Text


class Identifier(Strict, frozen=True):
    type: Literal["doi", "url", "swh", "other"]
    value: Text
    description: Text


class Reference(Strict, frozen=True, kw_only=True):
    """A work that is cited."""

    type: Literal["article", "conference-paper", "report", "thesis"]
    title: Text
    authors: Annotated[list[Person], Meta(min_length=1)]
    year: Annotated[int, Meta(ge=1950, le=2100)]
    notes: Text
    month: Annotated[int, Meta(ge=1, le=12)] | None = None
    journal: Text | None = None
    volume: int | None = None
    issue: Text | None = None
    start: int | None = None
    end: int | None = None
    doi: Annotated[str, Meta(pattern=r"^10\.\d{4,9}/\S+$")] | None = None
    url: Annotated[str, Meta(pattern=r"^https://")] | None = None
    isbn: Annotated[str, Meta(pattern=r"^[0-9\- ]{10,17}X?$")] | None = None
    identifiers: list[Identifier] = []
    institution: Entity | None = None
    publisher: Entity | None = None
    collection_title: Text | None = None
    thesis_type: Text | None = None


class Citation(Strict, frozen=True, kw_only=True):
    """The file."""

    cff_version: Literal["1.2.0"]
    message: Text
    title: Text
    type: Literal["software"]
    authors: Annotated[list[Entity], Meta(min_length=1)]
    version: Text
    license: Literal["MIT"]
    abstract: Text
    keywords: list[Text]
    references: list[Reference]


@pytest.fixture(scope="module")
def citation() -> Citation:
    return msgspec.yaml.decode(FILE.read_bytes(), type=Citation)


def test_it_cites_this_version(citation: Citation) -> None:
    assert citation.version == penstock.__version__


def test_the_five_papers_are_there(citation: Citation) -> None:
    papers = {
        paper.authors[0].family_names: (paper.type, paper.year) for paper in citation.references
    }
    assert papers == PAPERS


def test_each_paper_says_which_study_repeats_it(citation: Citation) -> None:
    named = " ".join(paper.notes for paper in citation.references)
    assert {study for study in STUDIED if study in named} == STUDIED


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("cff-version: 1.2.0", "cff-version: 1.0"),
        ("type: thesis", "type: dissertation"),
        ("year: 2023", "year: MMXXIII"),
        ("doi: 10.", "doi: doi.org/10."),
        ("family-names: Bez", "family-name: Bez"),
    ],
)
def test_what_the_format_does_not_allow_is_found(right: str, wrong: str) -> None:
    text = FILE.read_text()
    assert right in text
    with pytest.raises(msgspec.ValidationError):
        msgspec.yaml.decode(text.replace(right, wrong, 1), type=Citation)
