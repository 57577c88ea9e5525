"""What jobs say of their phases to come: how long one will be, and how much work is left."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from live.controller.turn_deployment import WAIT, Deployed
from live.controller.turn_harness import TurnHarness

from penstock import cli, registry
from penstock.core.ledger import Ledger
from penstock.core.manager import Manager
from penstock.learn.imported import Imported
from penstock.learn.observations import ObservedPhase
from penstock.live.controller.core_inputs import policy_job
from penstock.live.controller.turn_state import PhaseReport
from penstock.live.controller.turns import Turns
from penstock.live.protocol import messages
from penstock.live.store import Knowledge
from penstock.model import Admit, Curve, Job, PhaseBegan, Site
from penstock.phase import phase
from penstock.records import Record, replay

HEADER = Path(__file__).parents[3] / "native" / "client"
MIB = 1 << 20


def turns(policy: str, *jobs: Job, bandwidth: float | None = None) -> Turns:
    ledger = Ledger(site=Site(bandwidth=bandwidth))
    made = Turns(Manager(sharing=registry.sharing(policy), view=ledger), ledger)
    for job in jobs:
        made.started(0.0, job)
    return made


def jobs(*names: str, work: dict[str, float] | None = None) -> list[Job]:
    hints = {n: {"phases": seconds / 10, "period": 10.0} for n, seconds in (work or {}).items()}
    return [Job(id=n, serial=k, hints=hints.get(n, {})) for k, n in enumerate(names)]


def ended(phase: int, *, moved: int = 100, seconds: float = 1.0) -> PhaseReport:
    return PhaseReport(number=phase, bytes=moved, seconds=seconds, waited=0.0)


def served(made: Turns, *names: str) -> list[str]:
    """Return who is served next, and after that, until nobody of these waits."""
    order: list[str] = []
    for k in range(len(names)):
        [admit] = made.phase_ended(10.0 + k, order[-1] if order else "first", ended(1))
        assert isinstance(admit, Admit)
        order.append(admit.job)
    return order


@pytest.mark.parametrize(
    ("policy", "order"),
    [("shortest-io", "bac"), ("longest-io", "abc")],
    ids=["shortest", "longest"],
)
def test_phases_are_served_by_announced_length_and_silent_ones_last(
    policy: str, order: str
) -> None:
    """c says nothing and came first: it is not refused, and has no advantage of its silence."""
    made = turns(policy, *jobs("first", "a", "b", "c"), bandwidth=100.0)
    made.phase_began(1.0, "first", 1, 100)
    for name, volume in (("c", None), ("a", 900), ("b", 500)):
        made.phase_began(2.0, name, 1, volume)
    assert served(made, "a", "b", "c") == list(order)


@pytest.mark.parametrize(
    ("policy", "order"), [("shortest-remaining", "bac"), ("longest-remaining", "abc")]
)
def test_jobs_are_served_by_the_work_they_said_and_silent_ones_last(
    policy: str, order: str
) -> None:
    work = {"a": 900.0, "b": 500.0}
    made = turns(policy, *jobs("first", "a", "b", "c", work=work))
    made.phase_began(1.0, "first", 1)
    for name in "cab":
        made.phase_began(2.0, name, 1)
    assert served(made, "a", "b", "c") == list(order)


def test_work_that_is_done_is_left_no_more() -> None:
    """Three phases of 4 s, each after 6 s of computing, however long the job took to start."""
    made = turns("shortest-remaining", *jobs("a", work={"a": 30.0}), bandwidth=100.0)
    job = made.manager.jobs["a"]
    made.phase_began(106.0, "a", 1, 400)
    assert made.ledger.work_left(job) == 24.0
    made.phase_ended(110.0, "a", ended(1, moved=400, seconds=4.0))
    assert made.ledger.work_left(job) == 20.0
    made.woke(113.0)
    assert made.ledger.work_left(job) == 17.0
    made.phase_began(116.0, "a", 2, 400)
    made.woke(117.0)
    assert made.ledger.work_left(job) == 13.0


def test_what_is_not_announced_is_expected_from_its_own_phases_then_its_family() -> None:
    """Bytes count over the site's bandwidth, else the job's own, else the fastest phase so far."""
    made = turns("shortest-io", *jobs("a"))
    assert made.expected_seconds("a", 100) is None  # nobody knows how fast anything is here
    made.started(0.0, Job(id="family", serial=7, curve=Curve.of({1: 50.0})), volume=200.0)
    made.states["family"].use(1)
    assert made.expected_seconds("family", None) == 4.0
    assert made.expected_seconds("family", 100) == 2.0
    made.phase_began(1.0, "a", 1)
    made.phase_ended(4.0, "a", ended(1, moved=300, seconds=3.0))
    assert made.expected_seconds("a", None) == 3.0
    made.started(5.0, Job(id="new", serial=8))
    assert made.expected_seconds("new", 50) == 0.5


def test_phases_without_a_period_are_as_far_apart_as_the_familys() -> None:
    family = Knowledge(imported=Imported(w_iter=50.0, iterations=7))

    def hints(
        knowledge: Knowledge, *, phases: float, period: float | None = None
    ) -> Mapping[str, float | str]:
        claims = messages.Hints(phases=phases, period=period)
        begin = messages.BeginJob(name="a", pid=1, command=[], user="ann", hints=claims)
        return policy_job("a.1", 1, begin, knowledge).hints

    assert hints(family, phases=4) == {"phases": 4, "period": 50.0, "observations": 7}
    assert hints(family, phases=4, period=2.0)["period"] == 2.0
    assert hints(Knowledge(), phases=4) == {}


def test_a_phase_that_announces_nothing_waits_as_long_as_others_are_known() -> None:
    made = turns("shortest-io", *jobs("first", "a", "b"), bandwidth=1.0)
    made.phase_began(1.0, "first", 1, 10)
    made.phase_began(2.0, "a", 1)
    made.phase_began(3.0, "b", 1, 10**6)
    assert served(made, "a", "b") == ["b", "a"]


def test_a_negative_length_is_refused_where_it_is_given() -> None:
    with pytest.raises(ValueError, match="bytes is -1; give 0 or more"), phase(bytes=-1):
        pass


@pytest.mark.parametrize("length", ["x", 1.5, b"1"])
def test_a_length_that_is_no_whole_number_is_refused_in_words(length: object) -> None:
    """Outside of a job too, where nothing else would look at it."""
    message = rf"bytes is {length!r}; give a whole number"
    with pytest.raises(TypeError, match=message), phase(bytes=length):  # type: ignore[arg-type]
        pass


def test_a_whole_number_of_any_kind_is_a_length() -> None:
    begun = []
    with phase(bytes=np.int64(7)):  # type: ignore[arg-type]
        begun.append("the block is run")
    assert begun


@pytest.mark.parametrize("language", ["python", "c"])
def test_what_a_program_announces_is_in_the_record(
    site: Deployed, compiled: Callable[..., str], language: str
) -> None:
    """In seconds over the site's bandwidth; and the record replays to the same turns."""
    site.up("--policy", "shortest-io", "--set", f"site.bandwidth={MIB}")
    if language == "c":
        assert site.run("c", compiled("phases.c", "-I", str(HEADER)), "out", "3").wait(WAIT) == 0
    else:
        job = site.obedient("python")
        for _ in range(3):
            for line in ("begin 1", "write 1", "end"):
                job.do(line)
        job.finish()
    site.penstock("down")
    [record] = site.state.records.iterdir()
    read_back = Record(record)
    assert [e.event.io for e in read_back if isinstance(e.event, PhaseBegan)] == [1.0] * 3
    assert replay(read_back).first_difference is None


def test_hints_of_penstock_run_order_its_phases(site: Deployed) -> None:
    """Under shortest-remaining the job that says 10 s of work goes before the one of 2,000 s."""
    site.up("--policy", "shortest-remaining")
    first = site.obedient("first")
    long = site.obedient("long", "--hint", "period=100s,phases=20")
    short = site.obedient("short", "--hint", "period=1s,phases=10")
    site.held(first, long)
    short.tell("write 4")
    site.until("short", lambda job: job.doing == "waiting")
    first.do("end")
    assert short.answer() == "write"
    assert long.is_silent()
    assert long.answer() == "write"
    for job in (first, long, short):
        assert job.finish()["fail_opens"] == 0


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        ("volum=1GiB", "did you mean 'volume'"),
        ("volume=much", "volume=much.*give any of volume=1GiB,period=60s,phases=20"),
        ("phases=0", "phases=0"),
        ("phases=nan", "phases=nan"),
        ("period", "period"),
        ("volume=1GiB,volume=2GiB", "volume twice"),
    ],
)
def test_an_invalid_hint_is_refused(
    hint: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "--hint", hint, "--", "true"]) == 2
    assert re.search(why, capsys.readouterr().err)


def test_policies_know_the_volume_that_a_user_says_until_one_is_observed() -> None:
    """The fault: t-cpu never had it, although its user had said it."""
    site = TurnHarness()
    claims = messages.Hints(volume=5e9)
    site.start("new", hints=claims)
    seen = Knowledge().plus(1, ObservedPhase(bytes=10**6, seconds=1.0, alone=False), now=0.0)
    site.start("seen", hints=claims, knowledge=seen)
    jobs = site.turn_service.turns.manager.jobs
    assert [jobs[name].volume for name in ("new", "seen")] == [5e9, 1e6]
    assert jobs["new"].w_iter is None, "a claim moves no job to another set"
