"""Keys: secrets that two ends of a connection prove to each other and never send.

The site key is of the hosts of a site; the key of a user is derived from it, and proves that user
alone. Whoever connects over TCP is challenged with a fresh nonce and answers with a nonce of its
own and an HMAC-SHA256 over both; the controller answers with another HMAC. Both ends have then
proven the key, an eavesdropper can reuse nothing, and every line from then on is sealed (seal.py).
docs/live/hosts.md is the guide.
"""

import hmac
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from penstock.errors import InputError
from penstock.live.protocol import messages
from penstock.live.protocol.address import Address
from penstock.live.protocol.seal import Seal, Seals

MIN_BYTES, MAX_BYTES = 32, 4096
"""Size of a key file."""
_CREATE = "create one with 'penstock key FILE'"
_OF_USER = b"penstock key of user "
"""Begins the file of a user's key; the name and the secret in hexadecimal follow."""


@dataclass(frozen=True, slots=True)
class Key:
    """A secret, of the site or of one user; its repr does not show it."""

    secret: bytes = field(repr=False)
    user: str = ""  # "": of the site, for all users

    @classmethod
    def read(cls, path: Path) -> "Key":
        """Read a key file, which only its owner may be able to read."""
        text = _read(path)
        if not text.startswith(_OF_USER):
            return SiteKey(text)
        try:
            user, secret = text.removeprefix(_OF_USER).decode().split()
            return cls(bytes.fromhex(secret), user)
        except ValueError:
            raise InputError(f"--key-file {path} is not a key of a user") from None

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

    def write(self, path: Path) -> None:
        """Write a key file; never overwrite a file."""
        text = self.secret
        if self.user:
            text = _OF_USER + f"{self.user} {self.secret.hex()}\n".encode()
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            raise InputError(f"{path} already exists; give another name, or remove it") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        try:
            os.write(descriptor, text)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _mac(self, text: str) -> bytes:
        return hmac.digest(self.secret, text.encode(), "sha256")


@dataclass(frozen=True, slots=True)
class SiteKey(Key):
    """The secret of a site: whoever has it speaks for all users."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file of a site key, which only its owner may be able to read."""
        key = Key.read(path)
        if key.user:
            raise InputError(f"--key-file {path} is the key of user {key.user}, not of the site")
        return cls(key.secret)

    @staticmethod
    def create(path: Path) -> None:
        """Write a new key; never overwrite a file."""
        SiteKey(secrets.token_bytes(MIN_BYTES)).write(path)

    def of_user(self, user: str) -> Key:
        """Return the key with which a user of another host proves who it is."""
        return Key(self._mac(f"penstock user {user}"), user)

    def token(self, user: str) -> bytes:
        """Return the token that a user's jobs show to the I/O nodes that run as that user."""
        return self._mac(f"penstock data of {user}")


def _read(path: Path) -> bytes:
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
        return os.read(descriptor, MAX_BYTES)
    finally:
        os.close(descriptor)


def nonce() -> str:
    """Return a random number that was never used before."""
    return secrets.token_hex(messages.NONCE_BYTES)


def controller_address(text: str) -> Address:
    """Parse the value of `--controller`."""
    address = Address.parse(text, "--controller")
    if not address.port:
        raise InputError(f"--controller {text!r}: give the controller's port, not 0")
    return address


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteController:
    """The controller of another host: its address, and the key that both ends must have."""

    address: Address
    key: Key

    @classmethod
    def parse(cls, text: str, key_file: Path | None) -> "RemoteController":
        """Parse the values of `--controller` and `--key-file`, of a host that has the site key."""
        address = controller_address(text)
        if key_file is None:
            raise InputError(
                "--controller needs --key-file: hosts prove the site key to each other"
            )
        return cls(address=address, key=SiteKey.read(key_file))

    def __str__(self) -> str:
        return f"{self.address.host}:{self.address.port}"
