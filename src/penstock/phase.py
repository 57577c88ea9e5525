"""`with penstock.phase(): ...` marks a program's I/O phase.

Phases are also detected without it. A marked phase begins before its first byte and ends at once,
not after an idle gap, and policies that order phases by length use `bytes`. Outside of
`penstock run` it does nothing.
"""

import ctypes
import operator
from collections.abc import Iterator
from contextlib import contextmanager

MOST_BYTES = 2**63 - 1


@contextmanager
def phase(*, bytes: int | None = None) -> Iterator[None]:
    """Wait for the job's turn, if turns are enforced, and release it at the end of the block.

    `bytes` is what the whole job will move on this host in this phase: one process announces it.
    """
    if bytes is not None:
        bytes = _checked(bytes)
    library = ctypes.CDLL(None)
    begin = getattr(library, "penstock_phase_begin", None)
    end = getattr(library, "penstock_phase_end", None)
    announce = getattr(library, "penstock_phase_announce", None)
    if begin is None or end is None:
        yield
        return
    if announce is not None and bytes is not None:
        announce(ctypes.c_uint64(bytes))
    try:
        begin()  # an interrupt that ends the wait is raised here, when the phase has begun
        yield
    finally:
        end()


def _checked(count: int) -> int:
    """Return a number of bytes as an int; checked outside of a job, too."""
    try:
        whole = operator.index(count)
    except TypeError:
        raise TypeError(f"bytes is {count!r}; give a whole number, or leave it out") from None
    if not 0 <= whole <= MOST_BYTES:
        raise ValueError(f"bytes is {whole}; give 0 or more, or leave it out")
    return whole
