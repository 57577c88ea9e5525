"""The job table: totals and causes of fail-opens add up, whatever is still listed."""

import logging
from itertools import count

import pytest
from live.store.sample_jobs import running

from penstock.learn.observations import History, ObservedPhase
from penstock.live.controller.job_table import JobArchive, JobTable
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.messages import BeginJob
from penstock.live.store import Family, Store, Totals, WriteBehind
from penstock.model import Job


def lose_job(jobs: JobTable, **causes: int) -> JobRecord:
    """BeginJob a job that fails open and is lost; return its record."""
    job = jobs.begin(BeginJob(name="x", pid=1, command=[], user="me"), 100.0)
    job.counters = causes
    jobs.end(job, None, 200.0)
    jobs.remember(job.record(0.0))
    return job.record(0.0)


def test_fail_opens_by_cause_add_up_after_a_lost_job_is_taken_back() -> None:
    """Also of one that is not listed any more, and of one whose causes are not known any more."""
    jobs = JobTable(count(1).__next__, Totals(fail_opens=4), listed=2, lost_jobs=2)
    lost = [lose_job(jobs, lapses=k, gave_up=1) for k in range(1, 7)]

    def check(lapses: int, gave_up: int, earlier: int) -> None:
        by_cause = jobs.fail_opens()
        assert sum(by_cause.values()) == jobs.totals().fail_opens
        counts = by_cause["lapses"], by_cause["gave_up"], by_cause.get("earlier", 0)
        assert counts == (lapses, gave_up, earlier)

    check(3 + 4 + 5 + 6, 4, 4 + 2 + 3)  # of the first two the causes are forgotten
    jobs.take_back(lost[3])
    check(3 + 5 + 6, 3, 9)
    jobs.take_back(lost[0])
    check(3 + 5 + 6, 3, 7)
    jobs.take_back(lost[5])
    check(3 + 5, 2, 7)


def test_a_job_that_did_not_come_back_lasted_until_it_was_given_up(url: str) -> None:
    """It stays listed: its run time must not grow."""
    with WriteBehind(Store(url)) as kept:
        kept.running(running(1, began=1000.0))
    with WriteBehind(Store(url)) as kept:
        (lost,) = JobArchive(kept, clock=lambda: 1050.0).give_up()
    assert (lost.ended, lost.seconds) == (1050.0, 50.0)


@pytest.mark.security
def test_observations_that_cannot_be_true_are_dropped_and_counted(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    huge = ObservedPhase(bytes=2**63 - 1, seconds=0.5, alone=True)
    usual = ObservedPhase(bytes=10**8, seconds=1.0, alone=True)
    job = Job(id="a.1", serial=1, user="ann", executable="x")
    with WriteBehind(Store(url)) as kept, caplog.at_level(logging.WARNING):
        archive = JobArchive(kept)
        for phase in (huge, usual, huge):
            archive.learn(job, 1, phase)
        known = kept.families.known(Family(user="ann", executable="x", nodes=1))
        assert known.history == History({1: (usual,)})
        assert archive.impossible == 2
    assert caplog.text.count("cannot be true") == 1
