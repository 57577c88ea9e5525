"""penstock tuner show: what was learnt is told, and files of others are said to be none."""

import json
from pathlib import Path
from typing import Any

import pytest

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
    told = penstock("tuner", "show", file)
    assert told.status == 0, told.err
    assert "8 ms *" in told.out
    assert "1 ms *" not in told.out
    (learned,) = penstock("tuner", "show", file, "--json").json["learned"]
    assert learned["tuners"]["window"]["contexts"] == [CONTEXT]


def test_a_policy_with_brackets_in_its_name_is_shown_as_it_is(
    penstock: Any, directory: Path
) -> None:
    told = penstock("tuner", "show", stored(directory, {}, policy="[/x]"))
    assert told.status == 0, told.err
    assert "[/x]  (learned.json)" in told.out


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
    told = penstock("tuner", "show", stored(directory, tuners), *options)
    assert told.status == 2
    assert "learned.json is nothing that a tuner has learnt" in told.err
    assert len(told.err.splitlines()) == 1
