"""What is known of an application comes from its phases at the same number of I/O nodes alone."""

import math

import pytest

from penstock.learn.imported import Imported
from penstock.learn.knowledge import ENOUGH, LOWER_BOUND, Knowledge
from penstock.learn.observations import (
    LARGEST,
    LONGEST,
    MOST_COUNTS,
    PHASES_PER_COUNT,
    SMALLEST,
    History,
    ObservedPhase,
)
from penstock.model import curve

MB = 1_000_000


def phase(
    megabytes: float,
    seconds: float = 1.0,
    *,
    alone: bool = True,
    compute: float | None = None,
    first: bool = False,
) -> ObservedPhase:
    moved = round(megabytes * MB)
    return ObservedPhase(bytes=moved, seconds=seconds, alone=alone, compute=compute, first=first)


def history(phases: dict[int, list[ObservedPhase]]) -> History:
    made = History()
    for io_nodes, several in phases.items():
        for one in several:
            made = made.plus(io_nodes, one)
    return made


def test_a_point_is_the_median_of_phases_alone_at_that_count() -> None:
    made = history(
        {
            4: [phase(60), phase(64), phase(68), phase(20, alone=False)],
            1: [phase(20), phase(40, 2.0)],
        }
    )
    four, one = made.curve[4], made.curve[1]
    assert (four.low, four.median, four.high, four.observations) == (62e6, 64e6, 66e6, 3)
    assert (one.low, one.median, one.high, one.observations) == (20e6, 20e6, 20e6, 2)


def test_what_another_count_showed_leaves_no_trace() -> None:
    """The fault: b(1) was b(4), 5% less with every phase."""
    after = history({4: [phase(62.4)] * 5, 1: [phase(28.9)] * 3})
    assert after.curve[1] == history({1: [phase(28.9)] * 3}).curve[1]
    assert after.curve[4].median == 62.4e6


def test_contended_and_short_phases_make_no_point() -> None:
    made = history({2: [phase(50, alone=False), phase(3, 0.09), phase(0)]})
    assert made.curve == {}
    assert made.volume is not None
    assert (made.volume.median, made.volume.observations) == (3e6, 3)


def test_the_newest_phases_are_kept_for_the_counts_seen_last() -> None:
    made = history({1: [phase(k) for k in range(1, 100)]})
    assert made.curve[1].observations == PHASES_PER_COUNT
    assert made.curve[1].median == (99 - (PHASES_PER_COUNT - 1) / 2) * 1e6
    for count in range(2, MOST_COUNTS + 1):
        made = made.plus(count, phase(7))
    made = made.plus(1, phase(100)).plus(500, phase(8))
    assert len(made.phases) == MOST_COUNTS
    assert 2 not in made.phases, "it was not seen for longest"
    assert made.curve[1].observations == PHASES_PER_COUNT
    assert made.curve[500].median == 8e6


def test_phases_beside_others_do_not_push_out_those_that_were_alone() -> None:
    """The fault: a point was gone after 16 phases beside others, and the application `new`."""
    made = history({1: [phase(20)], 2: [phase(40)]})
    for _ in range(3 * PHASES_PER_COUNT):
        made = made.plus(1, phase(7, alone=False, compute=3.0))
    assert {n: point.median for n, point in made.curve.items()} == {1: 20e6, 2: 40e6}
    assert len(made.phases[1]) == PHASES_PER_COUNT + 1
    assert made.volume is not None
    assert made.volume.median == 7e6, "that of the newest phases, alone or not"
    for k in range(PHASES_PER_COUNT):
        made = made.plus(1, phase(100 + k))
    assert made.curve[1].low > 100e6, "newer ones that were alone replace it"


def test_a_number_without_a_point_makes_room_for_another_first() -> None:
    made = history({1: [phase(20)]} | {n: [phase(7, alone=False)] for n in range(2, 20)})
    assert len(made.phases) == MOST_COUNTS
    assert list(made.curve) == [1]


def test_computation_and_iterations_leave_out_the_start_of_jobs() -> None:
    """A job may begin with a phase: what came before was not an iteration."""
    first = phase(10, compute=0.1, first=True)
    made = history({1: [first, phase(10, compute=6.0), phase(10, compute=8.0)]})
    assert made.compute is not None
    assert made.w_iter is not None
    assert (made.compute.median, made.compute.observations) == (7.0, 2)
    assert (made.w_iter.median, made.w_iter.observations) == (8.0, 2)


def test_a_job_of_one_phase_has_computed_since_its_start() -> None:
    made = history({1: [phase(10, 2.0, compute=5.0, first=True)]})
    assert made.compute is not None
    assert made.w_iter is not None
    assert (made.compute.median, made.w_iter.median) == (5.0, 7.0)
    assert history({1: [phase(10)]}).compute is None


def test_an_iteration_beside_others_counts_as_if_it_had_been_alone() -> None:
    alone = [phase(10, 1.0, compute=9.0)]
    beside = [phase(10, 4.0, alone=False, compute=9.0)] * 4
    known = history({2: alone + beside}).w_iter
    assert known is not None
    assert known.median == 10.0
    unknown = history({1: beside}).w_iter
    assert unknown is not None
    assert unknown.median == 13.0, "nothing is known of another count"


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
def test_impossible_figures_of_a_job_are_left_out(wrong: float) -> None:
    known = history({1: [phase(10)]})
    assert known.plus(1, phase(10, wrong)) is known
    assert known.plus(1, phase(10, compute=wrong)) is known
    assert known.plus(1, phase(-10)) is known


@pytest.mark.security
@pytest.mark.parametrize(
    ("moved", "seconds"), [(2**63 - 1, 0.5), (10**18 + 1, 1e9), (10**18, 0.5), (10, 1e10)]
)
def test_no_observation_makes_a_point_that_no_curve_can_have(moved: int, seconds: float) -> None:
    """The fault: b(1) = 8e18 was kept, and every later job of the application failed to begin."""
    assert (SMALLEST, LARGEST) == (curve.SMALLEST, curve.LARGEST)
    huge = ObservedPhase(bytes=moved, seconds=seconds, alone=True)
    assert not History().plus(1, huge)
    assert not History.of({1: (huge,), -3: (phase(10),)})
    slowest = ObservedPhase(bytes=1, seconds=LONGEST, alone=True)
    assert slowest.bandwidth == curve.SMALLEST
    assert History().plus(1, slowest).curve


def test_imported_points_yield_to_enough_observations_of_the_same_count() -> None:
    imported = Imported(curve={1: 10e6, 2: 20e6}, volume=5e6, compute=3.0, w_iter=4.0, iterations=7)
    known = Knowledge(imported=imported)
    assert known.source == "imported"
    assert known.bandwidths == {1: 10e6, 2: 20e6}
    assert known.curve[1].observations == 0
    assert known.iterations == 7
    for _ in range(ENOUGH - 1):
        known = known.plus(1, phase(30, compute=1.0), now=5.0)
    assert known.bandwidths == {1: 10e6, 2: 20e6}
    known = known.plus(1, phase(30, compute=1.0), now=6.0)
    assert known.bandwidths == {1: 30e6, 2: 20e6}
    assert known.source == "observed and imported"
    assert known.volume is not None
    assert known.compute is not None
    assert (known.volume.median, known.compute.median) == (30e6, 1.0)
    assert (known.iterations, known.updated) == (ENOUGH, 6.0)


def test_one_observation_is_a_point_where_nothing_was_imported() -> None:
    known = Knowledge(imported=Imported(curve={2: 20e6})).plus(1, phase(30), now=0.0)
    assert known.bandwidths == {1: 30e6, 2: 20e6}
    assert Knowledge().source == "none"


def test_lower_bounds_count_only_where_nothing_else_is_known() -> None:
    """The fault: beside a busy neighbour nothing was ever learnt, and every job was `new`."""
    beside = ObservedPhase(bytes=5 * MB, seconds=1.0, alone=False, apart=True)
    crowded = ObservedPhase(bytes=2 * MB, seconds=1.0, alone=False)
    known = Knowledge().plus(4, crowded, now=0.0)
    assert (known.source, known.bandwidths) == ("none", {})
    assert known.why_unknown.startswith("nothing is known of its curve, because none of its 1 rem")
    short = ObservedPhase(bytes=MB, seconds=0.05, alone=True)
    assert "its 1 remembered phase took less than 0.1 s" in (
        Knowledge().plus(4, short, now=0.0).why_unknown
    )
    known = known.plus(2, beside, now=0.0)
    assert (known.source, known.bandwidths, known.own_curve) == (LOWER_BOUND, {2: 5e6}, {})
    assert "at most lower bounds" in known.why_unknown
    for _ in range(2 * PHASES_PER_COUNT):
        known = known.plus(2, crowded, now=0.0)
    assert known.bandwidths == {2: 5e6}
    known = known.plus(1, phase(20), now=0.0)
    assert (known.source, known.bandwidths, known.why_unknown) == ("observed", {1: 20e6}, "")
