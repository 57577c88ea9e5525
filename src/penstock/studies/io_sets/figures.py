"""The figures and tables of the study: the paper's Figures 4 and 6 to 10, and ours."""

from collections.abc import Iterator, Sequence

from penstock.report.findings import Curves, Dots, Figure, TextTable
from penstock.studies.io_sets import loads, motivation, practice, rivals
from penstock.studies.io_sets.gains import (
    EXCLUSIVE,
    FAIR_SHARE,
    METRICS,
    NAMES,
    SET_10,
    SLOWDOWN,
    STRETCH,
    UTILIZATION,
    gains,
)
from penstock.studies.io_sets.scenarios import PAPER, RIVALS
from penstock.studies.panels import NONE, Lines, curves, dots, means, ratios
from penstock.studies.table import Table, curve
from penstock.studies.texts import captions_of

figure = captions_of("io-sets")

N_HIGH = "$n_H$, jobs with $w_{iter}$ around 10 s"
SIZES = {
    "figure-6": "N = 60, omega = 0.8",
    "figure-6-omega-0.2": "N = 60, omega = 0.2",
    "figure-6-n-15": "N = 15, omega = 0.8",
}
ONE = {"set-10": 1.0}


def figures(table: Table) -> Iterator[Figure]:
    """Return the study's figures in the paper's order, ours last."""
    light, small = " at a light load, omega = 0.2", " with 15 jobs"
    yield _figure_4(table)
    yield _figure_6(table, "figure-6", ": the policies over the mix of jobs")
    yield _figure_7(table, "figure-6", ": the effect of the sets and the weights of set-10")
    yield from _robustness(table)
    yield _figure_6(table, "figure-6-omega-0.2", light)
    yield _figure_7(table, "figure-6-omega-0.2", light)
    yield _figure_6(table, "figure-6-n-15", small)
    yield _figure_7(table, "figure-6-n-15", small)
    yield from _ours(table)


def tables(table: Table) -> Iterator[TextTable]:
    """Return the sweeps over what the paper leaves open, and over an option of ours."""
    for key, rows in (
        ("weights", motivation.weight_rows(table)),
        ("practice", practice.table_rows(table)),
        ("loads", loads.table_rows(table)),
        *(
            (name, rivals.equal_knowledge_rows(table, name))
            for name in (rivals.EQUAL_KNOWLEDGE, rivals.DIVIDED)
        ),
        ("fairness", rivals.fairness_rows(table)),
    ):
        yield figure.table(key, rows)


def _bands(table: Table, scenario: str) -> str:
    count = len(table.rows(scenario, table.points(scenario)[0], SET_10))
    return (
        f"Synthetic workloads; means over {count} workloads per point, bands are 95% bootstrap "
        "intervals."
    )


def _panel(
    table: Table,
    scenario: str,
    metric: str,
    policies: Sequence[str],
    x: str,
    *,
    lines: Lines = NONE,
    title: str = "",
) -> Curves:
    better = "higher" if metric == UTILIZATION else "lower"
    series = [means(table, scenario, policy, metric) for policy in policies]
    y = f"{NAMES[metric]} ({better} is better)"
    return curves(title or NAMES[metric], x, y, series, lines=lines)


def _bound(table: Table, scenario: str) -> Lines:
    bound = table.values(scenario, table.points(scenario)[0], SET_10, "utilization_bound")
    return {"no contention": float(bound.mean())}


def _figure_4(table: Table) -> Figure:
    scenario, x = "figure-4", "$n_H$, jobs with $w_{iter}$ = 64 s"
    panels = [
        _panel(table, scenario, STRETCH, PAPER, x),
        _panel(table, scenario, UTILIZATION, PAPER, x, lines=_bound(table, scenario)),
    ]
    return figure(scenario, panels)


def _figure_6(table: Table, scenario: str, title: str) -> Figure:
    relative = [
        ratios(table, scenario, SLOWDOWN, policy, SET_10) for policy in (FAIR_SHARE, EXCLUSIVE)
    ]
    panels = [
        _panel(table, scenario, UTILIZATION, PAPER, N_HIGH, lines=_bound(table, scenario)),
        _panel(table, scenario, STRETCH, PAPER, N_HIGH),
        curves("Relative IO-slowdown", N_HIGH, "IO-slowdown over set-10's", relative, lines=ONE),
    ]
    sizes, bands = SIZES[scenario], _bands(table, scenario)
    return figure("figure-6", panels, name=scenario, title=title, sizes=sizes, bands=bands)


def _figure_7(table: Table, scenario: str, title: str) -> Figure:
    policies = (SET_10, "set-fair-share", "share-priority", FAIR_SHARE)
    metrics = (STRETCH, UTILIZATION, SLOWDOWN)
    panels = [_panel(table, scenario, metric, policies, N_HIGH) for metric in metrics]
    name, sizes = scenario.replace("figure-6", "figure-7"), SIZES[scenario]
    bands = _bands(table, scenario)
    return figure("figure-7", panels, name=name, title=title, sizes=sizes, bands=bands)


def _robustness(table: Table) -> Iterator[Figure]:
    """Yield Figures 8 to 10."""
    scenario, x, two = "figure-8", "$b$, noise of the phases", (SET_10, FAIR_SHARE)
    in_step = [means(table, scenario, policy, "in_step") for policy in two]
    panels = [
        _panel(table, scenario, UTILIZATION, PAPER, x),
        _panel(table, scenario, UTILIZATION, two, x, title="Utilization, enlarged"),
        curves("Jobs in convoys", x, "jobs in step with another of their set", in_step),
    ]
    yield figure(scenario, panels, bands=_bands(table, scenario))

    scenario, x = "figure-9", r"$\sigma/\mu$ of $w_{iter}$"
    relative = [
        ratios(table, name, STRETCH, SET_10, FAIR_SHARE, label=label)
        for name, label in ((scenario, SET_10), ("figure-9-periodic", "set-10, periodic"))
    ]
    lines, y = {"fair-share": 1.0, "the paper's 0.98": 0.98}, "over fair-share's (lower is better)"
    panels = [
        _panel(table, scenario, UTILIZATION, PAPER, x),
        curves("Relative Max Stretch", x, y, relative, lines=lines),
    ]
    yield figure(scenario, panels, bands=_bands(table, scenario))

    scenario, oracle = "figure-10", "clairvoyant-sets"
    x, y = r"$\mu$, mean $w_{iter}$ of the fourth profile (s)", "Utilization lost to the oracle (%)"
    panels = []
    for title, policies in (("All policies", PAPER), ("Enlarged", two)):
        lost = {p: gains(table, scenario, UTILIZATION, ours=oracle, other=p) for p in policies}
        series = [curve(policy, by_point, scale=100) for policy, by_point in lost.items()]
        panels.append(curves(title, x, y, series, lines={oracle: 0.0}, log_x=True))
    yield figure(scenario, panels, bands=_bands(table, scenario))


def _ours(table: Table) -> Iterator[Figure]:
    paper = {UTILIZATION: 2.5, STRETCH: 2.5, SLOWDOWN: 50.0}
    learned = {m: gains(table, "learned-w-iter", m, ours="set-10 learned")[0] for m in METRICS}
    omega, error = r"$\omega$, I/O stress", "error of $w_{iter}$ (decades, standard deviation)"
    for key, scenario, x, lines in (
        ("load", "load", omega, {m: {f"the paper's {v:g}%": v} for m, v in paper.items()}),
        (
            "knowledge",
            "wrong-w-iter",
            error,
            {m: {"learned w_iter": 100 * e.value} for m, e in learned.items()},
        ),
    ):
        panels = [
            curves(
                f"Gain in {NAMES[metric]}",
                x,
                "gain over fair-share (%)",
                [curve(SET_10, gains(table, scenario, metric), scale=100)],
                lines={"fair-share": 0.0, **lines[metric]},
            )
            for metric in METRICS
        ]
        yield figure(key, panels, bands=_bands(table, scenario))

    for scenario, at, title in (
        ("rivals", 20, "all policies on the balanced workload"),
        ("rivals-plafrim", 0, "all policies on jobs in PlaFRIM's shares of sets"),
    ):
        rivals = [metric_dots(table, scenario, at, metric, RIVALS) for metric in METRICS]
        yield figure("rivals", rivals, name=scenario, title=title, bands=_bands(table, scenario))


def metric_dots(
    table: Table, scenario: str, x: float, metric: str, policies: Sequence[str]
) -> Dots:
    """Return a metric policy by policy."""
    estimates = {policy: table.mean(scenario, x, policy, metric) for policy in policies}
    return dots(NAMES[metric], estimates, better="higher" if metric == UTILIZATION else "lower")
