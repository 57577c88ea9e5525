"""What each sharing policy answers, by its paper's equations."""

from typing import Any

import pytest

from penstock import registry
from penstock.model import Job, Request
from penstock.policies.base import Own
from penstock.sim import engine, reference
from penstock.sim.workload import Workload


class At:
    """A view in which a job has this age and progress, and its phase this much to do and done."""

    def __init__(
        self,
        *,
        age: float,
        progress: float,
        expected: float | None = 1.0,
        done: float = 0.0,
        io_done: float = 0.0,
    ) -> None:
        self._age, self._progress, self._io_done = age, progress, io_done
        self._expected, self._done = expected, done

    def age(self, job: Job) -> float:
        return self._age

    def progress(self, job: Job) -> float:
        return self._progress

    def io_done(self, job: Job) -> float:
        return self._io_done

    def expected(self, request: Request) -> float | None:
        return self._expected

    def done(self, request: Request) -> float:
        return self._done


def job(w_iter: float | None, **more: Any) -> Job:
    return Job(id="a", serial=0, w_iter=w_iter, **more)


def turn(policy: str, view: Any, **options: float) -> float:
    request = Request(job=job(10.0), arrival=0.0, resources=(0,), io=1.0)
    return registry.sharing(policy, options).turn(request, view)


@pytest.mark.parametrize(
    ("w_iter", "set_"),
    [(0.2, -1), (3.0, 0), (4.0, 1), (31.0, 1), (32.0, 2), (316.0, 2), (317.0, 3)],
)
def test_sets_are_the_nearest_orders_of_magnitude(w_iter: float, set_: int) -> None:
    """Paper io-sets IV-C: w_iter between 4 and 31 go into S_1, between 32 and 316 into S_2."""
    policy = registry.sharing("set-10")
    assert policy.group(job(w_iter)) == set_
    assert policy.weight(job(w_iter)) == pytest.approx(10.0**-set_)


def test_a_stranger_goes_to_the_slowest_set_seen() -> None:
    policy = registry.sharing("set-10")
    assert policy.group(job(None)) == 5
    assert policy.weight(job(None)) == pytest.approx(1e-5)
    assert registry.sharing("set-10", {"unknown": 2}).group(job(None)) == 2


def test_the_parts_of_set_10() -> None:
    """Section IV-D: the same sets at equal weights, and the same weights without sets."""
    sets, weights = registry.sharing("set-fair-share"), registry.sharing("share-priority")
    assert (sets.group(job(100.0)), sets.weight(job(100.0))) == (2, 1.0)
    assert weights.group(job(100.0)) == Own.GROUP
    assert weights.weight(job(100.0)) == pytest.approx(0.01)


def test_clairvoyant_sets_go_by_the_generators_class() -> None:
    policy = registry.sharing("clairvoyant-sets")
    stranger_to_its_class = job(5.0, hints={"profile": 1000.0})
    assert policy.group(stranger_to_its_class) == 1000.0
    assert policy.weight(stranger_to_its_class) == pytest.approx(1e-3)
    with pytest.raises(ValueError, match="no positive hint 'profile'"):
        policy.group(job(5.0))


def test_greedy_turns() -> None:
    assert turn("greedy-yield", At(age=8.0, progress=2.0)) == 0.25
    assert turn("greedy-yield", At(age=0.0, progress=0.0)) == 0.0, "a new job is first"
    assert turn("greedy-com", At(age=8.0, progress=2.0, expected=9.0, done=2.0)) == 7.0


def test_an_overdue_phase_is_not_about_to_end() -> None:
    """left = max(expected - done, hedge x done); with hedge 0 it would go before all others."""
    overdue = At(age=8.0, progress=2.0, expected=3.0, done=10.0)
    assert turn("greedy-com", overdue) == pytest.approx(2.0)
    assert turn("greedy-com", overdue, hedge=0.5) == pytest.approx(5.0)
    assert turn("greedy-com", overdue, hedge=0.0) == 0.0
    with pytest.raises(ValueError, match="hedge is -1"):
        registry.sharing("greedy-com", {"hedge": -1.0})


def test_a_phase_of_unknown_length_is_taken_for_a_long_one() -> None:
    assert turn("greedy-com", At(age=8.0, progress=2.0, expected=None, done=1.0)) == 99.0
    unknown = At(age=8.0, progress=2.0, expected=None)
    assert turn("greedy-com", unknown, unknown=5.0) == 5.0


def test_hedged_finish_prefers_jobs_with_little_io() -> None:
    """turn = left x io_done / progress x yield^fairness."""
    view = At(age=10.0, progress=8.0, io_done=2.0, expected=4.0, done=1.0)
    assert turn("hedged-finish", view, fairness=2.0) == pytest.approx(3.0 * 0.25 * 0.64)
    first = At(age=0.0, progress=0.0, expected=4.0)
    assert turn("hedged-finish", first) == pytest.approx(4.0 * 0.001)


def test_fair_finish_multiplies_the_two() -> None:
    """turn = remaining x yield^fairness."""
    view = At(age=10.0, progress=9.0, expected=3.0)
    assert turn("fair-finish", view, fairness=2.0) == pytest.approx(3 * 0.81)
    assert turn("fair-finish", view, fairness=0.0) == 3.0, "0 is greedy-com"
    assert turn("fair-finish", view) == pytest.approx(3 * 0.9**80)
    with pytest.raises(ValueError, match="fairness is -1"):
        registry.sharing("fair-finish", {"fairness": -1.0})


def test_periodic_greedy_yield_changes_its_mind_between_events() -> None:
    """Both ask at 10 s with yield 1; chosen again every 2 s, they alternate and end 2 s apart.

    a (earlier in the list) transfers from 10 to 12, when its yield is 1 and b's 10/12; b from 12
    to 14 (yields 12/14 each, and a is listed first), a from 14 to 16, and so on: of 4 s each, a
    ends at 16 and b at 18. greedy-yield itself serves a to its end at 14 first.
    """
    work = Workload(compute=[10.0, 10.0], io=[4.0, 4.0], offsets=[0, 1, 2], release=[0.0, 0.0])
    for simulate in (engine.simulate, reference.simulate):
        periodic = registry.sharing("periodic-greedy-yield", {"period": 2.0})
        assert simulate(work, periodic).end.tolist() == [16.0, 18.0]
        assert simulate(work, registry.sharing("greedy-yield")).end.tolist() == [14.0, 18.0]


def test_who_lent_tokens_is_served_first_when_it_comes_back() -> None:
    """b computes for 8 s while a writes: a owes what b has saved, 4 s each at half the tokens.

    From 8 s on their weights are 16^(-4/8) and 16^(+4/8), 1 to 16.
    """
    work = Workload(compute=[0.0, 8.0], io=[20.0, 1.0], offsets=[0, 1, 2], release=[0.0, 0.0])
    options = {"depth": 8.0, "repay": 16.0, "period": 1e6}
    runs = [
        simulate(work, registry.sharing("token-bucket", options), timeline=True)
        for simulate in (engine.simulate, reference.simulate)
    ]
    assert runs[0].end.tolist() == runs[1].end.tolist()
    timeline = runs[0].timeline
    assert timeline is not None
    shares = {
        (int(job), start): share
        for job, start, share in zip(
            timeline.job, timeline.start.tolist(), timeline.share.tolist(), strict=True
        )
    }
    assert shares[0, 0.0] == 1.0
    assert shares[1, 8.0] / shares[0, 8.0] == pytest.approx(16.0)


def ends(policy: str, work: Workload, **options: float) -> list[float]:
    """Return when each job's only phase ends, the same in engine and reference."""
    runs = [
        simulate(work, registry.sharing(policy, options))
        for simulate in (engine.simulate, reference.simulate)
    ]
    assert runs[0].end.tolist() == runs[1].end.tolist()
    return [float(end) for end in runs[0].end]


def one_phase(*phases: tuple[float, float], max_share: tuple[float, ...] | None = None) -> Workload:
    """Return jobs that start at 0, and compute and then write for the seconds given."""
    compute, io = zip(*phases, strict=True)
    n = len(phases)
    return Workload(
        compute=compute, io=io, offsets=range(n + 1), release=[0.0] * n, max_share=max_share
    )


def test_look_ahead_greedy_yield_does_not_let_a_short_phase_wait_for_a_long_one() -> None:
    """c writes from 9 to 10, and a waits for it from 9.5; b asks at 10.

    At 10 the yields are 9.5/10 for a and 1 for b, so greedy-yield serves a, for 8 s. Looking ahead:
    with a first the next end is at 18, and b's yield 10/18 then; with b first it is at 12, and a's
    9.5/12. At 9.5 c goes on: a's yield is 9.5/10 at its end, against 9.5/17.5 of c after a.
    """
    work = one_phase((9.5, 8.0), (10.0, 2.0), (9.0, 1.0))
    assert ends("greedy-yield", work) == [18.0, 20.0, 10.0]
    assert ends("look-ahead-greedy-yield", work) == [20.0, 12.0, 10.0]


def test_look_ahead_gives_each_all_that_it_can_use_until_the_bandwidth_is_used_up() -> None:
    """Limits 0.8 and 0.7: who is first has 0.8 of the bandwidth, the other 0.2, and not half each.

    a and b ask at 10, with 8 s at the whole bandwidth each: 10 s alone for a, 11.43 for b. With a
    first, b's yield is (10 + 10 x 2/7) / 20 = 0.643 at a's end; with b first, a's is
    (10 + 11.43 x 3/8) / 21.43 = 0.667 at b's. So b is first, with 0.7: it ends after 8/0.7 s. a has
    0.3 x 8/0.7 done by then, and the rest at 0.8.
    """
    work = one_phase((10.0, 8.0), (10.0, 8.0), max_share=(0.8, 0.7))
    b = 10 + 8 / 0.7
    assert ends("look-ahead-greedy-yield", work) == pytest.approx(
        [b + (8 - 0.3 * 8 / 0.7) / 0.8, b], rel=1e-9
    )


@pytest.mark.parametrize("name", ["greedy-yield", "periodic-greedy-yield", "greedy-com"])
def test_whose_turn_is_first_has_all_that_it_can_use(name: str) -> None:
    """Limits 0.6 and 0.9: from 10 on a has 0.6 of the bandwidth until it ends at 20, and b 0.4.

    By weight both would have half, and a would end at 22. b has 9 - 4 s left at 20, at 0.9.
    """
    work = one_phase((10.0, 6.0), (10.0, 9.0), max_share=(0.6, 0.9))
    assert ends(name, work) == pytest.approx([20.0, 20 + 5 / 0.9], rel=1e-5)


def test_best_next_event_divides_the_bandwidth() -> None:
    """Both ask at 10, with yield 1 and 4 and 7 s to write.

    With a alone until 14, b's yield is 10/14 = 0.714 then. With a's end put off to 17, the earliest
    end of b, a takes 4/7 of the bandwidth and b 3/7: yields of 14/17 = 0.824 and 13/17 = 0.765.
    With b alone until 17, a has 10/17. The second is best: a ends at 17, b with 4 s left at 21.
    """
    work = one_phase((10.0, 4.0), (10.0, 7.0))
    assert ends("best-next-event", work) == pytest.approx([17.0, 21.0], rel=1e-9)
    assert ends("look-ahead-greedy-yield", work) == [14.0, 21.0]


def test_best_next_event_serves_a_much_shorter_phase_alone() -> None:
    """2 and 8 s: a alone until 12 leaves b 10/12; its end at 18 would leave a 12/18."""
    assert ends("best-next-event", one_phase((10.0, 2.0), (10.0, 8.0))) == [12.0, 20.0]


def test_best_next_event_levels_the_lowest_yields() -> None:
    """c asks at 4 and is alone; a and b ask at 10 with yield 1, as c has.

    They have 4, 4 and 8 - 6 = 2 s to write. c alone until 12 leaves the others 10/12, more than any
    later end: c's at 14 takes a half and leaves a and b a quarter each, 11/14. Then a and b are
    alike (10/12, 4 s left): one alone until 16 leaves the other 10/16, and both until 20 14/20.
    """
    work = one_phase((10.0, 4.0), (10.0, 4.0), (4.0, 8.0))
    assert ends("best-next-event", work) == pytest.approx([20.0, 20.0, 12.0], rel=1e-9)


def test_best_next_event_knows_when_yields_count() -> None:
    """Phases of 4 and 7 s again. At 12 nobody can have ended: a half each is best, 11/12 for both.

    From 12 on there is no horizon any more: 3 and 6 s are left, yields are 11/12. a alone until 15
    leaves b 11/15 = 0.733; its end at 18 takes a half, and leaves both 14/18 = 0.778.
    """
    work = one_phase((10.0, 4.0), (10.0, 7.0), (12.0, 1e-9))
    assert ends("best-next-event", work, horizon=12.0)[:2] == pytest.approx([18.0, 21.0], rel=1e-6)
    with pytest.raises(ValueError, match="horizon is 0"):
        registry.sharing("best-next-event", {"horizon": 0.0})
