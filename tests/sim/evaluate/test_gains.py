"""Which policy to take: the best that can run live, if the workloads tell."""

from collections.abc import Mapping, Sequence

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
    assert "hard cannot be told apart from it, and it needs to know less" in choice.reason


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
