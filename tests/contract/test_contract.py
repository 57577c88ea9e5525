"""One check for every registered policy, and for any other: `penstock policies check`."""

from pathlib import Path

import pytest

from penstock import registry
from penstock.sim.evaluate.contract import check

REGISTERED = [(kind, name) for kind, table in registry.POLICIES.items() for name in table]


@pytest.mark.parametrize(("kind", "name"), REGISTERED)
def test_every_registered_policy_keeps_the_contract(kind: str, name: str) -> None:
    assert check(kind, name) == []


def policy(tmp_path: Path, body: str) -> str:
    file = tmp_path / "mine.py"
    file.write_text(
        "import itertools, random, time\n"
        "from penstock.policies.base import ByArrival\n\n\n"
        "class Mine(ByArrival):\n"
        "    def group(self, job):\n        return 'all'\n\n" + body
    )
    return f"{file}:Mine"


def test_a_policy_that_reads_a_clock_is_found(tmp_path: Path) -> None:
    name = policy(
        tmp_path, "    def turn(self, request, view):\n        return time.perf_counter()\n"
    )
    assert "turn() answers the same question in different ways" in check("sharing", name)[0]


def test_a_policy_that_counts_its_calls_is_found(tmp_path: Path) -> None:
    """The engine calls turn() only where a key matters; the controller calls it always."""
    body = (
        "    def __init__(self):\n        self._calls = itertools.count()\n\n"
        "    def observe(self, event, view):\n        return None\n\n"
        "    def turn(self, request, view):\n        return next(self._calls) % 2\n"
    )
    problems = check("sharing", policy(tmp_path, body))
    assert any("simulator and controller decide differently" in each for each in problems)


@pytest.mark.parametrize(
    ("read", "need"),
    [
        ("view.progress(request.job)", "progress"),
        ("view.remaining(request)", "remaining"),
        ("request.io or 0.0", "io or remaining"),
        ("request.job.w_iter or 0.0", "w_iter"),
        ("view.work_left(request.job)", "work"),
    ],
)
def test_a_policy_says_what_it_must_know(tmp_path: Path, read: str, need: str) -> None:
    name = policy(tmp_path, f"    def turn(self, request, view):\n        return {read}\n")
    assert any(each.endswith(f"its needs do not have {need}") for each in check("sharing", name))


def test_an_exception_is_told(tmp_path: Path) -> None:
    body = "    def turn(self, request, view):\n        return 1.0 / (view.now - view.now)\n"
    problems = check("sharing", policy(tmp_path, body))
    assert "ZeroDivisionError" in problems[0]
