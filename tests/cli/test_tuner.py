"""penstock tuner: what was learnt is told and simulated; files of others are said to be none."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import registry
from penstock.data import windows

CONTEXT = {
    "operation": "read",
    "pattern": "shared-strided",
    "size": 32768,
    "load": 8,
    "values": [0.001, 0.008],
    "count": [3.0, 5.0],
    "mean": [1e9, 2e9],
}


def stored(directory: Path, tuners: Any, policy: str = "x") -> str:
    content = {"policy": policy, "saved": 1, "learned": {"tuners": tuners}}
    (directory / "learned.json").write_text(json.dumps(content))
    return "learned.json"


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in CONTEXT.items() if name != field}


def test_what_was_learnt_is_shown(penstock: Any, directory: Path) -> None:
    file = stored(directory, {"window": {"contexts": [CONTEXT]}})
    answer = penstock("tuner", "show", file)
    assert answer.status == 0, answer.err
    assert "8 ms *" in answer.out
    assert "1 ms *" not in answer.out
    (learned,) = penstock("tuner", "show", file, "--json").json["learned"]
    assert learned["tuners"]["window"]["contexts"] == [CONTEXT]


def test_a_policy_with_brackets_in_its_name_is_shown_as_it_is(
    penstock: Any, directory: Path
) -> None:
    answer = penstock("tuner", "show", stored(directory, {}, policy="[/x]"))
    assert answer.status == 0, answer.err
    assert "[/x]  (learned.json)" in answer.out


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize(
    "tuners",
    [
        {"window": [1]},
        {"window": None},
        {"window": {"contexts": 7}},
        {"window": {"contexts": [{}]}},
        *({"window": {"contexts": [without(field)]}} for field in CONTEXT),
        {"window": {"contexts": [CONTEXT | {"mean": [1.0]}]}},
        {"window": {"contexts": [CONTEXT | {"size": "large"}]}},
        {"window": {"contexts": [CONTEXT | {"count": [10**400, 1]}]}},
        {"window": {"contexts": [CONTEXT | {"values": [[1], {}]}]}},
        [1],
    ],
)
def test_files_of_others_are_refused_in_a_line(
    penstock: Any, directory: Path, tuners: Any, options: tuple[str, ...]
) -> None:
    answer = penstock("tuner", "show", stored(directory, tuners), *options)
    assert answer.status == 2
    assert "learned.json is not the state of a tuner" in answer.err
    assert len(answer.err.splitlines()) == 1


SIMULATE = ("tuner", "simulate", "--observations", "20", "--repetitions", "1", "--json")


def test_a_policy_learns_from_the_rewards_that_are_shipped(penstock: Any) -> None:
    answer = penstock(*SIMULATE, "--policy", "ucb1")
    assert answer.status == 0, answer.err
    assert (answer.json["policy"], answer.json["learned"]) == ("ucb1", False)
    assert {one["scenario"] for one in answer.json["scenarios"]} == {
        scenario.name for scenario in windows.by_window(windows.shipped())
    }
    assert all(0 < one["begin"] <= 1 for one in answer.json["scenarios"])


def test_a_simulation_begins_with_what_was_learnt_live(penstock: Any, directory: Path) -> None:
    """A context of which all is known begins with its best window; the policy is the file's."""
    scenario, rewards = next(iter(windows.by_window(windows.shipped()).items()))
    tuner = registry.policy("tuning", "discounted-ucb", {})
    for window in 30 * tuple(rewards):
        tuner.learn(scenario.context, window, 2**20 * sum(rewards[window]) / len(rewards[window]))
    file = stored(directory, {"window": tuner.learned()}, policy="discounted-ucb")
    answer = penstock(*SIMULATE, "--learned", file).json
    assert (answer["policy"], answer["learned"]) == ("discounted-ucb", True)
    begins = {one["scenario"]: one["begin"] for one in answer["scenarios"]}
    assert begins[scenario.name] > 0.99
    other = penstock(*SIMULATE, "--learned", file, "--policy", "ucb1")
    assert other.status == 2
    assert len(other.err.splitlines()) == 1


def test_a_state_without_windows_is_refused(penstock: Any, directory: Path) -> None:
    answer = penstock(*SIMULATE, "--learned", stored(directory, {"depth": {"contexts": []}}))
    assert answer.status == 2
    assert "has nothing on windows" in answer.err
