"""The findings of a study as plain records: studies make them, reports show them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

Claimant = Literal["io-sets", "io-resources", "forwarding", "packs", "write-models", "penstock"]
"""Who makes a claim: a paper, or we."""
OURS: Claimant = "penstock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """What is needed to find it."""

    authors: str
    title: str
    where: str

    @property
    def cited(self) -> str:
        """Return it as one line."""
        return f"{self.authors}, {self.title}, {self.where}"


PAPERS: Mapping[Claimant, Paper] = {
    "io-sets": Paper(
        authors="Boito, Pallez, Teylo, Vidal",
        title="IO-SETS: Simple and efficient approaches for I/O bandwidth management",
        where="IEEE TPDS 34(10), 2023",
    ),
    "io-resources": Paper(
        authors="Bandet, Boito, Pallez",
        title="Scheduling distributed I/O resources in HPC systems",
        where="hal-04394004, 2024",
    ),
    "forwarding": Paper(
        authors="Bez",
        title="Dynamic tuning and reconfiguration of the I/O forwarding layer in HPC platforms",
        where="thesis, UFRGS, 2020",
    ),
    "packs": Paper(
        authors="Carretero, Jeannot, Pallez, Singh, Vidal",
        title="Mapping and scheduling HPC applications for optimizing I/O",
        where="ICS, 2020",
    ),
    "write-models": Paper(
        authors="Xie, Tan, Carns, Chase, Harms, Lofstead, Oral, Vazhkudai, Wang",
        title="Interpreting write performance of supercomputer I/O systems with regression models",
        where="2021",
    ),
}


Items = Sequence[tuple[str, str]]
"""Names and values, for a table of two columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimReference:
    """A claim of another study, by its words."""

    study: str
    claim: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement of a paper (or ours) held against our data.

    `by` is who makes it: a paper, by its short name, or we. `holds` follows from the data by the
    rule that `why` begins with; where our result differs, `why` adds what we know about the reason.
    None: the data do not allow a verdict, and `why` says so. A claim of a first look `repeats` one
    of another study, which counts it.
    """

    claim: str
    by: Claimant
    paper: str
    ours: str
    holds: bool | None
    why: str
    repeats: ClaimReference | None = None
    readings: Mapping[str, bool] = field(default_factory=dict)
    """Where the paper leaves a choice open: whether the claim holds, for each way to read it.
    `holds` is the verdict of the first."""
    apart: str = ""
    """Why the claim is shown but not counted: "by construction", "synthetic curves"."""
    by_clock: bool = False
    """It compares measured times: a busy machine gives no verdict."""

    @property
    def verdict(self) -> str:
        """Return the verdict in a word or two: "yes", "no", "3 of 5 readings", "not judged"."""
        if self.holds is None:
            return NOT_JUDGED
        if self.depends:
            return f"{sum(self.readings.values())} of {len(self.readings)} readings"
        return YES if self.holds else NO

    def as_data(self) -> dict[str, object]:
        """Return the claim for JSON, with its verdict: `holds` is of the first reading only."""
        return asdict(self) | {"verdict": self.verdict}

    @property
    def depends(self) -> bool:
        """Whether an open choice decides: the claim holds for some readings, not for all."""
        return self.holds is not None and len(set(self.readings.values())) > 1


YES, NO, NOT_JUDGED = "yes", "no", "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many claims there are, and what came of them; those counted apart are not in `claims`."""

    claims: int = 0
    hold: int = 0
    depend: int = 0
    not_judged: int = 0
    apart: int = 0

    @classmethod
    def of(cls, claims: Iterable[Claim]) -> "Tally":
        """Count claims."""
        every = list(claims)
        own = [claim for claim in every if not claim.apart]
        return cls(
            claims=len(own),
            hold=sum(claim.verdict == YES for claim in own),
            depend=sum(claim.depends for claim in own),
            not_judged=sum(claim.holds is None for claim in own),
            apart=len(every) - len(own),
        )

    @property
    def differ(self) -> int:
        """The number of claims that do not hold, however they are read."""
        return self.claims - self.hold - self.depend - self.not_judged

    def text(self, noun: str = "claims") -> str:
        """Return it as a phrase: "20 of 24 claims hold, 3 do not, 1 depends on an open choice"."""
        parts = [f"{self.hold} of {self.claims} {noun} hold"]
        if self.differ:
            parts.append(f"{self.differ} {'does' if self.differ == 1 else 'do'} not")
        if self.depend:
            verb = "depends" if self.depend == 1 else "depend"
            parts.append(f"{self.depend} {verb} on an open choice")
        if self.not_judged:
            parts.append(f"{self.not_judged} not judged")
        if self.apart:
            parts.append(f"{self.apart} shown but not counted")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimLeftOut:
    """A claim of a paper that no study checks, and the reason."""

    claim: str
    by: Claimant
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve: a mean at each x, and the ends of its confidence interval where there is one."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A horizontal line to read the curves against."""

    y: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """One pair of axes with curves over a parameter."""

    title: str
    x: str
    y: str
    series: Sequence[Series]
    references: Sequence[Reference] = ()
    log_x: bool = False
    log_y: bool = False
    bottom: float | None = None
    top: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """One pair of axes with one dot and interval per label: a metric policy by policy."""

    title: str
    labels: Sequence[str]
    value: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    better: Literal["higher", "lower"]
    reference: float | None = None
    form: str = ".3f"
    log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """Points of one kind, joined in their order where they form a line."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """One pair of axes with points of several kinds, named beside it."""

    title: str
    x: str
    y: str
    clouds: Sequence[Cloud]
    log_y: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What a job did between two times: "compute", "wait" or "io", the last at a share."""

    job: str
    start: float
    end: float
    doing: Literal["compute", "wait", "io"]
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """One pair of axes with one lane per job: what it did when."""

    title: str
    x: str
    jobs: Sequence[str]
    stretches: Sequence[Stretch]
    window: tuple[float, float]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """One pair of axes with bars over labels, one colour per series: side by side, or stacked.

    A series has a height for each label, and the ends of a range around it where there is one; its
    x is ignored. Where `colour_by` is "sign", bars above and below zero differ in colour.
    """

    title: str
    x: str
    y: str
    labels: Sequence[str]
    series: Sequence[Series]
    references: Sequence[Reference] = ()
    stacked: bool = False
    colour_by: Literal["series", "sign"] = "series"
    log_y: bool = False
    top: float | None = None
    key: bool = False
    small: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """One pair of axes with rows of coloured cells over time; no value, no colour."""

    title: str
    x: str
    y: str
    rows: Sequence[str]
    cells: Sequence[Sequence[float]]
    window: tuple[float, float]
    unit: str


Panel = Curves | Dots | Lanes | Bars | Scatter | HeatMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Panels side by side (or one above the other), with a caption that says what was simulated.

    `columns` > 0 is the number of panels per row. `source` is what the figure rests on, in a word
    or two: "simulated", "measured".
    """

    name: str
    title: str
    caption: str
    panels: Sequence[Panel]
    stacked: bool = False
    columns: int = 0
    source: str = "simulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A small table beside the figures: a header and rows of text, with a caption."""

    name: str
    title: str
    caption: str
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What results rest on: what was simulated, what emulated, what measured, each in a line."""

    simulated: str = ""
    emulated: str = ""
    measured: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The claims, table and figures of a study.

    `table` is a header and rows of text, for a study that compares rather than claims; `tables`
    have sweeps that claims refer to; `provenance` is how the results were made, item by item.
    """

    title: str
    summary: str
    claims: Sequence[Claim] = ()
    left_out: Sequence[ClaimLeftOut] = ()
    table: Sequence[Sequence[str]] = ()
    tables: Sequence[TextTable] = ()
    figures: Sequence[Figure] = ()
    provenance: Items = ()
    basis: Basis = Basis()
