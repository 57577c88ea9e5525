"""Records as workloads: what was the jobs' own doing stays, what was the policies' goes."""

import gzip
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records.random_days import LIVE, RecordedClock, header, write
from strategies import examples, workloads

from penstock import registry
from penstock.errors import InputError
from penstock.model import (
    DIRECT_PATH,
    Event,
    Job,
    JobEnded,
    JobStarted,
    PhaseBegan,
    PhaseEnded,
    Site,
    Woke,
)
from penstock.records import Entry, Header, Record, replay
from penstock.sim import engine, formats, metrics
from penstock.sim.formats import from_record
from penstock.sim.formats.record_traces import Cuts
from penstock.sim.workload import Workload

BLIND = ["exclusive-fcfs", "fair-share", "set-10", "set-fair-share", "share-priority"]
"""Policies that look at no view, so that it does not matter that a ledger estimates, and serve by
arrival, so that it does not matter that a controller decides after each event of an instant."""
TIMES = st.floats(0.5, 20.0)
EXACT = st.integers(32, 1280).map(lambda k: k / 64)
"""Gaps between such times have no rounding error, which would decide ties of these policies."""
A, B = Job(id="a", serial=0), Job(id="b", serial=1)


def load(directory: Path, events: Sequence[Event], **more: Any) -> from_record.Recording:
    paths = write(directory, header(**more), [Entry(event=event) for event in events])
    return from_record.load(Record(*paths))


def start(time: float, job: Job) -> JobStarted:
    return JobStarted(time=time, job=job)


def begin(
    time: float, job: Job, resources: tuple[int, ...] = (0,), *, resumes: bool = False
) -> PhaseBegan:
    return PhaseBegan(time=time, job=job.id, resources=resources, resumes=resumes)


def end(time: float, job: Job, io: float, resource: int = 0, idle: float = 0.0) -> PhaseEnded:
    return PhaseEnded(time=time, job=job.id, resource=resource, io=io, idle=idle)


def over(time: float, job: Job) -> JobEnded:
    return JobEnded(time=time, job=job.id)


def phases(workload: Workload, j: int = 0) -> list[list[float]]:
    rows = slice(*workload.offsets[j : j + 2])
    return np.column_stack((workload.compute[rows], workload.io[rows])).tolist()  # type: ignore[no-any-return]


def close(a: metrics.Metrics, b: metrics.Metrics) -> None:
    for field in fields(metrics.Metrics):
        expected = pytest.approx(getattr(b, field.name), rel=1e-9, abs=1e-9, nan_ok=True)
        assert getattr(a, field.name) == expected, field.name


def round_trip(workload: Workload, made: Header, *, exact: bool) -> None:
    clock = RecordedClock(workload, made, exact=exact)
    clock.run()
    with tempfile.TemporaryDirectory() as directory:
        (path,) = write(Path(directory), made, clock.entries)
        recording = from_record.load(Record(path))
        if not exact:
            assert replay(Record(path)).first_difference is None
    sharing = registry.sharing(made.sharing.policy)
    truth = metrics.measure(engine.simulate(workload, sharing, site=made.site))
    again = metrics.measure(engine.simulate(recording.workload, sharing, site=made.site))
    close(again, truth)
    close(metrics.measure(recording.run), truth)
    assert recording.workload.resources.tolist() == workload.resources.tolist()
    assert not any(getattr(recording.cuts, field.name) for field in fields(Cuts))


@pytest.mark.parametrize("policy", BLIND)
@examples(20)
@given(workload=workloads(resources=3, caps=True, times=TIMES))
def test_a_recorded_simulation_is_simulated_the_same(policy: str, workload: Workload) -> None:
    """Record, read back, simulate with the same policy: the same metrics, and the recorded ones."""
    round_trip(workload, header(policy), exact=False)


@pytest.mark.parametrize("policy", sorted(set(LIVE) - set(BLIND)))
@examples(15)
@given(workload=workloads(times=EXACT))
def test_so_is_one_whose_policy_knows_the_truth(policy: str, workload: Workload) -> None:
    round_trip(workload, header(policy, site=Site()), exact=True)


def test_waiting_and_sharing_are_left_out(tmp_path: Path) -> None:
    recording = load(
        tmp_path,
        [
            start(2.0, A),
            begin(5.0, A),
            end(15.0, A, io=4.0),
            begin(16.0, A),
            end(20.0, A, io=2.0),
            over(23.0, A),
        ],
    )
    assert phases(recording.workload) == [[3.0, 4.0], [1.0, 2.0], [3.0, 0.0]]
    assert recording.workload.release.tolist() == [2.0]
    assert recording.run.request.tolist() == [5.0, 16.0, 23.0]
    assert recording.run.end.tolist() == [15.0, 20.0, 23.0]
    jobs = metrics.measure_jobs(recording.run, (0.0, 30.0))
    assert jobs.compute.tolist() == [7.0]
    assert jobs.stretch.tolist() == [21.0 / 13.0]


def test_a_phase_that_was_seen_to_end_late_ended_when_it_did(tmp_path: Path) -> None:
    events = [start(0.0, A), begin(1.0, A), end(9.0, A, io=3.0, idle=2.0), over(10.0, A)]
    recording = load(tmp_path, events)
    assert phases(recording.workload) == [[1.0, 3.0], [3.0, 0.0]]
    # No more than all of it can have been idle; and no phase takes longer alone than it did.
    recording = load(tmp_path / "b", [*events[:2], end(4.0, A, io=3.0, idle=60.0), over(5.0, A)])
    assert phases(recording.workload) == [[1.0, 0.0], [4.0, 0.0]]


def test_a_phase_on_several_resources_ends_with_its_last_part(tmp_path: Path) -> None:
    events = [start(0.0, A), begin(1.0, A, (0, 2)), end(3.0, A, io=2.0, resource=2)]
    events += [end(6.0, A, io=2.5, resource=0), begin(7.0, A, (1,)), end(8.0, A, 1.0, resource=1)]
    events += [begin(9.0, A, (0, 2)), end(9.5, A, 0.5, resource=0), end(9.5, A, 0.5, resource=2)]
    recording = load(tmp_path, [*events, over(9.5, A)])
    assert phases(recording.workload) == [[1.0, 2.5], [1.0, 1.0], [1.0, 0.5]]
    assert recording.workload.resources_of(0) == (0, 2), "what it used most"
    assert recording.cuts.jobs_moved == 1


def test_direct_phases_count_as_gaps(tmp_path: Path) -> None:
    events = [start(0.0, A), begin(2.0, A, ()), end(5.0, A, io=3.0, resource=DIRECT_PATH)]
    recording = load(tmp_path, [*events, begin(6.0, A), end(8.0, A, io=1.0), over(8.0, A)])
    assert phases(recording.workload) == [[6.0, 1.0]]
    assert recording.cuts.phases_direct == 1


def test_jobs_that_run_on_count_up_to_the_end(tmp_path: Path) -> None:
    events = [start(0.0, A), start(0.0, B), begin(4.0, A), begin(6.0, B), end(8.0, B, io=2.0)]
    recording = load(tmp_path, [*events, Woke(time=11.0)])
    assert phases(recording.workload, 0) == [[4.0, 0.0]], "its phase has no length yet"
    assert phases(recording.workload, 1) == [[6.0, 2.0], [3.0, 0.0]]
    assert (recording.cuts.jobs_after, recording.cuts.phases) == (2, 1)


def test_jobs_that_ran_before_count_from_the_beginning(tmp_path: Path) -> None:
    """A part of a record knows who runs, not what they were about."""
    c = Job(id="c", serial=2)
    recording = load(
        tmp_path,
        [
            end(1003.0, A, io=50.0),
            begin(1004.0, B),
            begin(1005.0, A),
            end(1006.0, B, io=2.0),
            end(1007.0, A, io=2.0),
            over(1007.0, A),
            over(1008.0, B),
        ],
        began=1000.0,
        running=[start(10.0, A), start(20.0, B), start(30.0, c)],
    )
    w = recording.workload
    assert w.ids == ["a", "b", "c"]
    assert w.release.tolist() == [3.0, 0.0, 0.0]
    assert phases(w, 0) == [[2.0, 2.0]]
    assert phases(w, 1) == [[4.0, 2.0], [2.0, 0.0]]
    assert phases(w, 2) == [[8.0, 0.0]]
    assert recording.cuts.jobs_before == 3
    assert recording.cuts.jobs_after == 1
    assert recording.cuts.phases == 1


def test_what_cannot_be_simulated_is_left_out_and_counted(tmp_path: Path) -> None:
    events: list[Event] = [
        start(0.0, A),
        start(1.0, B),
        over(1.0, B),
        begin(2.0, A),
        end(6.0, A, io=0.0),
        begin(7.0, A),
        end(8.0, A, io=5.0),
        end(8.0, Job(id="nobody", serial=7), io=1.0),
        over(8.0, A),
        start(9.0, A),
        over(10.0, A),
    ]
    recording = load(tmp_path, events)
    assert recording.workload.ids == ["a", "a#2"], "a name that came twice is told apart"
    assert phases(recording.workload, 0) == [[1.0, 1.0]], "what it did after the phase cut off"
    assert recording.cuts == Cuts(jobs_idle=1, jobs_cut=1, phases_unmeasured=1, phases_too_fast=1)


def test_a_phase_that_was_cut_off_is_left_out_on_both_sides(tmp_path: Path) -> None:
    """200 MiB took "0.327 s", because the phase counted in full in the record and as none here."""
    events = [start(0.0, A), begin(1.0, A), end(3.0, A, io=2.0), begin(4.0, A)]
    events += [end(14.0, A, io=0.0), over(14.0, A), start(14.0, B), begin(14.5, B)]
    recording = load(tmp_path, [*events, end(15.0, B, io=0.0), over(15.0, B)])
    assert recording.workload.ids == ["a"], "all that b did was cut off"
    assert phases(recording.workload) == [[1.0, 2.0], [1.0, 0.0]]
    assert recording.run.finish.tolist() == [4.0], "in the recorded run it ends there, too"
    assert (recording.cuts.phases_unmeasured, recording.cuts.jobs_cut) == (2, 1)


def test_a_phase_that_lent_its_turn_is_one_phase(tmp_path: Path) -> None:
    events = [start(0.0, A), begin(1.0, A), end(3.0, A, io=0.0)]
    events += [begin(8.0, A, resumes=True), end(10.0, A, io=2.5), over(10.0, A)]
    recording = load(tmp_path, events)
    assert phases(recording.workload) == [[6.0, 2.5]], "its pause of 5 s is no I/O"
    assert recording.run.request.tolist() == [6.0]
    assert recording.cuts == Cuts()


def test_a_record_without_work_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"record-.*: no job in it did any work"):
        load(tmp_path, [Woke(time=5.0)])


def test_parts_that_miss_events_are_not_joined(tmp_path: Path) -> None:
    first = write(tmp_path, header(epoch=0.0), [Entry(event=start(1.0, A))])
    text = first[0].read_bytes().replace(b'"part":1', b'"part":2').replace(b'"lost":0', b'"lost":7')
    second = tmp_path / "second.jsonl"
    second.write_bytes(text)
    with pytest.raises(InputError, match="7 events between the parts"):
        from_record.load(Record(*first, second))


def test_what_is_known_of_a_job_comes_along(tmp_path: Path) -> None:
    job = Job(id="a", serial=3, nodes=4, max_share=0.5, user="ann", hints={"profile": 2.0})
    recording = load(tmp_path, [start(0.0, job), begin(1.0, job), end(3.0, job, io=1.0)])
    (known,) = recording.workload.jobs()
    assert (known.nodes, known.max_share, known.user) == (4, 0.5, "ann")
    assert known.hints == {"profile": 2.0}


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".JSONL"])
def test_a_record_is_a_workload_file(tmp_path: Path, suffix: str) -> None:
    events = [start(0.0, A), begin(1.0, A), end(3.0, A, io=1.5), over(3.0, A)]
    (path,) = write(tmp_path / "records", header(), [Entry(event=event) for event in events])
    data = path.read_bytes()
    file = tmp_path / f"day{suffix}"
    file.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    assert phases(formats.read(file)) == [[1.0, 1.5]]


def test_what_is_wrong_names_the_file_once(tmp_path: Path) -> None:
    file = tmp_path / "day.jsonl"
    file.write_text("nonsense\n")
    with pytest.raises(InputError, match=r"^[^:]*day.jsonl, line 1 is not the header"):
        formats.read(file)
    for name in ("day.gz", "day.json.gz"):
        (tmp_path / name).write_text("x")
        with pytest.raises(InputError, match="ends in none of"):
            formats.read(tmp_path / name)
