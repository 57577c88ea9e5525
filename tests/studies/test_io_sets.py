"""The io-sets study on few workloads: the scenarios are the paper's, and its main claims hold."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from studies.claim_checks import assert_complete, assert_reasons, find, number

from penstock import registry
from penstock.campaign.cells import Campaign, Cell, Results, every
from penstock.report.findings import Findings, TextTable
from penstock.report.plots import draw
from penstock.sim.engine import simulate
from penstock.sim.workload import Workload
from penstock.studies import STUDIES, demo, io_sets, load, sharing_policies
from penstock.studies.io_sets import motivation, practice, scenarios
from penstock.studies.io_sets.gains import METRICS, PARTS, gain, without_a_part
from penstock.studies.io_sets.scenarios import SCENARIOS
from penstock.studies.study import published
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
        "SET-10's Utilization is better than FAIR-SHARE's",
        "EXCLUSIVE-FCFS has poor results",
        "exclusive access inside sets is essential",
        "the impact of I/O scheduling is decreased",
        "FAIR-SHARE and EXCLUSIVE-FCFS vary",
        "Learned w_iter",
        "sets S_0 to S_5",
    ],
)
def test_what_holds_on_few_workloads(findings: Findings, part: str) -> None:
    claim = find(findings, part)
    assert claim.holds, claim


def test_figure_2_has_the_weights_that_the_paper_prints(findings: Findings) -> None:
    """0.9 units of time for a phase of 0.01 are a share of 1/90, weights 89:1.

    At 100:1 a phase of small lasts as long as one of large, and the two fall into step.
    """
    share = 1 / (1 + motivation.PRINTED)
    assert share == pytest.approx(0.01 / 0.9)
    slows = find(findings, "slows small by roughly 28%")
    assert slows.ours == "32%"
    assert [name for name, held in slows.readings.items() if held] == ["20%"]
    assert find(findings, "slows large by less than 0.25%").ours == "0.22%"
    weights = {row[0]: row[1] for row in table_named(findings, "weights").rows}
    assert (weights["98:1"], weights["100:1"]) == ("32.3%", "99.0%")


def table_named(findings: Findings, name: str) -> TextTable:
    (one,) = [table for table in findings.tables if table.name == name]
    return one


def test_the_practical_gain_depends_on_noise_and_releases(findings: Findings) -> None:
    """Without noise fair sharing keeps jobs of one period in step; nobody measured that."""
    claim = find(findings, "in the practical scenarios")
    assert claim.depends
    assert len(claim.readings) == 2 * len(practice.NOISES)
    assert not any("at random" in name for name in claim.readings)
    assert next(iter(claim.readings)) == "b = 0 released together"
    assert claim.readings["b = 0 released together"] is False
    assert claim.readings["b = 0.3 released together"] is False
    assert claim.readings["b = 0.1 released together"]
    assert find(findings, "all start at once favour SET-10").holds


def test_practice_without_noise_is_figure_4(results: Results) -> None:
    table = Table(results.rows)
    gains = practice.gains(table, "practice-together", 0.0)
    for n_high, won in enumerate(gains.tolist()):
        ratio = table.ratio("figure-4", "utilization", "set-10", "fair-share", [n_high])
        assert won == pytest.approx(ratio.value - 1)


@pytest.mark.parametrize(
    ("part", "first", "readings"),
    [
        ("SET-10's Max Stretch is better than FAIR-SHARE's", "over all n_H", 2),
        ("maps the jobs to five sets", "in some workload", 3),
        ("is 0.98 at sd/mean = 0.05", "max stretch", 4),
        ("remains 0.98 at sd/mean = 1", "max stretch", 4),
    ],
)
def test_open_choices_are_read_as_printed_first(
    findings: Findings, part: str, first: str, readings: int
) -> None:
    claim = find(findings, part)
    assert next(iter(claim.readings)) == first
    assert claim.readings[first] is claim.holds
    assert len(claim.readings) == readings


def test_the_load_that_the_papers_figures_ask_for(findings: Findings, results: Results) -> None:
    """2.5% more, with 1 - U lower by a factor of 1.5: 0.930 and 0.953."""
    table = Table(results.rows)
    fair, ours = (
        table.grid("figure-6-omega-0.93", policy, "utilization").mean()
        for policy in ("fair-share", "set-10")
    )
    assert fair == pytest.approx(0.93, abs=0.004)
    assert ours == pytest.approx(0.953, abs=0.004)
    loads = table_named(findings, "loads").rows
    assert [row[0] for row in loads[1:-1]] == [
        "0.8 (printed)",
        *("0.866", "0.9", "0.93", "0.95", "1"),
    ]


def test_loads_have_the_same_jobs() -> None:
    """A change from load to load is the load's doing: w_iter and shares of I/O are the same."""
    cell = Cell(scenario="figure-6", x=20, workload=1)
    rows = [
        io_sets.run_cell(replace(cell, scenario=name), seed=0)[0]
        for name in ("figure-6", "figure-6-omega-0.93", "figure-6-omega-1")
    ]
    assert len({row["jobs_by_set"] for row in rows}) == 1
    bounds = [1 - number(row, "utilization_bound") for row in rows]
    assert bounds[1] / bounds[0] == pytest.approx(0.93 / 0.8, rel=0.01)
    assert bounds[2] / bounds[0] == pytest.approx(1.0 / 0.8, rel=0.01)


def test_other_means_over_jobs() -> None:
    """Both request at 1 s; a transfers for 1 s, b waits for it and transfers for 3 s."""
    workload = Workload(compute=[1.0, 1.0], io=[1.0, 3.0], offsets=[0, 1, 2], release=[0.0, 0.0])
    run = simulate(workload, registry.sharing("exclusive-fcfs"))
    means = scenarios.other_means(run, (0.0, 5.0))
    assert means == pytest.approx(
        {
            "mean_stretch": (2 / 2 + 5 / 4) / 2,
            "io_slowdown_sums": (1 + 4) / (1 + 3),
            "io_slowdown_median": (1 / 1 + 4 / 3) / 2,
            "io_slowdown_little": 1.0,
            "io_slowdown_others": 4 / 3,
        }
    )


def test_equal_ratios_change_nothing_else() -> None:
    """Same jobs, periods, releases and load: a change of a result is the ratios' doing."""
    seed = (0, 7)
    printed, equal = (SCENARIOS[n].draw(10, seed) for n in ("figure-6", scenarios.EQUAL_RATIOS))
    assert np.ptp(printed.alpha_io) > 0.01
    assert np.ptp(equal.alpha_io) < 1e-12
    assert equal.omega == pytest.approx(printed.omega)
    assert equal.w_iter == pytest.approx(printed.w_iter)
    assert np.array_equal(equal.release, printed.release)
    assert np.array_equal(equal.offsets, printed.offsets)


def test_why_the_gain_is_not_steady_is_computed(findings: Findings, results: Results) -> None:
    """Jobs with little I/O wait in set-10's queues: without them the gain is larger, steadier."""
    table = Table(results.rows)
    steady = find(findings, "gain in IO-slowdown is steady")
    size = find(findings, "IO-slowdown gain over FAIR-SHARE is 50%")
    equal = table.ratio(scenarios.EQUAL_RATIOS, "io_slowdown", "fair-share", "set-10")
    others = table.ratio("figure-6", "io_slowdown_others", "fair-share", "set-10")
    assert f"{equal - 1:+.0%}" in size.why
    assert f"{others - 1:+.0%}" in size.why
    off = [int(part) for part in re.findall(r"up to (\d+)% off its mean", steady.why)]
    (own,) = re.findall(r"up to (\d+)% off its mean", steady.ours)
    assert len(off) == 4
    without_little, with_equal_ratios, *_ = off
    assert max(without_little, with_equal_ratios) < int(own)
    little = [
        table.mean("figure-6", 0, policy, "io_slowdown_little").value
        for policy in ("set-10", "fair-share")
    ]
    assert little[0] > little[1]


def test_set_10_is_also_run_without_its_parts_where_it_is_worse(results: Results) -> None:
    """Where the worst job is says little: it is in the slowest set where set-10 gains, too."""
    table = Table(results.rows)
    for scenario in ("figure-6", "figure-6-n-15", "figure-9"):
        x = table.points(scenario)[-2]
        text = without_a_part(table, scenario, "max_stretch", x)
        for policy, name in {"set-10": "set-10", **PARTS}.items():
            won = gain(table, scenario, "max_stretch", [x], ours=policy)
            assert f"{name} {won:+.1%}" in text


def test_why_greedy_com_does_not_win_everywhere_is_computed(
    findings: Findings, results: Results
) -> None:
    table = Table(results.rows)
    claim = find(findings, "PlaFRIM's shares, told exactly")
    assert not claim.holds
    by_yield = gain(table, "rivals-plafrim", "io_slowdown", ours="fair-finish", other="greedy-com")
    assert f"fair-finish gains {by_yield:+.1%}" in claim.why


def test_no_reason_is_a_guess(findings: Findings) -> None:
    assert_reasons(findings)


def test_no_noise_is_a_point_of_figure_8(findings: Findings) -> None:
    claim = find(findings, "noise in the phases has no impact")
    assert not claim.holds
    assert list(claim.readings) == ["0.1%", "0.2%", "0.5%", "1%", "2%"]
    assert "at b = 0)" in claim.ours
    assert "convoys" in claim.why


def test_what_cannot_fail_or_was_fitted_is_not_counted(findings: Findings) -> None:
    """Shares of sets and the mean time in I/O are given to the generator; a load was searched."""
    apart = [(claim.apart, claim.claim[:15]) for claim in findings.claims if claim.apart]
    assert apart == [
        ("by construction", "VI-B1: applicat"),
        ("fitted", "Ours: at some e"),
        ("by construction", "VIII: shares of"),
        ("by construction", "VIII: most I/O-"),
    ]


def test_a_fitted_load_or_another_mean_is_no_reading(findings: Findings) -> None:
    """The paper prints omega = 0.8 and a geometric mean; others were chosen to have its gains."""
    for part in (
        "gain in Utilization over FAIR-SHARE is 2.5%",
        "gain in Max Stretch over FAIR-SHARE is 2.5%",
        "IO-slowdown gain over FAIR-SHARE is 50%",
    ):
        assert not find(findings, part).readings
    assert not any("omega" in name for claim in findings.claims for name in claim.readings)


def test_a_word_without_a_figure_is_judged_at_every_limit(findings: Findings) -> None:
    limits = ["1%", "2%", "5%", "10%", "20%"]
    for part in ("near optimal", "IO-slowdown is steady", "by roughly 28%"):
        assert list(find(findings, part).readings) == limits


def test_policies_that_are_need_lengths_are_compared_with_the_same_hedge(
    findings: Findings,
) -> None:
    """greedy-com, as published without a hedge, was once held against ours with one."""
    for name, policies in (
        ("equal-knowledge", scenarios.NEED_LENGTHS),
        ("equal-knowledge-divided", (*scenarios.NEED_LENGTHS, *scenarios.DIVIDING)),
    ):
        first = [row[0] for row in table_named(findings, name).rows[1:]]
        assert first == [
            *("set-10", "greedy-yield"),
            *(f"{policy}, hedge {hedge:g}" for policy in policies for hedge in (0, 0.2)),
        ]
    assert {label for label in sharing_policies.CONTENDERS if "hedge" in label} == {
        f"{policy}, hedge {hedge:g}" for policy in scenarios.NEED_LENGTHS for hedge in (0, 0.2)
    }


@pytest.mark.parametrize("name", ["greedy-com", "look-ahead-greedy-yield", "best-next-event"])
def test_a_policy_as_published_has_no_hedge(name: str) -> None:
    assert published(name).hedge == 0  # type: ignore[attr-defined]
    assert published(name, {"hedge": 0.2}).hedge == 0.2  # type: ignore[attr-defined]


def test_jobs_of_the_practical_scenario_start_a_second_apart() -> None:
    """The first and the last of sixteen, in the mean over many draws."""
    rng = np.random.default_rng(0)
    jobs = practice.sixteen_jobs(8)
    starts = [practice.varied(jobs, practice.SECOND, 0.0, rng).release for _ in range(400)]
    assert np.mean([np.ptp(start) for start in starts]) == pytest.approx(1.0, abs=0.03)


def test_what_is_not_checked_is_listed(findings: Findings) -> None:
    names = " ".join(one.claim for one in findings.left_out)
    for part in ("Fig. 3", "Fig. 5", "Fig. 11", "Fig. 12", "652 windows", "Web supplement"):
        assert part in names


def test_every_comparison_with_greedy_com_and_ours_says_the_knowledge(findings: Findings) -> None:
    rivals = ("greedy-com", "fair-finish", "hedged-finish")
    texts = [
        f"{claim.claim} {claim.why}"
        for claim in findings.claims
        if any(name in claim.claim for name in rivals)
    ]
    captions = [figure.caption for figure in findings.figures]
    captions += [table.caption for table in findings.tables]
    texts += [text for text in captions if any(name in text for name in rivals)]
    assert len(texts) >= 7
    assert all("told" in text for text in texts)


def test_fairness_is_swept_around_its_default(findings: Findings) -> None:
    rows = table_named(findings, "fairness").rows
    assert [row[0] for row in rows[1:]] == [f"{x:g}" for x in scenarios.FAIRNESS]
    default = registry.sharing("fair-finish").fairness  # type: ignore[attr-defined]
    assert scenarios.FAIRNESS[0] < default < scenarios.FAIRNESS[-1]
    assert default in scenarios.FAIRNESS


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
        "load": (0.8, 0.93),
        "wrong-w-iter": (0, 0.2),
        "rivals": (20,),
        "figure-4": (16,),
    }
    for name, points in needed.items():
        for size in ("full", "fast"):
            assert set(points) <= set(SCENARIOS[name].points(size)), (name, size)


def test_convoys_are_counted() -> None:
    """Two jobs of 10 and 10.4 s that queue for each other run in step; apart they do not."""

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
