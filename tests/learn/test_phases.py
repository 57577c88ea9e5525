"""Phases found in samples of a job's counters."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learn.counter_samples import MIB, Burst, Counters, every, periodic, phases, watch
from strategies import examples

from penstock.learn.periods import Period
from penstock.learn.phases import FORGOTTEN, Began, Ended, Gap, PhaseFinder

STEPS = [0.01, 0.05, 0.1]


def quiet(finder: PhaseFinder, start: float, *, last_call: float, moved: int) -> Ended:
    """Sample an idle job until its phase ends."""
    for k in range(1000):
        event = finder.sample(start + 0.01 * k, busy=False, last_call=last_call, moved=moved)
        if event is not None:
            assert isinstance(event, Ended)
            return event
    raise AssertionError("the phase never ends")


def test_a_phase_is_dated_by_its_calls_not_by_the_samples() -> None:
    bursts = [Burst(1.003, 2.507, 100 * MIB)]
    ((began, ended, moved),) = phases(watch(PhaseFinder(), bursts, every(0.1, bursts)))
    assert began == pytest.approx(1.003, abs=0.1)
    assert (ended, moved) == (2.507, 100 * MIB)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("bursts", [20, 200])
def test_pauses_inside_phases_are_learnt(step: float, bursts: int) -> None:
    """Phases of many bursts, 100 ms between them, and 10 s of compute: from the third on whole."""
    rng = np.random.default_rng(1)
    trace = periodic(rng, phases=12, compute=10, bursts=bursts, pause=0.1, jitter=0.2)
    detected = phases(watch(PhaseFinder(), trace, every(step, trace)))
    whole = bursts * 4 * MIB
    assert [moved for _, _, moved in detected[-9:]] == [whole] * 9


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("jitter", [0.0, 0.3])
def test_short_compute_times_do_not_merge_phases(step: float, jitter: float) -> None:
    rng = np.random.default_rng(1)
    trace = periodic(rng, phases=60, compute=0.3, burst=0.1, jitter=jitter)
    assert len(phases(watch(PhaseFinder(), trace, every(step, trace)))) == 60


def test_a_long_start_does_not_merge_the_phases_after_it() -> None:
    """Input, twenty seconds of set-up, more input, set-up again, then 0.3 s of compute a phase."""
    starts = [1.0, 21.0, 41.0, *(41.0 + 0.5 * k for k in range(1, 100))]
    trace = [Burst(start, start + 0.2, 8 * MIB) for start in starts]
    detected = phases(watch(PhaseFinder(), trace, every(0.02, trace)))
    assert [moved for _, _, moved in detected[-60:]] == [8 * MIB] * 60


def test_bursts_that_are_small_in_all_are_no_phase() -> None:
    trace = [Burst(1.0 + k, 1.02 + k, MIB // 4) for k in range(20)]
    assert watch(PhaseFinder(), trace, every(0.01, trace)) == []


def test_lines_of_a_log_do_not_keep_a_phase_open() -> None:
    lines = [Burst(3.0 + 0.04 * k, 3.0 + 0.04 * k + 0.0001, 200, 1) for k in range(200)]
    trace = [Burst(1.0, 2.95, 64 * MIB), *lines]
    ((_, ended, moved),) = phases(watch(PhaseFinder(), trace, every(0.01, trace)))
    assert ended == pytest.approx(2.95)
    assert moved < 64 * MIB + MIB // 8


def test_log_lines_between_phases_are_not_part_of_them() -> None:
    lines = [Burst(0.5 + 0.04 * k, 0.5 + 0.04 * k + 0.0001, 200, 1) for k in range(200)]
    trace = [*lines, Burst(10.0, 11.0, 64 * MIB)]
    ((began, _, moved),) = phases(watch(PhaseFinder(), trace, every(0.01, trace)))
    assert began == pytest.approx(10.0, abs=0.02)
    assert moved == 64 * MIB


def test_a_call_that_waits_begins_a_phase_at_once() -> None:
    """Nothing moves while the gate is closed: a phase by its bytes would come too late."""
    finder = PhaseFinder()
    assert finder.sample(1.0, busy=False, last_call=0.0, moved=0) is None
    assert finder.sample(2.0, busy=True, last_call=0.0, moved=0, waiting=True) == Began(time=2.0)
    assert finder.sample(9.0, busy=True, last_call=0.0, moved=0, waiting=True) is None
    ended = quiet(finder, 9.5, last_call=9.4, moved=8 * MIB)
    assert ended == Ended(time=9.4, moved=8 * MIB)


def test_a_call_that_waited_and_was_small_was_no_phase() -> None:
    finder = PhaseFinder()
    finder.sample(1.0, busy=False, last_call=0.0, moved=0)
    assert finder.sample(2.0, busy=True, last_call=0.0, moved=0, waiting=True) == Began(time=2.0)
    ended = quiet(finder, 2.1, last_call=2.05, moved=4096)
    assert ended.small
    assert ended.moved == 4096


def test_a_long_sync_belongs_to_the_phase() -> None:
    """It moves nothing, and yet the job is not idle."""
    finder = PhaseFinder()
    finder.sample(1.0, busy=True, last_call=0.0, moved=0)
    finder.sample(2.0, busy=False, last_call=2.0, moved=64 * MIB)
    for k in range(1, 300):
        now = 2.0 + 0.01 * k
        assert finder.sample(now, busy=True, last_call=2.0, moved=64 * MIB) is None
    assert quiet(finder, 5.0, last_call=4.995, moved=64 * MIB).time == 4.995


class TestMarked:
    """Phases that the job itself marks win over those that are found."""

    def test_pauses_inside_do_not_end_it(self) -> None:
        finder = PhaseFinder()
        assert finder.began(1.0) == Began(time=1.0)
        trace = [Burst(2.0, 3.0, 8 * MIB), Burst(20.0, 21.0, 8 * MIB)]
        assert watch(finder, trace, np.arange(1.0, 30.0, 0.05)) == []
        assert finder.ended(30.0, 16 * MIB) == Ended(time=30.0, moved=16 * MIB)

    def test_one_that_is_found_becomes_the_jobs_own(self) -> None:
        finder = PhaseFinder()
        assert finder.sample(1.0, busy=True, last_call=0.0, moved=0) == Began(time=1.0)
        assert finder.began(1.5) is None
        assert finder.sample(9.0, busy=False, last_call=2.0, moved=8 * MIB) is None
        assert finder.ended(10.0, 8 * MIB) == Ended(time=10.0, moved=8 * MIB)

    def test_it_ends_when_the_last_process_says_so(self) -> None:
        finder = PhaseFinder()
        assert finder.began(1.0) is not None
        assert finder.began(1.1) is None
        assert finder.ended(2.0, 1) is None
        assert finder.ended(3.0, 2) == Ended(time=3.0, moved=2)
        assert finder.ended(4.0, 2) is None

    def test_one_that_nobody_ends_is_over_some_time(self) -> None:
        """Its process was killed."""
        finder = PhaseFinder()
        finder.began(1.0)
        finder.sample(2.0, busy=False, last_call=1.9, moved=8 * MIB)
        assert finder.due == pytest.approx(1.9 + FORGOTTEN)
        late = 1.9 + FORGOTTEN
        assert finder.sample(late - 0.1, busy=False, last_call=1.9, moved=8 * MIB) is None
        event = finder.sample(late, busy=False, last_call=1.9, moved=8 * MIB)
        assert event == Ended(time=1.9, moved=8 * MIB)

    def test_those_between_them_are_still_found(self) -> None:
        finder = PhaseFinder()
        finder.began(1.0)
        finder.ended(2.0, 8 * MIB)
        assert finder.sample(5.0, busy=True, last_call=2.0, moved=8 * MIB) == Began(time=5.0)


def test_samples_when_due_find_what_many_samples_find() -> None:
    """An agent that sleeps until a sample is due, or a call comes, misses no phase."""
    rng = np.random.default_rng(1)
    trace = periodic(rng, phases=30, compute=2.0, burst=0.3, jitter=0.2)
    counters, finder, events, samples = Counters(trace), PhaseFinder(), [], 0
    now, last = 0.0, trace[-1].end + 10
    while now < last:
        busy, last_call, moved = counters.at(now)
        event = finder.sample(now, busy=busy, last_call=last_call, moved=moved)
        samples += 1
        events += [] if event is None else [event]
        assert finder.due is None or finder.due >= now
        waking = [burst.start for burst in trace if burst.start > now]
        asleep = waking[0] if waking else last
        now = asleep if finder.due is None else max(min(finder.due, asleep), now + 1e-3)
    assert len(phases(events)) == 30
    assert samples < 2500
    assert finder.gap < 0.5


@examples(60)
@given(
    compute=st.floats(0.3, 50.0),
    burst=st.floats(0.06, 3.0),
    jitter=st.floats(0.0, 0.25),
    step=st.sampled_from([0.01, 0.02, 0.05, 0.1]),
    coarse=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_the_number_of_phases_and_w_iter_are_the_truth(
    *, compute: float, burst: float, jitter: float, step: float, coarse: bool, seed: int
) -> None:
    """Also where calls are dated by a clock that moves every 4 ms."""
    rng = np.random.default_rng(seed)
    trace = periodic(rng, phases=12, compute=compute, burst=burst, jitter=jitter)
    counters, finder, events = Counters(trace), PhaseFinder(), []
    for now in every(step, trace, tail=1.0):
        busy, last_call, moved = counters.at(now)
        if coarse:
            last_call = math.floor(last_call * 250) / 250
        event = finder.sample(now, busy=busy, last_call=last_call, moved=moved, waiting=False)
        events += [] if event is None else [event]
    detected = phases(events)
    assert [moved for _, _, moved in detected] == [4 * MIB] * 12
    period = Period()
    for began, ended, _ in detected:
        period.began(began)
        period.ended(ended, ended - began)
    truth = Period()
    for one in trace:
        truth.began(one.start)
        truth.ended(one.end, one.end - one.start)
    assert period.w_iter_ == pytest.approx(truth.w_iter_, rel=0.05, abs=step / 2)


@examples(30)
@given(
    pause=st.floats(0.06, 0.15),
    times=st.floats(30.0, 200.0),
    bursts=st.integers(3, 30),
    jitter=st.floats(0.0, 0.25),
    step=st.sampled_from([0.01, 0.02, 0.05]),
    seed=st.integers(0, 1000),
)
def test_phases_of_bursts_become_whole(
    *, pause: float, times: float, bursts: int, jitter: float, step: float, seed: int
) -> None:
    """Compute times of at least 30 pauses: from the fifth phase on each is found as one."""
    rng = np.random.default_rng(seed)
    trace = periodic(
        rng, phases=9, compute=times * pause, bursts=bursts, pause=pause, jitter=jitter
    )
    detected = phases(watch(PhaseFinder(), trace, every(step, trace, tail=6.0)))
    assert [moved for _, _, moved in detected[-5:]] == [bursts * 4 * MIB] * 5


NUMBERS = st.one_of(
    st.floats(0.0, 100.0),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -1.0, 1e300, math.nan, math.inf, -math.inf]),
)
BYTES = st.one_of(st.integers(-(2**70), 2**70), st.integers(0, 64 * MIB))


@examples(200)
@given(
    samples=st.lists(
        st.tuples(st.floats(-0.1, 3.0), st.booleans(), NUMBERS, BYTES, st.sampled_from("swbe")),
        max_size=200,
    )
)
def test_a_hostile_job_gets_phases_in_order_and_nothing_else(
    samples: list[tuple[float, bool, float, int, str]],
) -> None:
    """Clocks that stand still or run back, counters that lie: begin and end alternate, in time."""
    finder, events, now, latest = PhaseFinder(), [], 50.0, 50.0
    for step, busy, last_call, moved, kind in samples:
        now += step
        latest = max(latest, now)
        event: Began | Ended | None
        if kind == "b":
            event = finder.began(now)
        elif kind == "e":
            event = finder.ended(now, moved)
        else:
            event = finder.sample(
                now, busy=busy, last_call=last_call, moved=moved, waiting=kind == "w" and busy
            )
        events += [] if event is None else [event]
        if event is not None:
            assert event.time <= latest
        assert finder.due is None or finder.due >= now
        assert 0.05 <= finder.gap <= 5.0
    phases(events)
    assert all(event.moved >= 0 for event in events if isinstance(event, Ended))


def test_a_long_life_takes_no_more_memory() -> None:
    rng = np.random.default_rng(1)
    gap = Gap(0.05, 5.0)
    finder, now, moved = PhaseFinder(gap=gap), 0.0, 0
    for pause in np.exp(rng.uniform(math.log(0.001), math.log(1e5), 20_000)):
        now += float(pause)
        moved += 4 * MIB
        finder.sample(now, busy=False, last_call=now, moved=moved)
        finder.sample(now + 0.0005, busy=False, last_call=now, moved=moved)
    octaves = math.log2(2 * 5.0 / 0.025)
    assert gap.classes <= 2 * octaves + 1


def test_a_job_that_says_it_is_always_active_has_one_phase() -> None:
    finder = PhaseFinder()
    events = [
        finder.sample(k / 100, busy=True, last_call=1e9, moved=k * MIB, waiting=False)
        for k in range(1, 2000)
    ]
    assert [type(event) for event in events if event is not None] == [Began]
