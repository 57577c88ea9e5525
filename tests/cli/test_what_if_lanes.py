"""what-if --lanes: as much is transferred in a lane as its job had to."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cli.test_what_if import recorded, workload
from cli.test_what_if_allocation import FLAT, STEEP
from cli.test_what_if_allocation import recorded as of_allocation
from records.random_days import header, write

from penstock.model import Event, Job, JobStarted, PhaseBegan, PhaseEnded, Site
from penstock.records import Entry
from penstock.sim.evaluate import what_if_lanes

POLICIES = ("--policies", "set-10,fair-share,greedy-yield", "--json")


def moved(answer: dict[str, Any]) -> dict[int, float]:
    """Seconds of the whole file system that each lane shows."""
    matches: defaultdict[int, float] = defaultdict(float)
    for job, kind, start, end, share in answer["stretches"]:
        assert end > start
        matches[job] += share * (end - start) if kind == "io" else 0.0
    return dict(matches)


def test_lanes_hold_all_io_under_every_policy(penstock: Any, directory: Path) -> None:
    """The integral of a job's share over its lane is its isolated I/O, whoever ordered it."""
    matches = penstock("what-if", str(recorded(directory)), *POLICIES, "--lanes").json["lanes"]
    jobs = workload()
    io = {jobs.id(j): total for j, total in enumerate(jobs.total(jobs.io).tolist())}
    assert {job["id"] for job in matches["jobs"]} == set(io)
    assert matches["left_out"] == 0
    sets = {"recorded": matches["recorded"], **matches["simulated"]}
    assert set(sets) == {"recorded", "set-10", "fair-share", "greedy-yield"}
    for name, answer in sets.items():
        assert answer["until"] is None
        for k, seconds in moved(answer).items():
            # Stretches are told to a tenth of a millisecond, shares to four digits.
            assert seconds == pytest.approx(io[matches["jobs"][k]["id"]], rel=5e-3), name
        for k, finish in enumerate(answer["finish"]):
            ends = [end for job, _, _, end, _ in answer["stretches"] if job == k]
            assert max(ends) == pytest.approx(finish, abs=1e-3)


def test_stretches_of_a_lane_do_not_overlap(penstock: Any, directory: Path) -> None:
    """Under set-10 jobs wait for each other, and neither wait nor transfer at once."""
    matches = penstock("what-if", str(recorded(directory)), *POLICIES, "--lanes").json["lanes"]
    for answer in (matches["recorded"], *matches["simulated"].values()):
        lane: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
        for job, _, start, end, _ in answer["stretches"]:
            lane[job].append((start, end))
        for parts in lane.values():
            parts.sort()
            for (_, end), (start, _) in pairwise(parts):
                assert start >= end - 2e-4
    assert any(kind == "wait" for _, kind, *_ in matches["simulated"]["set-10"]["stretches"])


def test_nobody_waits_where_turns_are_only_observed(penstock: Any, directory: Path) -> None:
    """A record has the turns that a policy would have given; its jobs did not wait for them."""
    for mode, waits in (("observe", False), ("enforce", True)):
        path = recorded(directory, "exclusive-fcfs", mode=mode, run=mode[0] * 2)
        lanes = penstock("what-if", str(path), *POLICIES, "--lanes").json["lanes"]
        kinds = {kind for _, kind, *_ in lanes["recorded"]["stretches"]}
        assert kinds == ({"io", "wait"} if waits else {"io"})


def test_after_a_phase_that_was_cut_off_a_job_has_another_lane(
    penstock: Any, directory: Path
) -> None:
    events: list[Event] = [JobStarted(time=0.0, job=Job(id="a", serial=0))]
    for begin, end, io in ((1.0, 3.0, 2.0), (5.0, 8.0, 0.0), (9.0, 11.0, 2.0)):
        events.append(PhaseBegan(time=begin, job="a", resources=(0,)))
        events.append(PhaseEnded(time=end, job="a", resource=0, io=io))
    made = header("fair-share", site=Site(), mode="observe")
    (path,) = write(directory / "cut", made, [Entry(event=event) for event in events])
    lanes = penstock("what-if", str(path), *POLICIES, "--lanes").json["lanes"]
    assert [(job["id"], job["began"]) for job in lanes["jobs"]] == [("a", 0.0), ("a#2", 8.0)]
    stretches = [stretch[:4] for stretch in lanes["recorded"]["stretches"]]
    assert stretches == [[0, "io", 1.0, 3.0], [0, "io", 5.0, 8.0], [1, "io", 9.0, 11.0]]
    assert lanes["recorded"]["finish"] == [5.0, 11.0]


def test_what_is_cut_is_said(
    penstock: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(what_if_lanes, "MOST_JOBS", 2)
    monkeypatch.setattr(what_if_lanes, "MOST_STRETCHES", 10)
    matches = penstock("what-if", str(recorded(directory)), *POLICIES, "--lanes").json["lanes"]
    assert (len(matches["jobs"]), matches["left_out"]) == (2, 3)
    for answer in (matches["recorded"], *matches["simulated"].values()):
        assert len(answer["stretches"]) <= 10
        if answer["until"] is not None:
            assert all(start <= answer["until"] for _, _, start, _, _ in answer["stretches"])
    assert matches["simulated"]["set-10"]["until"] is not None


def test_lanes_are_for_programs(penstock: Any, directory: Path) -> None:
    path = str(recorded(directory))
    for words in (("--lanes",), ("--lanes", "--check", "--json")):
        refused = penstock("what-if", path, *words)
        assert (refused.status, refused.out) == (2, "")
        assert "--json" in refused.err


def test_without_lanes_nothing_is_added(penstock: Any, directory: Path) -> None:
    assert "lanes" not in penstock("what-if", str(recorded(directory)), *POLICIES).json


@pytest.mark.parametrize(
    "options", [("--placement", "random"), ("--allocation", "mckp,static,one")], ids=lambda o: o[0]
)
def test_lanes_of_jobs_that_get_other_io_nodes_show_their_transfers(
    penstock: Any, directory: Path, options: tuple[str, str]
) -> None:
    """Lanes had only the I/O node of the record: on any other one a transfer was shown as a wait.

    Under fair-share nobody waits, and of two jobs on four I/O nodes each has its own.
    """
    path = of_allocation(directory, "one", STEEP, FLAT)
    answer = penstock("what-if", str(path), *options, "--lanes", "--json").json
    assert len(answer["policies"]) > 1
    for name, lanes in answer["lanes"]["simulated"].items():
        spans: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
        for job, kind, start, end, share in lanes["stretches"]:
            assert (kind, 0.0 < share <= 1.0) == ("io", True), name
            spans[job].append((start, end))
        for k, job in enumerate(answer["lanes"]["jobs"]):
            parts = sorted(spans[k])
            assert all(b >= a for (_, a), (b, _) in pairwise(parts)), name
            # It computes or transfers, and does nothing else from its beginning to its end.
            io = sum(end - start for start, end in parts)
            computes = 5 * (4.0 + k)
            assert lanes["finish"][k] - job["began"] == pytest.approx(computes + io, abs=5e-3)
