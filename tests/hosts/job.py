"""A job that writes in phases: python job.py FILE PHASES BLOCKS [hold].

It says when its phases begin and end. With `hold` it says "holds" within each phase, after two
blocks, and waits there for a line.
"""

import os
import select
import sys
import time

from penstock.phase import phase

BLOCK = 1 << 20
COMPUTES = 0.3
"""Seconds between phases: its agent looks at it more often than that."""


def block(file: str, k: int) -> bytes:
    """Return what the k-th block of a file must be."""
    word = f"{os.path.basename(file)}:{k:08d};".encode()  # noqa: PTH119 - no import for it
    return (word * (BLOCK // len(word) + 1))[:BLOCK]


def say(*words: object) -> None:
    """Say something, and when."""
    print(*words, time.monotonic(), flush=True)


def hold_on(descriptor: int) -> None:
    """Wait for a line with calls that move nothing: a phase without calls lends its turn."""
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        os.pread(descriptor, 0, 0)
    sys.stdin.readline()


def main() -> None:
    """Write the file."""
    file, phases, blocks, hold = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    for number in range(phases):
        with phase():
            say("began", number)
            for k in range(number * blocks, (number + 1) * blocks):
                assert os.pwrite(descriptor, block(file, k), k * BLOCK) == BLOCK
                if hold and k == number * blocks + 1:
                    say("holds", number)
                    hold_on(descriptor)
            say("ended", number)
        time.sleep(COMPUTES)
    os.close(descriptor)
    say("done", 0)


if __name__ == "__main__":
    main()
