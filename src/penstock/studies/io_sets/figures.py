"""The figures of the study, as records for a report to draw."""

from collections.abc import Sequence

from penstock.report.findings import Curves, Dots, Figure, Reference, Series
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
from penstock.studies.table import Estimate, Table, curve

N_HIGH = "$n_H$, jobs with $w_{iter}$ around 10 s"
SIZES = {
    "figure-6": "N = 60, omega = 0.8",
    "figure-6-omega-0.2": "N = 60, omega = 0.2",
    "figure-6-omega-0.866": "N = 60, omega = 0.866",
    "figure-6-n-15": "N = 15, omega = 0.8",
}
BANDS = "Synthetic workloads; means over {} workloads a point, bands are 95% bootstrap intervals."


def figures(table: Table) -> list[Figure]:
    """Return the study's figures in the paper's order, ours last."""
    light, small = " at a light load, omega = 0.2", " with 15 jobs"
    return [
        _figure_4(table),
        _figure_6(table, "figure-6", ": the policies over the mix of jobs"),
        _figure_7(table, "figure-6", ": what the sets and the weights of set-10 are worth"),
        _figure_8(table),
        _figure_9(table),
        _figure_10(table),
        _figure_6(table, "figure-6-omega-0.2", light),
        _figure_7(table, "figure-6-omega-0.2", light),
        _figure_6(table, "figure-6-omega-0.866", " at the load of SimGrid's default network"),
        _figure_6(table, "figure-6-n-15", small),
        _figure_7(table, "figure-6-n-15", small),
        _load(table),
        _knowledge(table),
        _rivals(table, "rivals", 20, "all policies on the balanced workload"),
        _rivals(table, "rivals-plafrim", 0, "all policies on jobs in PlaFRIM's shares of sets"),
    ]


def _caption(table: Table, scenario: str, text: str) -> str:
    x = table.points(scenario)[0]
    return f"{text} {BANDS.format(len(table.rows(scenario, x, SET_10)))}"


def _means(table: Table, scenario: str, policy: str, metric: str, label: str = "") -> Series:
    by_point = {x: table.mean(scenario, x, policy, metric) for x in table.points(scenario)}
    return curve(label or policy, by_point)


def _ratios(
    table: Table, scenario: str, metric: str, over: str, under: str
) -> dict[float, Estimate]:
    return {x: table.ratio(scenario, metric, over, under, [x]) for x in table.points(scenario)}


def _panel(
    table: Table,
    scenario: str,
    metric: str,
    policies: Sequence[str],
    x: str,
    *,
    references: Sequence[Reference] = (),
    title: str = "",
) -> Curves:
    better = "higher" if metric == UTILIZATION else "lower"
    return Curves(
        title=title or NAMES[metric],
        x=x,
        y=f"{NAMES[metric]} ({better} is better)",
        series=[_means(table, scenario, policy, metric) for policy in policies],
        references=references,
    )


def _bound(table: Table, scenario: str) -> Reference:
    x = table.points(scenario)[0]
    bound = table.values(scenario, x, SET_10, "utilization_bound").mean()
    return Reference(y=float(bound), label="no contention")


def _figure_4(table: Table) -> Figure:
    scenario, x = "figure-4", "$n_H$, jobs with $w_{iter}$ = 64 s"
    return Figure(
        name=scenario,
        title="Figure 4: sixteen periodic jobs released together",
        caption="The simulated side of the paper's Figure 4: 16 jobs with alpha_io = 1/16, n_H of "
        "them with w_iter = 64 s, the others 640 s; window 1300 to 6300 s. Deterministic. "
        "fair-share is the ideal of the paper's measured baseline, in which jitter and caches "
        "take jobs out of step.",
        panels=[
            _panel(table, scenario, STRETCH, PAPER, x),
            _panel(table, scenario, UTILIZATION, PAPER, x, references=[_bound(table, scenario)]),
        ],
    )


def _figure_6(table: Table, scenario: str, title: str) -> Figure:
    relative = [
        curve(policy, _ratios(table, scenario, SLOWDOWN, policy, SET_10))
        for policy in (FAIR_SHARE, EXCLUSIVE)
    ]
    return Figure(
        name=scenario,
        title=f"Figure 6{title}",
        caption=_caption(
            table,
            scenario,
            f"The paper's Figure 6 ({SIZES[scenario]}): a third of the jobs has w_iter around "
            "100 s, n_H around 10 s, the others around 1000 s; b = 0.1.",
        ),
        panels=[
            _panel(
                table, scenario, UTILIZATION, PAPER, N_HIGH, references=[_bound(table, scenario)]
            ),
            _panel(table, scenario, STRETCH, PAPER, N_HIGH),
            Curves(
                title="Relative IO-slowdown",
                x=N_HIGH,
                y="IO-slowdown over set-10's",
                series=relative,
                references=[Reference(y=1.0, label="set-10")],
            ),
        ],
    )


def _figure_7(table: Table, scenario: str, title: str) -> Figure:
    policies = (SET_10, "set-fair-share", "share-priority", FAIR_SHARE)
    return Figure(
        name=scenario.replace("figure-6", "figure-7"),
        title=f"Figure 7{title}",
        caption=_caption(
            table,
            scenario,
            f"The paper's Figure 7 ({SIZES[scenario]}), with fair-share beside it: set-fair-share "
            "has set-10's sets but no weights, share-priority its weights but no sets.",
        ),
        panels=[
            _panel(table, scenario, metric, policies, N_HIGH)
            for metric in (STRETCH, UTILIZATION, SLOWDOWN)
        ],
    )


def _figure_8(table: Table) -> Figure:
    scenario, x = "figure-8", "$b$, noise of the phases"
    return Figure(
        name=scenario,
        title="Figure 8: noise in the length of phases",
        caption=_caption(
            table,
            scenario,
            "The paper's Figure 8: 20 jobs of each class, phases vary uniformly by up to b. At "
            "b = 0 jobs of a set that meet in its queue stay in step (right) and move at the pace "
            "of the slowest.",
        ),
        panels=[
            _panel(table, scenario, UTILIZATION, PAPER, x),
            _panel(
                table,
                scenario,
                UTILIZATION,
                (SET_10, FAIR_SHARE),
                x,
                title="Utilization, enlarged",
            ),
            Curves(
                title="Jobs in convoys",
                x=x,
                y="jobs in step with another of their set",
                series=[
                    _means(table, scenario, policy, "in_step") for policy in (SET_10, FAIR_SHARE)
                ],
            ),
        ],
    )


def _figure_9(table: Table) -> Figure:
    scenario, x = "figure-9", r"$\sigma/\mu$ of $w_{iter}$"
    periodic = _ratios(table, "figure-9-periodic", STRETCH, SET_10, FAIR_SHARE)
    return Figure(
        name=scenario,
        title="Figure 9: sets that are not well defined",
        caption=_caption(
            table,
            scenario,
            "The paper's Figure 9: 20 jobs of each class, w_iter ever more spread. Right: Max "
            "Stretch of set-10 over that of fair-share, which the paper gives as 0.98 throughout; "
            "also for strictly periodic jobs (b = 0).",
        ),
        panels=[
            _panel(table, scenario, UTILIZATION, PAPER, x),
            Curves(
                title="Relative Max Stretch",
                x=x,
                y="over fair-share's (lower is better)",
                series=[
                    curve(SET_10, _ratios(table, scenario, STRETCH, SET_10, FAIR_SHARE)),
                    curve("set-10, periodic", periodic),
                ],
                references=[
                    Reference(y=1.0, label="fair-share"),
                    Reference(y=0.98, label="the paper's 0.98"),
                ],
            ),
        ],
    )


def _figure_10(table: Table) -> Figure:
    scenario, x = "figure-10", r"$\mu$, mean $w_{iter}$ of the fourth profile (s)"
    lost = {
        policy: curve(
            policy,
            gains(table, scenario, UTILIZATION, ours="clairvoyant-sets", theirs=policy),
            scale=100,
        )
        for policy in PAPER
    }

    def panel(title: str, policies: Sequence[str]) -> Curves:
        return Curves(
            title=title,
            x=x,
            y="Utilization lost to the oracle (%)",
            series=[lost[policy] for policy in policies],
            references=[Reference(y=0.0, label="clairvoyant-sets")],
            log_x=True,
        )

    return Figure(
        name=scenario,
        title="Figure 10: a fourth profile that fits no set",
        caption=_caption(
            table,
            scenario,
            "The paper's Figure 10: 15 jobs of each of four classes; above zero is worse than the "
            "oracle that knows the classes.",
        ),
        panels=[
            panel("All policies", PAPER),
            panel("Enlarged", (SET_10, FAIR_SHARE)),
        ],
    )


def _gain_panels(
    table: Table, scenario: str, x: str, references: dict[str, list[Reference]]
) -> list[Curves]:
    return [
        Curves(
            title=f"Gain in {NAMES[metric]}",
            x=x,
            y="gain over fair-share (%)",
            series=[curve(SET_10, gains(table, scenario, metric), scale=100)],
            references=[Reference(y=0.0, label="fair-share"), *references[metric]],
        )
        for metric in METRICS
    ]


def _load(table: Table) -> Figure:
    paper = {UTILIZATION: 2.5, STRETCH: 2.5, SLOWDOWN: 50.0}
    references = {
        metric: [Reference(y=value, label=f"the paper's {value:g}%")]
        for metric, value in paper.items()
    }
    return Figure(
        name="load",
        title="Beyond the paper: set-10's gain grows with the load",
        caption=_caption(
            table,
            "load",
            "20 jobs of each class, b = 0.1. The paper reports its gains for omega = 0.8, which on "
            "a link of SimGrid's default network would be a load of 0.866.",
        ),
        panels=_gain_panels(table, "load", r"$\omega$, I/O stress", references),
    )


def _knowledge(table: Table) -> Figure:
    learned = {
        metric: gains(table, "learned-w-iter", metric, ours="set-10 learned")[0].value
        for metric in METRICS
    }
    references = {
        metric: [Reference(y=100 * learned[metric], label="learned w_iter")] for metric in METRICS
    }
    return Figure(
        name="knowledge",
        title="Beyond the paper: how well must w_iter be known?",
        caption=_caption(
            table,
            "wrong-w-iter",
            "20 jobs of each class. log10 of set-10's estimate of each w_iter is off by a normal "
            "error; dotted, the estimates that the live estimator learns while the jobs run.",
        ),
        panels=_gain_panels(
            table, "wrong-w-iter", "error of $w_{iter}$ (decades, standard deviation)", references
        ),
    )


def metric_dots(
    table: Table, scenario: str, x: float, metric: str, policies: Sequence[str]
) -> Dots:
    """Return a metric policy by policy."""
    estimates = [table.mean(scenario, x, policy, metric) for policy in policies]
    return Dots(
        title=NAMES[metric],
        labels=policies,
        value=[e.value for e in estimates],
        low=[e.low for e in estimates],
        high=[e.high for e in estimates],
        better="higher" if metric == UTILIZATION else "lower",
    )


def _rivals(table: Table, scenario: str, x: float, title: str) -> Figure:
    return Figure(
        name=scenario,
        title=f"Beyond the paper: {title}",
        caption=_caption(
            table,
            scenario,
            "60 jobs, omega = 0.8. greedy-com and fair-finish are told the length of each phase, "
            "greedy-yield and fair-finish every job's progress, and all three interrupt phases; "
            "the others need none of this. The best value of each metric is in bold.",
        ),
        panels=[metric_dots(table, scenario, x, metric, RIVALS) for metric in METRICS],
    )
