"""The papers whose claims are held against our data, by the short names that claims give."""

from collections.abc import Mapping
from dataclasses import dataclass
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
