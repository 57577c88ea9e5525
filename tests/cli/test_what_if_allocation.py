"""penstock what-if --allocation: a record's jobs under other allocators and placers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from records.random_days import RecordedClock, header, run, write

from penstock.model import (
    Curve,
    Event,
    Job,
    JobEnded,
    JobStarted,
    NodeDown,
    NodeUp,
    PhaseBegan,
    PhaseEnded,
    Pinned,
    Site,
)
from penstock.records import Header, PolicySpec
from penstock.sim.evaluate.policy_runs import HIGHER_IS_BETTER
from penstock.sim.workload import Workload

SITE = Site(nodes=64, resources=4, direct=True)
BALANCED = PolicySpec(policy="greedy-non-clairvoyant")
STEEP = Curve.of({1: 1.0, 2: 2.0, 4: 4.0})
FLAT = Curve.of({1: 1.0, 2: 1.1, 4: 1.2})


def workload(*curves: Curve | None) -> Workload:
    """Jobs that read and compute five times each, on one I/O node at first."""
    n = len(curves)
    return Workload(
        compute=[4.0 + j for j in range(n) for _ in range(5)],
        io=[8.0] * 5 * n,
        offsets=range(0, 5 * n + 1, 5),
        release=[0.5 * j for j in range(n)],
        ids=[f"job-{j}" for j in range(n)],
        curves=list(curves),
        details=[{"processes": 4} for _ in range(n)],
    )


def recorded(directory: Path, allocation: str, *curves: Curve | None, **more: Any) -> Path:
    made = header(
        "fair-share",
        site=SITE,
        source="simulated",
        allocation=PolicySpec(policy=allocation),
        placement=BALANCED,
        mode="enforce",
        run=allocation.replace("-", ""),
        **more,
    )
    clock = RecordedClock(workload(*curves), made)
    clock.run()
    (path,) = write(directory / f"records-{allocation}", made, clock.entries)
    return path


@pytest.mark.parametrize("other", ["mckp", "static", "one"])
def test_the_record_of_one_allocator_predicts_another(
    penstock: Any, directory: Path, other: str
) -> None:
    """A closed loop: the same jobs recorded under another allocator are what was predicted."""
    curves = (STEEP, FLAT, STEEP)
    first = penstock(
        "what-if", str(recorded(directory, "size", *curves)), "--allocation", other, "--json"
    ).json
    assert (first["ran"], first["kind"], first["sharing"]) == ("size", "allocation", "fair-share")
    assert set(first["policies"]) == {"size", other}
    second = penstock(
        "what-if", str(recorded(directory, other, *curves)), "--allocation", other, "--json"
    ).json
    for metric in ("makespan", "utilization"):  # which do not depend on what "alone" means
        assert abs(first["model_check"][metric]["error"]) < 1e-9
        assert first["policies"][other][metric] == pytest.approx(
            second["model_check"][metric]["recorded"], rel=1e-9
        )


def test_curves_decide_who_gains(penstock: Any, directory: Path) -> None:
    """A steep job and a flat one: mckp gives the steep one more, and its I/O is shorter."""
    path = recorded(directory, "one", STEEP, FLAT)
    result = penstock("what-if", str(path), "--allocation", "mckp", "--json").json
    mckp = result["policies"]["mckp"]
    assert mckp["gain"]["io_slowdown"] > 0.2
    assert mckp["beyond_model_error"]["io_slowdown"]
    assert mckp["jobs"]["gain"][0]["job"] == "job-0"
    # It has 2 I/O nodes, as its curve has no 3 and the other needs one: half of 5 x 8 s less.
    gained = mckp["jobs"]["gain"][0]
    assert gained["ran"] - gained["simulated"] == pytest.approx(20.0)
    assert result["record"]["cuts"]["jobs_without_curve"] == 0


def test_nothing_within_the_model_error_is_a_gain(penstock: Any, directory: Path) -> None:
    lines = recorded(directory, "one", STEEP, FLAT).read_bytes().splitlines()
    first, *rest = [json.loads(line) for line in lines]
    for line in rest:
        line["time"] *= 3.0
    slow = directory / "slow.jsonl"
    slow.write_text("".join(json.dumps(line) + "\n" for line in (first, *rest)))
    result = penstock("what-if", str(slow), "--allocation", "mckp", "--json").json
    assert abs(result["model_check"]["makespan"]["error"]) > 0.3
    assert not any(result["policies"]["mckp"]["beyond_model_error"].values())
    out = penstock("what-if", str(slow), "--allocation", "mckp").out
    assert out.startswith("model check: one ran (mode enforce); simulated: utilization ")
    assert "do not decide by this" in out


def test_jobs_without_a_curve_are_counted_and_said_per_policy(
    penstock: Any, directory: Path
) -> None:
    path = recorded(directory, "one", STEEP, None, None)
    chosen = ("what-if", str(path), "--allocation", "mckp,size")
    result = penstock(*chosen, "--json").json
    assert result["record"]["cuts"]["jobs_without_curve"] == 2
    decisions = {name: each["decisions"] for name, each in result["policies"].items()}
    assert decisions["mckp"]["unmet_needs"] == {"curve": 2}
    assert decisions["mckp"]["jobs_by_fallback"] == 2
    assert decisions["size"]["unmet_needs"] == {}
    assert [result["policies"][name]["needs"] for name in ("mckp", "size")] == [
        ["curve"],
        ["nodes"],
    ]
    out = penstock(*chosen).out
    assert "note: 2 jobs without a known curve at the number of I/O nodes that it had" in out
    assert "mckp must know: curve; not known: curve of 2 jobs; 2 jobs by the fallback policy" in out
    assert "size must know: nodes" in out


ALL = """
from penstock.policies.base import Allocator

class All(Allocator):
    needs = frozenset()
    sticky = False

    def allocate(self, view):
        return dict.fromkeys(view.jobs, view.site.resources)
"""


def test_a_number_that_a_curve_does_not_have_is_not_invented(
    penstock: Any, directory: Path
) -> None:
    """A policy that gives all four to a job of which nothing is known beyond two."""
    (directory / "mine.py").write_text(ALL)
    path = recorded(directory, "one", Curve.of({1: 1.0, 2: 1.5}))
    result = penstock("what-if", str(path), "--allocation", "mine.py:All,mckp", "--json").json
    (skipped,) = result["skipped"]
    assert skipped["policy"] == "mine.py:All"
    assert "job 'job-0': a curve measured at [1, 2] says nothing of 4" in skipped["reason"]
    assert set(result["policies"]) == {"one", "mckp"}


def test_a_curve_of_one_point_says_nothing_of_other_numbers(penstock: Any, directory: Path) -> None:
    """where-known gives such a job a share of the rest: its I/O takes as long as recorded."""
    path = recorded(directory, "one", Curve.of({1: 1.0}), STEEP)
    result = penstock("what-if", str(path), "--allocation", "where-known", "--json").json
    assert result["skipped"] == []
    assert result["record"]["cuts"]["jobs_without_curve"] == 1
    assert result["policies"]["where-known"]["decisions"]["unmet_needs"] == {"curve": 1}


def test_a_policy_that_cannot_decide_is_skipped_with_its_reason(
    penstock: Any, directory: Path
) -> None:
    made = header(
        "fair-share",
        site=Site(resources=4, direct=True),  # without a number of compute nodes
        source="simulated",
        allocation=PolicySpec(policy="one"),
        placement=BALANCED,
    )
    clock = RecordedClock(workload(STEEP), made)
    clock.run()
    (path,) = write(directory / "records", made, clock.entries)
    result = penstock("what-if", str(path), "--allocation", "static", "--json").json
    (skipped,) = result["skipped"]
    assert skipped["policy"] == "static"
    assert "site.nodes" in skipped["reason"]


def test_placers_are_compared_with_what_ran(penstock: Any, directory: Path) -> None:
    path = recorded(directory, "one", STEEP, FLAT)
    chosen = ("--placement", "greedy-clairvoyant,random", "--json")
    result = penstock("what-if", str(path), *chosen).json
    assert result["ran"] == "one + greedy-non-clairvoyant"
    assert set(result["policies"]) == {
        "one + greedy-non-clairvoyant",
        "one + greedy-clairvoyant",
        "one + random",
    }


def live(**more: Any) -> Header:
    """The header of a live site of two I/O nodes, whose turns are of the file system."""
    fields: dict[str, Any] = {
        "site": Site(nodes=8, resources=2, direct=True),
        "source": "emulated",
        "allocation": PolicySpec(policy="where-known"),
        "placement": BALANCED,
        "fallback": PolicySpec(policy="size"),
        "resources_up": False,
        "mode": "enforce",
    }
    return header("fair-share", **fields | more)


def phase(job: str, begins: float, ends: float, io: float) -> list[Event]:
    return [
        PhaseBegan(time=begins, job=job, resources=(0,)),
        PhaseEnded(time=ends, job=job, resource=0, io=io),
    ]


def written(directory: Path, made: Header, events: Sequence[Event]) -> str:
    """Write the record of what a controller decides on the events; phases move 1,000 bytes."""
    entries = [
        replace(entry, seconds=None if entry.bytes is None else _seconds(entry.event, events))
        for entry in run(made, events)
    ]
    (path,) = write(directory / "records", made, entries)
    return str(path)


def _seconds(event: Event, events: Sequence[Event]) -> float:
    assert isinstance(event, PhaseEnded)
    began = [e.time for e in events if isinstance(e, PhaseBegan) and e.job == event.job]
    return event.time - max(time for time in began if time <= event.time)


UP: list[Event] = [NodeUp(time=0.0, resource=0), NodeUp(time=0.0, resource=1)]
CURVE = Curve.of({1: 500.0, 2: 1000.0})


def job(name: str = "a", serial: int = 1, **more: Any) -> Job:
    return Job(id=name, serial=serial, curve=CURVE, volume=1000.0, compute=9.0, **more)


def test_the_io_nodes_of_a_live_job_are_those_it_was_given(penstock: Any, directory: Path) -> None:
    """Its phases name the file system. Alone it has both I/O nodes; with one it takes twice."""
    events = [*UP, JobStarted(time=1.0, job=job()), *phase("a", 10.0, 11.0, 1.0)]
    path = written(directory, live(), [*events, JobEnded(time=11.0, job="a")])
    result = penstock("what-if", path, "--allocation", "one", "--json").json
    assert result["ran"] == "where-known"
    assert result["policies"]["where-known"]["makespan"] == pytest.approx(11.0)
    assert result["policies"]["one"]["makespan"] == pytest.approx(12.0)
    assert result["policies"]["one"]["beyond_model_error"]["io_slowdown"]


def test_in_other_modes_than_enforce_jobs_have_all_io_nodes(penstock: Any, directory: Path) -> None:
    """Two jobs that observe: the policy's assignments did not act."""
    events: list[Event] = [*UP]
    for serial, name in enumerate("ab", 1):
        events.append(JobStarted(time=1.0, job=job(name, serial)))
    events += [*phase("a", 10.0, 11.0, 1.0), *phase("b", 20.0, 21.0, 1.0)]
    events += [JobEnded(time=21.0, job=name) for name in "ab"]
    path = written(directory, live(mode="observe"), events)
    result = penstock("what-if", path, "--allocation", "where-known", "--json").json
    assert result["ran"] == "own"
    ran, other = result["policies"]["own"], result["policies"]["where-known"]
    assert ran["makespan"] == pytest.approx(21.0)
    assert other["makespan"] == pytest.approx(22.0)  # one each: b has one until its end
    note = "jobs on different I/O nodes are simulated as if they did not slow each other down"
    assert any(note in each for each in result["record"]["notes"])


def test_an_io_node_that_goes_is_gone_in_the_simulation(penstock: Any, directory: Path) -> None:
    events = [
        *UP,
        JobStarted(time=1.0, job=job()),
        *phase("a", 10.0, 11.0, 1.0),
        NodeDown(time=15.0, resource=1),
        *phase("a", 20.0, 22.0, 2.0),
        JobEnded(time=22.0, job="a"),
    ]
    result = penstock(
        "what-if", written(directory, live(), events), "--allocation", "mckp", "--json"
    ).json
    assert result["policies"]["where-known"]["makespan"] == pytest.approx(22.0)
    assert result["policies"]["mckp"]["makespan"] == pytest.approx(22.0)
    assert result["policies"]["mckp"]["decisions"]["moves"] == 1
    for metric in HIGHER_IS_BETTER:
        assert abs(result["model_check"][metric]["error"]) < 1e-9


def test_a_job_that_asked_for_its_io_nodes_keeps_them(penstock: Any, directory: Path) -> None:
    events = [
        *UP,
        Pinned(time=1.0, job="a", resources=(1,)),
        JobStarted(time=1.0, job=job()),
        *phase("a", 10.0, 12.0, 2.0),
        JobEnded(time=12.0, job="a"),
    ]
    result = penstock(
        "what-if", written(directory, live(), events), "--allocation", "mckp", "--json"
    ).json
    assert result["policies"]["mckp"]["makespan"] == pytest.approx(12.0)
    assert result["policies"]["mckp"]["decisions"]["reasons"] == {"pinned": 1}


def test_policies_know_what_the_controller_knew(penstock: Any, directory: Path) -> None:
    """A curve at one I/O node, of a job that had two: its lengths cannot be converted, but it was
    known, and so was w_iter; both were once "not known"."""
    known = replace(job(), curve=Curve.of({1: 500.0, 2: 1000.0}), w_iter=10.0)
    beyond = replace(job("b", 2), curve=Curve.of({1: 500.0}), w_iter=10.0)
    made = structs.replace(live(mode="observe"), learn={})
    events: list[Event] = [*UP, JobStarted(time=1.0, job=known), JobStarted(time=1.0, job=beyond)]
    events += [*phase("a", 10.0, 11.0, 1.0), *phase("b", 20.0, 21.0, 1.0)]
    events += [JobEnded(time=21.0, job=name) for name in "ab"]
    path = written(directory, made, events)
    result = penstock("what-if", path, "--allocation", "mckp,search", "--json").json
    assert result["record"]["knowledge"] == "learned"
    assert result["policies"]["mckp"]["decisions"]["unmet_needs"] == {}
    assert result["policies"]["search"]["decisions"]["unmet_needs"] == {}
    assert result["record"]["cuts"]["jobs_without_curve"] == 1


def test_all_allocations_have_one_baseline_per_job(penstock: Any, directory: Path) -> None:
    """A job that had one I/O node twice and then two: its I/O takes 2 s alone on one, 1 s on two.

    Recorded, 5 s of I/O for 6 s alone: less than 1, as the docs, the table and the JSON say.
    """
    events: list[Event] = [UP[0], JobStarted(time=1.0, job=job())]
    events += [*phase("a", 10.0, 12.0, 2.0), *phase("a", 20.0, 22.0, 2.0)]
    events += [UP[1], *phase("a", 30.0, 31.0, 1.0), JobEnded(time=31.0, job="a")]
    events[6] = replace(UP[1], time=25.0)
    path = written(directory, live(), events)
    result = penstock("what-if", path, "--allocation", "one,own", "--json").json
    check, policies = result["model_check"]["io_slowdown"], result["policies"]
    assert result["ran"] == "where-known"
    assert check["recorded"] == pytest.approx(5 / 6)
    assert check["simulated"] == pytest.approx(5 / 6)
    for other in ("one", "own"):
        assert policies[other]["io_slowdown"] == pytest.approx(1.0)
    assert "most often" in result["baseline"]
    assert "a slowdown below 1" in penstock("what-if", path, "--allocation", "one").out


def test_a_policy_that_no_site_runs_is_marked(penstock: Any, directory: Path) -> None:
    """The best of all was once recommended, and then refused by `penstock up`."""
    path = recorded(directory, "one", STEEP, FLAT)
    chosen = ("what-if", str(path), "--allocation", "oracle,mckp")
    policies = penstock(*chosen, "--json").json["policies"]
    assert "it gives jobs more than a site has" in policies["oracle"]["simulated_only"]
    assert policies["mckp"]["simulated_only"] is None
    out = penstock(*chosen).out
    assert "oracle (simulated only" in out
    assert "oracle: simulated only; 'penstock up' refuses it: " in out
    assert "mckp (simulated only" not in out


@pytest.mark.parametrize(("scope", "noted"), [("file-system", True), ("io-node", False)])
def test_what_turns_were_taken_on_is_what_the_header_says(
    penstock: Any, directory: Path, scope: str, noted: bool
) -> None:
    made = structs.replace(live(scope=scope), sharing=PolicySpec(policy="exclusive-fcfs"))
    events = [*UP, JobStarted(time=1.0, job=job()), *phase("a", 10.0, 11.0, 1.0)]
    path = written(directory, made, [*events, JobEnded(time=11.0, job="a")])
    result = penstock("what-if", path, "--allocation", "one", "--json").json
    notes = result["record"]["notes"]
    assert any("turns were of the whole file system" in note for note in notes) is noted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--allocation", "mckp", "--policies", "set-10"), "leave out --policies and --packing"),
        (("--allocation", "mckp", "--check"), "--check does not simulate"),
        (("--allocation", "mkcp"), "did you mean 'mckp'"),
        (("--allocation", "mckp,mckp"), "names a policy twice"),
        (("--placement", "nowhere"), "nowhere"),
    ],
)
def test_bad_options_are_refused(
    penstock: Any, directory: Path, options: Sequence[str], message: str
) -> None:
    path = recorded(directory, "one", STEEP)
    result = penstock("what-if", str(path), *options)
    assert result.status == 2
    assert message in result.err


def test_placers_need_an_allocator(penstock: Any, directory: Path) -> None:
    events = [*UP, JobStarted(time=1.0, job=job()), *phase("a", 10.0, 11.0, 1.0)]
    path = written(directory, live(mode="observe"), events)
    result = penstock("what-if", path, "--placement", "random")
    assert result.status == 2
    assert "name one, too (--allocation)" in result.err
