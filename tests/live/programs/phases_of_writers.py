"""Several processes compute, then write, in step: FOLDER PROCESSES MIB PHASES COMPUTE-SECONDS."""

import multiprocessing
import os
import sys
import time

folder = sys.argv[1]
processes, mebibytes, phases = map(int, sys.argv[2:5])
compute = float(sys.argv[5])
BLOCK = bytes(1 << 18)
all_wrote = multiprocessing.get_context("fork").Barrier(processes)


def write(name: str) -> None:
    file = os.open(name, os.O_CREAT | os.O_WRONLY)
    for _ in range(phases):
        time.sleep(compute)
        for k in range(4 * mebibytes):
            os.pwrite(file, BLOCK, k << 18)
        all_wrote.wait()
    os.close(file)


children = []
for number in range(processes):
    child = os.fork()
    if child == 0:
        write(f"{folder}/{os.getppid()}-{number}")
        os._exit(0)
    children.append(child)
for child in children:
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit(1)
