"""The jobs that are tuned while they run, each a phase of strided requests to a shared file."""

from collections.abc import Mapping
from typing import Literal

from penstock.live.measure.access_patterns import Pattern, Phase

KIB, MIB = 2**10, 2**20
REQUEST = 32 * KIB
WRITE, READ = 0, 1
"""The patterns' places in a job that writes and reads."""
COMPONENTS: Mapping[str, tuple[int, ...]] = {"S": (0,), "W": (1, 2, 3, 4), "C": (5,)}
"""The patterns' places in a job like MADbench2."""


def _strided(operation: Literal["write", "read"], mebibytes: float) -> Pattern:
    return Pattern(
        operation=operation,
        path="shared",
        number_of_files="shared",
        spatiality="strided",
        request_size=REQUEST,
        total_size=int(mebibytes * MIB),
    )


def write_read(repetitions: int, *, part: float = 1.0) -> Phase:
    """Return the thesis' benchmark (4.2.3) in small: a file is written, then some of it read."""
    patterns = [_strided("write", 224 * part), _strided("read", 80 * part)]
    return Phase(name="write-read", patterns=patterns, repetitions=repetitions)


def madbench(repetitions: int, *, part: float = 1.0) -> Phase:
    """Return the I/O of MADbench2 (Table 4.5) in small.

    S writes all matrices, W reads and writes them in turn, C reads them again and again; ranks have
    a part of 32 KiB of each matrix, as of 16 ranks and 256 pixels.
    """
    patterns = [
        _strided("write", 128 * part),
        _strided("read", 24 * part),
        _strided("write", 64 * part),
        _strided("read", 24 * part),
        _strided("write", 64 * part),
        _strided("read", 72 * part),
    ]
    return Phase(name="madbench", patterns=patterns, repetitions=repetitions)


def writing(mebibytes: float) -> Phase:
    """Return a job that writes."""
    return Phase(name="writing", patterns=[_strided("write", mebibytes)])
