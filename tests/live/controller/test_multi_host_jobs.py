"""A job on several hosts has one turn, and one phase, for all of them."""

from pathlib import Path

import pytest
from live.controller.turn_harness import TurnHarness


def test_members_have_their_turn_together() -> None:
    site = TurnHarness()
    a, b = site.start("a", "mpi"), site.start("b", "mpi")
    other = site.start("other")
    assert site.begin(a, 1) == [("a", "Turn", 1)]
    assert site.begin(other, 1) == [("other", "Hold", 1)]
    assert site.begin(b, 7) == [("b", "Turn", 7)]  # each counts its own phases
    assert site.end(a, 1) == []
    assert site.end(b, 7) == [("other", "Turn", 1)]
    assert site.record("a").phase_bytes == 20


def test_all_members_that_wait_are_let_go() -> None:
    site = TurnHarness()
    other, a, b = site.start("other"), site.start("a", "mpi"), site.start("b", "mpi")
    site.begin(other, 1)
    assert site.begin(a, 1) == [("a", "Hold", 1)]
    assert site.begin(b, 1) == [("b", "Hold", 1)]
    assert site.end(other, 1) == [("a", "Turn", 1), ("b", "Turn", 1)]


def test_a_member_that_goes_leaves_the_turn_to_the_others_and_the_last_one_gives_it_back() -> None:
    site = TurnHarness()
    a, b, other = site.start("a", "mpi"), site.start("b", "mpi"), site.start("other")
    site.begin(a, 1)
    site.begin(b, 1)
    site.begin(other, 1)
    site.turn_service.ended(a)
    assert site.take() == []
    site.turn_service.ended(b)
    assert site.take() == [("other", "Turn", 1)]


def test_a_phase_lasts_from_the_first_members_first_call_to_the_last_ones_last() -> None:
    """The fault: bytes were added, and the longest member's seconds taken: three times too fast.

    Two hosts take turns to write 100 bytes in 1 s, each from 0.1 s before the other has ended.
    """
    site = TurnHarness("fair-share")
    hosts, begun = [site.start("a", "mpi"), site.start("b", "mpi")], [0, 0]
    start = site.now
    steps = [(0.9 * k, True, k % 2) for k in range(10)]
    steps += [(0.9 * k + 1.0, False, k % 2) for k in range(10)]
    for time, begins, host in sorted(steps):
        site.now = start + time
        if begins:
            begun[host] += 1
            site.begin(hosts[host], begun[host])
        else:
            site.end(hosts[host], begun[host], moved=100)
    [(_, _, phase)] = site.learnt
    assert (phase.bytes, phase.alone) == (1000, True)
    assert phase.seconds == pytest.approx(9.1)


def test_a_member_that_is_lost_adds_nothing_to_how_long_the_phase_lasted() -> None:
    site = TurnHarness("fair-share")
    a, b = site.start("a", "mpi"), site.start("b", "mpi")
    site.begin(a, 1)
    site.begin(b, 1)
    site.now += 1.0
    site.end(a, 1, moved=100)
    site.now += 60.0
    site.turn_service.ended(b)
    assert site.record("a").phase_seconds == 1.0
    assert site.learnt == []


@pytest.mark.security
def test_another_users_team_of_the_same_name_is_another() -> None:
    site = TurnHarness()
    a, b = site.start("a", "mpi"), site.start("b", "mpi", user="eve")
    site.begin(a, 1)
    assert site.begin(b, 1) == [("b", "Hold", 1)]


def test_the_weight_of_a_job_is_divided_among_its_members() -> None:
    site = TurnHarness("set-10")
    a, b = site.start("a", "mpi"), site.start("b", "mpi")
    site.begin(a, 1)
    site.begin(b, 1)
    unknown = 10.0**-5
    assert site.weights == {"a": pytest.approx(unknown / 2), "b": pytest.approx(unknown / 2)}


@pytest.mark.parametrize(
    "body",
    [
        "def group(self, job): raise RuntimeError('oops')",
        "def group(self, job): return [1]",
        "def weight(self, job): return 0.0",
        "def weight(self, job): return float('nan')",
        "def weight(self, job): return 'heavy'",
        "def turn(self, request, view): return None",
    ],
)
def test_a_policy_that_raises_or_answers_nonsense_lets_phases_go(tmp_path: Path, body: str) -> None:
    """And goes on to be asked: what it did not answer is forgotten."""
    (tmp_path / "bad.py").write_text(
        "from penstock.policies.base import ByArrival\n"
        "class Bad(ByArrival):\n"
        "    def group(self, job): return 1\n"
        f"    {body}\n"
    )
    site = TurnHarness(f"{tmp_path}/bad.py:Bad")
    job = site.start("a")
    assert site.begin(job, 1) == [("a", "Turn", 1)]
    assert site.record("a").doing == "transferring"
    site.wait(60.0, alive=False)
    assert site.begin(job, 2)[-1] == ("a", "Turn", 2)
    assert site.end(job, 2) == []
    site.turn_service.ended(job)
    assert site.turn_service.failures > 0
