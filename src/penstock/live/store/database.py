"""Databases that a store can be in: SQLite in a file, PostgreSQL at a URL.

One controller has a store at a time. In a file that is a lock beside it; in PostgreSQL an advisory
lock of the session, so that every transaction is one of a session that has the lock, also after a
lost connection was made anew.
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
"""Seconds that anything in a database may take."""
BUSY = 2
"""Seconds that another process, a backup say, may hold a SQLite file's write lock."""
LETS_GO_WITHIN = 2.0
"""Seconds in which PostgreSQL notices that a controller has ended; till then it has the lock."""
_LOCK = 0x50454E53  # PENS
_SESSION = (
    f"SET statement_timeout = '{PATIENCE}s'",
    f"SET lock_timeout = '{PATIENCE}s'",
    # A controller's host that is gone without a word loses the lock after half a minute.
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
    """A database that fails, and may not the next time; `kind` is the same for the same cause."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @classmethod
    def of(cls, error: SQLAlchemyError) -> "StoreError":
        """Return what a database's error says, in one line."""
        cause = getattr(error, "orig", None) or error
        kind = (
            getattr(cause, "sqlite_errorname", None)
            or getattr(cause, "sqlstate", None)
            or type(cause).__name__
        )
        return cls(kind, one_line(cause))


class TakenError(Exception):
    """Another controller has the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A database whose tables are there, and that is ours until it is closed."""

    engine: Engine
    where: str
    check: Callable[[], None]  # StoreError: what was opened is no more
    release: ExitStack


def one_line(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error))


def database(url: str) -> Opened:
    """Open a store's database and make its tables; InputError: it cannot be used."""
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        raise InputError(
            f"store {url!r} is no URL; give sqlite:///PATH or postgresql+psycopg://USER@HOST/NAME"
        ) from None
    if backend == "sqlite":
        return _file(parsed)
    if backend == "postgresql":
        return _server(parsed)
    raise InputError(f"a store cannot be in {backend!r}; give a sqlite or postgresql URL")


def _engine(url: URL, connected: Callable[[Any], None]) -> Engine:
    """Return an engine with one connection, which is a writer's or a reader's, one at a time."""
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


def _file(url: URL) -> Opened:
    if not url.database or url.database == ":memory:":
        raise InputError("a store in memory would remember nothing; give sqlite:///PATH")
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
            _create(path, where)
        engine = _on_file(path)
        stack.callback(engine.dispose)
        if path.stat().st_size == 0:
            # A fine database to SQLite, and to us one that was cut off.
            raise _damaged(where, path, "it is empty")
        try:
            with engine.begin() as connection:
                found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
                if found != "ok":
                    raise _damaged(where, path, one_line(ValueError(found)))
                schema.prepare(connection, where)
        except SQLAlchemyError as error:
            cause = StoreError.of(error)
            if cause.kind.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
                raise _damaged(where, path, str(cause)) from None
            raise InputError(
                f"{where} cannot be used: {cause}; see who else has it open, and its permissions"
            ) from None
        first = path.stat()
        return Opened(
            engine=engine, where=where, check=lambda: _same(path, first), release=stack.pop_all()
        )


def _damaged(where: str, path: Path, found: str) -> InputError:
    return InputError(
        f"{where} is damaged: {found}; move it away, with {path.name}-wal, and put a copy in its "
        "place, or begin anew without one"
    )


def _on_file(path: Path, *, pragmas: tuple[str, ...] = _FILE) -> Engine:
    # A file that is gone is not made anew by a new connection: mode=rw.
    name = f"file:{quote(str(path))}"
    query = {"mode": "rw", "uri": "true", "check_same_thread": "false"}

    def connected(connection: Any) -> None:
        connection.isolation_level = None  # transactions, also of tables, begin where we say
        for pragma in pragmas:
            connection.execute(pragma).close()

    engine = _engine(URL.create("sqlite", database=name, query=query), connected)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def _create(path: Path, where: str) -> None:
    """Make a store that is there as a whole or not at all."""
    if path.with_name(path.name + "-wal").exists():
        raise InputError(
            f"{where} is gone, but its journal {path.name}-wal is not; put the store back, or move "
            "its journal away to begin anew"
        )
    new = path.with_name(path.name + ".new")
    engine = _on_file(new, pragmas=())
    try:
        new.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with engine.begin() as connection:
            schema.prepare(connection, where)
        engine.dispose()
        new.rename(path)
    except (OSError, SQLAlchemyError) as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        cause = getattr(error, "strerror", None) or one_line(getattr(error, "orig", None) or error)
        raise InputError(f"{where} cannot be made: {cause}; give another path") from None
    finally:
        engine.dispose()


def _same(path: Path, first: os.stat_result) -> None:
    """A file that was removed would still be written to, and then be gone."""
    with suppress(OSError):
        now = path.stat()
        if (now.st_dev, now.st_ino) == (first.st_dev, first.st_ino):
            return
    raise StoreError("gone", f"{path} was removed or replaced; restart the controller")


def _locked(connection: Any) -> bool:
    """Say whether the store in PostgreSQL is this connection's now."""
    lock = "SELECT pg_try_advisory_lock(%s, hashtext(current_schema()))"
    (locked,) = connection.execute(lock, [_LOCK]).fetchone()
    connection.commit()
    return bool(locked)


def _server(url: URL) -> Opened:
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
        until = time.monotonic() + LETS_GO_WITHIN
        while not _locked(connection):
            if time.monotonic() > until:
                raise TakenError("another controller has it")
            time.sleep(0.05)

    engine = _engine(url, connected)
    with ExitStack() as stack:
        stack.callback(engine.dispose)
        try:
            with engine.begin() as connection:
                schema.prepare(connection, where)
        except TakenError:
            raise InputError(
                f"{where} is in use by another controller; stop that one, or give another store"
            ) from None
        except SQLAlchemyError as error:
            raise InputError(
                f"{where} cannot be used: {one_line(getattr(error, 'orig', None) or error)}; see "
                "that the server runs and lets this user in"
            ) from None
        return Opened(engine=engine, where=where, check=lambda: None, release=stack.pop_all())
