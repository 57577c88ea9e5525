"""The state directory of a deployment: its sockets, its log, and locks that say who is alive.

A lock is held by a process for as long as it lives, so that whatever ended it, also SIGKILL, the
next one knows. Lock files are never removed: another process may be about to lock them.
"""

import fcntl
import os
import select
import signal
import socket
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.errors import InputError

LONGEST_PATH = 107
"""Bytes of a Unix socket's path."""
GRACE = 3.0
"""Seconds that a process left behind gets to finish what it began."""


def default() -> Path:
    """Return this user's state directory."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "penstock" if runtime else Path(f"/tmp/penstock-{os.getuid()}")


class State:
    """Where a deployment keeps what its processes share."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or default()).absolute()
        self.controller = self.folder / "controller.sock"
        self.lock = self.folder / "controller.lock"
        self.log = self.folder / "controller.log"
        self.emulator = self.folder / "emulator"
        self.store = self.folder / "store.db"
        self.records = self.folder / "records"
        self.deployment = self.folder / "deployment.json"  # of what is to be up
        self.tuning = self.folder / "tuning"  # what tuners have learnt
        self.last_words = self.folder / "last-words"  # of jobs that ended while nobody heard
        self.http = self.folder / "http"  # the URL of the API, while it is served
        self.listen = self.folder / "listen"  # where other hosts find the controller
        longest = len(os.fsencode(self.control(999)))
        if longest > LONGEST_PATH:
            raise InputError(
                f"state directory {str(self.folder)!r} is {longest - LONGEST_PATH} bytes too long "
                "for the sockets in it; give a shorter one with --state"
            )

    def socket(self, number: int) -> Path:
        """Return where an I/O node serves jobs."""
        return self.folder / f"io-node-{number}.sock"

    def control(self, number: int) -> Path:
        """Return where an I/O node is told what to do."""
        return self.folder / f"io-node-{number}.control"

    def node_lock(self, number: int) -> Path:
        """Return what an I/O node holds while it lives."""
        return self.folder / f"io-node-{number}.lock"

    def agent(self, pid: int) -> Path:
        """Return where the processes of the job that `penstock run` number `pid` runs find it."""
        return self.folder / f"agent-{pid}.sock"

    def untold(self, controller: object) -> Path:
        """Return where last words are kept for the controller of another host."""
        return self.folder / f"last-words-{str(controller).replace('/', '_')}"

    def exists(self, *, to_ask: bool = False) -> bool:
        """Say whether there is such a directory; it must be ours.

        Root may ask the controller of another user's, too: a site's has a user of its own.
        """
        try:
            found = self.folder.lstat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise InputError(f"state directory {self.folder}: {error.strerror}") from error
        if not stat.S_ISDIR(found.st_mode):
            raise InputError(f"state directory {self.folder} is no directory; give another --state")
        if found.st_uid != os.getuid() and not (to_ask and self._is_of_a_site()):
            raise InputError(f"state directory {self.folder} is another user's; give another")
        if found.st_mode & 0o022:
            raise InputError(
                f"state directory {self.folder} can be written to by others; "
                f"'chmod 700' it, or give another --state"
            )
        return True

    def _is_of_a_site(self) -> bool:
        """Say whether we are root, and not just anybody can have put the directory there."""
        return os.getuid() == 0 and not self.folder.parent.stat().st_mode & 0o022

    def create(self) -> None:
        """Make the directory unless it is there."""
        if self.exists():
            self._check_writable()
            return
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise InputError(f"state directory {self.folder}: {error.strerror}") from error
        self.exists()

    def _check_writable(self) -> None:
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise InputError(
                f"state directory {self.folder} cannot be written to; see its permissions and "
                "mount, or give another --state"
            )

    def is_up(self, *, to_ask: bool = False) -> bool:
        """Say whether a controller lives here."""
        return self.exists(to_ask=to_ask) and holder(self.lock) is not None

    def tail(self, lines: int = 5) -> str:
        """Return the end of the log, in one line."""
        with suppress(OSError):
            told = self.log.read_text(errors="replace").splitlines()[-lines:]
            return " | ".join(line.strip() for line in told if line.strip())
        return ""

    def clean(self) -> int:
        """End the I/O nodes that a controller left behind and remove sockets; return how many.

        To be called by who holds the controller's lock.
        """
        left = end(list(self.folder.glob("io-node-*.lock")))
        for kind in ("io-node-*.sock", "io-node-*.control", "agent-*.sock", "controller.sock"):
            for path in self.folder.glob(kind):
                # Jobs outlive a controller, and start processes that look for their agent.
                if not (kind.startswith("agent") and _listens(path)):
                    path.unlink(missing_ok=True)
        self.emulator.unlink(missing_ok=True)
        self.http.unlink(missing_ok=True)
        self.listen.unlink(missing_ok=True)
        return left


@contextmanager
def holding(path: Path) -> Iterator[int]:
    """Hold a lock until the block ends; BlockingIOError: another has it.

    A process that inherits the descriptor holds the lock too, for as long as it lives.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sign(descriptor, 0)  # whose number was there is gone
        yield descriptor
    finally:
        os.close(descriptor)


def sign(descriptor: int, pid: int) -> None:
    """Write into a lock who holds it."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{pid}\n".encode(), 0)


def holder(path: Path) -> int | None:
    """Return who holds a lock: its process id, 0 if it has not signed yet; None: nobody."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 32, 0).strip()
        return int(text) if text.isdigit() else 0
    else:
        return None
    finally:
        os.close(descriptor)


def end(locks: Sequence[Path], *, grace: float = GRACE) -> int:
    """End the processes that hold locks: asked first, then killed; return how many there were."""
    processes = [process for lock in locks if (process := _process(lock)) is not None]
    try:
        for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, GRACE)):
            for process in processes:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(process, number)
            until = time.monotonic() + seconds
            if all(gone(process, until - time.monotonic()) for process in processes):
                break
    finally:
        for process in processes:
            os.close(process)
    return len(processes)


def _process(lock: Path) -> int | None:
    """Return a descriptor of the process that holds a lock; None: nobody does."""
    pid = holder(lock)
    if not pid:
        return None
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    # Still held: the descriptor is of the process that signed, not of a later one.
    if holder(lock) == pid:
        return process
    os.close(process)
    return None


def gone(process: int, seconds: float) -> bool:
    """Wait until a process (a pidfd) has ended; say whether it has."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(max(round(seconds * 1000), 0)))


def _listens(path: Path) -> bool:
    """Say whether somebody is behind a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return True  # many are before us
        except OSError:
            return False
        return True


def is_stopped(pid: int) -> bool:
    """Say whether a signal, or a debugger, has stopped a process."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] in {"T", "t"}
