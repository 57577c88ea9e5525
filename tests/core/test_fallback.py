"""No decision is dropped: jobs of which too little is known, policies that fail, lost resources."""

import pytest
from core.arbiter_host import EXPLORING, FLAT, SETTLE, STEEP, Live, moved

from penstock.core.explorer import EXPLORE
from penstock.model import Curve, NodeDown, NodeUp, Pinned, Snapshot, WakeAt, Woke


def test_one_unknown_job_does_not_undo_the_decision_for_the_others() -> None:
    """best-bandwidth with one job without a curve gave all jobs all resources, in silence."""
    site = Live("best-bandwidth")
    site.start("a", 0.0, curve=STEEP)
    assert site.counts == {"a": 4}
    assert moved(site.start("b", 1.0)) == {"b"}
    assert site.given("a").reason == "policy"
    assert site.given("b").reason == "new"
    assert site.given("b").lacks == ("best-count",)
    assert site.counts == {"a": 4, "b": 1}


def test_an_unknown_short_job_gets_one_resource_and_moves_nobody() -> None:
    """Paper forwarding, 5.7: it starts and ends within the settling time."""
    site = Live()
    site.start("a", 0.0, curve=STEEP)
    site.tell(Woke(time=SETTLE))
    for k in range(5):
        start = 20.0 + k
        assert moved(site.start("short", start)) == {"short"}
        assert site.counts["short"] == 1
        assert moved(site.end("short", start + 0.5)) == set()
    assert site.counts == {"a": 4}


def test_an_unknown_job_that_goes_on_gets_its_share_of_what_the_known_leave() -> None:
    site = Live()
    site.start("known", 0.0, curve=FLAT)
    actions = site.start("new", 1.0)
    assert WakeAt(time=1.0 + SETTLE) in actions
    assert site.counts == {"known": 2, "new": 1}
    assert moved(site.tell(Woke(time=1.0 + SETTLE))) == {"new"}
    assert site.counts == {"known": 2, "new": 2}
    assert site.given("new").reason == "unknown"
    assert site.given("new").since == 1.0 + SETTLE
    assert not set(site.arbiter.assigned["known"]) & set(site.arbiter.assigned["new"])


def test_unknown_jobs_share_by_their_compute_nodes() -> None:
    site = Live()
    site.start("large", 0.0, nodes=3)
    site.start("small", 0.0, nodes=1)
    site.tell(Woke(time=SETTLE))
    assert site.counts == {"large": 3, "small": 1}


def test_a_known_job_prefers_resources_without_unknown_ones() -> None:
    site = Live("mckp")
    site.start("unknown", 0.0)
    site.start("known", 1.0, curve=Curve.of({1: 1.0, 3: 3.0}))
    assert len(site.arbiter.assigned["known"]) == 3
    assert not set(site.arbiter.assigned["known"]) & set(site.arbiter.assigned["unknown"])


def test_unknown_jobs_that_run_one_after_the_other_use_all_resources() -> None:
    site, used = Live(), set[int]()
    for k in range(4):
        site.start("a", float(k))
        site.arbiter.begins_io("a")
        used |= set(site.arbiter.assigned["a"])
        site.end("a", k + 0.5)
    assert used == {0, 1, 2, 3}


def test_jobs_without_io_do_not_shift_unknown_jobs_that_do_it() -> None:
    """Three idle jobs between them sent all writers to one resource of four."""
    site, used = Live(), list[int]()
    for k in range(4):
        site.start(f"writer-{k}", 4.0 * k)
        site.arbiter.begins_io(f"writer-{k}")
        for idle in range(3):
            site.start(f"idle-{k}-{idle}", 4.0 * k + 1)
        [at] = site.arbiter.assigned[f"writer-{k}"]
        used.append(at)
    assert sorted(used) == [0, 1, 2, 3]


@pytest.mark.parametrize("allocator", ["mckp", "where-known"])
def test_more_jobs_than_resources_share_them(allocator: str) -> None:
    """mckp gave up on three jobs and two resources, and the newcomer got both."""
    site = Live(allocator, resources=2)
    for k, name in enumerate("abc"):
        site.start(name, float(k), curve=Curve.of({1: 10.0, 2: 19.0}))
    assert site.counts == {"a": 1, "b": 1, "c": 1}
    on = [r for where in site.arbiter.assigned.values() for r in where]
    assert sorted(on) in ([0, 0, 1], [0, 1, 1])
    if allocator == "mckp":
        assert site.given("c").reason == "failed"
        assert "3 jobs need at least 3 resources" in site.given("c").error


def test_a_policy_that_fails_is_replaced_for_all_and_says_why() -> None:
    class Broken:
        needs = frozenset[str]()
        sticky = False

        def allocate(self, view: Snapshot) -> dict[str, int]:
            raise ZeroDivisionError(f"{len(view.jobs)} jobs")

    site = Live(Broken())
    site.start("a", 0.0, curve=STEEP)
    site.start("b", 1.0)
    assert site.counts == {"a": 2, "b": 2}
    assert (site.given("b").reason, site.given("b").error) == ("failed", "2 jobs")
    assert site.arbiter.reasons["failed"] == 3  # a, then both, with what it raised then


def test_a_job_that_the_placer_cannot_place_goes_to_the_least_loaded() -> None:
    """greedy-clairvoyant live raised for all jobs, and all had everything."""
    site = Live("one", "greedy-clairvoyant")
    site.start("a", 0.0, curve=STEEP, volume=100.0, compute=1.0)
    site.start("b", 1.0)
    assert site.arbiter.assigned["a"] != site.arbiter.assigned["b"]
    assert site.given("a").reason == "policy"
    assert site.given("b").reason == "placed-by-load"
    assert site.given("b").lacks == ("compute", "curve", "volume")


def test_a_resource_that_is_gone_is_left_and_used_again() -> None:
    site = Live("mckp")
    site.start("a", 0.0, curve=Curve.of({1: 10.0, 3: 25.0, 4: 40.0}))
    site.tell(NodeDown(time=1.0, resource=2))
    assert set(site.arbiter.assigned["a"]) == {0, 1, 3}
    site.tell(NodeUp(time=2.0, resource=2))
    assert set(site.arbiter.assigned["a"]) == {0, 1, 2, 3}


def test_jobs_return_when_their_resource_does() -> None:
    """All jobs of an I/O node that died stayed on another one, beside a new and idle process."""
    site = Live("one", resources=2)
    site.start("a", 0.0, curve=STEEP)
    site.start("b", 0.0)
    assert site.arbiter.assigned == {"a": (0,), "b": (1,)}
    site.tell(NodeDown(time=1.0, resource=1))
    assert site.arbiter.assigned == {"a": (0,), "b": (0,)}
    site.tell(NodeUp(time=2.0, resource=1))
    assert site.arbiter.assigned == {"a": (0,), "b": (1,)}
    assert site.arbiter.moves == 2


def test_jobs_are_placed_only_where_their_host_and_user_reach() -> None:
    """A job of another host was given the Unix socket of the controller's, and went direct."""
    site = Live("mckp", all_up=False)
    site.tell(NodeUp(time=0.0, resource=0, host=""))
    site.tell(NodeUp(time=0.0, resource=1, host=""))
    site.tell(NodeUp(time=0.0, resource=3, user="ann"))
    site.start("here", 1.0, curve=STEEP, user="bob")
    site.start("there", 1.0, curve=STEEP, user="ann", host="10.0.0.2")
    site.start("nowhere", 1.0, curve=STEEP, user="bob", host="10.0.0.2")
    assert set(site.arbiter.assigned["here"]) == {0, 1}
    assert site.arbiter.assigned["there"] == (3,)
    assert site.given("nowhere").reason == "unreachable"
    assert site.counts["nowhere"] == 0
    site.tell(NodeUp(time=2.0, resource=2))
    assert site.arbiter.assigned["nowhere"] == (2,)


def test_a_pinned_job_keeps_what_it_asked_for_and_others_go_elsewhere() -> None:
    site = Live("one")
    assert site.tell(Pinned(time=0.0, job="a", resources=(0, 1))) == []
    assert moved(site.start("a", 0.0, curve=STEEP)) == set()
    assert site.given("a").reason == "pinned"
    site.start("b", 1.0, curve=STEEP)
    site.start("c", 1.0, curve=STEEP)
    assert site.arbiter.assigned == {"a": (0, 1), "b": (2,), "c": (3,)}


def test_an_application_explores_the_counts_next_to_those_it_is_given() -> None:
    """From nothing to b(1), b(2), b(4) in three runs, and not a fourth."""
    site, learnt = Live(explore=True), dict[int, float]()
    for run, expected in enumerate((1, 2, 4, 4)):
        curve = Curve.of(learnt) if learnt else None
        site.start(f"run{run}", float(run), curve=curve, executable="x", hints=EXPLORING)
        assert site.counts[f"run{run}"] == expected
        learnt[expected] = 10.0 * expected
        site.end(f"run{run}", run + 0.5)
    assert site.arbiter.reasons["explored"] == 2


def test_counts_beyond_the_best_known_one_are_explored_too() -> None:
    """The fault: with b(2) below b(1), 1 was given for ever, and b(4) was never tried."""
    site = Live(explore=True)
    known = Curve.of({1: 10.0, 2: 6.0})
    site.start("a", 0.0, curve=known, executable="x", hints=EXPLORING)
    assert site.counts == {"a": 4}
    assert site.given("a").reason == "explored"


def test_jobs_without_a_known_curve_do_not_keep_others_from_exploring() -> None:
    """The fault: while any other job ran, an application could not be tried on all resources.

    A job with a known curve gets these too, where its policy says so.
    """
    site = Live(explore=True)
    site.start("unknown", 0.0, executable="y")
    site.start("a", 1.0, curve=Curve.of({1: 10.0, 2: 20.0}), executable="x", hints=EXPLORING)
    assert site.counts == {"unknown": 1, "a": 4}
    site.end("a", 2.0)
    for name in "bcd":
        site.start(name, 3.0, executable="y")
    site.start("e", 4.0, curve=Curve.of({1: 10.0, 2: 20.0}), executable="z", hints=EXPLORING)
    assert site.counts["e"] == 2, "others have more than half of the resources"


def test_what_an_unknown_job_has_because_nobody_else_does_is_no_load() -> None:
    """The fault: one that had run for long had all resources left, and nothing was explored."""
    site = Live(explore=True)
    site.start("unknown", 0.0, executable="y")
    site.tell(Woke(time=SETTLE))
    assert site.counts == {"unknown": 4}
    site.start("a", 20.0, curve=Curve.of({1: 10.0}), executable="x", hints=EXPLORING)
    assert site.counts["a"] == 2
    assert site.given("a").reason == "explored"


@pytest.mark.parametrize("allocator", ["one", "size", "static"])
def test_a_policy_that_asks_for_no_curve_is_not_explored_with(allocator: str) -> None:
    site = Live(allocator, explore=True)
    site.start("a", 0.0, nodes=2, curve=Curve.of({1: 10.0}), executable="x", hints=EXPLORING)
    assert site.given("a").reason == "policy"


@pytest.mark.parametrize(("allocator", "expected"), [("one", 1), ("size", 4), ("static", 2)])
def test_what_was_learnt_does_not_bind_a_policy_that_asks_for_no_curve(
    allocator: str, expected: int
) -> None:
    """The fault: a job that once had three resources alone got three for ever under size."""
    site = Live(allocator)
    site.start("a", 0.0, nodes=4, curve=Curve.of({3: 10.0}))
    assert site.counts == {"a": expected}


def test_pinned_jobs_leave_as_much_less_to_explore_with() -> None:
    site = Live(explore=True)
    site.tell(Pinned(time=0.0, job="pinned", resources=(0, 1, 2)))
    site.start("pinned", 0.0, curve=STEEP)
    site.start("a", 1.0, curve=Curve.of({1: 10.0}), executable="x", hints=EXPLORING)
    assert site.counts["a"] == 1


def test_exploration_is_bounded_and_leaves_room_for_others() -> None:
    site = Live(explore=True)
    single = Curve.of({1: 10.0})
    for run in range(5):  # nothing is ever learnt at 2
        site.start("a", float(run), curve=single, executable="x", hints=EXPLORING)
        assert site.counts["a"] == (2 if run < 3 else 1)
        site.end("a", run + 0.5)
    site.start("busy", 10.0, curve=Curve.of({1: 10.0, 3: 30.0}))
    site.start("b", 11.0, curve=single, executable="y", hints=EXPLORING)
    assert site.counts["b"] == 1


def test_an_explored_job_gives_way_when_others_need_the_room() -> None:
    site = Live(explore=True)
    site.start("a", 0.0, curve=Curve.of({1: 10.0}), executable="x", hints=EXPLORING)
    assert site.counts["a"] == 2
    site.start("b", 1.0, curve=STEEP)
    assert site.counts == {"a": 1, "b": 4}


def test_a_job_without_the_hint_is_not_explored() -> None:
    site = Live(explore=True)
    site.start("a", 0.0, curve=Curve.of({1: 10.0}))
    assert site.counts == {"a": 1}


def test_jobs_of_a_partition_divide_its_resources_and_others_the_rest() -> None:
    site = Live(all_up=False)
    for number, partition in enumerate(("gpu", "gpu", "", "")):
        site.tell(NodeUp(time=0.0, resource=number, partitions=(partition,)))
    site.start("one", 1.0, curve=STEEP, partition="gpu")
    site.start("two", 1.0, curve=STEEP)
    assert set(site.arbiter.assigned["one"]) == {0, 1}
    assert set(site.arbiter.assigned["two"]) == {2, 3}
    site.tell(NodeDown(time=2.0, resource=0))
    site.tell(NodeDown(time=2.0, resource=1))
    assert site.given("one").reason == "unreachable"
    assert site.given("two").reason == "policy"


PRIOR = {"prior": "1,2,4", "curve": "prior"}


def test_a_count_from_a_prior_is_called_so() -> None:
    """where-known decides as for any curve, and its reason says that it is of the class."""
    site = Live()
    site.start("a", 0.0, curve=STEEP, hints=PRIOR)
    site.start("b", 0.0, curve=STEEP)
    assert (site.given("a").reason, site.given("b").reason) == ("prior", "policy")
    assert len(site.given("a").resources) == len(site.given("b").resources) == 2


def test_a_policy_that_needs_no_curve_uses_no_prior() -> None:
    site = Live("one")
    site.start("a", 0.0, curve=STEEP, hints=PRIOR)
    assert site.given("a").reason == "policy"


def test_a_prior_is_explored_as_if_nothing_were_known_there() -> None:
    """Its own point is that of four I/O nodes; two is a prior, and is tried."""
    hints = {"prior": "1,2", "curve": "observed and prior", EXPLORE: 1.0}
    site = Live(explore=True)
    site.start("a", 0.0, curve=STEEP, hints=hints)
    assert site.given("a").reason == "explored"
    assert len(site.given("a").resources) == 2
    whole = Live(explore=True)
    whole.start("a", 0.0, curve=STEEP, hints={EXPLORE: 1.0})
    assert whole.given("a").reason == "policy"


@pytest.mark.parametrize(
    ("allocator", "need"),
    [("mckp", "curve"), ("where-known", "curve"), ("best-bandwidth", "best-count")],
)
def test_a_curve_beyond_the_site_does_not_undo_the_decision_for_the_others(
    allocator: str, need: str
) -> None:
    """The site had eight; with four, nothing is known of a job whose counts are 6 and 8.

    Policies raised an exception because of it, and the fallback policy decided for all jobs.
    """
    site = Live(allocator)
    site.start("a", 0.0, curve=STEEP)
    site.start("b", 1.0, curve=Curve.of({6: 10.0, 8: 20.0}))
    assert site.given("a").reason == "policy"
    assert (site.given("b").reason, site.given("b").lacks) == ("new", (need,))
    assert site.given("b").error == ""
    assert site.counts == {"a": 4, "b": 1}


def test_a_curve_is_known_again_once_enough_resources_are_up() -> None:
    """Direct access alone is no count here: two are up, and it is known at four."""
    site = Live("mckp", all_up=False, direct=False)
    for resource in range(2):
        site.tell(NodeUp(time=0.0, resource=resource))
    site.start("a", 1.0, curve=Curve.of({0: 5.0, 4: 40.0}))
    site.tell(Woke(time=1.0 + SETTLE))
    assert (site.given("a").reason, site.given("a").lacks) == ("unknown", ("curve",))
    for resource in (2, 3):
        site.tell(NodeUp(time=20.0, resource=resource))
    assert site.given("a").reason == "policy"
    assert site.counts == {"a": 4}
