"""What the fuzzers have in common: their command line, and what they take for a fault."""

import argparse
import logging
import time
import traceback
from collections.abc import Callable
from typing import Self


class Problems(logging.Handler):
    """Collects exceptions that nothing handled, or that are logged as internal errors."""

    def __init__(self) -> None:
        super().__init__()
        self._found: list[str] = []

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)

    def note(self, sent: object) -> None:
        """Note the exception that is being handled, and what was sent."""
        self._found.append(f"{traceback.format_exc()}{str(sent)[:2000]}")

    def emit(self, record: logging.LogRecord) -> None:
        """Note what is logged with an exception."""
        if record.exc_info or "Traceback" in record.getMessage():
            self._found.append(logging.Formatter().format(record))

    def check(self) -> None:
        """Raise AssertionError if there was any."""
        assert not self._found, "\n".join(self._found)


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
