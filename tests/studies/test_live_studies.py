"""Real jobs do what their simulation says, and a study of them says so only if they do."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from limits import HANG

from penstock import registry
from penstock.campaign.cells import Campaign, Cell, Results, every, run
from penstock.campaign.journal import Row
from penstock.campaign.machine_load import MachineLoad
from penstock.core.ledger import knows
from penstock.report.tables import tally
from penstock.sim.engine import simulate
from penstock.sim.metrics import Metrics, measure
from penstock.studies import demo
from penstock.studies.io_sets.gains import METRICS, NAMES, STRETCH, UTILIZATION
from penstock.studies.live import io_sets, packs, testbed
from penstock.studies.live.testbed import TestbedError, measured
from penstock.studies.packs.scenarios import ORDERS
from penstock.studies.run_study import without_verdict
from penstock.studies.table import Table

JOB = Path(testbed.__file__).with_name("periodic_job.py")


def table(off: Sequence[float], *, unmanaged: float = 0.5, fail_opens: int = 0) -> Table:
    """Return a campaign whose managed runs are off their simulation by these parts."""
    rows: list[Row] = []
    for x, part in enumerate(off):
        for policy, value in (
            (io_sets.MANAGED, 1 + part),
            (io_sets.SIMULATED, 1.0),
            (io_sets.UNMANAGED, unmanaged),
            (io_sets.FAIR_SHARE, unmanaged),
        ):
            rows.append(
                {
                    "scenario": io_sets.SCENARIO,
                    "x": float(x),
                    "workload": 0,
                    "policy": policy,
                    UTILIZATION: value,
                    STRETCH: 1 / value,
                    "turns": 10,
                    "fail_opens": fail_opens,
                }
            )
    return Table(rows)


def held(table: Table) -> dict[str, str]:
    """Return the verdicts: the paper's bar and ours for both metrics, better, gain, gates."""
    names = (
        *("Utilization, paper", "Max Stretch, paper", "Utilization, ours", "Max Stretch, ours"),
        *("Utilization, better", "Max Stretch, better", "gain", "gates"),
    )
    claims = io_sets.claims(table)
    return {name: claim.verdict for name, claim in zip(names, claims, strict=True)}


def differing(table: Table) -> dict[str, str]:
    return {name: verdict for name, verdict in held(table).items() if verdict != "yes"}


def test_four_of_five_runs_must_be_near_by_the_papers_bar_and_by_ours() -> None:
    """3.5% of Utilization and 1.5% of Max Stretch are the paper's, 5% of both is ours."""
    near, far = 0.01, 0.2
    paper, ours = ([f"{NAMES[m]}, {bar}" for m in METRICS[:2]] for bar in ("paper", "ours"))

    def not_near(*off: float) -> list[str]:
        return [name for name in differing(table(off)) if name in paper + ours]

    assert not_near(*[near] * 8, far, far) == []
    assert not_near(*[near] * 7, far, far, far) == [*paper, *ours]
    assert not_near(*[0.03] * 10) == ["Max Stretch, paper"]
    assert not_near(*[0.04] * 10) == paper


def test_a_part_of_the_runs_is_not_judged_from_a_few_of_them() -> None:
    few = held(table([0.0] * 9))
    assert {few[f"{NAMES[m]}, {bar}"] for m in METRICS[:2] for bar in ("paper", "ours")} == {
        "not judged"
    }
    assert held(table([0.0] * 10))["Utilization, paper"] == "yes"


def test_whose_bar_is_said() -> None:
    by = [claim.by for claim in io_sets.claims(table([0.0]))]
    assert by[:4] == ["io-sets", "io-sets", "penstock", "penstock"]


def test_managed_must_be_better_than_unmanaged() -> None:
    worse = "Utilization, better", "Max Stretch, better", "gain"
    assert differing(table([0.0] * 10, unmanaged=1.1)) == dict.fromkeys(worse, "no")
    assert differing(table([0.0] * 10)) == {"gain": "no"}


def test_better_in_the_mean_alone_depends_on_the_reading() -> None:
    mixed = table([0.0] * 4 + [-0.3], unmanaged=0.8)
    verdicts = held(mixed)
    assert verdicts["Utilization, better"] == "1 of 2 readings"
    assert verdicts["Max Stretch, better"] == "1 of 2 readings"
    assert "n_H = 4 (0.700 : 0.800)" in io_sets.claims(mixed)[4].ours


@pytest.mark.parametrize(
    ("off", "verdict"),
    [((-0.12, 0.04), "yes"), ((-0.12, -0.1), "yes"), ((-0.12, 0.3), "no"), ((-0.19, 0.04), "no")],
)
def test_the_measured_gain_is_held_against_ten_to_thirty_per_cent(
    off: tuple[float, float], verdict: str
) -> None:
    """Over 0.8, 0.88 and 1.04 gain 10 and 30%; 0.9 gains 12.5%, 1.3 gains 62%, 0.81 gains 1%."""
    assert held(table(off, unmanaged=0.8))["gain"] == verdict


def test_a_gate_that_opened_by_itself_is_told() -> None:
    assert held(table([0.0] * 5, fail_opens=1))["gates"] == "no"


def test_a_busy_machine_gives_no_verdict_on_live_runs() -> None:
    """Phases are a hundredth of the paper's: a late wake-up looks like a slow file system."""
    busy = MachineLoad(busy=0.5, steal=0.0)
    claims = [*io_sets.claims(table([0.0] * 5)), *demo.findings(demo_results(managed=0.8)).claims]
    judged = [without_verdict(claim, busy) for claim in claims]
    assert {claim.verdict for claim in judged} == {"not judged"}
    assert "the machine was too busy to judge 2 claims by measured times" in tally(judged)


def test_time_divided_by_a_hundred_keeps_the_sets() -> None:
    """S_2 and S_3 of the paper are S_0 and S_1 of its hundredth: still two, a power apart."""
    policy = registry.sharing("set-10")
    assert {policy.group(job) for job in io_sets.workload(8).jobs()} == {0, 1}
    assert io_sets.workload(8).omega == pytest.approx(1.0)


@pytest.mark.parametrize("order", ORDERS)
def test_no_list_order_is_refused_by_a_live_controller(order: str) -> None:
    knows(registry.sharing(order).needs)


def packs_rows(*ratios: float) -> list[Row]:
    return [
        {
            "policy": "exclusive-fcfs",
            "what": f"application-{k}",
            "live": ratio,
            "simulated": 1.0,
            "low": 0.9,
            "high": 1.1,
            "fail_opens": 0,
        }
        for k, ratio in enumerate(ratios)
    ]


def test_differences_of_both_signs_do_not_cancel_out() -> None:
    """A geometric mean of 1.1 and 1 / 1.1 is one; the paper's figure is of how far off they are."""
    largest, mean, *_ = packs.claims(packs_rows(1.1, 1 / 1.1))
    assert largest.holds
    assert not mean.holds
    assert mean.ours.startswith("10.0%")
    assert not packs.claims(packs_rows(1.0, 1.2))[0].holds


def test_the_reason_of_the_largest_difference_is_that_of_its_figures() -> None:
    """The text once blamed a little jitter for 2.37 while it printed that jitter gives 1.25."""
    assert "live is inside" in packs.claims(packs_rows(1.0, 1.09))[0].why
    far = packs.claims(packs_rows(1.0, 1.3))[0]
    assert not far.holds
    assert "live is outside of what such a variation explains" in far.why


def test_the_order_between_applications_is_a_claim_of_its_own() -> None:
    rows = packs_rows(1.0, 1.0)
    rows[1] = {**rows[1], "simulated": 1.2, "live": 1.1}
    kept = packs.claims(rows)[2]
    assert (kept.holds, kept.ours) == (True, "1 of 1 pairs")
    rows[1] = {**rows[1], "live": 0.99}
    swapped = packs.claims(rows)[2]
    assert not swapped.holds
    assert "application-0 and application-1 (exclusive-fcfs)" in swapped.ours
    rows[1] = {**rows[1], "simulated": 1.01}
    assert packs.claims(rows)[2].ours == "0 of 0 pairs", "two that are alike have no order"


def test_all_that_is_measured_by_the_clock_says_so() -> None:
    assert [claim.by_clock for claim in packs.claims(packs_rows(1.0))] == [True] * 4


def test_the_applications_of_table_1_have_equal_work() -> None:
    assert packs.workload().work == pytest.approx([1050.0] * 5)
    assert packs.workload(part=0.1, time=100).work == pytest.approx([10.5] * 5)


def largest_spread(apart: float, jitter: float) -> float:
    """Return how far phases that vary move any stretch or makespan, of the default size."""
    jobs = packs.workload(part=packs.PARTS["fast"], apart=apart)
    spreads = [one for order in ORDERS for one in packs.spread(order, jobs, jitter=jitter).values()]
    return max(abs(end / one.simulated - 1) for one in spreads for end in (one.low, one.high))


def test_started_as_the_study_does_the_outcome_is_no_matter_of_luck() -> None:
    """What docs/papers/live-validation.md says of why jobs start 0.3 s apart."""
    assert largest_spread(packs.APART, 0.001) < 0.08
    assert largest_spread(packs.APART, packs.JITTER) < 0.08
    assert largest_spread(0.0, 0.001) == pytest.approx(0.385, abs=0.005)
    assert largest_spread(1.0, 0.001) > 0.2
    assert largest_spread(packs.APART, 0.01) > 0.2


def test_cells_that_run_alone_run_in_order_and_are_kept(tmp_path: Path) -> None:
    order: list[float] = []

    def work(cell: Cell) -> list[dict[str, Any]]:  # local, so that no other process could run it
        order.append(cell.x)
        if cell.x == 2:
            raise KeyboardInterrupt
        return [{"scenario": cell.scenario, "x": cell.x}]

    campaign = Campaign(
        study="test",
        version=1,
        size="fast",
        seed=0,
        cells=list(every("one", (0, 1, 2, 3), 1)),
        work=work,
        alone=True,
    )
    with pytest.raises(KeyboardInterrupt):
        run(campaign, tmp_path)
    assert order == [0, 1, 2]
    assert (tmp_path / "cells.jsonl").read_bytes().count(b"\n") == 3, "a header and two cells"


def test_the_job_writes_what_its_plan_says_and_notes_when(tmp_path: Path) -> None:
    """Outside of a deployment it is a plain program: phases last no longer than its writes."""
    plan = {
        "name": "a",
        "folder": str(tmp_path),
        "results": str(tmp_path / "times"),
        "threads": 2,
        "request": 4096,
        "release": 0.01,
        "phases": [[0.02, 3 * 4096 + 1], [0.01, 4096], [0.0, 4096]],
        "until": 60.0,
    }
    (tmp_path / "plan").write_text(json.dumps(plan))
    with subprocess.Popen(
        [sys.executable, "-P", str(JOB), str(tmp_path / "plan")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "ready\n"
        job.communicate(f"{time.monotonic()!r}\n", timeout=HANG)
    assert job.returncode == 0
    times = json.loads((tmp_path / "times").read_text())
    start, request, turn, end = (np.array(times[name]) for name in times)
    assert len(end) == 3
    assert start[0] == pytest.approx(0.01)
    assert (start[1:] == end[:-1]).all(), "an iteration begins where the last one ended"
    assert (request - start >= [0.02, 0.01, 0.0]).all()
    assert (request <= turn).all()
    assert (turn <= end).all()
    written = sum((tmp_path / f"a.{k}").stat().st_size for k in range(2))
    assert 3 * 4096 + 1 <= written <= 6 * 4096


def test_a_job_whose_testbed_is_gone_ends(tmp_path: Path) -> None:
    plan = {"name": "a", "folder": str(tmp_path), "threads": 1, "request": 4096}
    (tmp_path / "plan").write_text(json.dumps(plan))
    ended = subprocess.run(
        [sys.executable, "-P", str(JOB), str(tmp_path / "plan")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANG,
        check=False,
    )
    assert ended.returncode == 1


def test_a_job_that_fails_is_no_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(3)")
    monkeypatch.setattr(testbed, "_JOB", broken)
    with pytest.raises(TestbedError, match="ended before it began"):
        measured(packs.workload(part=0.01), policy="fair-share", mode="off", until=1.0)


TRIES = 3
"""Other work on the machine only ever makes a run worse; one that is near was not disturbed."""


def live_and_simulated(n_high: int, *, part: float, near: float) -> tuple[Metrics, Metrics]:
    """Return the metrics of a managed run (the first of a few that is near) and its simulation."""
    jobs, window = io_sets.workload(n_high, part=part), (13 * part, 63 * part)
    other = measure(simulate(jobs, registry.sharing("set-10"), marks=window), window)
    for _ in range(TRIES):
        live = io_sets.managed(jobs, window[1])
        assert live.fail_opens == 0
        assert live.direct_bytes == 0
        ours = measure(live.run, window)
        if abs(ours.utilization / other.utilization - 1) <= near:
            break
    return ours, other


@pytest.mark.rates
def test_managed_jobs_are_near_their_simulation_and_better_off_than_unmanaged_ones() -> None:
    """The quick form of `penstock reproduce live-io-sets`: a fifth of its time.

    So short a window cuts phases of the long jobs, which makes Max Stretch a matter of chance.
    """
    ours, other = live_and_simulated(12, part=0.2, near=io_sets.NEAR)
    assert ours.utilization == pytest.approx(other.utilization, rel=io_sets.NEAR)
    jobs, until = io_sets.workload(12, part=0.2), 63 * 0.2
    unmanaged = measured(jobs, policy="fair-share", mode="off", until=until)
    assert ours.utilization > 1.1 * measure(unmanaged.run, (13 * 0.2, until)).utilization


def demo_results(*, managed: float) -> Results:
    rows: list[dict[str, Any]] = []
    for label, value in ((demo.UNMANAGED, 0.5), (demo.MANAGED, managed)):
        base = {"scenario": label, "fail_opens": 0}
        figures = {"utilization": value, "max_stretch": 1 / value, "io_slowdown": 1 / value}
        rows += [base | {"what": what, **figures} for what in ("measured", "simulated")]
        for job in demo.workload().ids or ():
            rows.append(base | {"what": "job", "job": job, "io_slowdown": 1 / value})
            stretch = {"start": 0.0, "end": 1.0, "doing": "compute", "share": 0.0}
            rows.append(base | {"what": "stretch", "job": job, **stretch})
    campaign = demo.STUDY.campaign(size="fast", seed=0)
    return Results(campaign=campaign, rows=rows, seconds={})


def test_the_demo_shows_every_job_and_claims_what_was_measured() -> None:
    findings = demo.STUDY.findings(demo_results(managed=0.8))
    assert all(claim.holds for claim in findings.claims)
    shown = [row[0] for row in findings.table]
    assert all(any(job in line for line in shown) for job in demo.workload().ids or ())
    assert all("emulated" in figure.caption for figure in findings.figures)
    assert not any(claim.holds for claim in demo.STUDY.findings(demo_results(managed=0.4)).claims)


def test_what_the_demo_repeats_is_claimed_where_it_is_measured() -> None:
    repeated = demo.REPEATED[UTILIZATION]
    assert repeated.study == io_sets.STUDY.name
    assert repeated.claim in {claim.claim for claim in io_sets.claims(table([0.0]))}


def test_the_demo_has_jobs_of_two_sets_below_the_file_systems_limit() -> None:
    jobs = demo.workload()
    policy = registry.sharing("set-10")
    assert {policy.group(job) for job in jobs.jobs()} == {0, 1}
    assert 0.8 < jobs.omega < 1
    assert 8 <= len(jobs) <= 16


def test_the_demos_pairs_do_not_start_in_step() -> None:
    """Two jobs of one period that begin together collide in every iteration: the worst case."""
    jobs = demo.workload()
    phase = jobs.release / jobs.w_iter
    assert ((phase >= 0) & (phase < 1)).all()
    assert len(set(phase.tolist())) == len(jobs)
    assert np.array_equal(jobs.release, demo.workload().release)
    assert not np.array_equal(jobs.release, demo.workload(seed=1).release)
