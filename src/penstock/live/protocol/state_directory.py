"""The state directory of a deployment: its sockets, its log, and the locks of its processes.

A process holds its lock for as long as it lives, so the kernel releases it however the process
ends. Lock files are never removed: another process may be about to lock them.
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

MAX_SOCKET_PATH = 107
"""Bytes of the path of a Unix socket."""
GRACE = 3.0
"""Seconds that a leftover process gets to finish its requests."""
LOOKS, LOOK = 2000, 0.005
"""How often a lock is tried while others look for its holder, and seconds between two tries."""


def default_folder() -> Path:
    """Return the state directory of this user."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "penstock" if runtime else Path(f"/tmp/penstock-{os.getuid()}")


class StateDirectory:
    """The files that the processes of a deployment share."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or default_folder()).absolute()
        self._is_default = folder is None
        self.controller = self.folder / "controller.sock"
        self.lock = self.folder / "controller.lock"
        self.log = self.folder / "controller.log"
        self.emulator = self.folder / "emulator"
        self.carry_token = self.folder / "carry-token"  # what an emulated I/O node asks of clients
        self.store = self.folder / "store.db"
        self.records = self.folder / "records"
        self.deployment = self.folder / "deployment.json"  # what should be up
        self.tuning = self.folder / "tuning"  # what tuners have learned
        self.exit_spool = self.folder / "last-words"  # exits that no controller received
        self.http = self.folder / "http"  # the URL of the API, while it is served
        self.listen = self.folder / "listen"  # the controller's address for other hosts
        longest = len(os.fsencode(self.control_socket(999)))
        if longest > MAX_SOCKET_PATH:
            raise InputError(
                f"state directory {str(self.folder)!r} is {longest - MAX_SOCKET_PATH} bytes too "
                "long for the sockets in it; give a shorter one with --state"
            )

    def data_socket(self, number: int) -> Path:
        """Return the socket on which an I/O node serves jobs."""
        return self.folder / f"io-node-{number}.sock"

    def control_socket(self, number: int) -> Path:
        """Return the socket on which an I/O node receives control messages."""
        return self.folder / f"io-node-{number}.control"

    def node_lock(self, number: int) -> Path:
        """Return the lock that an I/O node holds while it lives."""
        return self.folder / f"io-node-{number}.lock"

    def agent_socket(self, pid: int) -> Path:
        """Return the socket on which `penstock run`, process `pid`, serves its job's processes."""
        return self.folder / f"agent-{pid}.sock"

    def remote_exit_spool(self, controller: object) -> Path:
        """Return the folder of unreported exits for the controller of another host."""
        return self.folder / f"last-words-{str(controller).replace('/', '_')}"

    def exists(self, *, allow_root: bool = False) -> bool:
        """Return whether the directory exists; raise InputError unless it is this user's.

        With `allow_root`, root may use the directory of a site's own user as well.
        """
        try:
            status = self.folder.lstat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise InputError(f"state directory {self.folder}: {error.strerror}") from error
        if not stat.S_ISDIR(status.st_mode):
            raise InputError(
                f"state directory {self.folder} is not a directory; give another --state"
            )
        if status.st_uid != os.getuid() and not (allow_root and self._root_may_trust_it()):
            raise InputError(
                f"state directory {self.folder} is another user's: only that user may do this; "
                "others can run jobs there while it is up with --all-users"
            )
        if status.st_mode & 0o022:
            raise InputError(
                f"state directory {self.folder} can be written to by others; "
                f"'chmod 700' it, or give another --state"
            )
        return True

    def is_of_another_user(self) -> bool:
        """Return whether it is the directory of a deployment that serves all users of the host.

        The caller named it, and with it the user whose deployment it is. Nobody names a default
        directory: in /tmp anybody may have made it.
        """
        if self._is_default:
            return False
        try:
            folder, control = self.folder.lstat(), self.controller.lstat()
        except OSError:
            return False
        if os.getuid() == 0 and not self._root_may_trust_it():
            return False
        return (
            folder.st_uid != os.getuid()
            and stat.S_ISDIR(folder.st_mode)
            and not folder.st_mode & 0o022
            and stat.S_ISSOCK(control.st_mode)
            and control.st_uid == folder.st_uid
            and bool(control.st_mode & 0o002)
        )

    def _root_may_trust_it(self) -> bool:
        """Return whether we are root, and only trusted users can have created the directory."""
        return os.getuid() == 0 and not self.folder.parent.stat().st_mode & 0o022

    def create(self) -> None:
        """Create the directory unless it exists."""
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

    def is_up(self, *, allow_root: bool = False) -> bool:
        """Return whether a controller runs here."""
        return self.exists(allow_root=allow_root) and lock_holder(self.lock) is not None

    def log_tail(self, lines: int = 5) -> str:
        """Return the last lines of the log, joined to one."""
        with suppress(OSError):
            tail = self.log.read_text(errors="replace").splitlines()[-lines:]
            return " | ".join(line.strip() for line in tail if line.strip())
        return ""

    def clean_up(self) -> int:
        """End the I/O nodes of a controller that died, remove sockets, and return how many nodes.

        The caller holds the controller's lock.
        """
        ended = end_holders(list(self.folder.glob("io-node-*.lock")))
        for kind in ("io-node-*.sock", "io-node-*.control", "agent-*.sock", "controller.sock"):
            for path in self.folder.glob(kind):
                # Jobs outlive a controller, and start processes that look for their agent.
                if not (kind.startswith("agent") and _is_served(path)):
                    path.unlink(missing_ok=True)
        self.emulator.unlink(missing_ok=True)
        self.http.unlink(missing_ok=True)
        self.listen.unlink(missing_ok=True)
        return ended


@contextmanager
def hold_lock(path: Path) -> Iterator[int]:
    """Hold a lock until the block ends; raise BlockingIOError if another process holds it.

    A process that inherits the descriptor holds the lock as well, for as long as it lives.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor)
        write_holder(descriptor, 0)  # the process whose id was there has ended
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock a file. Those who look for its holder share the lock for an instant, and do not hold it.

    Raises BlockingIOError if a process holds it.
    """
    for _ in range(LOOKS):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # raises if a process holds it
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(LOOK)
    raise BlockingIOError


def write_holder(descriptor: int, pid: int) -> None:
    """Write the process id of the holder into a lock file."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{pid}\n".encode(), 0)


def lock_holder(path: Path) -> int | None:
    """Return the process id of a lock's holder, 0 before the holder wrote it, or None."""
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


def end_holders(locks: Sequence[Path], *, grace: float = GRACE) -> int:
    """End the processes that hold locks, by SIGTERM, then SIGKILL; return how many there were."""
    processes = [process for lock in locks if (process := _holder_pidfd(lock)) is not None]
    try:
        for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, GRACE)):
            for process in processes:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(process, number)
            deadline = time.monotonic() + seconds
            if all(wait_for_exit(process, deadline - time.monotonic()) for process in processes):
                break
    finally:
        for process in processes:
            os.close(process)
    return len(processes)


def _holder_pidfd(lock: Path) -> int | None:
    """Return a pidfd of the process that holds a lock, or None."""
    pid = lock_holder(lock)
    if not pid:
        return None
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    # Still held: the descriptor is of the holder, not of a later process with the same id.
    if lock_holder(lock) == pid:
        return process
    os.close(process)
    return None


def wait_for_exit(process: int, seconds: float) -> bool:
    """Wait until a process (a pidfd) has ended; return whether it has."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(max(round(seconds * 1000), 0)))


def _is_served(path: Path) -> bool:
    """Return whether a process listens on a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return True  # its queue of connections is full
        except OSError:
            return False
        return True


def is_stopped(pid: int) -> bool:
    """Return whether a signal or a debugger has stopped a process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] in {"T", "t"}
