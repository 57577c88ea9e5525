"""Which policy to take: the best that can run live, if the workloads tell."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from penstock.sim.evaluate.gains import Contest, Metrics

METRICS = Metrics(primary="speed", higher_is_better={"speed": True, "wait": False})
BASE = [1.0, 1.2, 0.8, 1.1]
BETTER = [1.1, 1.31, 0.88, 1.22]
ALIKE = [1.12, 1.29, 0.89, 1.20]
MAYBE = [1.3, 1.0, 1.0, 1.1]


def contest(
    speeds: Mapping[str, Sequence[float]],
    needs: Mapping[str, str] | None = None,
    base: str = "base",
) -> Contest:
    """Return policies with these speeds on each workload; a slow one waits longer."""
    count = len(next(iter(speeds.values())))
    workloads = [
        {name: {"speed": values[k], "wait": 1 / values[k]} for name, values in speeds.items()}
        for k in range(count)
    ]
    known = {name: frozenset(filter(None, [(needs or {}).get(name)])) for name in speeds}
    return Contest(workloads, list(speeds), kind="sharing", metrics=METRICS, base=base, needs=known)


def test_gains_and_wins_are_those_of_the_same_workloads() -> None:
    pair = contest({"base": BASE, "ours": [1.1, 1.1, 0.88, 1.21]})
    assert pair.wins("ours") == 3
    assert pair.wins("ours", "wait") == 3
    assert pair.gain("ours").value == pytest.approx(4.29 / 4.1 - 1)
    assert pair.of_workload(1) == pytest.approx({"base": 0, "ours": 1.1 / 1.2 - 1})
    first, second = pair.summary()
    assert (first, second) == ("ours", "base")


def test_the_best_for_sure_is_taken() -> None:
    choice = contest({"base": BASE, "ours": BETTER}).choose()
    assert choice.policy == "ours"
    assert choice.reason.startswith("take ours: +")
    assert "better on 4 of 4 workloads" in choice.reason


def test_a_policy_that_cannot_run_live_is_named_but_not_taken() -> None:
    speeds = {"base": BASE, "ours": BETTER, "oracle": [2 * v for v in BETTER]}
    choice = contest(speeds, {"oracle": "profile"}).choose()
    assert choice.policy == "ours"
    assert "better, but not possible live: oracle" in choice.reason


def test_of_equals_the_one_that_is_easier_to_know_is_taken() -> None:
    speeds = {"base": BASE, "hard": BETTER, "easy": ALIKE}
    choice = contest(speeds, {"hard": "work", "easy": "w_iter"}).choose()
    assert (choice.policy, choice.tied) == ("easy", ["hard"])
    assert "hard cannot be told apart from easy, which needs to know less" in choice.reason


def test_what_is_not_surely_better_than_the_base_is_not_taken_for_being_easy() -> None:
    """`maybe` cannot be told apart from the best, but neither from the base."""
    speeds = {"base": BASE, "hard": BETTER, "maybe": MAYBE}
    pair = contest(speeds, {"hard": "work"})
    assert not pair.gain("hard", over="maybe").above_zero
    assert pair.choose().policy == "hard"


def test_the_base_stays_where_nothing_is_surely_better() -> None:
    choice = contest({"base": BASE, "maybe": MAYBE}).choose()
    assert (choice.policy, choice.tied) == ("base", ["maybe"])
    assert "cannot be told apart" in choice.reason
    assert "no policy is better" in contest({"base": BETTER, "ours": BASE}).choose().reason


def test_a_sure_gain_is_taken_though_a_larger_one_is_uncertain() -> None:
    """The best mean may be chance; the base loses for sure against another."""
    speeds = {"base": BASE, "sure": BETTER, "lucky": [2.4, 1.1, 0.8, 1.1]}
    choice = contest(speeds).choose()
    assert (choice.policy, choice.tied) == ("sure", ["lucky"])


def test_a_base_that_cannot_run_live_is_not_kept() -> None:
    speeds = {"base": BETTER, "ours": BASE}
    assert contest(speeds, {"base": "profile"}).choose().policy is None


def test_one_workload_tells_nothing() -> None:
    choice = contest({"base": [1.0], "ours": [2.0]}).choose()
    assert choice.policy is None
    assert "--seeds" in choice.reason


def test_what_gets_worse_is_said() -> None:
    speeds = {"base": BASE, "ours": BETTER}
    workloads = [
        {name: {"speed": values[k], "wait": values[k]} for name, values in speeds.items()}
        for k in range(4)
    ]
    needs: dict[str, frozenset[str]] = {"base": frozenset(), "ours": frozenset()}
    pair = Contest(
        workloads, list(speeds), kind="sharing", metrics=METRICS, base="base", needs=needs
    )
    assert "but it is worse in wait (-10.0%)" in pair.choose().reason


@pytest.mark.parametrize("other", [BASE, MAYBE, [v - 0.1 for v in BASE]])
def test_a_better_policy_that_cannot_run_live_is_named_where_the_base_is_kept(
    other: Sequence[float],
) -> None:
    speeds = {"base": BASE, "ours": other, "oracle": BETTER}
    choice = contest(speeds, {"oracle": "profile"}).choose()
    assert choice.policy == "base"
    assert "better, but not possible live: oracle (+10.00%" in choice.reason
    assert "no policy is better" not in choice.reason


def test_one_workload_names_what_is_better_but_not_possible_live() -> None:
    speeds = {"base": [1.0], "ours": [2.0], "oracle": [3.0]}
    reason = contest(speeds, {"oracle": "profile"}).choose().reason
    assert "of those that can run live is that of ours" in reason
    assert reason.endswith("; better, but not possible live: oracle")


@pytest.mark.parametrize("values", [[1.0], BASE])
def test_policies_with_the_same_figures_have_no_winner(values: Sequence[float]) -> None:
    choice = contest({"base": values, "ours": values}).choose()
    assert "base and ours do not differ in any metric" in choice.reason
    assert choice.policy == (None if len(values) == 1 else "base")


def test_equal_best_policies_are_named_together() -> None:
    reason = contest({"base": [1.0], "one": [2.0], "two": [2.0]}).choose().reason
    assert "that of one and two, on one workload" in reason


def test_no_sentence_begins_with_the_name_of_a_policy() -> None:
    """The command line begins it with a capital letter, which a name does not have."""
    for speeds in ({"base": [1.0], "x": [2.0]}, {"base": BASE, "x": BASE}, {"base": [1.0]}):
        reason = contest(speeds).choose().reason
        assert not reason.startswith(tuple(speeds))


def test_the_base_gains_nothing_rather_than_less_than_nothing() -> None:
    slow = Metrics(primary="wait", higher_is_better={"wait": False})
    figures = [{"base": {"wait": 2.0}, "ours": {"wait": 1.0}}]
    needs: dict[str, frozenset[str]] = {"base": frozenset(), "ours": frozenset()}
    pair = Contest(
        figures, ["base", "ours"], kind="sharing", metrics=slow, base="base", needs=needs
    )
    assert f"{pair.gain('base'):+.2%}" == "+0.00%"
    assert f"{pair.of_workload(0)['base']:+.2%}" == "+0.00%"


def test_of_many_equal_policies_one_is_rarely_taken() -> None:
    """Twelve policies that differ from the base by chance alone; five workloads.

    In 5 of 100 comparisons at most one of them may be taken. By the printed intervals, each of
    which is above zero in 2.5 of 100, it would be many more.
    """
    trials, taken, above = 400, 0, 0
    rng = np.random.default_rng(17)
    for _ in range(trials):
        ability = rng.normal(1, 0.1, 5)
        speeds = {f"p{k}": (ability + rng.normal(0, 0.02, 5)).tolist() for k in range(12)}
        pair = contest({"base": (ability + rng.normal(0, 0.02, 5)).tolist(), **speeds})
        taken += pair.choose().policy != "base"
        above += any(pair.gain(name).above_zero for name in speeds)
    assert taken / trials <= 0.05
    assert above / trials > 0.1


def test_an_interval_above_zero_among_many_is_not_enough() -> None:
    """The same figures that decide between two do not decide among twenty."""
    small = [v + d for v, d in zip(BASE, (0.01, 0.03, 0.02, 0.03), strict=True)]
    assert contest({"base": BASE, "small": small}).choose().policy == "small"
    rng = np.random.default_rng(3)
    others = {f"p{k}": [v + rng.normal(0, 0.1) for v in BASE] for k in range(18)}
    many = contest({"base": BASE, "small": small, **others})
    assert many.gain("small").above_zero
    choice = many.choose()
    assert choice.policy == "base"
    assert "is above zero, but among 19 policies one may be so by chance" in choice.reason


def of_figures(figures: Sequence[Mapping[str, Mapping[str, float]]]) -> Contest:
    names = list(figures[0])
    needs: dict[str, frozenset[str]] = {name: frozenset() for name in names}
    return Contest(figures, names, kind="sharing", metrics=METRICS, base="base", needs=needs)


@pytest.mark.parametrize("speed", [0.0, 0.5])
@pytest.mark.parametrize("count", [1, 4])
def test_policies_that_tie_in_what_decides(speed: float, count: int) -> None:
    figures = {"base": {"speed": speed, "wait": 2.0}, "ours": {"speed": speed, "wait": 1.0}}
    choice = of_figures([figures] * count).choose()
    assert "base and ours do not differ in speed, which decides, on th" in choice.reason
    assert choice.reason.endswith("; only in wait")
    assert choice.policy == ("base" if count > 1 else None)


@pytest.mark.parametrize(("base", "reason"), [(0.0, "which is 0"), (math.nan, "base has no speed")])
@pytest.mark.parametrize("count", [1, 4])
def test_nothing_is_relative_to_a_base_without_a_figure(
    base: float, reason: str, count: int
) -> None:
    figures = {"base": {"speed": base, "wait": 2.0}, "ours": {"speed": 0.5, "wait": 1.0}}
    choice = of_figures([figures] * count).choose()
    assert choice.policy is None
    assert choice.reason.startswith("no choice: ")
    assert choice.reason.endswith(reason)


def test_more_workloads_tell_nothing_of_a_policy_that_is_the_same() -> None:
    choice = contest({"base": BASE, "twin": BASE, "slow": [v / 2 for v in BASE]}).choose()
    assert choice.reason == "keep base: in speed, twin has the same"


def test_rounding_is_no_gain() -> None:
    nearly = contest({"base": BASE, "ours": [v * (1 + 1e-14) for v in BASE]})
    assert nearly.wins("ours") == 0
    assert "base and ours do not differ in any metric" in nearly.choose().reason


def twins(values: Sequence[float]) -> dict[str, list[float]]:
    """Return a base, a policy that is faster, and one that differs from it by rounding."""
    return {
        "base": list(values),
        "ours": [1.1 * v for v in values],
        "twin": [1.1 * v * (1 + 1e-13) for v in values],
    }


def test_rounding_does_not_choose_between_two_that_are_better_than_the_base() -> None:
    pair = contest(twins(BASE), {"ours": "w_iter", "twin": "work"})
    choice = pair.choose()
    assert (choice.policy, choice.tied) == ("ours", ["twin"])
    assert list(pair.summary()) == ["ours", "twin", "base"]
    assert pair.gain("twin", over="ours").value == 0


def test_rounding_on_one_workload_names_both() -> None:
    reason = contest(twins([1.0])).choose().reason
    assert "that of ours and twin, on one workload" in reason
    assert "not possible live" not in contest(twins([1.0]), {"twin": "profile"}).choose().reason
