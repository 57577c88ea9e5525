"""Opens the store's database: SQLite in a file, or PostgreSQL at a URL.

One controller uses a store at a time. For a file there is a lock beside it; in PostgreSQL each
session takes an advisory lock, so that every transaction has the lock, even after a reconnect.
"""

import importlib.util
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from penstock.errors import InputError
from penstock.live.protocol.state_directory import hold_lock, lock_holder, write_holder
from penstock.live.store import schema

PATIENCE = 10
"""Seconds that a statement may take."""
BUSY = 2
"""Seconds that another process, such as a backup, may hold a SQLite file's write lock."""
RELEASE_SECONDS = 2.0
"""Seconds within which PostgreSQL releases the lock of a controller that ended."""
_LOCK = 0x50454E53  # PENS
_SESSION = (
    f"SET statement_timeout = '{PATIENCE}s'",
    f"SET lock_timeout = '{PATIENCE}s'",
    # A host that disappears loses the lock after half a minute.
    "SET tcp_keepalives_idle = 10",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3",
)
_FILE = (
    f"PRAGMA busy_timeout = {BUSY * 1000}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    f"PRAGMA journal_size_limit = {16 << 20}",
)


class StoreError(Exception):
    """A failure of the database that may be temporary; equal causes have equal `kind`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @classmethod
    def from_error(cls, error: SQLAlchemyError) -> "StoreError":
        """Return a database's error, in one line."""
        cause = getattr(error, "orig", None) or error
        kind = (
            getattr(cause, "sqlite_errorname", None)
            or getattr(cause, "sqlstate", None)
            or type(cause).__name__
        )
        return cls(kind, one_line(cause))


class TakenError(Exception):
    """Another controller uses the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDatabase:
    """A database with its tables, locked for this process until it is released."""

    engine: Engine
    where: str
    check: Callable[[], None]  # StoreError: the file was removed or replaced
    release: ExitStack


def one_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error))


def database(url: str, tables: schema.Schema) -> OpenDatabase:
    """Open a store's database and create its tables; InputError: it cannot be used."""
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        raise InputError(
            f"store {url!r} is not a URL; give sqlite:///PATH or postgresql+psycopg://USER@HOST/NAME"
        ) from None
    if backend == "sqlite":
        return _file(parsed, tables)
    if backend == "postgresql":
        return _server(parsed, tables)
    raise InputError(f"a store cannot be in {backend!r}; give a sqlite or postgresql URL")


def _engine(url: URL, connected: Callable[[Any], None]) -> Engine:
    """Return an engine with a single connection."""
    engine = create_engine(
        url, poolclass=QueuePool, pool_size=1, max_overflow=0, pool_timeout=2 * PATIENCE
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, record: object) -> None:  # noqa: ARG001  # SQLAlchemy's
        try:
            connected(connection)
        except BaseException:
            connection.close()
            raise

    return engine


def _file(url: URL, tables: schema.Schema) -> OpenDatabase:
    if not url.database or url.database == ":memory:":
        raise InputError("a store in memory would be lost at the end; give sqlite:///PATH")
    path = Path(url.database).absolute()
    where = f"store {path}"
    with ExitStack() as stack:
        lock = path.with_name(path.name + ".lock")
        try:
            write_holder(stack.enter_context(hold_lock(lock)), os.getpid())
        except BlockingIOError:
            raise InputError(
                f"{where} is in use by another controller "
                f"(process {lock_holder(lock) or 'unknown'}); stop that one, or give another store"
            ) from None
        except OSError as error:
            raise InputError(f"{where}: {error.strerror}; give another path") from None
        if not path.exists():
            _create(path, where, tables)
        engine = _on_file(path)
        stack.callback(engine.dispose)
        if path.stat().st_size == 0:
            # SQLite accepts an empty file; here it is a truncated store.
            raise _damaged(where, path, "it is empty")
        try:
            with engine.begin() as connection:
                result = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
                if result != "ok":
                    raise _damaged(where, path, one_line(ValueError(result)))
                schema.prepare(connection, where, tables)
        except SQLAlchemyError as error:
            cause = StoreError.from_error(error)
            if cause.kind.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
                raise _damaged(where, path, str(cause)) from None
            raise InputError(
                f"{where} cannot be used: {cause}; check its permissions, and which other process "
                "has it open"
            ) from None
        first = path.stat()
        return OpenDatabase(
            engine=engine, where=where, check=lambda: _same(path, first), release=stack.pop_all()
        )


def _damaged(where: str, path: Path, reason: str) -> InputError:
    return InputError(
        f"{where} is damaged: {reason}; move it and {path.name}-wal away, and restore a copy, or "
        "start with an empty store"
    )


def _on_file(path: Path, *, pragmas: tuple[str, ...] = _FILE) -> Engine:
    # mode=rw: a new connection does not create a file that was removed.
    name = f"file:{quote(str(path))}"
    query = {"mode": "rw", "uri": "true", "check_same_thread": "false"}

    def connected(connection: Any) -> None:
        connection.isolation_level = None  # transactions begin explicitly
        for pragma in pragmas:
            connection.execute(pragma).close()

    engine = _engine(URL.create("sqlite", database=name, query=query), connected)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def _create(path: Path, where: str, tables: schema.Schema) -> None:
    """Create a store, completely or not at all."""
    if path.with_name(path.name + "-wal").exists():
        raise InputError(
            f"{where} is gone, but its journal {path.name}-wal exists; restore the store, or move "
            "the journal away to start with an empty store"
        )
    new = path.with_name(path.name + ".new")
    engine = _on_file(new, pragmas=())
    try:
        new.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with engine.begin() as connection:
            schema.prepare(connection, where, tables)
        engine.dispose()
        new.rename(path)
    except (OSError, SQLAlchemyError) as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        cause = getattr(error, "strerror", None) or one_line(getattr(error, "orig", None) or error)
        raise InputError(f"{where} cannot be created: {cause}; give another path") from None
    finally:
        engine.dispose()


def _same(path: Path, first: os.stat_result) -> None:
    """Check that the file was not removed or replaced: what is written would be lost."""
    with suppress(OSError):
        now = path.stat()
        if (now.st_dev, now.st_ino) == (first.st_dev, first.st_ino):
            return
    raise StoreError("gone", f"{path} was removed or replaced; restart the controller")


def _locked(connection: Any) -> bool:
    """Lock the store in PostgreSQL for this connection; tell whether that worked."""
    lock = "SELECT pg_try_advisory_lock(%s, hashtext(current_schema()))"
    (locked,) = connection.execute(lock, [_LOCK]).fetchone()
    connection.commit()
    return bool(locked)


def _server(url: URL, tables: schema.Schema) -> OpenDatabase:
    if importlib.util.find_spec("psycopg") is None:
        raise InputError(
            "a store in PostgreSQL needs psycopg: install the extra 'postgres', in a checkout "
            "pip install '.[postgres]' (docs/get-started/install.md)"
        )
    url = url.set(drivername="postgresql+psycopg")
    timeouts = {"connect_timeout": PATIENCE // 2, "keepalives_idle": 5, "keepalives_interval": 2}
    url = url.update_query_dict({k: str(v) for k, v in timeouts.items() if k not in url.query})
    where = f"store {url.set(query={}).render_as_string(hide_password=True)}"

    def connected(connection: Any) -> None:
        for setting in _SESSION:
            connection.execute(setting)
        until = time.monotonic() + RELEASE_SECONDS
        while not _locked(connection):
            if time.monotonic() > until:
                raise TakenError("another controller has it")
            time.sleep(0.05)

    engine = _engine(url, connected)
    with ExitStack() as stack:
        stack.callback(engine.dispose)
        try:
            with engine.begin() as connection:
                schema.prepare(connection, where, tables)
        except TakenError:
            raise InputError(
                f"{where} is in use by another controller; stop that one, or give another store"
            ) from None
        except SQLAlchemyError as error:
            raise InputError(
                f"{where} cannot be used: {one_line(getattr(error, 'orig', None) or error)}; "
                "check that the server runs and that this user may connect"
            ) from None
        return OpenDatabase(engine=engine, where=where, check=lambda: None, release=stack.pop_all())
