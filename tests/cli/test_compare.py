"""penstock compare: the same figures as simulate, side by side."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import registry
from penstock.cli.common.comparison_table import COLUMNS
from penstock.sim.evaluate import policy_runs

METRICS = ("utilization", "max_stretch", "io_slowdown", "min_yield", "efficiency", "makespan")


def test_all_policies_by_default_with_simulate_s_figures(penstock: Any, jobs: str) -> None:
    result = penstock("compare", jobs, "--json").json
    assert set(result["policies"]) == set(registry.table("sharing"))
    alone = penstock("simulate", jobs, "--policy", "exclusive-fcfs", "--json").json
    together = result["policies"]["exclusive-fcfs"]
    assert {m: together[m] for m in METRICS} == {m: alone[m] for m in METRICS}
    ranked = [figures["utilization"] for figures in result["policies"].values()]
    assert ranked == sorted(ranked, reverse=True)


def test_gains_are_over_fair_share(penstock: Any, jobs: str) -> None:
    policies = penstock("compare", jobs, "--json").json["policies"]
    fair, fcfs = policies["fair-share"], policies["exclusive-fcfs"]
    assert fcfs["gain"]["makespan"] == pytest.approx(1 - fcfs["makespan"] / fair["makespan"])
    assert fcfs["gain"]["utilization"] == pytest.approx(
        fcfs["utilization"] / fair["utilization"] - 1
    )
    assert set(fair["gain"].values()) == {0}
    alone = penstock("compare", jobs, "--policies", "set-10", "--json").json
    assert alone["policies"]["set-10"]["gain"] is None


def test_several_files_give_means(penstock: Any, jobs: str) -> None:
    penstock("generate", "io-sets", "--jobs", "6", "--horizon", "200", "--out", "other.npz")
    arguments = ("--policies", "fair-share,set-10", "--json")
    result = penstock("compare", jobs, "other.npz", *arguments).json
    assert [file["file"] for file in result["files"]] == ["jobs.json", "other.npz"]
    for policy in ("fair-share", "set-10"):
        values = [file["policies"][policy]["max_stretch"] for file in result["files"]]
        assert result["policies"][policy]["max_stretch"] == pytest.approx(sum(values) / 2)


def test_a_policy_that_a_file_cannot_feed_is_left_out_with_the_reason(
    penstock: Any, jobs: str, directory: Path
) -> None:
    job = {"id": "a", "phases": [[6, 5]]}
    (directory / "plain.json").write_text(json.dumps({"jobs": [job]}))
    result = penstock("compare", jobs, "plain.json", "--json").json
    assert "clairvoyant-sets" not in result["policies"]
    assert "clairvoyant-sets" in result["files"][0]["policies"]
    (left_out,) = result["skipped"]
    assert (left_out["policy"], left_out["file"]) == ("clairvoyant-sets", "plain.json")
    assert "profile" in left_out["reason"]
    assert "skipped clairvoyant-sets on plain.json" in penstock("compare", "plain.json").out
    result = penstock("compare", "plain.json", "--policies", "clairvoyant-sets")
    assert result.status == 2
    assert result.err.startswith("penstock: error: plain.json: job 'a' has no positive hint")


def test_options_count_for_the_policy_they_belong_to(
    penstock: Any, jobs: str, directory: Path
) -> None:
    # c asks while a transfers, and b soon after: who of the two is next depends on the sign.
    phases = {"a": [[6, 5]], "b": [[8, 4]], "c": [[7, 1]]}
    listed = [{"id": name, "phases": pairs} for name, pairs in phases.items()]
    (directory / "three.json").write_text(json.dumps({"jobs": listed}))
    (directory / "mine.py").write_text(
        "from penstock.policies.base import ByArrival\n"
        "class Mine(ByArrival):\n"
        "    def __init__(self, *, sign: float = 1.0):\n"
        "        self.sign = sign\n"
        "    def group(self, job):\n"
        "        return 'all'\n"
        "    def turn(self, request, view):\n"
        "        return self.sign * request.io\n"
    )
    mine = "./mine.py:Mine"
    arguments = ("compare", "three.json", "--policies", f"{mine},set-10", "--json")
    shortest = penstock(*arguments).json["policies"]
    turned = ("--set", f"sharing.policy={mine}", "--set", "sharing.options.sign=-1")
    longest = penstock(*arguments, *turned).json["policies"]
    assert shortest[mine]["max_stretch"] == pytest.approx(12 / 8)
    assert longest[mine]["max_stretch"] == pytest.approx(16 / 8)
    assert longest["set-10"] == shortest["set-10"]


def test_processes_give_what_threads_give(
    penstock: Any, jobs: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "mine.py").write_text(
        "from penstock.policies.base import ByArrival\n"
        "class Mine(ByArrival):\n"
        "    def group(self, job):\n"
        "        return 'all'\n"
    )
    arguments = ("compare", jobs, "--policies", "./mine.py:Mine,exclusive-fcfs", "--json")
    threads = penstock(*arguments).json
    assert threads["policies"]["./mine.py:Mine"] == threads["policies"]["exclusive-fcfs"]
    monkeypatch.setattr(policy_runs, "PROCESSES_PAY", 0)
    assert penstock(*arguments).json == threads


def test_for_people_the_best_have_stars(penstock: Any, jobs: str) -> None:
    out = penstock("compare", jobs, "--policies", "fair-share,exclusive-fcfs").out
    assert "jobs.json: 2 jobs, 3 iterations" in out
    first, second = (line for line in out.splitlines() if "%" in line)
    assert first.startswith("exclusive-fcfs")
    assert first.count("*") == len(COLUMNS)
    assert "22.0000*" in first
    assert "+0.00%" in second


def test_as_live_is_a_part_of_what_is_kept(penstock: Any, jobs: str) -> None:
    """Another max-wait gives other figures: cells of before do not count."""
    policies = ("compare", jobs, "--policies", "exclusive-fcfs", "--out", "kept", "--json")
    unbounded, wide, narrow, again = (
        penstock(*policies, *more).json["policies"]["exclusive-fcfs"]
        for more in (
            (),
            ("--as-live",),
            ("--as-live", "--set", "live.max-wait=0.4"),
            (),
        )
    )
    assert unbounded == again
    assert wide["makespan"] == unbounded["makespan"] == 22
    assert narrow["makespan"] == pytest.approx(22.6)
