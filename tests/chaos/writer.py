"""Overwrites blocks of a shared file for ever, checks what it reads, and keeps a ledger.

    python writer.py FILE LEDGER RANK RANKS BLOCKS SEED [STALLS]

Rank r owns every block k with k % ranks == r. A block's contents follow from its number and its
generation. The ledger, a mapped file outside the managed root, has two numbers a block: the
generation that is being written, and the last one that was acknowledged. A writer that finds a
ledger goes on where its killed predecessor stopped. It ends at the end of its input.

With STALLS, a file outside the managed root, it writes in bursts, as jobs with phases do, and notes
every call that took longer than NOTED: rank, when it began (CLOCK_MONOTONIC), seconds.
"""

import mmap
import os
import random
import select
import struct
import sys
import time
from hashlib import blake2b

SIZES = (512, 4096, 16384, 65536)
ROOM = max(SIZES)
ENTRY = struct.Struct("<QQ")
NOTED = 0.5
BURST, PAUSE = 100, 0.1


def size_of(block: int) -> int:
    """Return the bytes of a block: they differ, so that requests do."""
    return SIZES[block % len(SIZES)]


def contents(block: int, generation: int) -> bytes:
    """Return what a block holds in a generation: nothing in generation 0."""
    size = size_of(block)
    if generation == 0:
        return bytes(size)
    unit = blake2b(f"{block} {generation}".encode(), digest_size=64).digest()
    return unit * (size // len(unit))


def main() -> None:
    """Write until told otherwise."""
    path, ledger_path, *numbers = sys.argv[1:7]
    rank, ranks, blocks, seed = map(int, numbers)
    stalls = os.open(sys.argv[7], os.O_WRONLY | os.O_APPEND) if len(sys.argv) > 7 else None
    rng = random.Random(seed)
    ledger_fd = os.open(ledger_path, os.O_RDWR)
    ledger = mmap.mmap(ledger_fd, blocks * ENTRY.size)
    file = os.open(path, os.O_RDWR)
    mine = range(rank, blocks, ranks)
    print("writes", os.getpid(), flush=True)
    count = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        block = rng.choice(mine)
        begun, acknowledged = ENTRY.unpack_from(ledger, block * ENTRY.size)
        if begun == acknowledged:
            seen = os.pread(file, size_of(block), block * ROOM)
            expected = contents(block, acknowledged)
            if seen.ljust(len(expected), b"\0") != expected:
                sys.exit(f"block {block}: not what generation {acknowledged} wrote")
        generation = begun + 1
        ENTRY.pack_into(ledger, block * ENTRY.size, generation, acknowledged)
        data = contents(block, generation)
        done, began = 0, time.monotonic()
        while done < len(data):
            done += os.pwrite(file, data[done:], block * ROOM + done)
        ENTRY.pack_into(ledger, block * ENTRY.size, generation, generation)
        count += 1
        if count % 200 == 0:
            os.fsync(file)
        if stalls is not None:
            taken = time.monotonic() - began
            if taken > NOTED:
                os.write(stalls, f"{rank} {began} {taken}\n".encode())
            if count % BURST == 0:
                time.sleep(PAUSE * rng.random())
    os.fsync(file)
    os.close(file)
    print(count, flush=True)


if __name__ == "__main__":
    main()
