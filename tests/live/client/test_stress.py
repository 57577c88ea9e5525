"""Everything that interrupts a program, at once: nothing hangs, crashes or is written wrongly.

A minute over all set-ups; with PENSTOCK_SOAK each is a minute long.
"""

import os

import pytest
from live.client.set_ups import SET_UPS, Compiled, set_up

SECONDS = 60 if "PENSTOCK_SOAK" in os.environ else 60 // len(SET_UPS)
AT_LEAST_ONCE = {"ticks", "reaped", "forks", "vforks", "cancelled", "blocks"}


@pytest.mark.parametrize("name", SET_UPS)
def test_signals_threads_and_children_at_once(name: str, compiled: Compiled) -> None:
    with set_up(name) as job:
        ended = job.run(compiled("stress.c"), str(SECONDS), check=False)
        assert ended.returncode == 0, ended.stderr
        counted = {line.split()[0]: int(line.split()[1]) for line in ended.stdout.splitlines()}
        assert {name for name, count in counted.items() if count > 0} >= AT_LEAST_ONCE
        # A log record is written at once or not at all, by handlers too.
        log = (job.root / "stress.log").read_bytes().splitlines(keepends=True)
        assert set(log) == {b"t" * 15 + b"\n", b"c" * 15 + b"\n"}
        # The child of vfork wrote to its own file, and the parent's is as it was.
        assert set((job.root / "stress.vforked").read_bytes().splitlines()) == {b"child"}
        assert (job.root / "stress.parents").read_bytes() == b"parent"
        if name != "no I/O nodes":
            assert job.pages.total("forwarded_writes") > 0
        assert (job.pages.total("carried_bytes") > 0) == (name == "carried over TCP")
