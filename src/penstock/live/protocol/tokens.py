"""Who may ask and who may change: tokens of a file that only its owner can read.

A line is `NAME ROLE TOKEN`; the role is `read` or `admin`. Tokens are kept as hashes, and are
never in a message or a log.
"""

import hashlib
import hmac
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from penstock.errors import InputError
from penstock.files import reason

Role = Literal["read", "admin"]
ROLES: tuple[Role, ...] = ("read", "admin")
LONGEST_FILE, SHORTEST_TOKEN = 1 << 16, 16
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """Who has a token."""

    name: str
    role: Role


class Tokens:
    """The tokens of a site."""

    def __init__(self, bearers: dict[bytes, Bearer]) -> None:
        self._bearers = bearers

    @classmethod
    def read(cls, path: Path) -> "Tokens":
        """Return the tokens of a file; InputError says what is wrong with it, and no token."""
        bearers: dict[bytes, Bearer] = {}
        for number, line in enumerate(_lines(path), 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            where = f"token file {path}, line {number}"
            words = line.split()
            if len(words) != 3:
                raise InputError(f"{where}: {len(words)} words; a line is NAME ROLE TOKEN")
            name, role, token = words
            if role not in ROLES:
                raise InputError(f"{where}: the second word is no role; give read or admin")
            if len(token) < SHORTEST_TOKEN or not _TOKEN.fullmatch(token):
                raise InputError(
                    f"{where}: the token has less than {SHORTEST_TOKEN} characters, or others than "
                    "letters, digits and -._~+/; 'openssl rand -hex 32' makes one"
                )
            if name in {bearer.name for bearer in bearers.values()}:
                raise InputError(f"{where}: the name {name[:40]!r} was there before; give another")
            if _hash(token.encode()) in bearers:
                raise InputError(f"{where}: the token was there before; one a name")
            bearers[_hash(token.encode())] = Bearer(name=name, role=role)
        if not bearers:
            raise InputError(f"token file {path} has no token; a line is NAME ROLE TOKEN")
        return cls(bearers)

    def bearer(self, token: bytes) -> Bearer | None:
        """Return whose token this is; takes as long for a wrong one as for a right one."""
        hashed, found = _hash(token), None
        for known, bearer in self._bearers.items():
            if hmac.compare_digest(known, hashed):
                found = bearer
        return found


def _hash(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _lines(path: Path) -> list[str]:
    try:
        # Not to be held up by a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"token file {path}: {reason(error)}") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"token file {path} is no regular file; give another")
        if found.st_mode & 0o077:
            raise InputError(f"token file {path} is open to others than its owner; 'chmod 600' it")
        if found.st_uid not in {os.getuid(), 0}:
            raise InputError(f"token file {path} is another user's; give one of your own")
        if found.st_size > LONGEST_FILE:
            raise InputError(f"token file {path} is longer than {LONGEST_FILE} bytes")
        return os.read(descriptor, LONGEST_FILE).decode().splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"token file {path} is no text; a line is NAME ROLE TOKEN") from error
    except OSError as error:
        raise InputError(f"token file {path}: {reason(error)}") from error
    finally:
        os.close(descriptor)
