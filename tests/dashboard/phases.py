"""A job that repeatedly computes for some seconds, then writes some MiB to a file."""

import os
import sys
import time

name, computes, size, phases = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
file = os.open(name, os.O_CREAT | os.O_WRONLY)
for _ in range(phases):
    time.sleep(computes)  # computing
    for k in range(size):
        os.pwrite(file, bytes(1 << 20), k << 20)
os.close(file)
