"""A job on several hosts has one turn, and one phase, for all of them."""

import time
from typing import Any

import pytest

from penstock.config import Setting, load
from penstock.live.controller.job_table import JobEntry
from penstock.live.controller.turn_service import TurnService
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord


class Heard:
    """A turn_service, and what it told whom."""

    def __init__(self, policy: str = "exclusive-fcfs", *, lease: float = 2.0) -> None:
        settings = [f"sharing.policy={policy}", "live.mode=enforce", f"live.lease={lease} s"]
        config = load(None, [Setting.parse(text) for text in settings]).config
        self.jobs: dict[str, JobEntry] = {}
        self.told: list[tuple[str, messages.Message]] = []
        self.weights: dict[str, float] = {}
        self.turn_service = TurnService(
            config,
            io_nodes=1,
            tell=lambda job, message: self.told.append((job, message)),
            weigh=self.weights.update,
            is_direct=lambda _: False,
            assign=lambda _: None,
        )

    def start(self, id: str, team: str | None = None, user: str = "ann") -> JobEntry:
        begin = messages.BeginJob(name=id, pid=1, command=["x"], user=user, protocol=2, team=team)
        job = self.jobs[id] = JobEntry(id=id, serial=1, begin=begin, began=time.time())
        self.turn_service.started(job)
        return job

    def record(self, id: str) -> JobRecord:
        return self.turn_service.describe(self.jobs[id].record(0.0))

    def begin(self, job: JobEntry, phase: int) -> list[tuple[str, str, int]]:
        self.turn_service.phase_began(job, messages.PhaseBegan(phase=phase))
        return self.take()

    def end(self, job: JobEntry, phase: int, moved: int = 10) -> list[tuple[str, str, int]]:
        ended = messages.PhaseEnded(phase=phase, bytes=moved, seconds=1.0, waited=0.0)
        self.turn_service.phase_ended(job, ended)
        return self.take()

    def take(self) -> list[tuple[str, str, int]]:
        told: list[Any] = self.told.copy()
        self.told.clear()
        return [(job, type(message).__name__, message.phase) for job, message in told]


def test_members_have_their_turn_together() -> None:
    heard = Heard()
    a, b = heard.start("a", "mpi"), heard.start("b", "mpi")
    other = heard.start("other")
    assert heard.begin(a, 1) == [("a", "Turn", 1)]
    assert heard.begin(other, 1) == [("other", "Hold", 1)]
    assert heard.begin(b, 7) == [("b", "Turn", 7)]  # each counts its own phases
    assert heard.end(a, 1) == []
    assert heard.end(b, 7) == [("other", "Turn", 1)]
    assert heard.record("a").phase_bytes == 20


def test_all_members_that_wait_are_let_go() -> None:
    heard = Heard()
    other, a, b = heard.start("other"), heard.start("a", "mpi"), heard.start("b", "mpi")
    heard.begin(other, 1)
    assert heard.begin(a, 1) == [("a", "Hold", 1)]
    assert heard.begin(b, 1) == [("b", "Hold", 1)]
    assert heard.end(other, 1) == [("a", "Turn", 1), ("b", "Turn", 1)]


def test_a_member_that_goes_leaves_the_turn_to_the_others_and_the_last_one_gives_it_back() -> None:
    heard = Heard()
    a, b, other = heard.start("a", "mpi"), heard.start("b", "mpi"), heard.start("other")
    heard.begin(a, 1)
    heard.begin(b, 1)
    heard.begin(other, 1)
    heard.turn_service.ended(a)
    assert heard.take() == []
    heard.turn_service.ended(b)
    assert heard.take() == [("other", "Turn", 1)]


def test_another_users_team_of_the_same_name_is_another() -> None:
    heard = Heard()
    a, b = heard.start("a", "mpi"), heard.start("b", "mpi", user="eve")
    heard.begin(a, 1)
    assert heard.begin(b, 1) == [("b", "Hold", 1)]


def test_the_weight_of_a_job_is_divided_among_its_members() -> None:
    heard = Heard("set-10")
    a, b = heard.start("a", "mpi"), heard.start("b", "mpi")
    heard.begin(a, 1)
    heard.begin(b, 1)
    unknown = 10.0**-5
    assert heard.weights == {"a": pytest.approx(unknown / 2), "b": pytest.approx(unknown / 2)}


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
def test_a_policy_that_raises_or_answers_nonsense_lets_phases_go(tmp_path: Any, body: str) -> None:
    """And goes on to be asked: what it did not answer is forgotten."""
    (tmp_path / "bad.py").write_text(
        "from penstock.policies.base import ByArrival\n"
        "class Bad(ByArrival):\n"
        "    def group(self, job): return 1\n"
        f"    {body}\n"
    )
    heard = Heard(f"{tmp_path}/bad.py:Bad")
    job = heard.start("a")
    assert heard.begin(job, 1) == [("a", "Turn", 1)]
    assert heard.record("a").doing == "transferring"
    heard.turn_service.turns.silent(time.monotonic() + 60, 3.0)
    assert heard.begin(job, 2)[-1] == ("a", "Turn", 2)
    assert heard.end(job, 2) == []
    heard.turn_service.ended(job)
    assert heard.turn_service.failures > 0
