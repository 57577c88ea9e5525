"""Who takes part in a division, with what is known of it by now, and of which resources."""

from typing import Any

import pytest
from core.arbiter_host import EXPLORING, FLAT, SETTLE, STEEP, Live, moved

from penstock import registry
from penstock.model import Assign, Curve, NodeDown, NodeUp, Pinned, Snapshot, Woke


def test_jobs_that_are_not_enforced_take_no_part() -> None:
    """The fault: a job in mode observe took I/O nodes from a job in mode enforce."""
    site = Live()
    site.start("a", 0.0, curve=STEEP)
    assert moved(site.start("watched", 20.0, curve=STEEP, enforced=False)) == set()
    assert site.counts == {"a": 4}
    assert moved(site.end("watched", 60.0)) == set()


def test_a_job_that_is_no_longer_enforced_gives_its_part_back_and_one_that_is_gets_one() -> None:
    site = Live()
    site.start("a", 0.0, curve=STEEP)
    site.start("b", 0.0, curve=STEEP)
    assert site.counts == {"a": 2, "b": 2}
    assert moved(site.change("b", 20.0, enforced=False)) == {"a"}
    assert site.counts == {"a": 4}
    assert moved(site.change("b", 40.0, enforced=True)) == {"a", "b"}
    assert site.counts == {"a": 2, "b": 2}


def test_what_would_be_is_decided_as_if_all_were_enforced() -> None:
    site = Live(of_all=True)
    site.start("a", 0.0, curve=STEEP)
    assert site.counts == {}, "nothing is to be shown"
    site.start("b", 0.0, curve=STEEP, enforced=False)
    assert site.counts == {"a": 2, "b": 2}


@pytest.mark.parametrize("allocator", ["where-known", "best-bandwidth", "t-cpu", "mckp", "n-sys"])
def test_a_curve_beyond_the_resources_is_lacking_for_its_job_alone(allocator: str) -> None:
    """The fault: a job measured at four and eight, on two resources, undid all decisions."""
    site, known = Live(allocator, resources=2), {"compute": 10.0, "volume": 100.0}
    site.start("a", 0.0, curve=STEEP, **known)
    before = site.given("a")
    site.start("beyond", 1.0, curve=Curve.of({4: 40.0, 8: 50.0}), **known)
    assert site.given("a") == before
    assert before.reason == "policy"
    assert site.given("beyond").reason == "new"
    assert {"best-count", "curve"} & set(site.given("beyond").lacks)


def test_a_job_that_a_policy_fails_for_is_left_to_the_fallback_policy_alone() -> None:
    class Picky:
        needs = frozenset[str]()
        sticky = False

        def allocate(self, view: Snapshot) -> dict[str, int]:
            return {name: 2 if job.nodes == 1 else 1 // 0 for name, job in view.jobs.items()}

    site = Live(Picky())
    site.start("good", 0.0)
    site.start("bad", 1.0, nodes=2)
    assert (site.given("good").reason, site.counts["good"]) == ("policy", 2)
    assert (site.given("bad").reason, site.counts["bad"]) == ("failed", 2)
    assert "division" in site.given("bad").error
    assert site.arbiter.failures == 1


def test_a_fallback_policy_that_fails_gave_no_number() -> None:
    """The fault: "search, the fallback policy, gave the number"; it had raised an exception."""
    site = Live(fallback=registry.policy("allocation", "process"))
    site.start("a", 0.0)
    site.tell(Woke(time=SETTLE))
    assert site.counts == {"a": 1}
    assert site.given("a").reason == "failed"
    assert site.given("a").by_default
    assert site.given("a").error.startswith("Process: ")


def test_no_job_goes_direct_where_the_site_does_not_allow_it() -> None:
    """The fault: an imported point at 0 sent jobs around the I/O nodes."""
    for direct, expected in ((True, 0), (False, 1)):
        site = Live(direct=direct)
        site.start("a", 0.0, curve=Curve.of({0: 100.0, 1: 10.0, 2: 11.0}))
        assert (site.counts["a"] == 0) == (expected == 0)
    only = Live(direct=False)
    only.start("a", 0.0, curve=Curve.of({0: 100.0}))
    assert (only.counts["a"], only.given("a").lacks) == (1, ("curve",))


def test_a_sticky_count_is_kept_while_resources_are_gone() -> None:
    """The fault: what was left of it while I/O nodes were down became the decided count."""
    site = Live("static")
    site.start("a", 0.0, nodes=8)
    for k in (0, 1, 2):
        site.tell(NodeDown(time=1.0 + k, resource=k))
    assert site.counts == {"a": 1}
    for k in (0, 1, 2):
        site.tell(NodeUp(time=5.0 + k, resource=k))
    assert site.counts == {"a": 4}


def test_a_sticky_job_that_began_before_any_resource_was_up_is_decided_then() -> None:
    site = Live("static", all_up=False)
    site.start("a", 0.0, nodes=8)
    assert site.given("a").reason == "unreachable"
    site.tell(NodeUp(time=1.0, resource=0))
    assert site.counts == {"a": 1}
    assert site.given("a").reason == "policy"


def test_exploration_ends_when_the_host_says_so() -> None:
    site = Live(explore=True)
    site.start("a", 0.0, curve=Curve.of({1: 10.0, 2: 6.0}), executable="x", hints=EXPLORING)
    assert (site.counts["a"], site.given("a").reason) == (4, "explored")
    curve = Curve.of({1: 10.0, 2: 6.0, 4: 3.0})
    site.change("a", 20.0, curve=curve, hints={})
    assert (site.counts["a"], site.given("a").reason) == (1, "policy")


def test_what_is_learnt_of_a_running_job_is_used() -> None:
    site = Live()
    site.start("a", 0.0)
    site.tell(Woke(time=SETTLE))
    assert site.given("a").reason == "unknown"
    site.change("a", 20.0, curve=FLAT)
    assert (site.counts["a"], site.given("a").reason) == (2, "policy")


@pytest.mark.parametrize("settled", [True, False])
def test_known_jobs_whose_runs_are_short_move_nobody(settled: bool) -> None:
    """The fault: three runs of half a second of a known application made six moves."""
    site, moves = Live(), 0
    site.start("long", 0.0, curve=STEEP, executable="x")
    for k in range(4):
        actions = site.start("short", 20.0 + k, curve=STEEP, executable="y")
        actions += site.end("short", 20.5 + k)
        moves += sum(isinstance(each, Assign) and each.job == "long" for each in actions)
    assert moves == 2, "the first run, of which nobody knew that it is short"
    site.start("short", 30.0, curve=STEEP, executable="y")
    assert (site.counts, site.given("short").reason) == ({"long": 4, "short": 1}, "new")
    if settled:  # this one goes on
        assert moved(site.tell(Woke(time=30.0 + SETTLE))) == {"long", "short"}
        assert site.counts == {"long": 2, "short": 2}


def test_a_short_job_gets_what_nobody_else_has() -> None:
    site = Live()
    site.start("short", 0.0, curve=STEEP, executable="y")
    site.end("short", 0.5)
    site.start("short", 1.0, curve=STEEP, executable="y")
    assert (site.counts, site.given("short").reason) == ({"short": 4}, "new")


def test_unknown_jobs_move_nobody_under_a_policy_that_divides_by_size() -> None:
    """The fault: 20 jobs of half a second made 80 moves under size."""
    site, moves = Live("size"), 0
    site.start("long", 0.0)
    site.tell(Woke(time=SETTLE))
    for k in range(5):
        actions = site.start("short", 20.0 + k) + site.end("short", 20.5 + k)
        moves += sum(isinstance(each, Assign) and each.job == "long" for each in actions)
    assert moves == 0
    assert site.counts == {"long": 4}


def test_groups_that_reach_resources_in_common_do_not_divide_them_twice() -> None:
    """The fault: both groups had 0 and 1, and the resources of their own were idle."""
    site = Live(all_up=False)
    for number, user in enumerate(("", "", "ann", "bob")):
        site.tell(NodeUp(time=0.0, resource=number, user=user))
    site.start("a", 1.0, curve=STEEP, user="ann")
    site.start("b", 1.0, curve=STEEP, user="bob")
    used = [r for where in site.arbiter.assigned.values() for r in where]
    assert sorted(used) == [0, 1, 2, 3]
    site.end("a", 2.0)
    assert len(site.arbiter.assigned["b"]) == 2, "three reach it, and its curve has no three"


def test_a_group_uses_what_another_leaves() -> None:
    site = Live(all_up=False)
    for number, partition in enumerate(("gpu", "", "", "")):
        site.tell(NodeUp(time=0.0, resource=number, partitions=(partition,) if partition else ()))
    site.start("cpu", 1.0, curve=Curve.of({1: 10.0, 2: 5.0}))
    site.start("gpu", 1.0, curve=Curve.of({1: 10.0, 3: 30.0}), partition="gpu")
    assert len(site.arbiter.assigned["cpu"]) == 1
    assert len(site.arbiter.assigned["gpu"]) == 3
    assert not set(site.arbiter.assigned["cpu"]) & set(site.arbiter.assigned["gpu"])


def test_jobs_divide_what_is_not_pinned() -> None:
    """The fault: a job beside one that pinned three of four got all four."""
    site = Live()
    site.tell(Pinned(time=0.0, job="pinned", resources=(0, 1)))
    site.start("pinned", 0.0, curve=STEEP)
    site.start("a", 1.0, curve=STEEP)
    assert set(site.arbiter.assigned["a"]) == {2, 3}


def test_unknown_jobs_share_what_an_explored_one_leaves() -> None:
    """The fault: the explored count was given after the rest had been divided."""
    site = Live(explore=True, resources=8)
    site.start("unknown", 0.0, executable="y")
    site.tell(Woke(time=SETTLE))
    site.start("a", 20.0, curve=Curve.of({1: 10.0, 2: 6.0}), executable="x", hints=EXPLORING)
    assert site.given("a").reason == "explored"
    assert site.counts["unknown"] == 8 - site.counts["a"]
    where = site.arbiter.assigned
    assert not set(where["a"]) & set(where["unknown"])


def test_a_policy_cannot_change_which_jobs_there_are_and_may_raise_anything() -> None:
    """The faults: view.jobs.clear() emptied the host's jobs; Ctrl-C dropped the decision."""

    class Vandal:
        needs = frozenset[str]()
        sticky = False

        def allocate(self, view: Any) -> dict[str, int]:
            view.jobs.clear()
            return {}

    class Interrupting(Vandal):
        def allocate(self, view: Any) -> dict[str, int]:
            raise KeyboardInterrupt

    for policy in (Vandal(), Interrupting()):
        site = Live(policy, catches=(Exception, KeyboardInterrupt))
        site.start("a", 0.0, curve=STEEP)
        assert (site.counts, site.given("a").reason) == ({"a": 4}, "failed")
        assert site.arbiter.failures == 1
