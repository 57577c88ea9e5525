"""The books of a controller's jobs: what is told of them adds up."""

import time
from itertools import count

import pytest
from live.store.sample_jobs import ended as in_store
from live.store.sample_jobs import running

from penstock.live.controller import job_table as books
from penstock.live.controller.job_archive import Archive
from penstock.live.controller.job_table import Job, Jobs
from penstock.live.protocol.messages import BeginJob
from penstock.live.store import EndedJob, Keeper, Store


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "REMEMBERED", 2)
    monkeypatch.setattr(books, "MAY_COME_BACK", 2)


def made(earlier: int = 0) -> Jobs:
    return Jobs(count(1).__next__, (0, 0, earlier))


def loses(jobs: Jobs, **causes: int) -> Job:
    """Take a job in that fails open and is lost."""
    job = jobs.begin(BeginJob(name="x", pid=1, command=[], user="me"), 100.0)
    job.counters = causes
    jobs.end(job, None, 200.0)
    return job


def as_kept(job: Job) -> EndedJob:
    counted = {"fail_opens": sum(job.counters.values()), "forwarded_bytes": 0, "direct_bytes": 0}
    return in_store(job.serial, id=job.id, state="lost", **counted)


@pytest.mark.usefixtures("few")
def test_fail_opens_by_cause_add_up_after_a_lost_job_is_taken_back() -> None:
    """Also of one that is not listed any more, and of one whose causes are not known any more."""
    jobs = made(earlier=4)
    lost = [loses(jobs, lapses=k, gave_up=1) for k in range(1, 7)]

    def check(lapses: int, gave_up: int, earlier: int) -> None:
        by_cause = jobs.fail_opens()
        assert sum(by_cause.values()) == jobs.totals()[2]
        told = by_cause["lapses"], by_cause["gave_up"], by_cause.get("earlier", 0)
        assert told == (lapses, gave_up, earlier)

    check(3 + 4 + 5 + 6, 4, 4 + 2 + 3)  # of the first two the causes are forgotten
    jobs.take_back(as_kept(lost[3]))
    check(3 + 5 + 6, 3, 9)
    jobs.take_back(as_kept(lost[0]))
    check(3 + 5 + 6, 3, 7)
    jobs.take_back(as_kept(lost[5]))
    check(3 + 5, 2, 7)


def test_a_job_that_did_not_come_back_lasted_until_it_was_given_up(url: str) -> None:
    """It is told of for long: its time must not go on."""
    began = time.time() - 50.0
    with Keeper(Store(url)) as kept:
        kept.running(running(1, began=began))
    with Keeper(Store(url)) as kept:
        (lost,) = Archive(kept).give_up()
    told = lost.told(time.monotonic() + 1000.0)["seconds"]
    assert told == pytest.approx(50.0, abs=20.0)
