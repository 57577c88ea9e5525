"""The site key: what hosts of one site know, prove to each other, and never send.

Whoever connects over TCP is challenged with a fresh number, answers with one of its own and with an
HMAC-SHA256 of both, and is answered with another: both ends have proven the key to each other, and
nothing that was heard on the way can be used again. docs/live/hosts.md is the guide.
"""

import hmac
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import InputError
from penstock.live.protocol import messages
from penstock.live.protocol.address import Address

SHORTEST, LONGEST = 32, 4096
"""Bytes of a key file."""
_MAKE = "make one with 'penstock key FILE'"


@dataclass(frozen=True, slots=True)
class SiteKey:
    """The secret of a site; it shows itself nowhere."""

    secret: bytes = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> "SiteKey":
        """Return the key in a file that its owner alone can read."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"--key-file {path}: {error.strerror}; {_MAKE}") from error
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"--key-file {path} is no file; {_MAKE}")
            if found.st_mode & 0o077:
                raise InputError(f"--key-file {path} can be read by others; 'chmod 600' it")
            if not SHORTEST <= found.st_size <= LONGEST:
                raise InputError(
                    f"--key-file {path} has {found.st_size} bytes, not {SHORTEST} to {LONGEST}; "
                    f"{_MAKE}"
                )
            return cls(os.read(descriptor, LONGEST))
        finally:
            os.close(descriptor)

    @staticmethod
    def create(path: Path) -> None:
        """Write a new key; one that is there is left alone."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            raise InputError(f"{path} is there already; give another name, or remove it") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        try:
            os.write(descriptor, secrets.token_bytes(SHORTEST))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def proof(self, side: str, challenge: str, answer: str) -> str:
        """Return what shows that a side, "client" or "controller", knows the key."""
        return self._mac(f"penstock {side} {challenge} {answer}").hex()

    def proves(self, side: str, challenge: str, answer: str, proof: str) -> bool:
        """Say whether a proof is right."""
        expected = self.proof(side, challenge, answer)
        return hmac.compare_digest(expected.encode(), proof.encode())

    def token(self, user: str) -> bytes:
        """Return what lets a user's jobs in at the I/O nodes that run as that user."""
        return self._mac(f"penstock data of {user}")

    def _mac(self, text: str) -> bytes:
        return hmac.digest(self.secret, text.encode(), "sha256")


def nonce() -> str:
    """Return a number that was never used."""
    return secrets.token_hex(messages.NONCE_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteController:
    """The controller of another host: where it listens, and the key that it must know, too."""

    address: Address
    key: SiteKey

    @classmethod
    def parse(cls, where: str, key_file: Path | None) -> "RemoteController":
        """Return what `--controller` and `--key-file` say."""
        address = Address.parse(where, "--controller")
        if not address.port:
            raise InputError(f"--controller {where!r}: port 0 is none; give the controller's")
        if key_file is None:
            raise InputError(
                "--controller needs --key-file: hosts prove the site key to each other"
            )
        return cls(address=address, key=SiteKey.read(key_file))

    def __str__(self) -> str:
        return f"{self.address.host}:{self.address.port}"
