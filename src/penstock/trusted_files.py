"""Files that decide what Penstock does, or run as code: from the caller or root, and nobody else.

Configuration and policies are often found in, or named relative to, the working directory, which
may be anybody's: /tmp, a project's folder, another user's home. Such a file is taken only if

- it belongs to the caller or root, and nobody else can write it: seen by the opened file, so that
  an exchange of the name between look and use changes nothing;
- the same holds for each directory and symbolic link that its name passes, up to the root. Who can
  write a directory can put another file, or a mount with invented owners, in its place. A sticky
  directory such as /tmp is fine: there only the owner of an entry can exchange it.

An absolute name was chosen, not found: of it only the file itself is checked.
"""

import grp
import os
import pwd
import stat
from pathlib import Path

from penstock.errors import InputError

MAX_LINKS = 40
"""Symbolic links on the way to a file; the kernel follows as many."""
_OTHERS_WRITE = {stat.S_IWGRP: "its group", stat.S_IWOTH: "every user"}
_ACL = "system.posix_acl_access"


class UntrustedFileError(InputError):
    """A file that somebody other than the caller or root decides."""

    def __init__(self, message: str, *, stranger: bool = False) -> None:
        super().__init__(message)
        self.stranger = stranger
        """Whether the file, or a link to it, is another user's: the caller cannot have meant it."""


def read(path: Path, *, searched: bool = False) -> bytes:
    """Return a file's content; UntrustedFileError: others decide what is in it.

    `searched` tells that the name comes from a search, so that its directories are checked too, as
    they are for a relative name.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedFileError(f"{path} is not a regular file")
        if status.st_uid not in {0, os.geteuid()}:
            owner = _user(status.st_uid)
            advice = "if you trust its content, copy it to a file of yours"
            raise UntrustedFileError(f"{path} belongs to {owner}; {advice}", stranger=True)
        if others := _other_writers(status, descriptor):
            raise UntrustedFileError(f"{path} can be written by {others}; 'chmod go-w' it")
        if searched or not path.is_absolute():
            _check_way(path, status)
        return file.read()


def _check_way(path: Path, opened: os.stat_result) -> None:
    """Check the directories and links that a name passes, and that it names the opened file."""
    pending = [*Path(os.getcwd(), path).parts[1:]][::-1]  # noqa: PTH109 - links are kept
    here, links = "/", 0
    _check_directory(path, here)
    while pending:
        part = pending.pop()
        if part == "..":
            here = os.path.dirname(here)  # noqa: PTH120 - `here` has no links left
            continue
        entry = os.path.join(here, part)  # noqa: PTH118
        status = os.lstat(entry)
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if status.st_uid not in _owners() or links > MAX_LINKS:
                owner = _user(status.st_uid)
                problem = f"{path}: the link {entry} belongs to {owner}{_ADVICE}"
                raise UntrustedFileError(problem, stranger=True)
            target = Path(os.readlink(entry))  # noqa: PTH115
            here = "/" if target.is_absolute() else here
            pending += [part for part in target.parts if part != "/"][::-1]
        elif stat.S_ISDIR(status.st_mode):
            here = entry
            _check_directory(path, here)
        elif (status.st_dev, status.st_ino) != (opened.st_dev, opened.st_ino):
            raise UntrustedFileError(f"{path} was exchanged while it was read; try again")


def _check_directory(path: Path, directory: str) -> None:
    status = Path(directory).stat()
    if status.st_uid not in _owners():
        owner = _user(status.st_uid)
        raise UntrustedFileError(f"{path}: directory {directory} belongs to {owner}{_ADVICE}")
    if not status.st_mode & stat.S_ISVTX and (others := _other_writers(status, directory)):
        raise UntrustedFileError(
            f"{path}: directory {directory} can be written by {others}{_ADVICE}"
        )


_ADVICE = ", who could exchange the file; move it, or give its absolute name if you trust them"


def _owners() -> set[int]:
    """Return whose directories are trusted: in a container without root, those of the host's."""
    return {0, os.geteuid(), Path("/").stat().st_uid}


def _other_writers(status: os.stat_result, file: int | str) -> str:
    """Return who else can write a file, as words, or "": a private group is its user alone."""
    writers = [name for bit, name in _OTHERS_WRITE.items() if status.st_mode & bit]
    if status.st_mode & stat.S_IWGRP and _is_private(status.st_gid) and not _has_acl(file):
        writers.remove(_OTHERS_WRITE[stat.S_IWGRP])
    return " and ".join(writers)


def _is_private(gid: int) -> bool:
    """Whether a group is the caller's own: named as the user, as where the umask is 002."""
    try:
        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return (
        user.pw_gid == gid
        and group.gr_name == user.pw_name
        and not {*group.gr_mem} - {user.pw_name}
    )


def _has_acl(file: int | str) -> bool:
    """Whether an ACL names further writers; the group's bits are then its mask."""
    try:
        return bool(os.getxattr(file, _ACL))
    except OSError:  # none, or a file system without
        return False


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
