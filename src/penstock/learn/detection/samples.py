"""Observations whose access pattern is known, to train and evaluate models.

One CSV row per sample: the run, then the observation field by field (docs/live/patterns.md).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeVar, get_args

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
OFF_GRID_FILE = "observations_off_grid.csv"
HOSTS = "hosts"
"""A column of files that were measured on several hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observed:
    """One interval of one I/O node during a run, and the run's parameters."""

    operation: Operation
    request: int
    """Bytes of a request."""
    processes: int
    io_nodes: int
    observation: Observation

    @property
    def row(self) -> dict[str, Any]:
        """Return the sample as one flat row; metrics that were not observed are empty."""
        run = {name: getattr(self, name) for name in _run(type(self))}
        metrics = asdict(self.observation).items()
        row = run | {name: "" if value is None else value for name, value in metrics}
        return row | ({HOSTS: self.hosts} if isinstance(self, Sample) else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(_Observed):
    """A sample of a pattern that models are trained with."""

    pattern: Pattern
    hosts: str = ""
    """Names of the hosts, with spaces between them, if ranks ran on several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffGridSample(_Observed):
    """A sample of an access that no model was trained with."""

    kind: str
    """Its name in `off_grid.KINDS`."""
    pattern: Pattern | Literal["none"]


S = TypeVar("S", Sample, OffGridSample)
_METRICS = tuple(field.name for field in fields(Observation) if field.default is not None)
_OPTIONAL = tuple(field.name for field in fields(Observation) if field.default is None)
"""Metrics that not every I/O node observes."""


def _run(kind: type[_Observed]) -> tuple[str, ...]:
    """Return the columns of a run, the pattern first."""
    own = [field.name for field in fields(kind) if field.name not in {"observation", HOSTS}]
    return tuple(sorted(own, key=lambda name: name not in {"kind", "pattern"}))


def _convert(row: Mapping[str, Any], kind: type[S]) -> S:
    run: dict[str, Any] = {name: row.get(name) for name in _run(kind)}
    observation = {name: row.get(name) for name in _METRICS}
    observation |= {name: row[name] for name in _OPTIONAL if row.get(name, "") != ""}
    return msgspec.convert(run | {"observation": observation}, kind, strict=False)


def sample(row: Mapping[str, Any]) -> Sample:
    """Return the sample of a row; msgspec.ValidationError if it is invalid."""
    return replace(_convert(row, Sample), hosts=str(row.get(HOSTS) or ""))


def off_grid_sample(row: Mapping[str, Any]) -> OffGridSample:
    """Return the sample of a row; msgspec.ValidationError if it is invalid."""
    return _convert(row, OffGridSample)


def _short(one: _Observed) -> dict[str, Any]:
    """Return the CSV row: fractions have six digits, which exceeds the precision of clocks."""
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in one.row.items()}


def _table(kind: type[S], entry: Callable[[Mapping[str, Any]], S]) -> Table[S]:
    return Table(
        holds="observations",
        columns=(*_run(kind), *_METRICS),
        optional=_OPTIONAL,
        seldom=(HOSTS,) if kind is Sample else (),
        entry=entry,
        row=_short,
        remedy="'penstock patterns measure' writes such a file",
    )


TABLE = _table(Sample, sample)
OFF_GRID = _table(OffGridSample, off_grid_sample)
RUN, COLUMNS = _run(Sample), TABLE.columns
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


@cache
def off_grid() -> tuple[OffGridSample, ...]:
    """Return measurements of accesses that no model was trained with."""
    return OFF_GRID.parse(_text(OFF_GRID_FILE), OFF_GRID_FILE)


def _text(name: str) -> str:
    return files("penstock.data").joinpath(name).read_text(encoding="utf-8")


def _packaged(name: str) -> tuple[Sample, ...]:
    return TABLE.parse(_text(name), name)


def of_sizes(samples: Sequence[Sample], sizes: Iterable[int]) -> list[Sample]:
    """Return the samples with requests of these sizes."""
    allowed = set(sizes)
    return [one for one in samples if one.request in allowed]
