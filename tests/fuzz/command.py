"""The command line of a fuzzer: how many cases, and from which seed."""

import argparse
import logging
import time
from collections.abc import Callable


def run_fuzzer(name: str, fuzz: Callable[[int, int], object], *, cases: int) -> None:
    """Run a fuzzer as the arguments say; what it finds ends it, and the seed repeats it."""
    parser = argparse.ArgumentParser(description=f"Fuzz {name}.")
    parser.add_argument("--cases", type=int, default=cases)
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    options = parser.parse_args()
    seed = options.seed or time.time_ns()
    print(f"{name}: {options.cases:,} cases, --seed {seed}", flush=True)
    logging.getLogger().addHandler(logging.NullHandler())
    began = time.monotonic()
    fuzz(options.cases, seed)
    print(f"nothing found in {time.monotonic() - began:.0f} s")
