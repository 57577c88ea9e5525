"""Shares received: a job's part of the bytes that all jobs moved, worked out by hand."""

import pytest

from penstock.live.controller.received_shares import INTERVAL, ReceivedShares

MIB = 1 << 20


def moving(shares: ReceivedShares, rates: dict[str, float], *, since: float, until: float) -> None:
    """Let jobs move data at constant rates, and report once per second, each at its own time."""
    for k, (job, rate) in enumerate(rates.items()):
        shares.began(job, since, 0)
        time = since + 0.2 * k
        while time <= until:
            shares.counted(job, time, round(rate * (time - since)))
            time += 1.0


def test_a_share_is_the_part_of_all_bytes() -> None:
    shares = ReceivedShares()
    moving(shares, {"a": 30 * MIB, "b": 10 * MIB, "c": 0}, since=100.0, until=120.0)
    received = [shares.received([job], 120.0, 100.0) for job in "abc"]
    assert received == pytest.approx([0.75, 0.25, 0.0], abs=1e-6)


def test_a_job_that_just_began_is_compared_over_its_own_time() -> None:
    """b had everything until a came; since then they are equal."""
    shares = ReceivedShares()
    moving(shares, {"b": 8 * MIB}, since=100.0, until=120.0)
    moving(shares, {"a": 8 * MIB}, since=116.0, until=120.0)
    assert shares.received(["a"], 120.0, 116.0) == pytest.approx(0.5, abs=1e-6)
    assert shares.received(["b"], 120.0, 100.0) == pytest.approx(5 / (5 + 3), abs=1e-6)


def test_it_is_unknown_before_the_first_report_and_where_nothing_moves() -> None:
    shares = ReceivedShares()
    moving(shares, {"a": MIB}, since=100.0, until=105.0)
    assert shares.received(["a"], 105.0, 104.5) is None
    assert shares.received(["a"], 105.0 + INTERVAL + 2, 100.0) is None
    assert ReceivedShares().received(["a"], 105.0, 100.0) is None


def test_hosts_of_a_job_count_together_and_bytes_of_an_ended_one_stay_in_the_total() -> None:
    shares = ReceivedShares()
    moving(shares, {"a": MIB, "a-host": MIB, "b": 2 * MIB}, since=100.0, until=110.0)
    assert shares.received(["a", "a-host"], 110.0, 100.0) == pytest.approx(0.5, abs=1e-6)
    shares.ended("b")
    assert shares.received(["a", "a-host"], 110.0, 100.0) == pytest.approx(0.5, abs=1e-6)
    assert shares.received(["b"], 110.0, 100.0) == 0.0


def test_what_a_reconnecting_job_moved_before_is_not_recent() -> None:
    shares = ReceivedShares()
    shares.began("a", 100.0, 10**12)
    shares.counted("a", 101.0, 10**12 + MIB)
    moving(shares, {"b": MIB}, since=100.0, until=101.0)
    assert shares.received(["a"], 102.0, 100.0) == pytest.approx(0.5, abs=1e-6)
