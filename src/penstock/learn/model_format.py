"""Model files: a file of another kind or version, or a damaged one, is refused with the reason."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from penstock.errors import InputError
from penstock.files import reason, replacing

T = TypeVar("T")


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Generic[T]):
    """A kind of model file."""

    name: str
    version: int
    subject: str
    """What its models describe, for messages."""
    make: Callable[[bytes], T]
    """Decodes a file's content; raises InputError or msgspec's errors if it cannot."""
    remedy: str
    """What the user can do about an invalid file."""
    most: int
    """Maximum file size in bytes."""

    def decode(self, content: bytes, name: str) -> T:
        """Decode the content of the file `name`."""
        try:
            head = msgspec.json.decode(content, type=_Head)
            if head.format != self.name:
                raise InputError(
                    f"it is not a model of {self.subject} (its format is not {self.name!r})"
                )
            if head.version != self.version:
                raise InputError(
                    f"it has version {head.version}, and only version {self.version} is supported"
                )
            return self.make(content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{name}: it is damaged: {reason(error)}; {self.remedy}") from error
        except InputError as error:
            raise InputError(f"{name}: {error}; {self.remedy}") from error

    @staticmethod
    def save(model: msgspec.Struct, path: Path) -> None:
        """Write a model, whole or not at all."""
        with replacing(path) as partial:
            partial.write_bytes(msgspec.json.encode(model) + b"\n")

    def load(self, path: Path) -> T:
        """Read a model file; InputError says why it cannot be read."""
        try:
            if path.stat().st_size > self.most:
                raise InputError(f"{path} is larger than any model of {self.subject}; give another")
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {reason(error)}") from error
        return self.decode(content, str(path))
