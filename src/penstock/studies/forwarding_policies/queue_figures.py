"""The figures of the queues: jobs that come and go while I/O nodes are divided anew."""

from collections.abc import Sequence

from penstock.report.findings import Bars, Dots, Figure, Series
from penstock.studies.forwarding_policies import arbitration, queues, sets
from penstock.studies.table import Table

G5K = "Curves measured on Grid'5000 (Bez et al., IPDPS 2021)."
SIMULATED = (
    f"Simulated: {queues.COMPUTE_NODES} compute and {queues.IO_NODES} I/O nodes, strict FIFO, no "
    f"direct access, jobs that only do I/O. {G5K}"
)


def figures(table: Table) -> list[Figure]:
    """Return Figures 5.12 and 5.13, and what the thesis left open."""
    return [
        _queue(table, queues.THREE, "Figure 5.12: a queue of HACC, SIM and S3D"),
        _queue(table, queues.FOURTEEN, "Figure 5.13: a queue of 14 jobs"),
        _delays(table),
        _many(table),
    ]


def bars(
    label: str, y: Sequence[float], low: Sequence[float] = (), high: Sequence[float] = ()
) -> Series:
    """Return a series for bars, which stand by their labels."""
    return Series(label=label, x=range(len(y)), y=y, low=low, high=high)


def _queue(table: Table, queue: str, title: str) -> Figure:
    rows = {policy: table.rows(queue, queues.GEKKOFWD, policy) for policy in queues.OPTIONS}
    return Figure(
        name="figure-5.12" if queue == queues.THREE else "figure-5.13",
        title=title,
        caption=f"Bandwidth of each job in the order of the queue (a logarithmic scale), and "
        f"their sum. {SIMULATED} Remaps are heard after {queues.GEKKOFWD:g} s.",
        panels=[
            Bars(
                title="Jobs",
                x="",
                y="MB/s",
                labels=queues.names(queues.QUEUES[queue]),
                series=[
                    bars(policy, [float(row["bandwidth"] or 0) for row in jobs])
                    for policy, jobs in rows.items()
                ],
                log_y=True,
            ),
            _sums(table, queue, [queues.GEKKOFWD], "Sum", key=True),
        ],
    )


def _sums(
    table: Table, queue: str, delays: Sequence[float], title: str, *, key: bool = False
) -> Bars:
    return Bars(
        title=title,
        x="remap delay",
        y="aggregate bandwidth (GB/s)",
        labels=[f"{delay:g} s" for delay in delays],
        series=[
            bars(policy, [arbitration.total(table, queue, policy, delay) for delay in delays])
            for policy in queues.OPTIONS
        ],
        key=key,
    )


def _delays(table: Table) -> Figure:
    return Figure(
        name="remap-delay",
        title="Beyond the thesis: how soon a running job must hear of its new I/O nodes",
        caption=f"The sum of the jobs' bandwidths by remap delay. {SIMULATED}",
        panels=[
            _sums(table, queues.THREE, queues.DELAYS, "HACC, SIM and S3D"),
            _sums(table, queues.FOURTEEN, queues.DELAYS, "14 jobs", key=True),
        ],
    )


def _many(table: Table) -> Figure:
    def dots(scenario: str, title: str) -> Dots:
        static = table.values(scenario, queues.GEKKOFWD, "static", "bandwidth")
        policies = ("one", "size", "mckp")
        ratios = {
            p: table.values(scenario, queues.GEKKOFWD, p, "bandwidth") / static for p in policies
        }
        quantiles = {p: sets.spread(values) for p, values in ratios.items()}
        return Dots(
            title=title,
            labels=policies,
            value=[quantiles[p]["median"] for p in policies],
            low=[quantiles[p]["q05"] for p in policies],
            high=[quantiles[p]["q95"] for p in policies],
            better="higher",
            reference=1.0,
            form=".2f",
        )

    count = len(table.rows(queues.RANDOM, queues.GEKKOFWD, "mckp"))
    return Figure(
        name="queues",
        title="Beyond the thesis: other orders, other queues",
        caption=f"The sum of bandwidths over static's (dotted): medians and 90% of {count} random "
        f"orders of the three applications, and of {count} random queues of 14 jobs. {SIMULATED} "
        f"Remaps are heard after {queues.GEKKOFWD:g} s.",
        panels=[
            dots(queues.ORDERS, "Orders of HACC, SIM and S3D"),
            dots(queues.RANDOM, "Random queues of 14 jobs"),
        ],
    )
