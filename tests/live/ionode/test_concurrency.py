"""Shares by I/O concurrency (IO-SETS, VII-C1): more calls in flight get more bandwidth."""

from contextlib import ExitStack
from pathlib import Path
from statistics import median

import pytest
from live.deployment.emulated import memory
from live.ionode.competing_jobs import RATE, SharedStorage

from penstock.live.protocol import messages

__all__ = ["memory"]
WEIGHTS = {"low": 1.0, "middle": 2.0, "high": 4.0}
DEPTH = 56  # a quarter of 32 + 64 + 128
WARM, MEASURED = RATE, 2 * RATE  # bytes


def assert_shares(storage: SharedStorage) -> None:
    """1:2:4, within a fifth, of all that there is; benchmarks/shares.py says how near."""
    storage.bandwidths(WARM)
    samples = [storage.bandwidths(MEASURED) for _ in range(3)]
    assert median(sum(each.values()) for each in samples) >= 0.85 * RATE
    for name, weight in WEIGHTS.items():
        share = median(each[name] / sum(each.values()) for each in samples)
        assert share == pytest.approx(weight / 7, rel=0.2), samples


@pytest.mark.rates
def test_direct_jobs_share_by_their_numbers_of_threads(memory: Path) -> None:
    """The paper's proof of concept (its Fig. 12): 32, 64 and 128 writers get 1:2:4."""
    storage = SharedStorage(memory)
    with storage.job("low", 32):
        alone = storage.bandwidths(MEASURED)["low"]
        with storage.job("middle", 64), storage.job("high", 128):
            assert_shares(storage)
    assert alone >= 0.85 * RATE, "32 are enough for the whole bandwidth"


@pytest.mark.rates
def test_equal_jobs_share_an_io_node_by_weight(memory: Path) -> None:
    """Every job has enough requests for the whole depth; what it has in service is its weight's."""
    storage = SharedStorage(memory)
    with storage.io_node("--depth", str(DEPTH), "--shares", "concurrency") as node:
        assert isinstance(node.ask(messages.SetWeights(weights=WEIGHTS)), messages.Done)
        with storage.job("low", DEPTH, [node.remote]):
            alone = storage.bandwidths(MEASURED)["low"]
            with ExitStack() as stack:
                for name in ("middle", "high"):
                    stack.enter_context(storage.job(name, DEPTH, [node.remote]))
                assert_shares(storage)
    assert alone >= 0.85 * RATE, "a seventh is no cap"


def test_shares_are_switched_while_requests_are_in_service(memory: Path) -> None:
    """Calls under way at the switch still count: none is forgotten, none is counted for ever."""
    storage, expected = SharedStorage(memory), {"low": 8, "middle": 16, "high": 32}
    with storage.io_node("--depth", str(DEPTH)) as node, ExitStack() as stack:
        assert isinstance(node.ask(messages.SetWeights(weights=WEIGHTS)), messages.Done)
        for name in WEIGHTS:
            stack.enter_context(storage.job(name, DEPTH, [node.remote]))
        for _ in range(2):
            assert isinstance(node.ask(messages.Settings(shares="concurrency")), messages.Done)
            # One call that has just ended is not in service, and another not yet.
            node.until(
                lambda now: all(abs(now.in_service[name] - expected[name]) <= 1 for name in WEIGHTS)
            )
            assert isinstance(node.ask(messages.Settings(shares="bytes")), messages.Done)


def test_shares_of_something_else_are_refused(memory: Path) -> None:
    with SharedStorage(memory).io_node() as node:
        wrong = messages.Settings(shares="threads")  # type: ignore[arg-type]
        answer = node.ask(wrong)
        assert isinstance(answer, messages.Failure)
        assert "threads" in answer.error
