"""The tables of the store, their version, and the conversion between records and rows.

Users choose the names and numbers of jobs, so every value is made storable: no database may refuse
a row that another accepts.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Index,
    MetaData,
    Table,
    Text,
    column,
    inspect,
    select,
    table,
    text,
)

from penstock.errors import InputError
from penstock.learn.access_class import AccessClass
from penstock.learn.imported import Imported, ImportedApplication
from penstock.learn.knowledge import Knowledge
from penstock.learn.observations import History, ObservedPhase
from penstock.learn.tuned import Estimates, TunedValues
from penstock.live.protocol.job_record import (
    JobRecord,
    PinnedIoNodes,
    direct_bytes,
    fail_opens,
    forwarded_bytes,
)
from penstock.live.store.rows import Family, storable

VERSION = 3
LONGEST_COMMAND = 4096
"""Bytes of a command line that are stored."""
_WHOLE = 2**63 - 1
_NAMED = 20
"""Rows that are named in the log when they are dropped; the others are counted."""
log = logging.getLogger("penstock.store")
metadata = MetaData()


def _json(name: str, kind: Any, **more: Any) -> Column[str]:
    return Column(name, Text, info={"json": msgspec.json.Decoder(kind)}, **more)


def _job_columns() -> list[Column[Any]]:
    """Return the columns that running and ended jobs have in common."""
    return [
        Column("id", Text, primary_key=True),
        Column("serial", BigInteger, nullable=False),
        Column("user", Text, nullable=False),
        Column("uid", BigInteger, nullable=False),
        Column("name", Text, nullable=False),
        Column("began", Double, nullable=False),
        _json("command", list[str], nullable=False),
        Column("executable", Text, nullable=False),
        Column("nodes", BigInteger, nullable=False),
        Column("phases", BigInteger, nullable=False),
        Column("phase_seconds", Double, nullable=False),
        _json("pinned", PinnedIoNodes),
    ]


version = Table("penstock_schema", metadata, Column("version", BigInteger, nullable=False))
families = Table(
    "penstock_applications",
    metadata,
    Column("user", Text, primary_key=True),
    Column("executable", Text, primary_key=True),
    Column("nodes", BigInteger, primary_key=True, autoincrement=False),
    _json("history", dict[int, tuple[ObservedPhase, ...]], nullable=False),
    _json("imported", Imported, nullable=False),
    Column("pattern", Text),
    Column("request_size", BigInteger),
    _json("tuned", Estimates),
    Column("updated", Double, nullable=False),
)
running = Table(
    "penstock_running",
    metadata,
    *_job_columns(),
    Column("pid", BigInteger, nullable=False),
    Column("processes", BigInteger),
    Column("io_nodes", BigInteger, info={"field": "requested_io_nodes"}),
    _json("counters", dict[str, int], nullable=False),
)
ended = Table(
    "penstock_ended",
    metadata,
    *_job_columns(),
    Column("ended", Double, nullable=False),
    Column("state", Text, nullable=False),
    Column("status", BigInteger),
    Column("forwarded_bytes", BigInteger, nullable=False),
    Column("direct_bytes", BigInteger, nullable=False),
    Column("waited_seconds", Double, nullable=False),
    Column("fail_opens", BigInteger, nullable=False),
)
Index("penstock_ended_by_end", ended.c.ended)
Index("penstock_ended_by_serial", ended.c.serial)
counts = Table(
    "penstock_counts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)


def _observations(connection: Connection) -> None:
    """Version 2 keeps observed phases.

    Version 1 had a bandwidth, and a curve of such bandwidths, that a job may have had with another
    number of I/O nodes, or beside others: they stay in its table, which is no longer used. So do
    rows with values that cannot be true.
    """
    families.create(connection)
    earlier = table(
        "penstock_families",
        *map(column, ("user", "executable", "nodes", "w_iter", "observations", "phase_bytes")),
        *map(column, ("pattern", "updated")),
    )
    rows, odd = [], 0
    for old in connection.execute(select(earlier)).mappings():
        try:
            rows.append(_of_version_1(dict(old)))
        except (ValueError, TypeError, InputError) as error:
            odd += 1
            if odd <= _NAMED:
                name = f"application {str(old['executable'])[:80]!r} of user {str(old['user'])!r}"
                log.warning("%s is not taken over from version 1: %s", name, error)
    if odd:
        log.warning("applications that are not taken over from version 1: %d", odd)
    if rows:
        connection.execute(families.insert(), rows)


def _of_version_1(old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of an application; ValueError, TypeError or InputError: it cannot be true."""
    imported = Imported(
        volume=_number(old["phase_bytes"]),
        w_iter=_number(old["w_iter"]),
        iterations=max(int(old["observations"]), 1),
    )
    one = ImportedApplication(
        user=old["user"], application=old["executable"], nodes=int(old["nodes"]), imported=imported
    )
    if imported.volume is not None or imported.w_iter is not None:
        one.check()
    elif one.nodes < 1:
        raise ValueError(f"nodes is {one.nodes}")
    return {
        "user": one.user,
        "executable": one.application,
        "nodes": one.nodes,
        "pattern": old["pattern"],
        "updated": float(old["updated"]),
        "history": "{}",
        "imported": _text(imported),
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _classes(connection: Connection) -> None:
    """Version 3 keeps the size of an application's requests, what tuning learnt of it, and pins."""
    # A store of version 1 has just got the table of applications as it is now.
    for table_, name, kind in (
        (families, "request_size", "BIGINT"),
        (families, "tuned", "TEXT"),
        (running, "pinned", "TEXT"),
        (ended, "pinned", "TEXT"),  # of jobs that reconnect after the controller was stopped
    ):
        if name not in {column["name"] for column in inspect(connection).get_columns(table_.name)}:
            connection.execute(text(f"ALTER TABLE {table_.name} ADD COLUMN {name} {kind}"))


MIGRATIONS: Mapping[int, Callable[[Connection], None]] = {1: _observations, 2: _classes}
"""Functions that make version n + 1 out of version n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A version of the tables, and how older ones are migrated to it."""

    version: int = VERSION
    migrations: Mapping[int, Callable[[Connection], None]] = field(
        default_factory=lambda: MIGRATIONS
    )


CURRENT = Schema()


def prepare(connection: Connection, where: str, schema: Schema = CURRENT) -> None:
    """Create the tables, or migrate older ones; InputError: they cannot be used."""
    existing = set(inspect(connection).get_table_names())
    if version.name not in existing:
        if tables := sorted(existing & set(metadata.tables)):
            raise InputError(f"{where} has a table {tables[0]} of unknown version; give another")
        metadata.create_all(connection)
        connection.execute(version.insert().values(version=schema.version))
        return
    versions = connection.execute(select(version.c.version)).scalars().all()
    if len(versions) != 1:
        raise InputError(f"{where} has {len(versions)} schema versions, not one; restore a copy")
    at = versions[0]
    if at > schema.version:
        raise InputError(
            f"{where} has schema version {at}, of a newer Penstock; this one knows "
            f"{schema.version}: upgrade, or give another store"
        )
    while at < schema.version:
        if at not in schema.migrations:
            raise InputError(
                f"{where} has schema version {at}, which this Penstock cannot bring to "
                f"{schema.version}; open it with a version in between first, or give another store"
            )
        schema.migrations[at](connection)
        at += 1
        connection.execute(version.update().values(version=at))


def whole(value: int) -> int:
    """Return a number that fits into a 64-bit column."""
    return value if -_WHOLE <= value <= _WHOLE else (_WHOLE if value > 0 else -_WHOLE)


def _real(value: float) -> float | None:
    return value if math.isfinite(value) else None


@lru_cache(4096)  # a job's command is written again with every phase
def _command(words: tuple[str, ...]) -> str:
    stored, room = [], LONGEST_COMMAND
    for word in words:
        stored.append(storable(word, room))
        room -= len(stored[-1].encode()) + 1
        if room <= 0:
            break
    return msgspec.json.encode(stored).decode()


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


_BY_NAME: dict[str, Callable[[Any], Any]] = {
    "command": lambda words: _command(tuple(words)),
    "counters": lambda counters: _text(dict(counters)),
    "history": lambda history: _text(history.phases),
    "imported": _text,
    "pinned": _text,
    "tuned": lambda tuned: _text(tuned.estimates) if tuned else None,
}


def _encoder(column: Column[Any]) -> Callable[[Any], Any]:
    if column.name in _BY_NAME:
        return _BY_NAME[column.name]
    if isinstance(column.type, BigInteger):
        return whole
    return _real if isinstance(column.type, Double) else storable


_COLUMNS = {
    table: [(c.info.get("field", c.name), c.name, _encoder(c), c.info.get("json")) for c in table.c]
    for table in (families, running, ended)
}
"""Each column's field in the record, its name, its encoder, and its decoder if it is JSON."""


def row(table: Table, *records: Any) -> dict[str, Any]:
    """Return the row of a record, or of the two that make it up together."""
    values: dict[str, Any] = {}
    for field_, name, encode, _ in _COLUMNS[table]:
        value = getattr(records[0] if hasattr(records[0], field_) else records[-1], field_)
        values[name] = None if value is None else encode(value)
    if table is running:  # in this table it is the sum over all phases
        values["phase_seconds"] = values["phase_seconds"] * values["phases"]
    return values


def _values(table: Table, row: Sequence[Any]) -> dict[str, Any]:
    """Return the fields of a row; ValueError: a foreign value."""
    return {
        field_: value if decoder is None or value is None else decoder.decode(value)
        for (field_, _, _, decoder), value in zip(_COLUMNS[table], row, strict=True)
    }


def read_running(row: Sequence[Any]) -> JobRecord:
    """Return the record of a job that was running."""
    values = _values(running, row)
    counters = values["counters"]
    values["phase_seconds"] /= max(values["phases"], 1)
    return JobRecord(
        **values,
        state="running",
        seconds=0.0,
        io_nodes=[],
        forwarded_bytes=forwarded_bytes(counters),
        carried_bytes=counters.get("carried_bytes", 0),
        direct_bytes=direct_bytes(counters),
        fail_opens=fail_opens(counters),
        waits=counters.get("waits", 0),
        waited_seconds=counters.get("waited", 0) / 1e9,
    )


def read_ended(row: Sequence[Any]) -> JobRecord:
    """Return the record of a job that ended; what is not stored has its default."""
    values = _values(ended, row)
    seconds = max(values["ended"] - values["began"], 0.0)
    return JobRecord(**values, seconds=seconds, io_nodes=[], waits=0)


def read_family(row: Sequence[Any]) -> tuple[Family, Sequence[Any]]:
    """Return the family of a row, and the row: its knowledge is read when it is needed."""
    user, executable, nodes, *_ = row
    return Family(user=user, executable=executable, nodes=nodes), row


_PATTERN, _REQUEST_SIZE = (
    list(families.columns.keys()).index(name) for name in ("pattern", "request_size")
)


def read_class(row: Sequence[Any]) -> AccessClass | None:
    """Return the class of the family in a row, without reading its knowledge."""
    size = row[_REQUEST_SIZE]
    return AccessClass.of(row[_PATTERN], size if isinstance(size, int) else None)


def read_knowledge(row: Sequence[Any]) -> Knowledge:
    """Return the knowledge in a row of families; ValueError: a foreign value."""
    values = _values(families, row)
    for key in families.primary_key:
        del values[key.name]
    values["history"] = History.of(values["history"])
    values["imported"] = values["imported"].possible()
    values["tuned"] = TunedValues(values["tuned"] or {})
    return Knowledge(**values)
