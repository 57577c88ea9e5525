"""Programs of thousands of threads that call at once: all have permission, for little time."""

import pytest
from live.client.set_ups import Compiled, SetUp, set_up

CALLS = 20
PERMITS = 4096
"""Threads of a process that an I/O node permits calls at once."""
MULTIPLE, ALLOWANCE = 20, 5.0
"""Of the plain run's processor time, and seconds: without measure it was a hundred and more."""


def processor_time(job: SetUp, program: str, threads: int, *, managed: bool) -> float:
    ended = job.run(program, str(threads), str(CALLS), managed=managed)
    return float(ended.stdout.split()[0])


@pytest.mark.parametrize("threads", [1500, PERMITS + 200])
def test_a_thread_without_permission_does_not_ask_at_each_call(
    compiled: Compiled, threads: int
) -> None:
    """Each call looked for a credit of a thread that has ended, by two system calls for each."""
    program = compiled("crowd.c", "-w")
    with set_up("observe") as job:
        plain = processor_time(job, program, threads, managed=False)
        managed = processor_time(job, program, threads, managed=True)
        assert managed <= MULTIPLE * plain + ALLOWANCE
        assert job.pages.total("failed_open") <= max(0, threads - PERMITS) * CALLS
        assert job.pages.total("questions") >= min(threads, PERMITS)
