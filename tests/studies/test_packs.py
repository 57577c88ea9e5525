"""The packs study on few workloads: the scenarios are the paper's, and its main claims hold."""

import re

import numpy as np
import pytest
from studies.claim_checks import assert_complete, find

from penstock.campaign.cells import Campaign, Cell, Results
from penstock.report.findings import Curves, Findings
from penstock.report.plots import draw
from penstock.report.style import look
from penstock.sim.generators.packs import ALPHAS, PARTITION
from penstock.studies import load, packs
from penstock.studies.packs import orders, scenarios
from penstock.studies.packs.scenarios import FIRST_FIT, S_1, SCENARIOS, by_load, geometric, relative
from penstock.studies.table import Table

STUDY = packs.STUDY


def small(seed: int = 0) -> Campaign:
    return STUDY.campaign(size="quick", seed=seed)


def test_every_claim_says_all(findings: Findings) -> None:
    assert_complete(findings, 35)


@pytest.mark.parametrize(
    "part",
    [
        "Table 1:",
        "steady state",
        "at up to 1.8",
        "applications 3 and 4",
        "longest-io and shortest-remaining have the worst",
        "lowest I/O ratio first beats FIFO",
        "shorter makespan than FIFO",
        "behave poorly in makespan",
        "Theorem 1",
        "significantly better than first-fit's",
        "mitigates the loss of makespan",
        "grows with the load",
        "what the makespan grows by is idle time too",
        "falls with the number of I/O nodes",
        "more, smaller packs",
        "does not depend on the number of I/O nodes",
        "beats first-fit in makespan and stretch at once",
    ],
)
def test_what_holds_on_few_workloads(findings: Findings, part: str) -> None:
    claim = find(findings, part)
    assert claim.holds, claim


def test_what_cannot_hold_says_why(findings: Findings) -> None:
    fifo = find(findings, "most effective")
    assert not fifo.holds
    assert "5 of the 7 others" in fifo.ours
    assert not find(findings, "estimates of a pack's length").holds


def test_the_stretches_of_table_1_are_exact(results: Results) -> None:
    """Starved under shortest-remaining: 1.83 and 1.08; the figures of 6.1.2 are 1.8 and one."""
    row = Table(results.rows).rows(orders.BATCHES_SCENARIO, 64, "shortest-remaining")[0]
    assert row["stretch_4"] == pytest.approx(1 + 5 / 6, abs=1e-3)
    assert row["stretch_1"] == pytest.approx(1 + 1 / 12, abs=1e-3)


def test_makespans_are_about_the_papers(results: Results) -> None:
    """Geometric means 1.09, 0.71 and 0.53; ours over 390 workloads 1.16, 0.67 and 0.47."""
    table = Table(results.rows)
    means = [relative(table, f"io-nodes-{r}", "makespan", S_1).value for r in (1, 3, 5)]
    assert means == pytest.approx([1.16, 0.67, 0.47], rel=0.1)


def test_every_figure_can_be_drawn_and_says_what_it_is(findings: Findings) -> None:
    names = [figure.name for figure in findings.figures]
    assert len(set(names)) == len(names)
    assert {f"figure-{n}" for n in (5, 7, 10, 12, 14, 15)} <= set(names)
    for figure in findings.figures:
        assert re.search("simulated|synthetic", figure.caption, re.IGNORECASE), figure.name
        assert len(draw(figure).axes) == len(figure.panels)


def test_one_overhead_has_one_verdict(findings: Findings) -> None:
    """Figure 10 and Figure 15 with one I/O node show the same runs."""
    assert find(findings, "10% above first-fit").holds == find(findings, "and 1 I/O node").holds
    choices = find(findings, "open choices")
    assert choices.holds == ("Outside" not in choices.why)


def test_no_two_curves_of_a_panel_look_alike(findings: Findings) -> None:
    """Variants of pack-partition were once drawn alike."""
    for figure in findings.figures:
        for panel in figure.panels:
            if isinstance(panel, Curves):
                looks = [look(series.label) for series in panel.series]
                assert len({one.colour for one in looks}) == len(looks), figure.name
                assert len({(one.line, one.marker) for one in looks}) == len(looks), figure.name


def test_all_numbers_of_io_nodes_meet_the_same_workloads(results: Results) -> None:
    table = Table(results.rows)
    drawn = [
        [table.values(f"io-nodes-{r}", x, FIRST_FIT, "alpha") for x in ALPHAS[::2]]
        for r in scenarios.IO_NODES
    ]
    assert all(np.array_equal(drawn[0], other) for other in drawn)


def test_the_scenarios_are_the_papers() -> None:
    """39 values of alpha_gen, ten workloads each at full size, 2048 nodes a partition."""
    study = load("packs")
    full = study.campaign(size="full", seed=0)
    assert sum(cell.scenario == "io-nodes-3" for cell in full.cells) == 390
    assert PARTITION == 2048
    assert len(scenarios.ORDERS) == 8
    of_workload = SCENARIOS["choices-1"].alpha_gen
    assert sorted(of_workload(0, k) for k in range(39)) == list(ALPHAS)
    assert {x for name, s in SCENARIOS.items() if name == "orders" for x in s.points} <= set(ALPHAS)


def test_bins_of_the_load() -> None:
    alpha = np.array([0.5, 0.6, 0.7, 1.5, 1.6, 9.5, 12.0, 13.0, 30.0])
    estimates = by_load(alpha, np.full(9, 2.0), geometric)
    assert list(estimates) == pytest.approx([0.6, 55 / 3])
    assert all(estimate.value == pytest.approx(2.0) for estimate in estimates.values())


def test_another_seed_draws_other_workloads() -> None:
    cell = Cell(scenario="io-nodes-1", x=4.0, workload=0)
    one, same, other = (packs.run_cell(cell, seed=s)[0] for s in (0, 0, 1))
    assert one == same
    assert one["alpha"] != other["alpha"]
