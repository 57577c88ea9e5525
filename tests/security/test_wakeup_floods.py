"""A job that wakes its agent for ever keeps it no busier than any: it may be the agent of root."""

import threading
from pathlib import Path

import pytest
from limits import HANG
from live.agent.agent_harness import Harness

from penstock.live.agent.job_agent import Limits
from penstock.live.protocol.shared_page import SharedPages

pytestmark = pytest.mark.security
LOOKS = 3


class BusyPages(SharedPages):
    """Pages of a job that counts a wakeup whenever its agent looks."""

    looks = 0
    looked_often = threading.Event()

    @property
    def wakeups(self) -> int:
        self.looks += 1
        if self.looks >= LOOKS:
            self.looked_often.set()
        return self.looks


def test_a_job_is_not_sampled_more_often_however_often_it_wakes_its_agent(tmp_path: Path) -> None:
    """The fault: one sample after another, on a core of its own."""
    limits = Limits(sample_interval=2 * HANG, least_interval=HANG)
    job = Harness(tmp_path, pages=BusyPages, limits=limits)
    try:
        assert not BusyPages.looked_often.wait(0.5), "the fault takes a millisecond"
    finally:
        job.close()
