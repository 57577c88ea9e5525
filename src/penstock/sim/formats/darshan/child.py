"""The process that reads logs: one path per line in, one answer per line out, as JSON."""

import os
import resource
import sys

import msgspec

from penstock.errors import InputError
from penstock.learn.profiles import Profile
from penstock.sim.formats.darshan import log

ROOM = 4 << 30
"""Maximum memory in bytes: a damaged log may demand any amount."""


class Query(msgspec.Struct, frozen=True):
    """A log to read."""

    path: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The profile of a log, or why it cannot be read."""

    profile: Profile | None = None
    error: str = ""


def serve() -> None:
    """Answer queries until standard input ends."""
    # Anything that the library prints to standard output would be read as an answer.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    from darshan.backend import cffi_backend  # noqa: PLC0415 - takes seconds, and is an extra

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or soft > ROOM:
        resource.setrlimit(resource.RLIMIT_AS, (ROOM, hard))
    for line in sys.stdin.buffer:
        path = msgspec.json.decode(line, type=Query).path
        os.ftruncate(2, 0)
        os.lseek(2, 0, os.SEEK_SET)
        out.write(msgspec.json.encode(answer(path, cffi_backend)) + b"\n")


def answer(path: str, backend: object) -> Answer:
    """Read one log; a damaged one may raise anything anywhere in PyDarshan."""
    try:
        profile = log.profile(path, backend)
    except InputError as error:
        return Answer(error=str(error))
    except MemoryError:
        return Answer(error="it demands more memory than any log needs; it is damaged")
    except Exception as error:
        return Answer(error=f"it cannot be read ({type(error).__name__}: {error}); it is damaged")
    return Answer(profile=profile)


if __name__ == "__main__":
    serve()
