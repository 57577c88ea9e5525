"""The texts of every study as data, in TOML.

`claims/STUDY.toml` has one table per claim: its text, who makes it (`by`; the file's own `by` if it
has none), what the paper says and the rule by which the claim is judged, with what we know about
the reason where our result differs. `[left-out.ID]` has the claims that are not checked, with the
reason. `captions/STUDY.toml` has one table per figure, and
`summaries.toml` one per study. A study computes its results and calls

    claim, figure = claims_of("io-sets"), captions_of("io-sets")
    claim("fig-4-time", f"{seconds:.2f} s", seconds < 5, limit=5)
    figure("figure-8", panels, workloads=20)

where keyword arguments fill in the `{limit}` and `{workloads}` of the texts.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import msgspec
import numpy as np

from penstock.report.findings import (
    Basis,
    Claim,
    Claimant,
    ClaimLeftOut,
    ClaimReference,
    Figure,
    Findings,
    Items,
    Panel,
    TextTable,
)

LEFT_OUT = "left-out"
"""In a file of claims: the tables of claims that are not checked, each with its reason."""


class Text(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a file; its texts may have fields in braces."""

    def filled(self, fields: Mapping[str, object]) -> dict[str, str]:
        """Return the texts with their fields filled in."""
        texts = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: text.format(**fields) for name, text in texts if isinstance(text, str)}


class ClaimText(Text, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A claim before it is judged."""

    claim: str
    paper: str
    rule: str
    by: Claimant
    differs: str = ""
    """Follows the rule where the claim does not hold."""
    apart: str = ""
    """Why it is not counted: "by construction", "synthetic curves"."""
    by_clock: bool = False
    """It compares measured times, which a busy machine does not give."""


class Caption(Text, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The texts of a figure, and what it rests on."""

    title: str
    caption: str
    source: str = "simulated"


class Summary(Text, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a study is, and what was simulated, emulated and measured."""

    title: str
    summary: str
    simulated: str = ""
    emulated: str = ""
    measured: str = ""


class ClaimTable:
    """The claims of one study by their ids; a call judges one of them."""

    def __init__(self, texts: Mapping[str, ClaimText], **shared: object) -> None:
        self.texts = texts
        self._shared = shared

    def __call__(
        self,
        name: str,
        ours: str,
        holds: bool | np.bool_ | None,
        repeats: ClaimReference | None = None,
        readings: Mapping[str, bool] | None = None,
        **fields: object,
    ) -> Claim:
        """Return a claim with our result.

        `readings` are the verdicts over an open choice, the one of `holds` first.
        """
        text = self.texts[name]
        filled = text.filled(self._shared | fields)
        verdicts = {name: bool(verdict) for name, verdict in (readings or {}).items()}
        plain = bool(holds) and all(verdicts.values())
        differs = f" {filled['differs']}" if text.differs and not plain else ""
        over = f" Holds for {_which(verdicts)}."
        return Claim(
            claim=filled["claim"],
            by=text.by,
            paper=filled["paper"],
            ours=ours,
            holds=None if holds is None else bool(holds),
            why=f"Rule: {filled['rule']}{differs}{over if verdicts else ''}",
            repeats=repeats,
            readings=verdicts,
            apart=filled["apart"],
            by_clock=text.by_clock,
        )

    def over(self, name: str, ours: str, readings: Mapping[str, bool], **fields: Any) -> Claim:
        """Return a claim that is judged by several readings, the first of which decides."""
        return self(name, ours, next(iter(readings.values())), readings=readings, **fields)


def _which(readings: Mapping[str, bool]) -> str:
    if len(set(readings.values())) < 2:
        count = "all" if all(readings.values()) else "none"
        return f"{count} of {len(readings)} readings: {'; '.join(readings)}"
    held, others = (
        "; ".join(name for name, one in readings.items() if one is verdict)
        for verdict in (True, False)
    )
    return f"{held}. Not for {others}"


class CaptionTable:
    """The captions of one study by figure; a call makes the figure."""

    def __init__(self, texts: Mapping[str, Caption]) -> None:
        self.texts = texts

    def __call__(
        self,
        key: str,
        panels: Sequence[Panel],
        *,
        name: str = "",
        stacked: bool = False,
        columns: int = 0,
        **fields: object,
    ) -> Figure:
        """Return a figure; `name` is its file's, where several figures share a caption."""
        texts = self.texts[key].filled(fields)
        return Figure(name=name or key, panels=panels, stacked=stacked, columns=columns, **texts)

    def table(self, key: str, rows: Sequence[Sequence[str]], **fields: object) -> TextTable:
        """Return a table beside the figures; its header is the first row."""
        texts = self.texts[key].filled(fields)
        return TextTable(name=key, title=texts["title"], caption=texts["caption"], rows=rows)


@cache
def claims_of(study: str, **shared: object) -> ClaimTable:
    """Return the claims of a study; all texts may use the `shared` fields."""
    content = _read(f"claims/{study}.toml")
    by = content.pop("by")
    content.pop(LEFT_OUT, None)
    texts = {name: {"by": by} | table for name, table in content.items()}
    return ClaimTable(msgspec.convert(texts, dict[str, ClaimText]), **shared)


@cache
def left_out_of(study: str) -> tuple[ClaimLeftOut, ...]:
    """Return the claims of a study's paper that no study checks, with the reasons."""
    content = _read(f"claims/{study}.toml")
    tables = content.get(LEFT_OUT, {}).values()
    return tuple(msgspec.convert({"by": content["by"]} | table, ClaimLeftOut) for table in tables)


@cache
def captions_of(study: str) -> CaptionTable:
    """Return the captions of a study."""
    return CaptionTable(msgspec.convert(_read(f"captions/{study}.toml"), dict[str, Caption]))


def findings_of(
    study: str,
    *,
    claims: Iterable[Claim],
    figures: Iterable[Figure],
    table: Sequence[Sequence[str]] = (),
    tables: Iterable[TextTable] = (),
    provenance: Items = (),
    **fields: object,
) -> Findings:
    """Return the findings of a study with its summary."""
    texts = msgspec.convert(_read("summaries.toml")[study], Summary).filled(fields)
    return Findings(
        title=texts.pop("title"),
        summary=texts.pop("summary"),
        claims=list(claims),
        left_out=left_out_of(study),
        table=table,
        tables=list(tables),
        figures=list(figures),
        provenance=provenance,
        basis=Basis(**texts),
    )


def _read(file: str) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.toml.decode(
        (resources.files(__package__) / file).read_bytes()
    )
    return content
