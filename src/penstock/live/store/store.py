"""The store: what a controller keeps across restarts. Every call is one transaction."""

import gc
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, Select, Table, bindparam, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from penstock.learn.knowledge import Knowledge
from penstock.live.protocol.job_record import JobRecord
from penstock.live.store import database, schema
from penstock.live.store.database import StoreError, TakenError
from penstock.live.store.rows import (
    TOTALS,
    Families,
    Family,
    Totals,
    storable,
)

log = logging.getLogger("penstock.store")
Record = TypeVar("Record")
Key = TypeVar("Key")
Change = TypeVar("Change")
Row = dict[str, Any]
Step = tuple[Any, list[Row]]
SLICE, PAUSE = 50, 1e-4
"""Rows after which a writer sleeps, and for how many seconds: Python runs one thread at a time, and
switches from a busy one only after 5 ms, which would delay turns."""
_SERIAL = "serial"
_REFUSED = (DataError, IntegrityError)
_STOP = delete(schema.running).where(schema.running.c.id == bindparam("job"))
_FORGET = delete(schema.families).where(
    schema.families.c.user == bindparam("of_user"),
    schema.families.c.executable == bindparam("of_executable"),
    schema.families.c.nodes == bindparam("of_nodes"),
)


@dataclass(slots=True, kw_only=True)
class Changes:
    """What is to be written, the newest of each key; None: remove it."""

    families: dict[Family, Knowledge | None] = field(default_factory=dict)
    jobs: dict[str, JobRecord | None] = field(default_factory=dict)
    totals: Totals | None = None
    serial: int | None = None  # job numbers up to this one are used
    since: float = math.inf  # when the oldest of them came

    def __len__(self) -> int:
        counts = (self.totals is not None) + (self.serial is not None)
        return len(self.families) + len(self.jobs) + counts

    def under(self, newer: "Changes") -> "Changes":
        """Return these changes with newer ones over them."""
        return Changes(
            families=_over(self.families, newer.families),
            jobs=_over(self.jobs, newer.jobs),
            totals=self.totals if newer.totals is None else newer.totals,
            serial=self.serial if newer.serial is None else newer.serial,
            since=min(self.since, newer.since),
        )


def _over(older: dict[Key, Change], newer: dict[Key, Change]) -> dict[Key, Change]:
    """Return both, each key in the position of its newest change."""
    return {key: change for key, change in older.items() if key not in newer} | newer


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Everything that a controller loads when it starts."""

    families: Families
    running: tuple[JobRecord, ...]
    ended: tuple[JobRecord, ...]  # the last ones, the oldest first
    totals: Totals
    serial: int  # job numbers up to this one are used


class Store:
    """A controller's database; a context manager, thread-safe. StoreError: try again later."""

    def __init__(self, url: str, tables: schema.Schema = schema.CURRENT) -> None:
        """Open a store; InputError: it cannot be used, is in use, or is damaged."""
        opened = database.database(url, tables)
        self._engine, self.where = opened.engine, opened.where
        self._check, self._release = opened.check, opened.release
        dialect = postgresql if self._engine.dialect.name == "postgresql" else sqlite
        self._upserts = {
            table: self._upsert(dialect.insert, table)
            for table in (schema.families, schema.running, schema.ended, schema.counts)
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; another controller may use it."""
        self._release.close()

    def load(self, *, ended: int = 100) -> Memory:
        """Return all knowledge, all running jobs, and the last jobs that ended."""
        table = schema.ended

        def load(connection: Connection) -> Memory:
            counts = {name: int(value) for name, value in connection.execute(select(schema.counts))}
            knowledge = select(schema.families).order_by(schema.families.c.updated)
            jobs = select(schema.running).order_by(schema.running.c.serial)
            last = select(table).order_by(table.c.ended.desc(), table.c.serial.desc()).limit(ended)
            running = tuple(_read(connection, jobs, schema.read_running))
            history = tuple(reversed([*_read(connection, last, schema.read_ended)]))
            return Memory(
                families=Families(
                    _read(connection, knowledge, schema.read_family),
                    decode=_knowledge,
                    class_of=schema.read_class,
                ),
                running=running,
                ended=history,
                totals=Totals(**{name: counts.get(name, 0) for name in TOTALS}),
                serial=max(
                    counts.get(_SERIAL, 0),
                    *(job.serial for job in running),
                    *(job.serial for job in history),
                    0,
                ),
            )

        with _no_collection():
            return self._do(load)

    def ended(self, job: str) -> JobRecord | None:
        """Return the record of a job that ended."""
        query = select(schema.ended).where(schema.ended.c.id == job)
        records = self._do(lambda connection: [*_read(connection, query, schema.read_ended)])
        return next(iter(records), None)

    def write(self, changes: Changes) -> list[str]:
        """Write all changes or, with StoreError, none; return why single rows were left out.

        A row that the database refuses must not block all others.
        """
        steps, refused = self._steps(changes)
        try:
            self._do(lambda connection: _write(connection, steps))
        except _REFUSED:
            refused += self._do(lambda connection: _write_singly(connection, steps))
        return refused

    def prune(self, *, ended_before: float, most: int = 1_000_000) -> int:
        """Delete jobs that ended before a time, and those before the last `most`; return how many.

        Knowledge of families stays.
        """
        table = schema.ended

        def prune(connection: Connection) -> int:
            last = connection.execute(select(func.max(table.c.serial))).scalar() or 0
            old = (table.c.ended < ended_before) | (table.c.serial <= last - most)
            return connection.execute(delete(table).where(old)).rowcount

        return self._do(prune)

    def _do(self, what: Callable[[Connection], Record]) -> Record:
        self._check()
        try:
            with self._engine.begin() as connection:
                return what(connection)
        except _REFUSED:
            raise
        except (SQLAlchemyError, TakenError) as error:
            # The next attempt gets a new connection: the error may be of this one.
            self._engine.dispose()
            if isinstance(error, TakenError):
                raise StoreError("taken", str(error)) from None
            raise StoreError.from_error(error) from error

    @staticmethod
    def _upsert(insert: Any, table: Table) -> Any:
        statement = insert(table)
        keys = list(table.primary_key.columns)
        newer = {c.name: statement.excluded[c.name] for c in table.columns if not c.primary_key}
        return statement.on_conflict_do_update(index_elements=keys, set_=newer)

    def _steps(self, changes: Changes) -> tuple[list[Step], list[str]]:
        """Return the statements with their rows, and why some records cannot be a row."""
        refused: list[str] = []

        def put(table: Table, records: Iterable[tuple[Any, ...]]) -> Step:
            rows = []
            for number, parts in enumerate(records, 1):
                if number % SLICE == 0:
                    time.sleep(PAUSE)
                try:
                    rows.append(schema.row(table, *parts))
                except (TypeError, ValueError, AttributeError, OverflowError) as error:
                    refused.append(database.one_line(error))
            return self._upserts[table], rows

        families, jobs = changes.families.items(), changes.jobs.items()
        running = {id: job for id, job in jobs if job is not None and job.state == "running"}
        ended = [(job,) for id, job in jobs if job is not None and id not in running]
        counts = {} if changes.serial is None else {_SERIAL: changes.serial}
        if changes.totals is not None:
            counts |= {name: getattr(changes.totals, name) for name in TOTALS}
        steps: list[Step] = [
            (_STOP, [{"job": storable(id)} for id, _ in jobs if id not in running]),
            put(schema.running, [(job,) for job in running.values()]),
            put(schema.ended, ended),
            (_FORGET, [_key(family) for family, now in families if now is None]),
            put(schema.families, [both for both in families if both[1] is not None]),
            (
                self._upserts[schema.counts],
                [{"name": k, "value": schema.whole(v)} for k, v in counts.items()],
            ),
        ]
        return [step for step in steps if step[1]], refused


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switch garbage collection off: it takes a third of the time to load many objects."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _key(family: Family) -> Row:
    return {"of_user": family.user, "of_executable": family.executable, "of_nodes": family.nodes}


def _knowledge(row: Sequence[Any]) -> Knowledge:
    """Return the knowledge in a row; none where it cannot be read."""
    try:
        return schema.read_knowledge(row)
    except (ValueError, TypeError) as error:
        log.warning("an application has no history: %s", database.one_line(error))
        return Knowledge()


def _write(connection: Connection, steps: list[Step]) -> None:
    for statement, rows in steps:
        for start in range(0, len(rows), SLICE):
            connection.execute(statement, rows[start : start + SLICE])
            time.sleep(PAUSE)


def _write_singly(connection: Connection, steps: list[Step]) -> list[str]:
    """Write row by row, without the refused ones; return the reasons."""
    refused = []
    for statement, rows in steps:
        for row in rows:
            try:
                with connection.begin_nested():
                    connection.execute(statement, [row])
            except _REFUSED as error:
                refused.append(database.one_line(error.orig or error))
    return refused


def _read(
    connection: Connection, rows: Select[Any], read: Callable[[Sequence[Any]], Record]
) -> Iterator[Record]:
    """Return the records of rows; a row that cannot be read is skipped."""
    for row in connection.execute(rows).all():
        try:
            yield read(row)
        except (ValueError, TypeError) as error:
            log.warning("skipped a row of the store: %s", database.one_line(error))
