"""The figures of the queues: jobs that come and go while I/O nodes are divided again."""

from collections.abc import Sequence

from penstock.report.findings import Bars, Dots, Figure
from penstock.studies.captions import load as captions_of
from penstock.studies.forwarding_policies import arbitration, queues, sets
from penstock.studies.panels import bars, dots
from penstock.studies.table import Estimate, Table

figure = captions_of("forwarding-policies")

SIMULATED = (
    f"Simulated: {queues.COMPUTE_NODES} compute and {queues.IO_NODES} I/O nodes, strict FIFO, no "
    "direct access, jobs that only do I/O. Curves measured on Grid'5000 (Bez et al., IPDPS 2021)."
)


def figures(table: Table) -> list[Figure]:
    """Return Figures 5.12 and 5.13, and what the thesis left open."""
    return [
        _queue(table, queues.THREE, "figure-5.12", "Figure 5.12: a queue of HACC, SIM and S3D"),
        _queue(table, queues.FOURTEEN, "figure-5.13", "Figure 5.13: a queue of 14 jobs"),
        _delays(table),
        _many(table),
    ]


def _queue(table: Table, queue: str, name: str, title: str) -> Figure:
    rows = {policy: table.rows(queue, queues.GEKKOFWD, policy) for policy in queues.OPTIONS}
    heights = {
        policy: [float(row["bandwidth"] or 0) for row in jobs] for policy, jobs in rows.items()
    }
    panels = [
        bars("Jobs", queues.names(queues.QUEUES[queue]), heights, y="MB/s", log_y=True),
        _sums(table, queue, [queues.GEKKOFWD], "Sum", key=True),
    ]
    return figure(
        "queue", panels, name=name, title=title, simulated=SIMULATED, delay=queues.GEKKOFWD
    )


def _sums(
    table: Table, queue: str, delays: Sequence[float], title: str, *, key: bool = False
) -> Bars:
    heights = {
        policy: [arbitration.total(table, queue, policy, delay) for delay in delays]
        for policy in queues.OPTIONS
    }
    labels = [f"{delay:g} s" for delay in delays]
    y = "aggregate bandwidth (GB/s)"
    return bars(title, labels, heights, x="remap delay", y=y, key=key)


def _delays(table: Table) -> Figure:
    panels = [
        _sums(table, queues.THREE, queues.DELAYS, "HACC, SIM and S3D"),
        _sums(table, queues.FOURTEEN, queues.DELAYS, "14 jobs", key=True),
    ]
    return figure("remap-delay", panels, simulated=SIMULATED)


def _many(table: Table) -> Figure:
    def panel(scenario: str, title: str) -> Dots:
        def bandwidth(policy: str) -> Estimate:
            own, static = (
                table.values(scenario, queues.GEKKOFWD, p, "bandwidth") for p in (policy, "static")
            )
            spread = sets.spread(own / static)
            return Estimate(value=spread["median"], low=spread["q05"], high=spread["q95"])

        estimates = {policy: bandwidth(policy) for policy in ("one", "size", "mckp")}
        return dots(title, estimates, better="higher", reference=1.0, form=".2f")

    panels = [
        panel(queues.ORDERS, "Orders of HACC, SIM and S3D"),
        panel(queues.RANDOM, "Random queues of 14 jobs"),
    ]
    count = len(table.rows(queues.RANDOM, queues.GEKKOFWD, "mckp"))
    return figure("queues", panels, count=count, simulated=SIMULATED, delay=queues.GEKKOFWD)
