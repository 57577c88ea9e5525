"""Observations whose access pattern is known, to train and evaluate models.

One CSV row per sample: the run, then the observation field by field (docs/live/patterns.md).
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
"""Request sizes: a model trained with the first is evaluated on the second (thesis, 3.2)."""
SHIPPED, BEYOND = "observations.csv", "observations_beyond.csv"
HELD_OUT = "observations_held_out.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One interval of one I/O node during a run, and the run's parameters."""

    pattern: Pattern
    operation: Operation
    request: int
    """Bytes of a request."""
    processes: int
    io_nodes: int
    observation: Observation

    @property
    def row(self) -> dict[str, Any]:
        """Return the sample as one flat row."""
        run = {name: getattr(self, name) for name in RUN}
        return run | asdict(self.observation)


RUN = tuple(field.name for field in fields(Sample) if field.name != "observation")
COLUMNS = (*RUN, *(field.name for field in fields(Observation)))


def sample(row: Mapping[str, Any]) -> Sample:
    """Return the sample of a row; msgspec.ValidationError if it is invalid."""
    run: dict[str, Any] = {name: row.get(name) for name in RUN}
    observation = {name: row.get(name) for name in COLUMNS[len(RUN) :]}
    return msgspec.convert(run | {"observation": observation}, Sample, strict=False)


def _row(one: Sample) -> dict[str, Any]:
    """Return the CSV row: fractions have six digits, which exceeds the precision of clocks."""
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
    """Return the built-in measurements: the explorer's grid on an emulated file system."""
    return _packaged(SHIPPED)


@cache
def beyond() -> tuple[Sample, ...]:
    """Return measurements outside that grid, used to select kind and width of the model."""
    return _packaged(BEYOND)


@cache
def held_out() -> tuple[Sample, ...]:
    """Return others outside it, taken after the model was trained, and not used to select."""
    return _packaged(HELD_OUT)


def _packaged(name: str) -> tuple[Sample, ...]:
    return TABLE.parse(files("penstock.data").joinpath(name).read_text(encoding="utf-8"), name)


def of_sizes(samples: Sequence[Sample], sizes: Iterable[int]) -> list[Sample]:
    """Return the samples with requests of these sizes."""
    allowed = set(sizes)
    return [one for one in samples if one.request in allowed]
