"""Measured bandwidths that the studies start from, as figures with their source.

`mn4_patterns.csv`: write bandwidth in MB/s of 189 access patterns on MareNostrum 4, straight to
GPFS (0) and through 1, 2, 4 or 8 I/O nodes; the repetitions of each, sorted. J. L. Bez et al.,
"Towards On-Demand I/O Forwarding in HPC Platforms", PDSW 2020, companion data (Zenodo 4016899).

`g5k_applications.csv`: bandwidth in MB/s of nine applications on Grid'5000 with the same counts,
and the volumes they move. J. L. Bez et al., "Arbitration Policies for On-Demand User-Level I/O
Forwarding on HPC Platforms", IPDPS 2021, companion data (MIT licence); volumes and labels from
J. L. Bez's thesis, Table 5.2. `g5k_runtimes.csv`: median run time in seconds of the same runs, from
the same companion data.
"""

import csv
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from penstock.model import Curve, Job

COUNTS = (0, 1, 2, 4, 8)
"""The counts of I/O nodes that both were measured at; 0 is direct access."""
Statistic = Literal["max", "mean", "median", "min"]
_STATISTICS: Mapping[Statistic, Callable[[Sequence[float]], float]] = {
    "max": max,
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """An access pattern of MareNostrum 4: what its repetitions reached, by number of I/O nodes."""

    nodes: int
    processes: int
    layout: str
    spatiality: str
    request_kb: int
    repetitions: Mapping[int, tuple[float, ...]]

    def curve(self, statistic: Statistic = "mean") -> Curve:
        """Return the bandwidth by number of I/O nodes.

        The published comparison of policies follows the mean over repetitions, the published split
        of best counts the maximum.
        """
        summary = _STATISTICS[statistic]
        return Curve.of({count: summary(values) for count, values in self.repetitions.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application on Grid'5000; `volume` in MB, the curve in MB/s."""

    label: str
    application: str
    nodes: int
    processes: int
    volume: float
    curve: Curve

    def job(self, serial: int, *, id: str | None = None) -> Job:
        """Return the application as a job that does nothing but I/O."""
        return Job(
            id=id or self.label,
            serial=serial,
            nodes=self.nodes,
            processes=self.processes,
            executable=self.application,
            curve=self.curve,
            volume=self.volume,
            compute=0.0,
        )


@cache
def mn4_patterns() -> tuple[Pattern, ...]:
    """Return the 189 access patterns of MareNostrum 4."""
    return tuple(
        Pattern(
            nodes=int(row["nodes"]),
            processes=int(row["processes"]),
            layout=row["layout"],
            spatiality=row["spatiality"],
            request_kb=int(row["request_kb"]),
            repetitions={n: tuple(map(float, row[f"io_nodes_{n}"].split())) for n in COUNTS},
        )
        for row in _rows("mn4_patterns.csv")
    )


@cache
def g5k_applications() -> Mapping[str, Application]:
    """Return the nine applications of Grid'5000 by their label."""
    return {
        row["label"]: Application(
            label=row["label"],
            application=row["application"],
            nodes=int(row["nodes"]),
            processes=int(row["processes"]),
            volume=1000 * (float(row["written_gb"]) + float(row["read_gb"])),
            curve=Curve.of({n: float(row[f"io_nodes_{n}"]) for n in COUNTS}),
        )
        for row in _rows("g5k_applications.csv")
    }


@cache
def g5k_runtimes() -> Mapping[str, Mapping[int, float]]:
    """Return the median run time of each application, in seconds, by number of I/O nodes."""
    return {
        row["label"]: {n: float(row[f"io_nodes_{n}"]) for n in COUNTS}
        for row in _rows("g5k_runtimes.csv")
    }


def _rows(name: str) -> Iterator[dict[str, Any]]:
    with files(__name__).joinpath(name).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)
