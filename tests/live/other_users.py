"""Things done as another user."""

import os
from collections.abc import Callable

import pytest

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a second user")
NOBODY = 65534


def as_nobody(does: Callable[[], object]) -> str:
    """Do something as nobody; return what comes of it."""
    return as_user(NOBODY, does)


def as_user(user: int, does: Callable[[], object]) -> str:
    """Do something as another user, in a process of its own; return what comes of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.write(writing, str(does()).encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:  # noqa: PTH123 - a pipe
        output = pipe.read()
    os.waitpid(child, 0)
    return output
