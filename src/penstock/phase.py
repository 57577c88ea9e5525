"""`with penstock.phase(): ...` around a program's I/O phase, for those who know where theirs are.

Phases are found without it. Said so, they begin before the first byte and end at once, not after an
idle gap; policies that order phases by their length take `bytes` for it. Outside of `penstock run`
it does nothing.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

MOST_BYTES = 2**63 - 1


@contextmanager
def phase(*, bytes: int | None = None) -> Iterator[None]:
    """Wait for the job's turn, if turns are enforced, and give it back at the end of the block.

    `bytes` is what the job will move in it on this host: one of its processes says it for all.
    """
    if bytes is not None and not 0 <= bytes <= MOST_BYTES:
        raise ValueError(f"a phase of {bytes} bytes; give 0 or more, or leave it out")
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
        begin()  # an interrupt that ends its wait is raised here, and the phase has begun
        yield
    finally:
        end()
