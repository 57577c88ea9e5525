"""A policy that ends the program, never returns or is woken without end: the controller goes on."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from live.controller.turn_harness import TurnHarness

from penstock.live.controller.policy_watch import watched

EXITS = "raise SystemExit(0)"
LOOPS = "while True: pass"
LOOPS_ON = """
        while True:
            try:
                while True: pass
            except Exception:
                pass
"""
IN_A_VIEW = "while True: view.progress(request.job)"
INTERRUPTS = "raise KeyboardInterrupt"
CANCELS = "raise __import__('asyncio').CancelledError"


def policy(folder: Path, turn: str, more: str = "") -> str:
    file = folder / "mine.py"
    file.write_text(
        "from penstock.policies.base import ByArrival\n\n\n"
        "class Mine(ByArrival):\n"
        "    def group(self, job):\n        return 'all'\n\n"
        f"    def turn(self, request, view):\n        {turn}\n\n{more}"
    )
    return f"{file}:Mine"


@pytest.mark.parametrize("turn", [EXITS, LOOPS, LOOPS_ON, IN_A_VIEW, INTERRUPTS, CANCELS])
def test_whatever_a_policy_does_a_job_goes_on_and_so_does_the_controller(
    tmp_path: Path, turn: str, caplog: pytest.LogCaptureFixture
) -> None:
    """By processor time: a busy machine changes nothing. Ctrl-C reaches a controller elsewhere."""
    site = TurnHarness(policy(tmp_path, turn), watch=watched(0.05))
    a, b = site.start("a"), site.start("b")
    assert site.begin(a, 1) == [("a", "Turn", 1)]
    assert site.begin(b, 1) == [("b", "Turn", 1)]
    assert site.turn_service.failures == 2
    why = {EXITS: "SystemExit", INTERRUPTS: "in turn() of policy Mine", CANCELS: "CancelledError"}
    assert why.get(turn, "turn() of policy Mine took more than 0.05 s") in caplog.text
    assert site.end(a, 1) == []
    assert site.end(b, 1) == []


LOOP = "        while True: pass\n"
ANSWERS = {
    "hash": ("class G:\n    def __hash__(self):\n" + LOOP, "group", "(self, job): return G()"),
    "repr": ("class G:\n    def __repr__(self):\n" + LOOP, "group", "(self, job): return G()"),
    "class": (
        "class G:\n    @property\n    def __class__(self):\n" + LOOP,
        "turn",
        "(self, request, view): return G()",
    ),
    "equal": (
        "class G(float):\n    def __eq__(self, other):\n" + LOOP,
        "turn",
        "(self, request, view): return G(1)",
    ),
    "str": (
        "class G(Exception):\n    def __str__(self):\n" + LOOP,
        "turn",
        "(self, request, view): raise G()",
    ),
    "property": ("", "places", None),
}


@pytest.mark.parametrize("how", ANSWERS)
def test_code_of_what_a_policy_returns_is_ended_or_not_run(tmp_path: Path, how: str) -> None:
    """`==` of a group or a turn and the text of an exception are code of the policy, too."""
    helper, name, method = ANSWERS[how]
    file = tmp_path / "mine.py"
    looping = (
        f"    def {name}{method}\n"
        if method
        else f"    asked = False\n    @property\n    def {name}(self):\n"
        "        while self.asked: pass\n        return 1\n"
        "    def turn(self, request, view):\n        self.asked = True\n        return 0.0\n"
    )
    group = "" if name == "group" else "    def group(self, job): return 'all'\n"
    file.write_text(
        "from penstock.policies.base import ByArrival\n\n\n"
        f"{helper}\n\nclass Mine(ByArrival):\n{group}{looping}"
    )
    site = TurnHarness(f"{file}:Mine", watch=watched(0.05))
    a, b = site.start("a"), site.start("b")
    site.record("a")
    assert site.begin(a, 1) == [("a", "Turn", 1)]
    for job in (b, site.start("c")):
        assert site.begin(job, 1) in ([(job.id, "Turn", 1)], [(job.id, "Hold", 1)])
    assert (site.turn_service.failures == 0) == (how == "equal")


def test_a_record_is_shown_though_the_policy_never_returns(tmp_path: Path) -> None:
    weight = "    def weight(self, job):\n        while True: pass\n"
    site = TurnHarness(policy(tmp_path, "return 0.0", weight), watch=watched(0.05))
    site.start("a")
    assert site.record("a").weight is None


def test_the_time_of_other_threads_does_not_count(tmp_path: Path) -> None:
    """The timer counts all threads: a policy beside a busy one was ended too early."""
    turn = """
        import threading, time
        def work():
            while time.thread_time() < 0.2: pass
        other = threading.Thread(target=work)
        other.start()
        other.join()
        return 0.0
"""
    site = TurnHarness(policy(tmp_path, turn), watch=watched(0.05))
    site.begin(site.start("a"), 1)
    assert site.turn_service.failures == 0


def test_what_is_no_policy_is_never_interrupted() -> None:
    """The time of a decision is over while it is recorded: the decision is made whole."""

    def take_long(*_: object) -> None:
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass

    site = TurnHarness(watch=watched(0.05))
    a, b = site.start("a"), site.start("b")
    site.begin(a, 1)
    site.begin(b, 1)
    site.turn_service.turns.record = take_long
    assert site.end(a, 1) == [("b", "Turn", 1)]
    assert site.turn_service.failures == 0


def test_a_slow_decision_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    @contextmanager
    def takes_a_second() -> Iterator[None]:
        yield
        site.now += 1.0

    site = TurnHarness(watch=takes_a_second)
    site.start("a")
    assert "slow policy: a decision of sharing policy exclusive-fcfs took 1 s" in caplog.text
    caplog.clear()
    quick = TurnHarness()
    quick.start("a")
    assert "slow policy" not in caplog.text


async def _wakes(site: TurnHarness) -> None:
    site.start("a")
    for _ in range(20_000):
        if site.turn_service.failures:
            return
        await asyncio.sleep(0)


def test_a_policy_that_is_woken_without_end_is_stopped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It kept the controller busy, and wrote one line of the record per wake."""
    observe = "    def observe(self, event, view):\n        return view.now + 1e-9\n"
    site = TurnHarness(policy(tmp_path, "return 0.0", observe))
    asyncio.run(_wakes(site))
    assert site.turn_service.failures == 1
    assert "Mine: observe() asked 1000 times in a row" in caplog.text
