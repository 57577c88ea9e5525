"""penstock policies: every policy can be found and understood."""

import json
from pathlib import Path
from typing import Any

from penstock import registry


def test_every_policy_has_a_line(penstock: Any) -> None:
    entries = penstock("policies", "--json").json
    known = [(kind, name) for kind in registry.POLICIES for name in sorted(registry.table(kind))]
    assert [(e["kind"], e["name"]) for e in entries] == known
    for entry in entries:
        assert entry["summary"]
        assert not entry["summary"].startswith(entry["name"])
    table = penstock("policies").out
    assert all(entry["name"] in table for entry in entries)


def test_one_policy_with_its_options(penstock: Any) -> None:
    entry = penstock("policies", "set-10", "--json").json
    assert (entry["kind"], entry["needs"], entry["options"]) == (
        "sharing",
        ["w_iter"],
        {"unknown": 5},
    )
    out = penstock("policies", "set-10").out
    assert "round(log10 w_iter)" in out
    assert "options  unknown=5" in out


def test_a_policy_of_another_kind(penstock: Any) -> None:
    assert penstock("policies", "mckp", "--json").json["kind"] == "allocation"
    assert penstock("policies", "random", "--kind", "placement", "--json").json["kind"] == (
        "placement"
    )


def test_a_policy_in_a_file(penstock: Any, directory: Path) -> None:
    (directory / "mine.py").write_text(
        '"""mine: by user."""\n'
        "from penstock.policies.base import ByArrival\n"
        "class Mine(ByArrival):\n"
        "    def __init__(self, *, must_have, may_have=1): pass\n"
        "    def group(self, job): return job.user\n"
    )
    entry = json.loads(penstock("policies", "./mine.py:Mine", "--json").out)
    assert entry["summary"] == "mine: by user."
    assert entry["options"] == {"must-have": "required", "may-have": 1}
