"""The site key: a secret that the hosts of a site prove to each other and never send.

Whoever connects over TCP is challenged with a fresh nonce and answers with a nonce of its own and
an HMAC-SHA256 over both; the controller answers with another HMAC. Both ends have then proven the
key, an eavesdropper can reuse nothing, and every line from then on is sealed (seal.py).
docs/live/hosts.md is the guide.
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
from penstock.live.protocol.seal import Seal, Seals

MIN_BYTES, MAX_BYTES = 32, 4096
"""Size of a key file."""
_CREATE = "create one with 'penstock key FILE'"


@dataclass(frozen=True, slots=True)
class SiteKey:
    """The secret of a site; its repr does not show it."""

    secret: bytes = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> "SiteKey":
        """Read a key file, which only its owner may be able to read."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"--key-file {path}: {error.strerror}; {_CREATE}") from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InputError(f"--key-file {path} is not a regular file; {_CREATE}")
            if status.st_mode & 0o077:
                raise InputError(f"--key-file {path} can be read by others; 'chmod 600' it")
            if not MIN_BYTES <= status.st_size <= MAX_BYTES:
                raise InputError(
                    f"--key-file {path} has {status.st_size} bytes, not {MIN_BYTES} to "
                    f"{MAX_BYTES}; {_CREATE}"
                )
            return cls(os.read(descriptor, MAX_BYTES))
        finally:
            os.close(descriptor)

    @staticmethod
    def create(path: Path) -> None:
        """Write a new key; never overwrite a file."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            raise InputError(f"{path} already exists; give another name, or remove it") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        try:
            os.write(descriptor, secrets.token_bytes(MIN_BYTES))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def proof(self, side: str, challenge: str, answer: str) -> str:
        """Return the proof that a side, "client" or "controller", has the key."""
        # The text names the version of what follows: an end that does not seal is not admitted.
        return self._mac(f"penstock sealed {side} {challenge} {answer}").hex()

    def proves(self, side: str, challenge: str, answer: str, proof: str) -> bool:
        """Return whether a proof is right."""
        expected = self.proof(side, challenge, answer)
        return hmac.compare_digest(expected.encode(), proof.encode())

    def seals(self, side: str, challenge: str, answer: str) -> Seals:
        """Return the seals of the connection of two nonces, at one of its sides."""
        other = "controller" if side == "client" else "client"
        sent, received = (
            Seal(self._mac(f"penstock key of {sender} {challenge} {answer}"))
            for sender in (side, other)
        )
        return Seals(sent=sent, received=received)

    def token(self, user: str) -> bytes:
        """Return the token that a user's jobs show to the I/O nodes that run as that user."""
        return self._mac(f"penstock data of {user}")

    def _mac(self, text: str) -> bytes:
        return hmac.digest(self.secret, text.encode(), "sha256")


def nonce() -> str:
    """Return a random number that was never used before."""
    return secrets.token_hex(messages.NONCE_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteController:
    """The controller of another host: its address, and the site key that it must have."""

    address: Address
    key: SiteKey

    @classmethod
    def parse(cls, text: str, key_file: Path | None) -> "RemoteController":
        """Parse the values of `--controller` and `--key-file`."""
        address = Address.parse(text, "--controller")
        if not address.port:
            raise InputError(f"--controller {text!r}: give the controller's port, not 0")
        if key_file is None:
            raise InputError(
                "--controller needs --key-file: hosts prove the site key to each other"
            )
        return cls(address=address, key=SiteKey.read(key_file))

    def __str__(self) -> str:
        return f"{self.address.host}:{self.address.port}"
