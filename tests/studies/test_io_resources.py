"""The io-resources study on few sets: its sets are the paper's, and its main claims hold."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from studies.claim_checks import assert_complete, find, number

from penstock.campaign.cells import Campaign, Cell, Results
from penstock.campaign.journal import Row
from penstock.model import Snapshot
from penstock.policies._support.local_search import METRICS
from penstock.policies.allocation.n_sys import NSys
from penstock.report.findings import Findings
from penstock.report.plots import draw
from penstock.sim.generators.io_resources import JOBS, SITE
from penstock.studies import io_resources
from penstock.studies.io_resources import comparisons, scenarios, search
from penstock.studies.io_resources.scenarios import (
    GENERATORS,
    LOADS,
    MCKP,
    OST_MEASURED,
    PLACERS,
    SCALES,
    SCENARIOS,
    pair,
)
from penstock.studies.table import Table

STUDY = io_resources.STUDY


def small() -> Campaign:
    return STUDY.campaign(size="quick", seed=0)


def test_every_claim_says_all(findings: Findings) -> None:
    assert_complete(findings, 35)


def test_findings_are_a_function_of_the_results(results: Results, findings: Findings) -> None:
    assert STUDY.findings(results) == findings


@pytest.mark.parametrize(
    "part",
    [
        "rho_io is its bare minimum",
        "MCKP is worse",
        "Fig. 6: greedy-clairvoyant balances",
        "at high load t-cpu has a lower Machine-IdleTime",
        "errs for some peak and neutral",
        "occupancy is correlated to its number",
        "static is not excellent for I/O nodes",
    ],
)
def test_what_holds_on_few_sets(findings: Findings, part: str) -> None:
    claim = find(findings, part)
    assert claim.holds, claim


def test_what_differs_says_why(findings: Findings) -> None:
    """b(n) > n b(1) is necessary for n_sys > 1, not sufficient: how much a job computes decides.

    1, 5, 15, 46 and 66 of the 189 curves have it at T_cpu / T_io(1) = 0.5, 1, 2, 5 and 90.
    """
    claim = find(findings, "with classes only, t-cpu")
    assert not claim.holds
    assert (
        "66 of the 189 curves have b(n) > n b(1), which is necessary, not sufficient" in claim.why
    )
    assert "1 / 5 / 15 / 46 / 66 of them at T_cpu / T_io(1) = 0.5 / 1 / 2 / 5 / 90" in claim.why
    assert "Of the curves of classes 0 have b(n) > n b(1)" in claim.why


def test_reasons_are_what_becomes_of_the_figure_without_what_is_blamed(findings: Findings) -> None:
    general = find(findings, "in general best-bandwidth").why
    assert re.search(r"without t-cpu it is lowest at this many loads: K = 40: \d+ / \d+", general)
    ranking = find(findings, "rank in Machine-IdleTime").why
    assert "the largest jobs have" in ranking or "Holds for all" in ranking


def test_static_favours_large_jobs_and_random_does_not(results: Results) -> None:
    table = Table(results.rows)
    large, whole, slowdown = (
        [
            table.values(comparisons.NODES, 0.1, pair(name), metric).mean()
            for name in ("static", "random")
        ]
        for metric in ("large_resources", "resources", "large_slowdown")
    )
    assert large[0] > 2 * whole[0] / JOBS
    assert large[1] < 2 * whole[1] / JOBS
    assert slowdown[0] < slowdown[1]


def test_jobs_with_several_resources_under_n_sys_are_few_at_high_load(results: Results) -> None:
    table = Table(results.rows)
    low, high = (table.values("io-nodes", x, pair("n-sys"), "several").mean() for x in (0.1, 1.0))
    assert high < 5 < low < 20


def test_what_cannot_fail_is_not_counted(findings: Findings) -> None:
    own = find(findings, "rho_io is its bare minimum")
    assert "by definition" in own.why
    assert own.apart == "by construction"


def test_what_rests_on_synthetic_curves_is_not_counted(findings: Findings) -> None:
    """Five generators of curves over targets, each a reading."""
    apart = [claim for claim in findings.claims if claim.apart == "synthetic curves"]
    assert {claim.claim for claim in apart} == {
        claim.claim for claim in findings.claims if "synthetic" in claim.claim
    }
    figure_13 = [claim for claim in apart if claim.claim.startswith("Fig. 13")]
    assert len(figure_13) == 4
    assert all(set(claim.readings) == set(GENERATORS) for claim in figure_13)


def test_measured_curves_over_targets_are_used_where_they_are_at_hand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, results: Results
) -> None:
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)
    assert not any(cell.scenario == OST_MEASURED for cell in small().cells)
    rows = ["configuration,targets,bandwidth"]
    rows += [f"c{k},{n},{100 * n / (1 + 0.2 * (n - 1))}" for k in range(3) for n in range(1, 9)]
    (tmp_path / "ost-curves.csv").write_text("\n".join(rows))
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path))
    cells = [cell for cell in small().cells if cell.scenario == OST_MEASURED]
    assert {cell.x for cell in cells} >= {0.1, 0.5, 1.0}
    measured = [row for cell in cells for row in scenarios.run_cell(cell, seed=0, budget=25)]
    both = STUDY.findings(replace(results, rows=[*results.rows, *measured]))
    claim = find(both, "Fig. 13: static's performance is excellent")
    assert (claim.apart, claim.readings) == ("", {})
    assert "figure-13-measured" in {figure.name for figure in both.figures}


def test_the_number_of_jobs_and_the_classes_are_read_in_all_ways(findings: Findings) -> None:
    general = find(findings, "in general best-bandwidth")
    assert list(general.readings) == ["K = 40", "K = 30", "K = 20"]
    large = find(findings, "when I/O-load is large")
    assert list(large.readings) == ["load 1, K = 40", "load 1, K = 30", "load 1, K = 20"]
    for part in ("with classes only, t-cpu", "t-cpu differs most"):
        assert list(find(findings, part).readings) == list(SCALES)
    machine = find(findings, "t-cpu is the best for the")
    assert list(machine.readings)[: len(SCALES)] == list(SCALES)


def test_words_without_a_figure_and_loads_without_a_bound_are_read_in_all_ways(
    findings: Findings,
) -> None:
    low = ["loads up to 0.3", "loads up to 0.2", "loads up to 0.5"]
    high = ["loads from 0.8", "loads from 0.9", "loads from 0.6"]
    limits = ["1%", "2%", "5%", "10%", "20%"]
    for part, readings in (
        ("at low load best-bandwidth and t-cpu", low),
        ("at low load the allocators rank", low),
        ("at high load t-cpu has a lower", high),
        ("static gets good machine utilization", high),
        ("grows linearly", limits),
        ("static is not excellent", limits),
        ("is similar", [f"{where}, {limit}" for where in high for limit in limits]),
    ):
        assert list(find(findings, part).readings) == readings, part
    placed = find(findings, "greedy-clairvoyant gains negligibly").readings
    assert list(placed)[:5] == [f"over all loads, {limit}" for limit in limits]


def test_claims_that_are_not_checked_have_a_reason(findings: Findings) -> None:
    assert all(one.claim and one.reason for one in findings.left_out)
    assert any("Lemma 1" in one.claim for one in findings.left_out)


def test_the_cost_of_a_search_is_in_its_figure(findings: Findings) -> None:
    """A time of the machine is no claim."""
    (cost,) = [figure for figure in findings.figures if figure.name == "search-cost"]
    assert f"at most {scenarios.BUDGET['quick']} simulations" in cost.caption
    assert re.search(r"took [\d.]+ s on one core", cost.caption)
    assert not [claim for claim in findings.claims if "second" in claim.claim]


def test_every_figure_can_be_drawn_and_says_what_it_is(findings: Findings) -> None:
    names = [figure.name for figure in findings.figures]
    assert len(set(names)) == len(names)
    assert {f"figure-{n}" for n in range(5, 14)} <= set(names)
    for figure in findings.figures:
        assert re.search("simulated|synthetic", figure.caption, re.IGNORECASE), figure.name
        assert len(draw(figure).axes) == len(figure.panels)
    (targets,) = [figure for figure in findings.figures if figure.name == "figure-13"]
    assert "synthetic" in targets.caption
    assert "synthetic" in targets.source


def test_sets_are_in_the_bin_of_their_load(results: Results) -> None:
    rows = [row for row in results.rows if row["policy"] == MCKP]
    assert {row["x"] for row in rows} == set(scenarios.NAMED)
    assert all(abs(number(row, "least_load") - number(row, "x")) <= 0.05 for row in rows)


def test_the_least_load_is_that_of_n_sys(results: Results) -> None:
    jobs = scenarios.draw(SCENARIOS["io-nodes"], 0.5, (7,))
    view = Snapshot.of(jobs, SITE)
    options = {name: NSys().options(job, SITE) for name, job in view.jobs.items()}
    load = sum(o.stress.min() for o in options.values()) / 20
    assert abs(load - 0.5) <= 0.05
    for row in results.rows:
        if row["policy"] == pair("n-sys") and row["scenario"] == "io-nodes":
            assert row["load"] == pytest.approx(row["least_load"])
        assert number(row, "load") >= number(row, "least_load") - 1e-9


def test_all_policies_of_a_cell_meet_the_same_set(results: Results) -> None:
    seen: dict[object, set[object]] = {}
    for row in results.rows:
        seen.setdefault((row["scenario"], row["x"], row["workload"]), set()).add(row["least_load"])
    assert all(len(drawn) == 1 for drawn in seen.values())
    # The search meets sets of the main scenario.
    assert seen["search", 0.5, 0] == seen["io-nodes", 0.5, 0] == seen["measured-counts", 0.5, 0]
    assert seen["ost", 0.5, 0] == seen["search-ost", 0.5, 0]


def test_by_its_own_simulations_the_search_is_best_set_by_set(results: Results) -> None:
    table = Table(results.rows)
    for metric in METRICS:
        after = table.grid("search", search.searched(metric), "after_20")
        assert ((after <= 1) if metric != "bandwidth" else (after >= 1)).all()
    assert len(search.pairs(table, "search")) == 6 * len(PLACERS) + 1


def test_a_trial_has_other_starts_than_the_search_s_own_simulations(results: Results) -> None:
    (row,) = Table(results.rows).rows("search", 0.5, pair("best-bandwidth"))
    judged = search.judged_pairs(Table(results.rows), 0.5)[pair("best-bandwidth")]
    values = {number(row, "mean_slowdown"), number(row, "trial_mean_slowdown"), judged[0]}
    assert len(values) == 3


def test_the_cut_off_is_where_the_lines_cross() -> None:
    """n-sys at 3, 2, 1 and best-bandwidth at 2 throughout cross at the second point."""
    rows: list[Row] = [
        {"scenario": "s", "x": x, "policy": pair(name), "mean_slowdown": value}
        for x, values in ((0.2, (3.0, 2.0)), (0.4, (2.5, 2.0)), (0.6, (1.0, 2.0)))
        for name, value in zip(("n-sys", "best-bandwidth"), values, strict=True)
    ]
    assert comparisons.Sweep(Table(rows), "s").cutoff() == pytest.approx(0.4 + 0.2 / 3)
    assert comparisons.Sweep(Table(rows[:4]), "s").cutoff() is None
    assert comparisons.Sweep(Table(rows[4:]), "s").cutoff() == 0.6


def test_another_seed_draws_other_sets() -> None:
    cell = Cell(scenario="twenty-jobs", x=0.5, workload=0)
    rows = [
        scenarios.run_cell(cell, seed=seed, budget=scenarios.BUDGET["quick"])[0]
        for seed in (0, 0, 1)
    ]
    assert rows[0] == rows[1]
    assert rows[0]["mean_slowdown"] != rows[2]["mean_slowdown"]


def test_the_paper_s_size() -> None:
    campaign = STUDY.campaign(size="full", seed=0)
    counts = dict.fromkeys(SCENARIOS, 0)
    for cell in campaign.cells:
        counts[cell.scenario] += cell.x == 0.5
    assert min(counts["io-nodes"], counts["ost"], counts["twenty-jobs"]) >= 100
    assert np.allclose(LOADS, np.arange(1, 11) / 10)
