"""Observations whose access pattern is known: what models learn from and are judged by.

One line of CSV each: what was run, then the observation field by field. docs/live/patterns.md has
it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

import msgspec

from penstock.csv_table import Table
from penstock.model import Observation
from penstock.model.observation import Pattern

Operation = Literal["read", "write"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
TRAINED_ON = (32 * 2**10, 256 * 2**10)
JUDGED_BY = (64 * 2**10, 128 * 2**10)
"""Request sizes: a model that has seen the first is asked for the second (thesis, 3.2)."""
SHIPPED, BEYOND = "observations.csv", "observations_beyond.csv"
HELD_OUT = "observations_held_out.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one I/O node saw in one interval amid a run, and what was run."""

    pattern: Pattern
    operation: Operation
    request: int
    """Bytes of a request."""
    processes: int
    io_nodes: int
    observation: Observation

    @property
    def row(self) -> dict[str, Any]:
        """Return it flat, as a line of a table."""
        told = {name: getattr(self, name) for name in RUN}
        return told | asdict(self.observation)


RUN = tuple(field.name for field in fields(Sample) if field.name != "observation")
COLUMNS = (*RUN, *(field.name for field in fields(Observation)))


def sample(row: Mapping[str, Any]) -> Sample:
    """Return the sample of a row; msgspec.ValidationError where it is none."""
    told: dict[str, Any] = {name: row.get(name) for name in RUN}
    seen = {name: row.get(name) for name in COLUMNS[len(RUN) :]}
    return msgspec.convert(told | {"observation": seen}, Sample, strict=False)


def _row(one: Sample) -> dict[str, Any]:
    """Return it as it is written: fractions to six digits, more than clocks are good for."""
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in one.row.items()}


TABLE = Table(
    holds="observations",
    columns=COLUMNS,
    entry=sample,
    row=_row,
    remedy="'penstock patterns measure' writes such a file",
)
read, write = TABLE.read, TABLE.write


@cache
def shipped() -> tuple[Sample, ...]:
    """Return what we measured: the explorer's grid on an emulated file system."""
    return _packaged(SHIPPED)


@cache
def beyond() -> tuple[Sample, ...]:
    """Return some outside that grid, by which kind and width of the shipped model were chosen."""
    return _packaged(BEYOND)


@cache
def held_out() -> tuple[Sample, ...]:
    """Return others outside it, taken after the model was made: nothing was chosen by them."""
    return _packaged(HELD_OUT)


def _packaged(name: str) -> tuple[Sample, ...]:
    return TABLE.parse(files("penstock.data").joinpath(name).read_text(encoding="utf-8"), name)


def of_sizes(samples: Sequence[Sample], sizes: Iterable[int]) -> list[Sample]:
    """Return the samples with requests of these sizes."""
    wanted = set(sizes)
    return [one for one in samples if one.request in wanted]
