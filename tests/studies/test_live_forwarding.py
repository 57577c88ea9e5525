"""What the live studies of I/O nodes conclude from rows, and their programs on a real site."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from limits import HANG
from live.client.waiting_processes import until

from penstock.campaign.journal import Row
from penstock.sim.evaluate.placements import JobSet
from penstock.studies.live import (
    emulated_site,
    forwarding,
    forwarding_predicted,
    forwarding_scenario,
    io_resources,
    testbed,
)
from penstock.studies.live.emulated_site import COUNTS, LINK, Application
from penstock.studies.live.forwarding_claims import (
    ALL,
    CURVE,
    DECISION,
    JOB,
    LEARNT,
    LINKS,
    MCKP,
    MIXED,
    RUN,
    STATIC,
    Runs,
    claims,
)

MOST_RUNS = 10
"""Runs of an application after which all numbers of I/O nodes have been tried."""
JOB_PROGRAM = Path(emulated_site.__file__).with_name("parallel_job.py")
NAMES = (
    *("no single best", "improves", "highest", "gains", "first job"),
    *("learnt", "decisions", "over static", "over all", "sums", "explained"),
)


def rows(
    *,
    learnt: float = 1.0,
    mckp: float = 4.0,
    static: float = 2.0,
    everybody: float = 2.0,
    given: str = "4 2",
    decided: tuple[float, float] = (4.0, 4.0),
    listed: str = "1, 3",
) -> list[Row]:
    """Return the rows of a run in which all is as it should be, unless a test says otherwise."""
    base: dict[str, Any] = {"workload": 0}
    true = {"wide": {1: 1.0, 2: 2.0, 4: 4.0}, "shared": {1: 1.0, 2: 0.5, 4: 0.5}}
    made: list[dict[str, Any]] = []
    for application, curve in true.items():
        for n, bandwidth in curve.items():
            point = {"application": application, "io_nodes": n, "true": bandwidth}
            made += [
                {"what": CURVE, **point},
                {"what": LEARNT, **point, "learnt": learnt * bandwidth, "run": 3},
            ]
    for queue, policy, live, simulated in (
        (MIXED, MCKP, mckp, 4.0),
        (MIXED, STATIC, static, 2.0),
        (LINKS, MCKP, mckp, 4.0),
        (LINKS, ALL, everybody, 2.0),
    ):
        counts = given if policy == MCKP else "1"
        job = {"what": JOB, "queue": queue, "policy": policy, "job": 0, "application": "wide"}
        job |= {"given": counts, "live": live, "simulated": simulated, "occupied": 1.0}
        job["explained"] = (
            f"It has had 2 I/O nodes ({listed}) for 3 s: where-known gave the number from its "
            "curve (1: 1 MB/s), greedy-non-clairvoyant chose which."
        )
        made.append(job)
    sums = {"live": decided[0], "simulated": decided[1]}
    made.append({"what": DECISION, "given": "[4]", "offline": "[4]", **sums})
    return [base | row for row in made]


def differing(some: list[Row]) -> list[str]:
    """Return the claims that do not hold."""
    verdicts = dict(zip(NAMES, claims(Runs(some)), strict=True))
    return [name for name, one in verdicts.items() if not one.holds]


def test_all_claims_hold_where_live_is_as_predicted() -> None:
    assert differing(rows()) == []


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({"learnt": 1.2}, ["learnt"]),
        ({"learnt": 0.8}, ["learnt"]),
        ({"learnt": 1.1}, []),
        ({"static": 4.1}, ["improves", "highest", "gains", "over static", "sums"]),
        ({"everybody": 4.1}, ["highest", "over all"]),
        ({"mckp": 3.3}, ["over static", "over all", "sums"]),
        ({"given": "4"}, ["first job"]),
        ({"given": "2 4"}, ["first job"]),
        ({"decided": (3.9, 4.0)}, ["decisions"]),
        ({"listed": "1"}, ["explained"]),
    ],
)
def test_a_claim_fails_where_the_runs_say_so(change: dict[str, Any], failing: list[str]) -> None:
    assert differing(rows(**change)) == failing


def test_a_point_that_was_never_learnt_is_told() -> None:
    some = [
        {**row, "learnt": None} if row["what"] == LEARNT and row["application"] == "shared" else row
        for row in rows()
    ]
    learnt = claims(Runs(some))[NAMES.index("learnt")]
    assert not learnt.holds
    assert "shared: not known after 3 runs" in learnt.ours


def test_the_run_from_which_on_a_curve_is_near() -> None:
    """wide is near after runs 1 and 3, not known after run 4, and near from run 5 on."""
    errors = [0.1, 0.2, 0.1, None, 0.1, 0.0]
    some: list[Row] = rows() + [
        {"workload": 0, "what": RUN, "application": "wide", "run": k + 1, "off": error}
        for k, error in enumerate(errors)
    ]
    assert "wide: from run 5 on, at most 0% off" in claims(Runs(some))[NAMES.index("learnt")].ours


def test_what_depends_on_the_clock_says_so() -> None:
    *by_clock, explained = [one.by_clock for one in claims(Runs(rows()))]
    assert all(by_clock)
    assert not explained
    by_clock = [one.by_clock for one in io_resources.claims(resources_rows())]
    assert by_clock == [True, True, True, False, True]


def test_links_decide_what_processes_gain() -> None:
    """p processes on n I/O nodes: the fullest link has ceil(p / n) of them."""
    curves = {
        p: [Application(name="a", nodes=1, processes=p).links[n] / LINK for n in COUNTS]
        for p in (1, 2, 3, 4)
    }
    assert curves == {1: [1, 1, 1], 2: [1, 2, 2], 3: [1, 1.5, 3], 4: [1, 2, 4]}


def test_the_simulated_queue_is_the_sum_that_mckp_maximises() -> None:
    """Two jobs that run together all the time: 2 and 1 links by MCKP, 1 and 2 by STATIC."""
    queue, volumes = (forwarding_scenario.WIDE, forwarding_scenario.SHARED), (8 * LINK, 4 * LINK)
    true = {
        "wide": dict(forwarding_scenario.WIDE.links),
        "shared": {1: LINK, 2: LINK / 2, 4: LINK / 2},
    }
    mckp, static = (
        forwarding_predicted.predicted(queue, volumes, policy, true, 0.5)
        for policy in (MCKP, STATIC)
    )
    assert mckp[0] > 1.9 * LINK, "two I/O nodes at least"
    assert mckp[1] == pytest.approx(LINK)
    assert static == pytest.approx([LINK, LINK / 2])


def test_with_all_io_nodes_for_everybody_a_job_leaves_what_it_cannot_use() -> None:
    """shared has half a link's bandwidth on four: an eighth of each, and wide has the rest.

    Where jobs occupy their I/O nodes (paper io-resources, Fig. 4), each has half of them.
    """
    queue, volumes = (forwarding_scenario.WIDE, forwarding_scenario.SHARED), (4 * LINK, 4 * LINK)
    true = {
        "wide": dict(forwarding_scenario.WIDE.links),
        "shared": {1: LINK, 2: LINK / 2, 4: LINK / 2},
    }
    spare, occupied = (
        forwarding_predicted.predicted(queue, volumes, ALL, true, 0.5, work_conserving=shared)
        for shared in (True, False)
    )
    assert spare == pytest.approx([3.5 * LINK, LINK / 2])
    assert occupied[0] == pytest.approx(2 * LINK)
    assert occupied[1] < 0.45 * LINK


def resources_rows(**changes: Any) -> list[Row]:
    """Return rows in which best-bandwidth is best; `changes` are to those of t-cpu."""
    made: list[Row] = []
    for policy in io_resources.ALLOCATORS:
        value = 1.0 if policy == "best-bandwidth" else 2.0
        row: dict[str, Any] = {"x": 0.6, "workload": 0, "policy": policy, "live": value}
        row |= {"simulated": value, "given": "[[0]]", "decided": "[[1]]"}
        row |= changes if policy == "t-cpu" else {}
        made += [row | {"placer": placer} for placer in io_resources.PLACERS]
    return made


def test_which_io_nodes_may_differ_and_how_many_may_not() -> None:
    *_, same, as_simulated = io_resources.claims(resources_rows())
    assert same.holds
    assert "the same I/O nodes in 0" in same.ours
    assert as_simulated.holds
    *_, same, as_simulated = io_resources.claims(resources_rows(given="[[0, 1]]", live=2.4))
    assert not same.holds
    assert not as_simulated.holds


@pytest.mark.parametrize("load", io_resources.LOADS)
def test_the_jobs_have_the_load_that_they_are_named_after(load: float) -> None:
    """I/O-load(pi_sys): the sum of the least I/O-Stress of each job, per I/O node (Equation 3)."""
    jobs = io_resources.jobs(load, 30.0)
    made = JobSet(jobs, io_resources.SITE)
    assert made.least_load == pytest.approx(load, rel=0.02)
    assert made.phases.tolist() == [io_resources.phases_of(job) for job in jobs]


def test_a_site_that_knows_nothing_tries_every_number_beside_another_job() -> None:
    """The fault: while any job ran of which nothing was known, no number was ever tried.

    How near the bandwidths are is the study's to say; a busy machine shows less.
    """
    plan = forwarding_scenario.PLANS["quick"]
    given: list[tuple[Any, Any]] = []
    with (
        emulated_site.emulated_site() as site,
        site.up(allocation=MCKP, nodes=forwarding_scenario.NODES),
    ):
        other = site.start(forwarding_scenario.OTHER, volume=2**21, phases=100, compute=4.0)
        curve: dict[str, Any] = {}
        while list(curve) != ["1", "2", "4"] and len(given) < MOST_RUNS:
            row = forwarding.learn(site, plan, forwarding_scenario.SHARED)
            given.append((row["io_nodes"], row["reason"]))
            known = site.curves().get("shared")
            curve = {} if known is None else known.curve
        testbed.end(other.process)
    assert list(curve) == ["1", "2", "4"], given
    assert given[0] == (1, "new")
    assert {(2, "explored"), (4, "explored")} <= set(given)


@pytest.mark.parametrize("shared", [False, True])
def test_the_job_writes_its_volume_in_phases_and_notes_when(tmp_path: Path, shared: bool) -> None:
    plan = {
        "name": "a",
        "folder": str(tmp_path),
        "results": str(tmp_path / "times"),
        "processes": 3,
        "shared": shared,
        "request": 4096,
        "volume": 3 * 2 * 4096,
        "phases": 2,
        "compute": 0.02,
        "waits": False,
    }
    (tmp_path / "plan").write_text(json.dumps(plan))
    subprocess.run(
        [sys.executable, "-P", str(JOB_PROGRAM), str(tmp_path / "plan")], check=True, timeout=HANG
    )
    noted = json.loads((tmp_path / "times").read_text())
    (first, end_of_first), (second, end) = noted["phases"]
    assert noted["start"] + 0.02 <= first <= end_of_first
    assert end_of_first + 0.02 <= second <= end
    files = ["a"] if shared else ["a.0", "a.1", "a.2"]
    sizes = [(tmp_path / name).stat().st_size for name in files]
    assert sizes == [2 * 3 * 2 * 4096 // len(files)] * len(files)


def test_a_job_that_is_ended_leaves_no_process(tmp_path: Path) -> None:
    """Its processes went on for minutes, and held the output of the command that ran the study."""
    plan = {
        "name": "a",
        "folder": str(tmp_path),
        "results": str(tmp_path / "times"),
        "processes": 2,
        "shared": False,
        "request": 4096,
        "volume": 8192,
        "phases": 2,
        "compute": 10 * HANG,
        "waits": False,
    }
    (tmp_path / "plan").write_text(json.dumps(plan))
    command = [sys.executable, "-P", str(JOB_PROGRAM), str(tmp_path / "plan")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as job:
        until((tmp_path / "a.1").exists, "it does not start")
        job.terminate()
        job.communicate(timeout=HANG)  # the pipe is closed once no process has it


def test_a_job_that_cannot_write_fails(tmp_path: Path) -> None:
    plan = {
        "name": "a",
        "folder": str(tmp_path / "missing"),
        "results": str(tmp_path / "times"),
        "processes": 2,
        "shared": False,
        "request": 4096,
        "volume": 8192,
        "phases": 1,
        "compute": 0.0,
        "waits": False,
    }
    (tmp_path / "plan").write_text(json.dumps(plan))
    ended = subprocess.run(
        [sys.executable, "-P", str(JOB_PROGRAM), str(tmp_path / "plan")],
        capture_output=True,
        timeout=HANG,
        check=False,
    )
    assert ended.returncode == 1
    assert b"No such file" in ended.stderr
    assert not (tmp_path / "times").exists()
