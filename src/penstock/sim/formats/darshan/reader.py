"""Reads Darshan logs in a child process, so that a damaged one cannot take the command down.

darshan-util believes what a log says of itself: counts, lengths, text without an end. A child that
dies, hangs or asks for all memory is told of as what is wrong with that log, and replaced.
"""

import importlib.util
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.learn.profiles import Profile
from penstock.sim.formats.darshan.child import Answer, Asked

SUFFIXES = (".darshan", ".darshan_partial")
PATIENCE, PER_BYTE = 60.0, 2e-5
"""Seconds that a log may take, and for each byte; a megabyte takes about one."""
LOGS_A_CHILD = 512
"""What the library leaks goes with the child."""
STARTING = 120.0
FEWEST = 64
"""Bytes: a log's head alone is longer."""


def check_available() -> None:
    """Refuse where PyDarshan is missing."""
    if importlib.util.find_spec("darshan") is None:
        raise InputError(
            "PyDarshan is not installed: install the extra 'darshan', in a checkout "
            "pip install '.[darshan]' (docs/get-started/install.md)"
        )


def read(path: Path) -> Profile:
    """Return the profile of one log."""
    with Reader() as reader:
        return reader.read(path)


def logs_in(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the logs named, and those in folders and below, in order of their names."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for entry in sorted(path.iterdir()):
            if entry.is_dir() and not entry.is_symlink():
                yield from logs_in([entry])
            elif entry.suffix in SUFFIXES:
                yield entry


class Reader:
    """Reads one log after the other; a context manager."""

    def __init__(self) -> None:
        check_available()
        self._child: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._read = 0
        self._buffer = b""

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def read(self, path: Path) -> Profile:
        """Return the profile of a log, or raise InputError that names it."""
        try:
            str(path).encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{str(path)!r}: PyDarshan wants names in UTF-8; rename it") from error
        try:
            size, regular = path.stat().st_size, path.is_file()
            if regular:
                with path.open("rb"):
                    pass
        except FileNotFoundError as error:
            raise InputError(f"{path}: no such file; check the name") from error
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {reason(error)}") from error
        if not regular:
            raise InputError(f"{path} is not a regular file; give a Darshan log")
        if size < FEWEST:
            raise InputError(f"{path} has {size} bytes; it is no Darshan log, or all of it is lost")
        answer = self._ask(path, PATIENCE + PER_BYTE * size)
        if answer.profile is None:
            raise InputError(f"{path}: {answer.error}{self._complaint()}")
        if complaint := self._complaint():
            raise InputError(f"{path}: it is damaged, or not all of it is there{complaint}")
        return answer.profile

    def _ask(self, path: Path, patience: float) -> Answer:
        if self._read >= LOGS_A_CHILD:
            self._end()
        if self._child is None:
            self._start()
            patience += STARTING
        assert self._child is not None
        assert self._child.stdin is not None
        self._read += 1
        try:
            self._child.stdin.write(msgspec.json.encode(Asked(str(path))) + b"\n")
            self._child.stdin.flush()
            line = self._line(time.monotonic() + patience)
        except (BrokenPipeError, EOFError):
            status = self._end()
            return Answer(error=f"reading it {_died(status)}; it is damaged")
        except TimeoutError:
            self._end()
            return Answer(error=f"reading it took more than {patience:.0f} s; it is damaged")
        return msgspec.json.decode(line, type=Answer)

    def _line(self, until: float) -> bytes:
        assert self._child is not None
        assert self._child.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(until - time.monotonic(), 0.0)):
                    raise TimeoutError
                piece = os.read(self._child.stdout.fileno(), 1 << 20)
                if not piece:
                    raise EOFError
                self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _complaint(self) -> str:
        """Return what the library printed, for the end of a message."""
        if self._said is None:
            return ""
        self._said.seek(0)
        said = self._said.read(4096).decode(errors="replace")
        text = "".join(c for c in said if c.isprintable() or c == "\n")
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        return f" (darshan-util: {first.removeprefix('Error:').strip()})" if first else ""

    def _start(self) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - the child's, closed with it
        self._read, self._buffer = 0, b""
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", "penstock.sim.formats.darshan.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )

    def _end(self) -> int:
        """End the child and return its status."""
        if self._child is None:
            return 0
        child, self._child = self._child, None
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        try:
            status = child.wait(1.0)
        except subprocess.TimeoutExpired:
            child.kill()
            status = child.wait()
        if self._said is not None:
            self._said.close()
            self._said = None
        return status


def _died(status: int) -> str:
    if status >= 0:
        return f"ended its process with status {status}"
    try:
        return f"killed its process ({signal.Signals(-status).name})"
    except ValueError:
        return f"killed its process (signal {-status})"
