"""`with penstock.phase(): ...` around a program's I/O phase, for those who know where theirs are.

Phases are found without it. Said so, they begin before the first byte and end at once, not after an
idle gap. Outside of `penstock run` it does nothing.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def phase() -> Iterator[None]:
    """Wait for the job's turn, if turns are enforced, and give it back at the end of the block."""
    library = ctypes.CDLL(None)
    begin = getattr(library, "penstock_phase_begin", None)
    end = getattr(library, "penstock_phase_end", None)
    if begin is None or end is None:
        yield
        return
    try:
        begin()  # an interrupt that ends its wait is raised here, and the phase has begun
        yield
    finally:
        end()
