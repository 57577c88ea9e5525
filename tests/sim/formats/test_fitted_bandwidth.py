"""What a record shows of the file system, and isolated lengths by it."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from records.random_days import days, header, run, write
from sim.formats.test_from_record import A, B, begin, over, phases, start
from strategies import examples

from penstock.errors import InputError
from penstock.model import Admit, Event, Job, PhaseEnded, Site
from penstock.records import Entry, Record
from penstock.sim import metrics
from penstock.sim.formats import from_record

MIB = 2.0**20
Lines = list[Event | Entry]


def admitted(job: Job) -> Admit:
    return Admit(job=job.id, resource=0, weight=1.0, max_share=1.0)


def measured(time: float, job: Job, mib: float, seconds: float | None = None) -> Entry:
    """Return the end of a phase whose bytes are known; the controller's own estimate is wrong."""
    event = PhaseEnded(time=time, job=job.id, resource=0, io=0.001)
    return Entry(event=event, bytes=int(mib * MIB), seconds=seconds)


def entries(*those: Event | Entry) -> list[Entry]:
    return [each if isinstance(each, Entry) else Entry(event=each) for each in those]


def fitted(
    folder: Path, *those: Event | Entry, mode: str = "observe", declared: float = 100.0
) -> from_record.Recording:
    made = header("fair-share", site=Site(bandwidth=declared * MIB), mode=mode)
    (path,) = write(folder, made, entries(*those))
    return from_record.load(Record(path))


def test_the_bandwidth_is_fitted_and_contradicted(tmp_path: Path) -> None:
    """A declared bandwidth that is too high makes all I/O look short."""
    alone: Lines = [start(0.0, A), begin(1.0, A), measured(3.0, A, 84)]
    both: Lines = [
        start(3.0, B),
        begin(5.0, A),
        begin(5.0, B),
        measured(9.0, A, 84),
        measured(9.0, B, 84),
    ]
    recording = fitted(tmp_path, *alone, *both)
    assert recording.bandwidth.alone == pytest.approx(42 * MIB)
    assert recording.bandwidth.together == pytest.approx(42 * MIB)
    assert phases(recording.workload, 0) == [[1.0, 2.0], [2.0, pytest.approx(2.0)]]
    assert phases(recording.workload, 1) == [[2.0, pytest.approx(2.0)]]
    assert str(recording.bandwidth.contradiction).startswith(
        "best phase alone: 42 MiB/s, phases together: 42 MiB/s; you said 100 MiB/s"
    )
    right = fitted(tmp_path / "right", *alone, *both, declared=45.0)
    assert right.bandwidth.contradiction is None


def test_a_job_that_cannot_use_all_of_it_needs_no_more_than_it_did_alone(tmp_path: Path) -> None:
    slow: Lines = [start(0.0, B), begin(1.0, B), measured(5.0, B, 84)]
    fast: Lines = [start(5.0, A), begin(6.0, A), measured(7.0, A, 42), over(7.0, A), over(7.0, B)]
    recording = fitted(tmp_path, *slow, *fast)
    assert recording.workload.max_share.tolist() == [1.0, 1.0], "as policies knew it"
    assert recording.workload.isolated_io.tolist() == pytest.approx([1.0, 4.0, 0.0])


def test_a_phase_that_is_cut_while_it_waits_was_in_nobodys_way(tmp_path: Path) -> None:
    """Its weight of 1 beside a small one made the file system look many times too fast."""
    small = Admit(job=A.id, resource=0, weight=1e-5, max_share=1.0)
    first: Lines = [start(0.0, A), start(0.0, B), Entry(event=begin(1.0, A), actions=(small,))]
    ends: Lines = [begin(1.0, B), over(2.5, B), measured(3.0, A, 84, 2.0), over(4.0, A)]
    recording = fitted(tmp_path, *first, *ends, mode="enforce")
    assert recording.bandwidth.alone == pytest.approx(42 * MIB)


def test_a_phase_that_is_cut_after_it_waited_shares_from_its_turn_on(tmp_path: Path) -> None:
    """b was let in 1 s before it ended, at the weight of a: a had the file system for 1.5 s."""
    lines: Lines = [
        *(start(0.0, A), start(0.0, B)),
        Entry(event=begin(1.0, A), actions=(admitted(A),)),
        begin(1.0, B),
        Entry(event=start(2.0, Job(id="c", serial=3)), actions=(admitted(B),)),
        *(over(3.0, B), measured(3.0, A, 63, 2.0), over(4.0, A)),
    ]
    recording = fitted(tmp_path, *lines, mode="enforce")
    assert recording.bandwidth.together == pytest.approx(42 * MIB)


def test_waiting_jobs_transfer_where_turns_are_only_observed(tmp_path: Path) -> None:
    """The same lines: enforced, each was alone; observed, both shared the file system."""
    admit_a = Entry(event=begin(1.0, A), actions=(admitted(A),))
    end_a = Entry(
        event=PhaseEnded(time=3.0, job="a", resource=0, io=1.0),
        bytes=int(84 * MIB),
        actions=(admitted(B),),
    )
    those: Lines = [
        start(0.0, A),
        start(0.0, B),
        admit_a,
        begin(1.0, B),
        end_a,
        measured(5.0, B, 84),
    ]
    enforced = fitted(tmp_path, *those, mode="enforce")
    assert (enforced.bandwidth.alone, enforced.bandwidth.together) == (42 * MIB, None)
    observed = fitted(tmp_path / "observed", *those, mode="observe")
    assert observed.bandwidth.alone is None
    assert observed.bandwidth.together == pytest.approx(42 * MIB)


def test_what_a_job_measured_dates_its_phase(tmp_path: Path) -> None:
    """A controller hears of a phase after its first bytes: it took longer than between events."""
    recording = fitted(
        tmp_path, start(0.0, A), begin(1.25, A), measured(3.0, A, 84, seconds=2.0), over(3.0, A)
    )
    assert recording.bandwidth.alone == 42 * MIB
    assert phases(recording.workload) == [[1.0, 2.0]]


def test_a_phase_too_short_to_measure_shows_no_bandwidth(tmp_path: Path) -> None:
    """It was noticed when most of its bytes had gone: 100 MiB "in 7 ms", or "in no time"."""
    short: Lines = [
        start(0.0, A),
        begin(1.0, A),
        measured(1.0, A, 100, seconds=0.0),
        begin(2.0, A),
        measured(2.0078125, A, 100, seconds=0.0078125),
    ]
    only = fitted(tmp_path, *short, over(3.0, A))
    assert (only.bandwidth.fitted, only.cuts.phases_short) == (None, 2)
    assert phases(only.workload)[1] == [1.0, 0.0078125], "it counts with what it took"
    both = fitted(tmp_path / "b", *short, begin(4.0, A), measured(6.0, A, 84), over(7.0, A))
    assert both.bandwidth.alone == 42 * MIB
    assert both.cuts.phases_short == 2


@examples(50)
@given(day=days())
def test_no_metric_of_a_record_is_impossible(day: list[Event]) -> None:
    """A stretch below 1, an efficiency above 1: a phase is never shorter than alone."""
    with tempfile.TemporaryDirectory() as directory:
        (path,) = write(Path(directory), header(), run(header(), day))
        try:
            recording = from_record.load(Record(path))
        except InputError:
            return
        measures = metrics.measure(recording.run)
        assert measures.max_stretch >= 1 - 1e-9
        assert measures.efficiency <= 1 + 1e-9
        assert not measures.io_slowdown < 1 - 1e-9
