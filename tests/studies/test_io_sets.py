"""The io-sets study on few workloads: the scenarios are the paper's, and its main claims hold."""

import re
from pathlib import Path

import numpy as np
import pytest
from studies.claim_checks import assert_complete, find

from penstock.campaign.cells import Campaign, Results, every
from penstock.report.findings import Findings
from penstock.report.plots import draw
from penstock.studies import STUDIES, demo, io_sets, load, sharing_policies
from penstock.studies.io_sets import scenarios
from penstock.studies.io_sets.gains import METRICS
from penstock.studies.io_sets.scenarios import SCENARIOS
from penstock.studies.table import Table

STUDY = io_sets.STUDY


def small(seed: int = 0) -> Campaign:
    return STUDY.campaign(size="quick", seed=seed)


def test_every_claim_says_all(findings: Findings) -> None:
    assert_complete(findings, 30)


def test_what_other_studies_repeat_in_small_is_claimed_here(findings: Findings) -> None:
    """A claim that names one which is not there would be counted twice."""
    rows = [
        {"scenario": "balanced", "x": 0, "workload": w, "policy": p, **dict.fromkeys(METRICS, 1.0)}
        for w in range(2)
        for p in ("set-10", "fair-share", "exclusive-fcfs")
    ]
    repeated = [claim.repeats for claim in sharing_policies.claims(Table(rows))]
    repeated += demo.REPEATED.values()
    here = [one.claim for one in repeated if one is not None and one.study == STUDY.name]
    assert len(here) == 4
    assert set(here) <= {claim.claim for claim in findings.claims}


def test_findings_are_a_function_of_the_results(results: Results, findings: Findings) -> None:
    assert STUDY.findings(results) == findings


@pytest.mark.parametrize(
    "part",
    [
        "two large jobs",
        "large and small: small takes two units",
        "SET-10's Max Stretch is 1",
        "1.33% of their time",
        "near optimal",
        "SET-10's Utilization is better than FAIR-SHARE's at every n_H",
        "EXCLUSIVE-FCFS has poor results",
        "exclusive access inside sets is essential",
        "the impact of I/O scheduling is decreased",
        "sets are as good as CLAIRVOYANT's",
        "FAIR-SHARE and EXCLUSIVE-FCFS vary",
        "Learned w_iter",
        "sets S_0 to S_5",
    ],
)
def test_what_holds_on_few_workloads(findings: Findings, part: str) -> None:
    claim = find(findings, part)
    assert claim.holds, claim


def test_what_cannot_hold_says_why(findings: Findings) -> None:
    claim = find(findings, "slows small by roughly 28%")
    assert not claim.holds
    assert "99%" in claim.ours
    assert "fall into step" in claim.why


def test_set_10_gains_about_what_it_should(results: Results) -> None:
    """A mean over ten seeds is +1.6% and +33%; SimGrid agrees on the means of both policies."""
    table = Table(results.rows)
    utilization = table.ratio("figure-6", "utilization", "set-10", "fair-share").value - 1
    slowdown = table.ratio("figure-6", "io_slowdown", "fair-share", "set-10").value - 1
    assert 0.012 < utilization < 0.022
    assert 0.2 < slowdown < 0.5


def test_every_figure_can_be_drawn_and_says_what_it_is(findings: Findings) -> None:
    names = [figure.name for figure in findings.figures]
    assert len(set(names)) == len(names)
    assert {f"figure-{n}" for n in (4, 6, 7, 8, 9, 10)} <= set(names)
    for figure in findings.figures:
        assert re.search("simulated|synthetic", figure.caption, re.IGNORECASE), figure.name
        assert len(draw(figure).axes) == len(figure.panels)


def test_all_policies_of_a_cell_meet_the_same_workload(results: Results) -> None:
    seen: dict[object, set[object]] = {}
    for row in results.rows:
        if "jobs_by_set" in row:
            cell = row["scenario"], row["x"], row["workload"]
            drawn = row["jobs_by_set"], row["utilization_bound"]
            seen.setdefault(cell, set()).add(drawn)
    assert seen
    assert all(len(drawn) == 1 for drawn in seen.values())


def test_paired_scenarios_draw_the_same_jobs_at_every_point(results: Results) -> None:
    table = Table(results.rows)
    noises = [
        [row["jobs_by_set"] for row in table.rows("figure-8", x, "set-10")]
        for x in table.points("figure-8")
    ]
    assert all(drawn == noises[0] for drawn in noises)
    assert np.array_equal(
        table.values("wrong-w-iter", 0, "fair-share", "utilization"),
        table.values("wrong-w-iter", 1, "fair-share", "utilization"),
    )


def test_the_scenarios_are_the_papers() -> None:
    four = SCENARIOS["figure-4"].draw(6, (0,))
    assert np.allclose(np.sort(four.w_iter), [64] * 6 + [640] * 10)
    assert np.allclose(four.alpha_io, 1 / 16)
    assert SCENARIOS["figure-4"].window == (1300, 6300)
    assert (four.release == 0).all()
    for name, jobs, omega in (
        ("figure-6", 60, 0.8),
        ("figure-6-omega-0.2", 60, 0.2),
        ("figure-6-n-15", 15, 0.8),
        ("figure-10", 60, 0.8),
    ):
        workload = SCENARIOS[name].draw(5, (0, 1))
        assert len(workload) == jobs
        assert workload.omega == pytest.approx(omega, rel=0.02)
    six, ten = (SCENARIOS[f"figure-{n}"].draw(x, (0,)).profile for n, x in ((6, 7), (10, 5)))
    assert six is not None
    assert ten is not None
    sizes = np.unique(six, return_counts=True)[1]
    assert sizes.tolist() == [7, 20, 33]
    profiles = np.unique(ten, return_counts=True)
    assert dict(zip(*(p.tolist() for p in profiles), strict=True)) == {
        5: 15,
        10: 15,
        100: 15,
        1000: 15,
    }
    assert list(SCENARIOS["figure-6"].full) == list(range(41))
    assert (SCENARIOS["figure-9"].full[0], SCENARIOS["figure-9"].full[-1]) == (0.05, 1.0)
    assert (SCENARIOS["figure-10"].full[0], SCENARIOS["figure-10"].full[-1]) == (5, 5000)


def test_the_points_of_the_claims_are_in_both_sizes() -> None:
    needed = {
        "figure-8": (0, 0.02, 0.1),
        "figure-9": (0.05, 1.0),
        "load": (0.866,),
        "wrong-w-iter": (0, 0.2),
        "rivals": (20,),
        "figure-4": (16,),
    }
    for name, points in needed.items():
        for size in ("full", "fast"):
            assert set(points) <= set(SCENARIOS[name].points(size)), (name, size)


def test_convoys_are_counted() -> None:
    """Two jobs of 10 and 10.4 s that queue for each other run in step; apart they do not."""
    from penstock import registry  # noqa: PLC0415
    from penstock.sim.engine import simulate  # noqa: PLC0415
    from penstock.sim.workload import Workload  # noqa: PLC0415

    def step(io: float) -> int:
        workload = Workload(
            compute=[10.0 - io] * 60 + [10.4 - io] * 60,
            io=[io] * 120,
            offsets=[0, 60, 120],
            release=[0.0, 0.0],
        )
        return scenarios._in_step(simulate(workload, registry.sharing("set-10")), (200, 500))

    assert step(3.0) == 2
    assert step(0.01) == 0


def test_studies_are_found_by_name() -> None:
    for name in STUDIES:
        study = load(name)
        assert study.name == name
        assert study.campaign(size="full", seed=1).cells


def test_another_seed_draws_other_workloads(tmp_path: Path) -> None:
    rows = [io_sets.run_cell(next(every("figure-6-n-15", (5,), 1)), seed=s)[0] for s in (0, 0, 1)]
    assert rows[0] == rows[1]
    assert rows[0]["utilization"] != rows[2]["utilization"]
