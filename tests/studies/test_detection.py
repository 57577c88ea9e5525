"""The study of detection: the thesis' claims on our observations, and a cell measured again."""

from dataclasses import replace

import pytest
from studies.claim_checks import assert_complete, find

from penstock.campaign.cells import Campaign, Cell, Results
from penstock.learn.detection import evaluation, model, samples
from penstock.live.measure import pattern_survey
from penstock.report.findings import Bars, Findings
from penstock.report.plots import draw
from penstock.studies import detection
from penstock.studies.detection import STUDY, claims, sizes, times

pytestmark = pytest.mark.slow


def small(seed: int = 0) -> Campaign:
    return STUDY.campaign(size="quick", seed=seed)


def test_every_claim_says_all(findings: Findings) -> None:
    assert_complete(findings, 17)


@pytest.mark.parametrize(
    "part",
    [
        "the number of file handles",
        "mean offset distance",
        "99.8% of the test set",
        "Table 3.2",
        "Fig. 3.5",
        "request sizes outside its training set",
        "Table 3.3",
        "Table 3.4",
        "Fig. 3.7",
        "equally accurate",
        "one client",
        "the shipped model recognises patterns of request sizes",
        "in data not used before",
    ],
)
def test_what_holds(findings: Findings, part: str) -> None:
    held = [claim for claim in findings.claims if part in claim.claim]
    assert held
    assert all(claim.holds for claim in held), held


def test_sizes_of_requests_belong_to_no_class_here(findings: Findings) -> None:
    """The one claim of the thesis that a balanced grid cannot show; its reason is told."""
    claim = find(findings, "smallest and the mean request size")
    assert not claim.holds
    assert "every class has the same runs" in claim.why
    assert "file-per-process 144 and 144, shared-contiguous 144 and 144" in claim.why
    assert "cut at stripes of 64 KiB +0.00 and +0.00" in claim.why
    assert "joined in pairs there, +0.37 and +0.37" in claim.why


def test_no_change_but_larger_requests_to_shared_files_makes_sizes_go_with_the_class() -> None:
    seen = samples.of_sizes(samples.shipped(), samples.TRAINED_ON)
    for change in sizes.EXCLUDED.values():
        assert max(sizes.coefficients(change(seen))) <= claims.RELATED
    assert min(sizes.coefficients(sizes.REMAINS(seen))) > claims.RELATED


def test_a_slow_run_has_more_intervals() -> None:
    """A run at a third of another's rate has three times as many observations."""
    first, *_ = samples.shipped()
    seen = replace(first.observation, seconds=1.0, reads=1, read_bytes=300, write_bytes=0)
    fast = replace(first, request=1, io_nodes=1, observation=seen)
    slow = replace(fast, request=2, observation=replace(seen, read_bytes=100))
    assert sizes.all_intervals([fast, slow]) == [fast, slow, slow, slow]


def test_the_forest_is_why_the_network_is_not_the_slowest(findings: Findings) -> None:
    why = find(findings, "7.2 times as long").why
    assert "in the thesis 0.99, as if its 500 trees took no longer than one" in why
    assert "Against the tree alone" in why


def test_what_the_definition_of_the_classes_gives_is_not_counted(findings: Findings) -> None:
    assert [c.claim for c in findings.claims if c.apart] == [
        "Fig. 3.2: the number of file handles is negatively correlated with the class"
    ]


def test_a_correlation_with_a_number_is_told_for_both_orders_of_the_classes(
    findings: Findings,
) -> None:
    assert len(find(findings, "mean offset distance").readings) == 2


def test_every_figure_says_what_was_emulated_and_can_be_drawn(findings: Findings) -> None:
    assert len(findings.figures) >= 4
    for figure in findings.figures:
        assert "emulated file system" in figure.caption
        assert figure.source == "measured"
        assert all(isinstance(panel, Bars) for panel in figure.panels)
        draw(figure)
    assert any("CART stands in for C5.0" in figure.caption for figure in findings.figures)


def test_times_are_measured_in_a_cell_and_a_busy_machine_gives_no_verdict_on_them(
    results: Results, findings: Findings
) -> None:
    """Cells record the load of the machine; what is timed while a report is made would not."""
    rows = [row for row in results.rows if row.get("part") == times.TIMES]
    assert {row["model"] for row in rows} == {"tree", "forest", "network", "shipped"}
    timed = {claim.claim for claim in findings.claims if claim.by_clock}
    assert len(timed) == 4
    assert all("Table 3.5" in claim or "50 us" in claim for claim in timed)


def test_the_thesis_is_quoted_as_printed() -> None:
    assert claims.LAYOUT[3] == (0.99818, 0.99728)
    assert claims.SPATIALITY[2] == (0.99827, 0.99614)
    assert claims.PREDICT["network"] / claims.PREDICT["tree"] == pytest.approx(7.2, abs=0.05)


def test_a_cell_of_the_full_size_is_measured_again() -> None:
    grid = pattern_survey.Grid(
        sizes=(32 * 1024,), processes=(4,), io_nodes=(1,), keep=5, seconds=0.9
    )
    cell = Cell(scenario="shared-strided-write-32K", x=4.0, workload=0)
    taken = [samples.sample(row) for row in detection.observe(cell, grid=grid, seed=1)]
    assert [one.pattern for one in taken] == ["shared-strided"] * 5
    assert evaluation.model_scores(model.shipped(), taken).right >= 4
    cells = {(c.scenario, c.x) for c in STUDY.campaign(size="full", seed=1).cells}
    assert (cell.scenario, cell.x) in cells
    assert len(cells) == 3 * 2 * 4 * 3 + 1
