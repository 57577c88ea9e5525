"""Files of models: one of another kind or version, or a damaged one, is refused with the reason."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from penstock.errors import InputError
from penstock.files import reason

T = TypeVar("T")


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Generic[T]):
    """A kind of model file."""

    name: str
    version: int
    of: str
    """What its models are of, for people."""
    make: Callable[[bytes], T]
    """The model of a file's content; InputError or msgspec's errors where it is none."""
    remedy: str
    """What to do about a file that is none."""
    most: int
    """Bytes of a file: more is none."""

    def decode(self, content: bytes, name: str) -> T:
        """Return the model in the content of a file of that name."""
        try:
            head = msgspec.json.decode(content, type=_Head)
            if head.format != self.name:
                raise InputError(f"it is no model of {self.of} (its format is not {self.name!r})")
            if head.version != self.version:
                raise InputError(
                    f"it has version {head.version}, and only {self.version} is understood"
                )
            return self.make(content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{name}: it is damaged: {reason(error)}; {self.remedy}") from error
        except InputError as error:
            raise InputError(f"{name}: {error}; {self.remedy}") from error

    def load(self, path: Path) -> T:
        """Return the model of a file; InputError says why there is none."""
        try:
            if path.stat().st_size > self.most:
                raise InputError(f"{path} is larger than any model of {self.of}; give another")
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {reason(error)}") from error
        return self.decode(content, str(path))
