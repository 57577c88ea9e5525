"""Claims of Section VI-A2, Figure 10: what the machine loses; and Algorithm 1 as it is printed."""

from penstock.report.findings import Claim
from penstock.studies.claims import load as claims_of
from penstock.studies.io_resources.scenarios import ALLOCATORS, MCKP, pair
from penstock.studies.io_resources.terms import (
    BEST,
    HIGH,
    IDLE,
    LOW,
    N_SYS,
    NODES,
    SLOWDOWN,
    STATIC,
    T_CPU,
    change,
    changes,
    extent,
    over,
    percent,
    unsaturated,
)
from penstock.studies.table import Table

claim = claims_of("io-resources")


def claims(table: Table) -> list[Claim]:
    """Return the claims on Machine-IdleTime."""
    return [_low_load(table), _high_load(table), _similar(table), _static(table), _strict(table)]


def _low_load(table: Table) -> Claim:
    rivals = [*(pair(name) for name in ALLOCATORS if name not in (BEST, T_CPU)), MCKP]
    rivals.remove(pair("t-cpu, strict"))
    behind = {
        (name, rival): change(table, NODES, IDLE, pair(name), rival, loads=LOW)
        for name in (BEST, T_CPU)
        for rival in rivals
    }
    closest = max(behind, key=lambda key: behind[key].value)
    return claim(
        "fig-10-low-load-best",
        f"best-bandwidth {over(table, NODES, LOW, pair(BEST), IDLE):.3f}, t-cpu "
        f"{over(table, NODES, LOW, pair(T_CPU), IDLE):.3f}; closest to them {closest[1]} "
        f"({percent(behind[closest])})",
        all(estimate.high < 0 for estimate in behind.values()),
        low=LOW[0],
        low_2=LOW[-1],
    )


def _high_load(table: Table) -> Claim:
    gained = changes(table, NODES, IDLE, pair(T_CPU), pair(BEST), loads=HIGH)
    rivals = [pair(name) for name in ALLOCATORS if not name.startswith(T_CPU)]
    first = {rival: change(table, NODES, IDLE, pair(T_CPU), rival, loads=HIGH) for rival in rivals}
    return claim(
        "fig-10-high-load-t",
        f"{extent(gained)}; against the best of all others "
        f"{percent(max(first.values(), key=lambda e: e.value))}",
        all(estimate.high < 0 for estimate in gained.values()),
        high=HIGH[0],
        high_2=HIGH[-1],
    )


def _similar(table: Table) -> Claim:
    gap = change(table, NODES, SLOWDOWN, pair(T_CPU), pair(BEST), loads=HIGH)
    return claim(
        "fig-10-there-io-performance",
        f"Mean-I/O-SlowDown of t-cpu {percent(gap)} against best-bandwidth",
        abs(gap.value) < 0.1,
    )


def _static(table: Table) -> Claim:
    against = {
        name: change(table, NODES, IDLE, pair(STATIC), pair(name), loads=HIGH)
        for name in (BEST, N_SYS, T_CPU)
    }
    low = change(table, NODES, IDLE, pair(STATIC), pair(BEST), loads=LOW)
    return claim(
        "fig-10-static-gets-good",
        "Machine-IdleTime against "
        + ", ".join(f"{name} {percent(estimate)}" for name, estimate in against.items())
        + f"; at low load against best-bandwidth {percent(low)}",
        against[BEST].high < 0,
        high=HIGH[0],
        high_2=HIGH[-1],
    )


def _strict(table: Table) -> Claim:
    loads = unsaturated(table, NODES)
    strict = pair("t-cpu, strict")
    differences = {
        metric: changes(table, NODES, metric, strict, pair(T_CPU)) for metric in (SLOWDOWN, IDLE)
    }
    other = sum(
        row["resources"] != printed["resources"]
        for x in loads
        for row, printed in zip(
            table.rows(NODES, x, strict), table.rows(NODES, x, pair(T_CPU)), strict=True
        )
    )
    sets = sum(len(table.rows(NODES, x, strict)) for x in loads)
    whole = {
        metric: change(table, NODES, metric, strict, pair(T_CPU), loads=loads)
        for metric in (SLOWDOWN, IDLE)
    }
    return claim(
        "algorithm-1-strict-comparing-count-job",
        f"Mean-I/O-SlowDown {extent(differences[SLOWDOWN])}, "
        f"Machine-IdleTime {extent(differences[IDLE])}",
        all(estimate.low <= 0 for estimate in whole.values()),
        other=other,
        sets=sets,
    )
