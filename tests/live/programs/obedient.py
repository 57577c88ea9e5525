"""Does I/O as each line of its input says, and answers each when it is done."""

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import penstock

MIB = 1 << 20
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
print(os.getpid(), flush=True)
phase = ExitStack()


@contextmanager
def calling() -> Iterator[None]:
    """Call all the time, and move nothing: a phase that is not used lends its turn."""
    over = threading.Event()

    def call() -> None:
        while not over.wait(0.2):
            os.pread(file, 1, 1 << 40)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


for line in sys.stdin:
    what, _, size = line.strip().partition(" ")
    if what == "write":
        for _ in range(int(size)):
            os.write(file, bytes(MIB))
    elif what == "to":  # from now on another file
        file = os.open(size, os.O_CREAT | os.O_RDWR)
    elif what == "small":
        os.write(file, bytes(4096))
    elif what == "log":
        for _ in range(100):
            os.write(file, bytes(1024))
            time.sleep(0.016)
    elif what == "stream":
        for _ in range(256):
            os.write(file, bytes(4096))
    elif what == "begin":
        phase.enter_context(penstock.phase(bytes=int(size) * MIB if size else None))
        phase.enter_context(calling())
    elif what == "mark":
        phase.enter_context(penstock.phase())
    elif what == "end":
        phase.close()
    elif what == "die":
        sys.exit(int(size))
    elif what in ("lock", "unlock"):
        fcntl.lockf(file, fcntl.LOCK_EX if what == "lock" else fcntl.LOCK_UN)
    elif what == "spawn":
        copy = ["dd", "if=/dev/zero", f"of={sys.argv[1]}.child", "bs=1M", f"count={size}"]
        subprocess.run(copy, check=True, stderr=subprocess.DEVNULL)
    print(what, flush=True)
