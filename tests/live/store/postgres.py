"""A real PostgreSQL server of the tests' own, on a Unix socket."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from limits import HANG

WAIT = HANG


def binaries() -> Path:
    """Return where Debian keeps the newest server's programs."""
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    return max(folders, key=lambda path: float(path.parent.name))


class Postgres:
    """Runs as the user postgres where tests run as root, which the server refuses to be."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
            self._as = {"user": "postgres", "group": "postgres", "extra_groups": []}
        self._names = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        subprocess.run(
            [binaries() / "initdb", "-D", self.data, "-U", "penstock", "-A", "trust", "--no-sync"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=WAIT,
            **self._as,
        )

    def start(self) -> None:
        """Return when it serves."""
        deadline = time.monotonic() + WAIT
        while True:
            if self._process is None or self._process.poll() is not None:
                # Also once more: what a killed server left behind takes a moment to go.
                self._process = self._begin()
            try:
                self._connect().close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.05)  # a server says to nobody that it serves
            else:
                return

    def _begin(self) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [binaries() / "postgres", "-D", self.data, "-k", self.folder, "-h", "", "-F"],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._as,
            )

    def end(self, number: signal.Signals = signal.SIGINT) -> None:
        """End it at once; SIGKILL leaves it no time to write anything."""
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(WAIT)

    def _connect(self) -> "psycopg.Connection[Any]":
        return psycopg.connect(
            host=str(self.folder), user="penstock", dbname="postgres", autocommit=True
        )

    def execute(self, statement: Any) -> None:
        with self._connect() as connection:
            connection.execute(statement)

    def locked(self) -> bool:
        """Say whether a session has an advisory lock, in whichever database."""
        with self._connect() as connection:
            rows = connection.execute("SELECT FROM pg_locks WHERE locktype = 'advisory'")
            return rows.fetchone() is not None

    def database(self) -> str:
        """Return the URL of a new, empty database."""
        name = f"store{next(self._names)}"
        self.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://penstock@/{name}?host={self.folder}"


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    with tempfile.TemporaryDirectory(prefix="pg", dir="/dev/shm") as folder:
        server = Postgres(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.end()
