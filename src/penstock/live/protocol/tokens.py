"""Access tokens of the HTTP API, from a file that only its owner can read.

A line is `NAME ROLE TOKEN`; the role is `read` or `admin`. The controller keeps hashes of the
tokens; a token is never part of a message or a log line.
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
MAX_FILE_BYTES, MIN_TOKEN_LENGTH = 1 << 16, 16
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """The holder of a token."""

    name: str
    role: Role


class Tokens:
    """The tokens of a site."""

    def __init__(self, bearers: dict[bytes, Bearer]) -> None:
        self._bearers = bearers

    @classmethod
    def read(cls, path: Path) -> "Tokens":
        """Read a token file; an InputError says what is wrong with it, and shows no token."""
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
                raise InputError(f"{where}: the second word is not a role; give read or admin")
            if len(token) < MIN_TOKEN_LENGTH or not _TOKEN.fullmatch(token):
                raise InputError(
                    f"{where}: the token has less than {MIN_TOKEN_LENGTH} characters, or others "
                    "than letters, digits and -._~+/; 'openssl rand -hex 32' makes one"
                )
            if name in {bearer.name for bearer in bearers.values()}:
                raise InputError(f"{where}: the name {name[:40]!r} is a duplicate; give another")
            if _hash(token.encode()) in bearers:
                raise InputError(f"{where}: the token is a duplicate; give every name its own")
            bearers[_hash(token.encode())] = Bearer(name=name, role=role)
        if not bearers:
            raise InputError(f"token file {path} has no token; a line is NAME ROLE TOKEN")
        return cls(bearers)

    def bearer(self, token: bytes) -> Bearer | None:
        """Return the holder of a token, or None, in a time that does not depend on the token."""
        digest, result = _hash(token), None
        for expected, bearer in self._bearers.items():
            if hmac.compare_digest(expected, digest):
                result = bearer
        return result


def _hash(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _lines(path: Path) -> list[str]:
    try:
        # Do not block on a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"token file {path}: {reason(error)}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"token file {path} is not a regular file; give another")
        if status.st_mode & 0o077:
            raise InputError(f"token file {path} can be read by other users; 'chmod 600' it")
        if status.st_uid not in {os.getuid(), 0}:
            raise InputError(f"token file {path} belongs to another user; give one of your own")
        if status.st_size > MAX_FILE_BYTES:
            raise InputError(f"token file {path} is longer than {MAX_FILE_BYTES} bytes")
        return os.read(descriptor, MAX_FILE_BYTES).decode().splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"token file {path} is not text; a line is NAME ROLE TOKEN") from error
    except OSError as error:
        raise InputError(f"token file {path}: {reason(error)}") from error
    finally:
        os.close(descriptor)
