"""Things done as another user."""

import os
import pwd
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a second user")
NOBODY = 65534


def as_nobody(does: Callable[[], object]) -> str:
    """Do something as nobody; return what comes of it."""
    return as_user(NOBODY, does)


def as_user(user: int, does: Callable[[], object]) -> str:
    """Do something as another user, in a process of its own; return what comes of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.write(writing, str(does()).encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:  # noqa: PTH123 - a pipe
        output = pipe.read()
    os.waitpid(child, 0)
    return output


def command_as(user: str, *command: str | Path) -> list[str]:
    """Return what runs a command as another user, with no privilege left.

    Where this Python is in a directory that others cannot enter, the command sees it nevertheless,
    in a mount namespace of its own.
    """
    group = pwd.getpwnam(user).pw_gid
    become = f"setpriv --reuid={user} --regid={group} --clear-groups --inh-caps=-all"
    lines = ["umask 022", *_shown(), f'exec {become} --bounding-set=-all -- "$@"']
    return ["unshare", "--mount", "sh", "-ec", "\n".join(lines), "sh", *map(str, command)]


def _shown() -> Iterator[str]:
    """Shell commands after which everybody can enter the folders of this Python and of Penstock."""
    hidden: dict[Path, Path] = {}
    for folder in {Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[2]}:
        for above in reversed(folder.resolve().parents):
            if not above.stat().st_mode & 0o001:
                hidden[folder.resolve()] = above
                break
    kept = {folder: f"$kept/{number}" for number, folder in enumerate(hidden)}
    if hidden:
        yield "kept=$(mktemp -d)"
    for folder, at in kept.items():
        yield f"mkdir {at}; mount --bind {folder} {at}"
    for above in set(hidden.values()):
        yield f"mount -t tmpfs -o mode=755 none {above}"
    for folder, at in kept.items():
        yield f"mkdir -p {folder}; mount --move {at} {folder}; rmdir {at}"
    if hidden:
        yield "rmdir $kept"
