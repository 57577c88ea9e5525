"""search: never worse than the papers' pairs by its judge, on one page of draws."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock import registry
from penstock.errors import InputError
from penstock.model import Curve, Job, Site, Snapshot
from penstock.policies._support.local_search import METRICS, Neighbours, costs
from penstock.policies.allocation.search import Search
from penstock.sim.evaluate.judge import DRAWS, EngineJudge
from penstock.sim.evaluate.placements import JobSet
from penstock.sim.generators.io_resources import SITE, io_resources


@pytest.mark.parametrize("metric", METRICS)
def test_never_worse_than_the_papers_pairs(metric: Any) -> None:
    jobs = io_resources(0.7, seed=2)
    view = Snapshot.of(jobs, SITE)
    result = Search(metric=metric).find(view)
    judge, which = EngineJudge(jobs, SITE), METRICS.index(metric)

    def cost(places: Mapping[str, tuple[int, ...]]) -> float:
        return costs(judge([tuple(sorted(places[job.id])) for job in jobs]))[which]

    ours = cost(result.places)
    assert ours == costs(result.verdict)[which]
    pairs = 0
    for allocator, options in (
        ("random", {}),
        ("static", {}),
        ("best-bandwidth", {}),
        ("n-sys", {}),
        ("t-cpu", {}),
        ("t-cpu", {"strict": True}),
    ):
        counts = registry.policy("allocation", allocator, options).allocate(view)
        for placer in ("random", "greedy-non-clairvoyant", "greedy-clairvoyant"):
            pairs += 1
            assert ours <= cost(registry.policy("placement", placer).place(view, counts))
    counts = registry.policy("allocation", "mckp", {"shared": True}).allocate(view)
    assert ours <= cost(registry.policy("placement", "exclusive").place(view, counts))
    assert len(result.starts) == pairs + 1
    # The default budget finds something better than any of the pairs.
    assert ours < min(costs(verdict)[which] for verdict in result.starts.values())


def test_the_budget_is_kept_and_pays() -> None:
    view = Snapshot.of(io_resources(0.7, seed=2), SITE)
    few, many = (Search(budget=budget).find(view) for budget in (30, 120))
    assert (few.evaluations, many.evaluations) == (30, 120)
    assert many.verdict.mean_slowdown < few.verdict.mean_slowdown


def test_the_judge_does_not_assume_that_jobs_begin_together() -> None:
    """Its verdict is the mean over a few sets of random starts, the same ones in every call."""
    jobs = io_resources(0.5, seed=4)
    places = [(k % 20,) for k in range(40)]
    together = JobSet(jobs, SITE).simulate(places)
    apart = [JobSet(jobs, SITE, apart=True, seed=k).simulate(places) for k in range(DRAWS)]
    verdict = EngineJudge(jobs, SITE)(places)
    assert verdict.idle_time == pytest.approx(np.mean([one.idle_time for one in apart]))
    assert verdict.mean_slowdown == pytest.approx(np.mean([one.mean_slowdown for one in apart]))
    assert costs(verdict) == costs(EngineJudge(jobs, SITE)(places))
    assert len({one.mean_slowdown for one in (together, *apart)}) == DRAWS + 1


def test_the_same_seed_finds_the_same() -> None:
    view = Snapshot.of(io_resources(0.7, seed=2), SITE)
    first, again, other = (Search(budget=40, seed=seed).find(view) for seed in (1, 1, 2))
    assert first.places == again.places
    assert first.places != other.places


def test_the_front_holds_what_nothing_beats() -> None:
    view = Snapshot.of(io_resources(0.7, seed=2), SITE)
    result = Search(budget=60).find(view)
    front = np.array([costs(verdict) for _, verdict in result.front])
    for k, one in enumerate(front):
        others = np.delete(front, k, axis=0)
        assert not ((others <= one).all(axis=1)).any()
    everything = np.array([costs(v) for v in (*result.starts.values(), result.verdict)])
    assert all((front <= seen).all(axis=1).any() for seen in everything)
    judge = EngineJudge(list(view.jobs.values()), SITE)
    places, verdict = result.front[0]
    assert costs(judge(places)) == costs(verdict)


def test_allocate_and_place_are_one_answer() -> None:
    view = Snapshot.of(io_resources(0.7, seed=2, jobs=20), SITE)
    policy = Search(budget=25)
    counts = policy.allocate(view)
    places = policy.place(view, counts)
    assert places == Search(budget=25).find(view).places
    assert {name: len(where) for name, where in places.items()} == counts


def test_places_for_counts_of_others() -> None:
    """It is never worse than the papers' placers with the same counts."""
    jobs = io_resources(0.9, seed=3)
    view, judge = Snapshot.of(jobs, SITE), EngineJudge(jobs, SITE)
    counts = registry.policy("allocation", "n-sys").allocate(view)

    def slowdown(places: Mapping[str, tuple[int, ...]]) -> float:
        return judge([tuple(sorted(places[job.id])) for job in jobs]).mean_slowdown

    ours = Search(budget=40).place(view, counts)
    assert {name: len(where) for name, where in ours.items()} == counts
    published = [
        slowdown(registry.policy("placement", placer).place(view, counts))
        for placer in ("random", "greedy-non-clairvoyant", "greedy-clairvoyant")
    ]
    assert slowdown(ours) < min(published)


def test_a_site_that_not_all_pairs_fit() -> None:
    """No compute nodes are known (static needs them), and direct access is no count here."""
    curve = Curve.of({0: 500.0, 1: 10.0, 2: 15.0})
    jobs = [
        Job(id=str(k), serial=k, curve=curve, volume=100.0, compute=50.0, w_iter=30.0)
        for k in range(4)
    ]
    site = Site(resources=3, direct=True)
    result = Search(budget=30).find(Snapshot.of(jobs, site))
    assert not any(name.startswith("static") for name in result.starts)
    assert all(where for where in result.places.values())
    # One lone job with one choice: the search ends though its budget does not.
    alone = replace(jobs[0], curve=Curve.of({1: 5.0}))
    assert Search(budget=1000).find(Snapshot.of([alone], Site(resources=1))).evaluations == 1
    assert Search().allocate(Snapshot.of([], site)) == {}


def test_neighbours_are_placements() -> None:
    view = Snapshot.of(io_resources(0.7, seed=2), SITE)
    jobs = list(view.jobs.values())
    policy = Search()
    neighbours = Neighbours(
        [policy.options(job, SITE) for job in jobs],
        resources=20,
        rng=np.random.default_rng(0),
    )
    places: tuple[tuple[int, ...], ...] = tuple((k % 20,) for k in range(40))
    seen = set()
    for _ in range(500):
        drawn = neighbours.draw(places, np.ones(40))
        if drawn is None:
            continue
        assert drawn != places or len(drawn) == 40
        assert sum(a != b for a, b in zip(drawn, places, strict=True)) <= 2
        for where in drawn:
            assert list(where) == sorted(set(where))
            assert 1 <= len(where) <= 8
            assert all(0 <= r < 20 for r in where)
        seen |= {len(where) for where in drawn}
        places = drawn
    assert seen >= set(range(1, 9))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "speed"}, "metric"),
        ({"budget": 0}, "at least 1"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        registry.policy("allocation", "search", options)


def test_a_judge_that_is_not_there() -> None:
    view = Snapshot.of(io_resources(0.7, seed=2, jobs=20), SITE)
    for judge in ("penstock.sim.nowhere:Judge", "penstock.sim.evaluate.judge:Nobody", "nonsense"):
        with pytest.raises(InputError, match=r"judge .* cannot be loaded"):
            Search(judge=judge).allocate(view)
