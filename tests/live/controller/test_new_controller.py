"""What is said of jobs that run while 'penstock down' ends a controller and 'up' starts another."""

import msgspec
from live.controller.turn_deployment import Deployed
from live.controller.turn_harness import TurnHarness
from live.store.sample_jobs import ended

from penstock.live.controller.explain import advised, explain
from penstock.live.protocol import messages

MIB = 1 << 20


def test_bytes_are_of_the_whole_run_and_phases_of_the_part_that_is_named(site: Deployed) -> None:
    site.up()
    job = site.obedient("job")
    for phases in (1, 2):
        job.do("write 4")
        before = site.until("job", lambda job: job.phases == phases)  # noqa: B023
    assert before.reconnected is None
    assert "reconnected" not in site.penstock("explain", "job")
    site.penstock("down")
    assert "job job.1 continues without a controller" in site.state.log.read_text()
    site.up()
    again = site.until("job", lambda job: job.state == "running")
    assert site.status().forwarded_bytes == again.forwarded_bytes == 8 * MIB
    assert again.began == before.began
    assert again.reconnected is not None
    job.do("write 4")
    site.until("job", lambda job: job.phases == 1)
    page = site.penstock("explain", "job")
    assert "phases and waits for turns are counted from then on.\n  It had 1 phase" in page
    assert "from earlier runs" not in page
    assert job.finish()["fail_opens"] == 0


def test_a_call_at_the_gate_goes_direct_and_is_no_fail_open(site: Deployed) -> None:
    """The I/O nodes did not fail: they were told to end."""
    site.up()
    holder, waiter = site.obedient("holder"), site.obedient("waiter")
    site.held(holder, waiter)
    site.penstock("down")
    assert waiter.answer() == "write"
    assert waiter.finish()["fail_opens"] == 0


def test_of_two_jobs_that_transfer_none_is_said_to_wait(site: Deployed) -> None:
    """Both were in a phase when the new controller began; it stops neither."""
    site.up()
    jobs = [site.obedient("one"), site.obedient("two")]
    site.penstock("down")
    for job in jobs:
        job.do("begin")
    site.up()
    for job in jobs:
        site.until(job.name, lambda job: job.doing == "transferring")
    records = [site.job(job.name) for job in jobs]
    assert [record.share for record in records] == [0.5, 0.5]
    assert sorted(record.out_of_turn for record in records) == [False, True]
    [without] = [record.name for record in records if record.out_of_turn]
    assert ", without a turn; its share is 50% granted" in site.penstock("explain", without)
    for job in jobs:
        job.do("write 1")


def test_a_job_that_ends_in_between_is_not_said_to_have_gone_direct(site: Deployed) -> None:
    site.up()
    job = site.obedient("job")
    job.do("write 4")
    site.until("job", lambda job: job.phases == 1)
    site.penstock("down")
    job.finish()
    site.up()
    site.until("job", lambda job: job.state == "ended")
    page = site.penstock("explain", "job")
    assert "It moved 4 MiB through I/O node 0." in page
    assert "It has no I/O nodes" not in page


def test_advice_names_the_part_of_the_run_that_it_is_about() -> None:
    job = ended(1, state="ended", phases=3, turn_waited_seconds=2.0)
    assert "its 3 I/O phases would" in advised(job, "set-10")
    job = msgspec.structs.replace(job, reconnected=50.0)
    assert "its 3 I/O phases since it reconnected would" in advised(job, "set-10")


def test_advice_to_a_job_that_waits_names_what_can_answer() -> None:
    """'penstock compare' needs a workload, which a site does not have; it has records."""
    job = ended(1, state="ended", phases=3, turn_waited_seconds=1e9)
    status = messages.Status(
        site="s",
        jobs=[job],
        io_nodes=[],
        forwarded_bytes=0,
        direct_bytes=0,
        fail_open_total=0,
        policy="set-10",
    )
    assert "'penstock what-if STATE/records'" in str(explain(status, job.name).advice)


def test_a_phase_of_an_earlier_controller_transfers_since_it_began() -> None:
    """With or without a turn; and it waits for none once another ends."""
    harness = TurnHarness()
    for id in ("a", "b"):
        job, began = harness.start(id), messages.PhaseBegan(phase=7, transferring=40.0)
        harness.turn_service.phase_began(job, began)
    assert harness.take() == [("a", "Turn", 7)]
    harness.now += 2.0
    for id, out_of_turn in (("a", False), ("b", True)):
        record = harness.record(id)
        assert (record.doing, record.since_seconds) == ("transferring", 42.0)
        assert (record.share, record.out_of_turn) == (0.5, out_of_turn)
    assert harness.end(harness.jobs["a"], 7) == [("b", "Turn", 7)]
    assert harness.record("b").since_seconds == 42.0
    assert harness.record("b").share == 1.0


def test_in_mode_observe_it_is_said_what_it_would_wait() -> None:
    harness = TurnHarness(mode="observe")
    for id in ("a", "b"):
        job, began = harness.start(id), messages.PhaseBegan(phase=7, transferring=40.0)
        harness.turn_service.phase_began(job, began)
    assert [harness.record(id).doing for id in ("a", "b")] == ["transferring", "waiting"]


def test_a_released_phase_transfers_since_its_release() -> None:
    """Not since it began: until then it waited."""
    harness = TurnHarness(max_wait=30.0)
    first, second = harness.start("first"), harness.start("second")
    harness.begin(first, 1)
    harness.begin(second, 1)
    assert harness.wait(30.0) == [("second", "Turn", 1)]
    harness.now += 1.0
    assert harness.record("second").since_seconds == 1.0


def test_a_job_keeps_the_io_nodes_that_were_asked_for_under_a_new_controller(
    site: Deployed,
) -> None:
    """The fault: a job that had been remapped to I/O node 2 came back on all."""
    options = ("--io-nodes", "3")
    site.up(*options)
    moved, chosen, other = (
        site.obedient("moved"),
        site.obedient("chosen", "--io-nodes", "2"),
        site.obedient("other"),
    )
    site.penstock("remap", "moved", "--io-nodes", "2")
    site.until("moved", lambda job: job.io_nodes == [2])
    requested = site.job("chosen").io_nodes
    site.penstock("down")
    site.up(*options)
    for job in (moved, chosen, other):
        site.until(job.name, lambda job: job.state == "running")
    assert site.job("moved").io_nodes == [2]
    assert site.job("chosen").io_nodes == requested
    pinned = {job.name for job in site.status().jobs if job.pinned and job.state == "running"}
    assert pinned == {"moved", "chosen"}
