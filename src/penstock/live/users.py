"""Users by name and number."""

import pwd


def uid_of(user: str) -> int:
    """Return a user's number; -1: nobody here has this name."""
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return int(user) if user.isascii() and user.isdigit() else -1


def name_of(uid: int) -> str:
    """Return a user's name, or the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
