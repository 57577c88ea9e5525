"""Turns as a controller gives them, without any clock or socket."""

import sys

import pytest
from live.controller.turn_harness import TurnHarness

from penstock import registry
from penstock.core.ledger import Ledger, knows
from penstock.core.manager import Manager
from penstock.errors import InputError
from penstock.identities import FIRST_FILE_SYSTEM
from penstock.learn.imported import Imported
from penstock.live.controller.turn_state import PhaseReport, Release
from penstock.live.controller.turns import Turns
from penstock.live.protocol import messages
from penstock.live.store import Knowledge
from penstock.model import Action, Admit, Curve, Event, Hold, Job, JobEnded, PhaseEnded, Site, View
from penstock.policies.base import ByArrival, Own


class RaisesAtEnds(Manager):
    """Raises what a policy may raise, whenever a phase ends."""

    def handle(self, event: Event) -> list[Action]:
        actions = super().handle(event)
        if isinstance(event, PhaseEnded):
            raise RuntimeError
        return actions


def turns(
    policy: str = "exclusive-fcfs",
    *,
    bandwidth: float | None = None,
    manager_class: type[Manager] = Manager,
) -> Turns:
    ledger = Ledger(site=Site(bandwidth=bandwidth))
    manager = manager_class(sharing=registry.sharing(policy), view=ledger)
    made = Turns(manager, ledger)
    for serial, name in enumerate("abc"):
        made.started(0.0, Job(id=name, serial=serial, w_iter=10.0 if name == "c" else 1000.0))
    return made


def ended(
    phase: int, *, moved: int = 100, seconds: float = 1.0, waited: float = 0.0
) -> PhaseReport:
    return PhaseReport(number=phase, bytes=moved, seconds=seconds, waited=waited)


def turn(job: str, weight: float = 1.0) -> Admit:
    return Admit(job=job, resource=FIRST_FILE_SYSTEM, weight=weight, max_share=1.0)


def hold(job: str) -> Hold:
    return Hold(job=job, resource=FIRST_FILE_SYSTEM)


def test_one_transfers_and_the_others_wait_for_those_before_them() -> None:
    made = turns()
    assert made.phase_began(1.0, "a", 1) == [turn("a")]
    assert made.phase_began(2.0, "b", 1) == [hold("b")]
    assert made.phase_began(3.0, "c", 1) == [hold("c")]
    assert made.manager.ahead_of("b") == ["a"]
    assert made.manager.ahead_of("c") == ["a", "b"]
    assert made.phase_ended(4.0, "a", ended(1)) == [turn("b")]
    assert made.states["b"].phase is not None
    assert made.states["b"].phase.admitted == 4.0
    assert made.phase_ended(6.0, "b", ended(1, waited=1.9)) == [turn("c")]
    assert made.states["b"].waited == 1.9  # as the job measured it


def test_a_released_phase_has_the_weight_of_the_heaviest_beside_it() -> None:
    """Under set-10, a and b have a weight of 0.001, and c of 0.1; with its turn b has its own."""
    made = turns("set-10")
    assert made.phase_began(1.0, "a", 1) == [turn("a", 1e-3)]
    assert made.phase_began(2.0, "b", 1) == [hold("b")]
    assert made.phase_began(3.0, "c", 1) == [turn("c", 0.1)]
    assert made.release_overdue(12.0, 10.0) == [Release(job="b", weight=0.1)]
    assert made.phase_ended(13.0, "a", ended(1)) == [turn("b", 1e-3)]
    assert made.phase_ended(14.0, "b", ended(1)) == []
    assert made.phase_ended(15.0, "c", ended(1)) == []
    made.phase_began(21.0, "a", 2)
    made.phase_began(22.0, "b", 2)
    assert made.release_overdue(32.0, 10.0) == [Release(job="b", weight=1e-3)]


def test_so_has_a_phase_whose_policy_failed_and_one_that_reconnects() -> None:
    """A weight of 1 took nearly everything from the others, whose weights are small."""
    made = turns("set-10")
    made.phase_began(1.0, "a", 1)
    made.phase_began(2.0, "b", 1)
    assert made.release_all(3.0) == [Release(job="b", weight=1e-3, failed=True)]
    again = turns("set-10")
    again.phase_began(1.0, "a", 1)
    again.phase_began(2.0, "b", 1, transferring=5.0)
    assert again.weights() == {"a": 1e-3, "b": 1e-3}


def test_a_phase_that_reconnects_has_that_weight_at_the_io_nodes() -> None:
    site = TurnHarness("set-10")
    a, b = site.start("a"), site.start("b")
    site.begin(a, 1)
    site.turn_service.phase_began(b, messages.PhaseBegan(phase=1, transferring=5.0))
    assert site.weights == {"a": 1e-5, "b": 1e-5}


def test_the_share_of_a_released_phase_counts() -> None:
    """It has the same weight as the one whose turn it is: each is granted a half."""
    site = TurnHarness("set-10")
    a, b = site.start("a"), site.start("b")
    site.begin(a, 1)
    site.begin(b, 1)
    site.wait(31.0)
    records = [site.record(id) for id in "ab"]
    assert [(r.share, r.out_of_turn) for r in records] == [(0.5, False), (0.5, True)]


def _calls_to_release(jobs: int) -> int:
    """Return how many functions are called to release this number of phases."""
    ledger = Ledger(site=Site())
    made = Turns(Manager(sharing=registry.sharing("exclusive-fcfs"), view=ledger), ledger)
    for k in range(jobs):
        made.started(0.0, Job(id=str(k), serial=k))
        made.phase_began(1.0, str(k), 1)
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        made.release_overdue(100.0, 10.0)
    finally:
        sys.setprofile(None)
    return calls


def test_the_work_of_releases_grows_with_their_number_not_its_square() -> None:
    assert _calls_to_release(200) < 3 * _calls_to_release(100)


@pytest.mark.parametrize(
    ("modes", "waited", "would_have_waited", "counted"),
    [
        (("enforce", "enforce"), 2.0, 0.0, "enforce"),
        (("observe", "observe"), 0.0, 2.0, "observe"),
        (("enforce", "observe"), 0.5, 1.5, "observe"),  # its gate opened after 0.5 s
        (("advise", "enforce"), 1.5, 0.5, "enforce"),  # it was closed after 0.5 s
    ],
)
def test_a_wait_counts_by_the_mode_that_was_in_force(
    modes: tuple[str, str], waited: float, would_have_waited: float, counted: str
) -> None:
    made = turns()
    made.phase_began(1.0, "a", 1)
    made.phase_began(2.0, "b", 1, mode=modes[0])
    phase = made.states["b"].phase
    assert phase is not None
    phase.set_mode(modes[1])
    made.phase_ended(4.0, "a", ended(1))
    made.phase_ended(6.0, "b", ended(1, waited=waited))
    state = made.states["b"]
    assert (state.waited, state.would_have_waited) == (waited, would_have_waited)
    assert state.modes == {counted: 1}


def test_sets_share_by_weight() -> None:
    """set-10: a and b take turns, c has another set and a hundred times their weight."""
    made = turns("set-10")
    made.phase_began(1.0, "a", 1)
    assert made.phase_began(1.0, "b", 1) == [hold("b")]
    assert made.phase_began(1.0, "c", 1) == [turn("c", weight=0.1)]
    assert made.share("c") == pytest.approx(0.1 / (0.1 + 0.001))
    assert made.share("b") == 0.0


@pytest.mark.parametrize("how", ["its job ends", "nobody hears of it", "it begins another"])
def test_a_holder_that_goes_without_a_word_gives_its_turn_away(how: str) -> None:
    made = turns()
    made.phase_began(1.0, "a", 1)
    made.phase_began(2.0, "b", 1)
    if how == "its job ends":
        actions = made.ended(3.0, "a")
    elif how == "nobody hears of it":
        made.states["b"].last_report = 5.5
        assert made.suspend_silent(3.9, 3.0) == []
        actions = made.suspend_silent(5.0, 3.0)
    else:
        actions = made.phase_began(3.0, "a", 2)
    assert actions[0] == turn("b")


def test_a_waiter_that_goes_is_not_given_a_turn() -> None:
    made = turns()
    made.phase_began(1.0, "a", 1)
    made.phase_began(2.0, "b", 1)
    made.phase_began(2.5, "c", 1)
    assert made.ended(3.0, "b") == []
    assert made.phase_ended(4.0, "a", ended(1)) == [turn("c")]


def test_who_waited_for_too_long_goes_out_of_turn_once() -> None:
    made = turns()
    made.phase_began(1.0, "a", 1)
    made.phase_began(2.0, "b", 1)
    assert made.release_overdue(11.9, 10.0) == []
    assert made.release_overdue(12.0, 10.0) == [Release(job="b")]
    assert made.release_overdue(20.0, 10.0) == []
    assert list(made.waiting()) == []
    assert made.phase_ended(21.0, "b", ended(1)) == []
    assert made.phase_ended(22.0, "a", ended(1)) == []


def test_who_was_never_seen_alone_has_the_sites_bandwidth() -> None:
    """Where turns are observed, three at once have a third each: that is not what one has alone."""
    made = turns(bandwidth=300.0)
    events: list[Event] = []
    made.record = lambda event, *_: events.append(event)
    for name in "abc":
        made.phase_began(1.0, name, 1, mode="observe")
    for name in "abc":
        made.phase_ended(4.0, name, ended(1, moved=300, seconds=3.0))
    made.phase_began(5.0, "a", 2)
    made.phase_ended(7.0, "a", ended(2, moved=300, seconds=2.0))  # alone: it can do no more
    made.phase_began(8.0, "a", 3, mode="observe")
    made.phase_began(9.0, "b", 2, mode="observe")
    made.phase_ended(13.0, "a", ended(3, moved=300, seconds=5.0))
    made.phase_ended(13.0, "b", ended(2, moved=300, seconds=4.0))
    lengths: dict[str, list[float]] = {}
    for event in events:
        if isinstance(event, PhaseEnded):
            lengths.setdefault(event.job, []).append(event.io)
    assert lengths["b"] == [1.0, 1.0]
    assert lengths["c"] == [1.0]
    assert lengths["a"] == pytest.approx([1.0, 2.0, 300 / (150 * 0.95)])


def test_what_a_phase_would_take_alone_is_its_bytes_over_the_best_bandwidth() -> None:
    made = turns()
    for phase, seconds in ((1, 1.0), (2, 4.0)):
        made.phase_began(10.0 * phase, "a", phase)
        made.phase_ended(10.0 * phase + seconds, "a", ended(phase, moved=100, seconds=seconds))
    job = made.manager.jobs["a"]
    # The second phase shared the file system: 100 bytes at 100 B/s, a little faded, is one second.
    assert made.ledger.io_done(job) == pytest.approx(1 + 1 / 0.95)


def test_the_best_phase_is_one_of_this_run_that_is_long_enough_to_measure() -> None:
    """100 MiB "in 20 ms" were noticed late; a history is no phase, and a maximum does not fade."""
    made = turns()
    made.started(0.0, Job(id="d", serial=3, curve=Curve.of({1: 500.0})))
    state = made.states["d"]
    state.use(1)
    assert (state.bandwidth, state.best) == (500.0, 0.0)
    bests = []
    for phase, seconds in enumerate((0.02, 0.0, 1.0, 4.0, 4.0), 1):
        made.phase_began(10.0 * phase, "d", phase)
        made.phase_ended(10.0 * phase + seconds, "d", ended(phase, moved=100, seconds=seconds))
        bests.append(state.best)
    assert bests == [0.0, 0.0, 100.0, 100.0, 100.0]
    assert state.bandwidth == pytest.approx(500 * 0.95**3)
    assert made.fastest <= 500


def test_a_record_tells_this_run_from_earlier_ones() -> None:
    harness = TurnHarness()
    known = Knowledge(imported=Imported(w_iter=11.0, iterations=9, curve={1: 500.0}))
    job = harness.start("a", knowledge=known)
    record = harness.record("a")
    assert (record.best_bandwidth, record.bandwidth) == (None, 500.0)
    assert (record.iterations, record.earlier_iterations) == (0, 9)
    for phase in (1, 2, 3):
        harness.now += 10
        harness.begin(job, phase)
        harness.now += 1
        harness.end(job, phase, moved=10)
    record = harness.record("a")
    assert (record.best_bandwidth, record.phases) == (10.0, 3)
    assert (record.iterations, record.earlier_iterations) == (2, 9)


def test_words_about_another_phase_are_passed_over() -> None:
    made = turns()
    made.phase_began(1.0, "a", 1)
    assert made.phase_ended(2.0, "a", ended(7)) == []
    assert made.weights() == {"a": 1.0}


def test_a_policy_that_needs_what_nobody_can_know_is_refused() -> None:
    with pytest.raises(InputError, match="cannot know"):
        knows(registry.sharing("clairvoyant-sets").needs)


def test_waits_of_a_phase_that_is_held_again_do_not_count_what_it_transferred() -> None:
    """greedy-com: b is shorter, so that a, within its transfer, waits for it."""
    made = turns("greedy-com")
    for phase, name, seconds in ((1, "a", 8.0), (1, "b", 2.0)):
        made.phase_began(10.0 * phase, name, phase)
        moved = round(100 * seconds)
        made.phase_ended(10.0 + seconds, name, ended(phase, moved=moved, seconds=seconds))
    made.phase_began(20.0, "a", 2, mode="observe")
    assert hold("a") in made.phase_began(23.0, "b", 2)
    assert made.manager.ahead_of("a") == ["b"]
    assert turn("a") in made.phase_ended(25.0, "b", ended(2, moved=200, seconds=2.0))
    made.phase_ended(30.0, "a", ended(2, moved=800, seconds=8.0))
    assert made.states["a"].would_have_waited == 2.0


def test_a_controller_that_was_stopped_holds_nobodys_silence_against_it() -> None:
    made = turns()
    made.phase_began(1.0, "a", 1)
    made.excuse_silence(100.0)
    assert made.suspend_silent(101.0, 3.0) == []
    assert made.weights() == {"a": 1.0}


@pytest.mark.parametrize("asks", [True, False], ids=["it asks again", "its job ends"])
def test_a_policy_that_raises_when_a_phase_is_cut_hides_nothing_that_happened(
    asks: bool,
) -> None:
    """A job that is gone is gone from the Manager, too; one that asks is among those let go."""
    made = turns(manager_class=RaisesAtEnds)
    recorded: list[tuple[Event, bool]] = []
    made.record = lambda event, actions, moved, failed, seconds: recorded.append((event, failed))
    made.phase_began(1.0, "a", 1)
    made.phase_began(2.0, "b", 1)
    with pytest.raises(RuntimeError):
        made.phase_began(3.0, "a", 2) if asks else made.ended(3.0, "a")
    cut = PhaseEnded(time=3.0, job="a", resource=0, io=0.0, idle=0.0)
    assert recorded[2] == (cut, True)
    if asks:
        assert ("a", 2) in [(job, phase.number) for job, phase in made.waiting()]
    else:
        assert recorded[3] == (JobEnded(time=3.0, job="a"), False)
        assert "a" not in made.manager.jobs


class ByAge(ByArrival):
    """All transfer; the older a job, the more it weighs, and that changes while it transfers."""

    reweighs = True

    def group(self, job: Job) -> Own:
        return Own.GROUP

    def weight(self, job: Job, view: View) -> float:  # type: ignore[override]
        return 1.0 + view.age(job)


def test_a_new_weight_is_not_a_new_turn() -> None:
    ledger = Ledger(site=Site())
    made = Turns(Manager(sharing=ByAge(), view=ledger), ledger)
    for serial, name in enumerate("ab"):
        made.started(0.0, Job(id=name, serial=serial))
    assert made.phase_began(1.0, "a", 1) == [turn("a", 2.0)]
    assert made.begins_turn("a")
    assert made.phase_began(4.0, "b", 1) == [turn("b", 5.0), turn("a", 5.0)]
    assert made.begins_turn("b")
    assert not made.begins_turn("a"), "it has had its turn since 1 s"
    assert made.turns == 2
    phase = made.states["a"].phase
    assert phase is not None
    assert (phase.admitted, phase.weight) == (1.0, 5.0)
