"""Reads Darshan logs in a child process, so that a damaged log cannot crash the command.

darshan-util trusts the content of a log: counts, lengths, terminators. A child that dies, hangs or
exhausts its memory is reported as an error of that log, and replaced.
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
from penstock.sim.formats.darshan.log import Answer

SUFFIXES = (".darshan", ".darshan_partial")
PATIENCE, PER_BYTE = 60.0, 2e-5
"""Time limit in seconds: a constant, and per byte; a megabyte takes about one second."""
LOGS_PER_CHILD = 512
"""A child is replaced after this many logs, which frees what the library leaks."""
STARTING = 120.0
FEWEST = 64
"""Bytes; the header of a log alone is longer."""


def check_available() -> None:
    """Raise InputError if PyDarshan is not installed."""
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
    """Yield the given logs, and those below given directories, in order of their names."""
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
        self._stderr: IO[bytes] | None = None
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
            raise InputError(
                f"{path} has {size} bytes; it is not a Darshan log, or it is truncated"
            )
        answer = self._ask(path, PATIENCE + PER_BYTE * size)
        if answer.profile is None:
            raise InputError(f"{path}: {answer.error}{self._complaint()}")
        if complaint := self._complaint():
            raise InputError(f"{path}: it is damaged, or incomplete{complaint}")
        return answer.profile

    def _ask(self, path: Path, patience: float) -> Answer:
        if self._read >= LOGS_PER_CHILD:
            self._end()
        if self._child is None:
            self._start()
            patience += STARTING
        assert self._child is not None
        assert self._child.stdin is not None
        self._read += 1
        try:
            self._child.stdin.write(msgspec.json.encode(str(path)) + b"\n")
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
        """Return the first line that the library printed, for the end of a message."""
        if self._stderr is None:
            return ""
        self._stderr.seek(0)
        output = self._stderr.read(4096).decode(errors="replace")
        text = "".join(c for c in output if c.isprintable() or c == "\n")
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        return f" (darshan-util: {first.removeprefix('Error:').strip()})" if first else ""

    def _start(self) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - the child's, closed with it
        self._read, self._buffer = 0, b""
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", "penstock.sim.formats.darshan.log"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
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
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None
        return status


def _died(status: int) -> str:
    if status >= 0:
        return f"ended its process with status {status}"
    try:
        return f"killed its process ({signal.Signals(-status).name})"
    except ValueError:
        return f"killed its process (signal {-status})"
