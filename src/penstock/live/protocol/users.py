"""User names and numbers."""

import difflib
import pwd
import socket
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import InputError

LARGEST_UID = 2**32 - 2
_CREDENTIALS = struct.Struct("3i")


class UnknownUserError(InputError):
    """No user has this name or number."""


def peer_credentials(connection: Any) -> tuple[int, int]:
    """Return process and user at the other end of a Unix socket, according to the kernel.

    For a socket that connected: of the process that listens.
    """
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(data)
    return pid, uid


def uid_of(user: str) -> int:
    """Return a user's number, or -1 for what is no user's name on this host.

    A user without a name is called by its number, written as `name_of` does: a user who could be
    called in several ways would have the jobs and shares of several.
    """
    try:
        return pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):
        number = _number(user)
        return number if name_of(number) == user else -1


def _number(text: str) -> int:
    """Return the user's number that a text is, or -1."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_UID))):
        return -1
    return number if (number := int(text)) <= LARGEST_UID else -1


def name_of(uid: int) -> str:
    """Return a user's name, or the number as text for a user without a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


def canonical_user(user: str, others: Collection[str] = ()) -> str:
    """Return the name under which jobs of a user, given by name or number, run.

    `others` are users of other hosts, whom this host need not know.
    """
    if user in others:
        return user
    uid = max(uid_of(user), _number(user))
    if uid >= 0 and (name := name_of(uid)) != str(uid):
        return name
    names = {entry.pw_name for entry in pwd.getpwall()} | set(others)
    matches = difflib.get_close_matches(user, sorted(names), n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(map(repr, matches))}?" if matches else "check the name"
    raise UnknownUserError(f"there is no user {user!r} on the controller's host; {hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubordinateRange:
    """User ids that a user's containers may run as."""

    first: int
    count: int
    owner: int


class SubordinateIds:
    """The user ids that belong to users of this host (`/etc/subuid`), but for root's.

    Who may run processes as 65,536 users must not have the connections, jobs and turns of as many.
    """

    def __init__(self, path: Path = Path("/etc/subuid")) -> None:
        self._path = path
        self._state: tuple[int, int, int] | None = None
        self._ranges: tuple[SubordinateRange, ...] = ()

    @property
    def ranges(self) -> tuple[SubordinateRange, ...]:
        """The ranges; the file is read again when it has changed."""
        try:
            status = self._path.stat()
            state = (status.st_ino, status.st_mtime_ns, status.st_size)
            if state != self._state:
                lines = self._path.read_text(errors="replace").splitlines()
                self._ranges = tuple(entry for line in lines if (entry := _range(line)) is not None)
                self._state = state
        except OSError:
            self._state, self._ranges = None, ()
        return self._ranges

    def owner(self, uid: int) -> int | None:
        """Return whose subordinate id that is, or None for an id of its own."""
        for entry in self.ranges:
            if 0 <= uid - entry.first < entry.count and name_of(uid) == str(uid):
                return entry.owner
        return None


def _range(line: str) -> SubordinateRange | None:
    """Return the range that a line of subuid(5) gives a user other than root, or None."""
    parts = line.strip().split(":")
    if len(parts) != 3:
        return None
    owner, first, count = max(uid_of(parts[0]), _number(parts[0])), *map(_number, parts[1:])
    if owner <= 0 or first < 0 or count <= 0:
        return None
    return SubordinateRange(first=first, count=count, owner=owner)
