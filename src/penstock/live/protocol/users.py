"""Users by name and number."""

import difflib
import pwd
from collections.abc import Collection

from penstock.errors import InputError


class UnknownUserError(InputError):
    """Nobody is called so."""


def uid_of(user: str) -> int:
    """Return a user's number; -1: nobody here has this name."""
    try:
        return pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):
        return int(user) if user.isascii() and user.isdigit() else -1


def name_of(uid: int) -> str:
    """Return a user's name, or the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


def known(user: str, others: Collection[str] = ()) -> str:
    """Return a user, given by name or number, as jobs name it, or raise UnknownUserError.

    `others` are users of other hosts, whom this one need not know.
    """
    if user in others:
        return user
    uid = uid_of(user)
    if uid >= 0 and (name := name_of(uid)) != str(uid):
        return name
    names = {entry.pw_name for entry in pwd.getpwall()} | set(others)
    near = difflib.get_close_matches(user, sorted(names), n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "check the name"
    raise UnknownUserError(f"there is no user {user!r} on the controller's host; {hint}")
