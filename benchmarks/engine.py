"""How fast the engine is, as ratios measured in one run.

    python benchmarks/engine.py           the paper's scenario, other simulators, scaling, policies
    python benchmarks/engine.py --huge    and one million jobs of 50 iterations in one run

Contenders take turns round by round and medians are compared, so that a noisy machine slows all of
them alike. Each line ends with its bar and whether it is met; none of them is a test.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import simgrid_io_sets
import simpy_io_sets
from numpy.typing import NDArray

from penstock import registry
from penstock.model import Request, Site, View
from penstock.policies.base import Own, Sharing
from penstock.sim.engine import calls_python, simulate
from penstock.sim.generators.io_sets import io_sets, three_profiles
from penstock.sim.metrics import measure
from penstock.sim.run import Run
from penstock.sim.workload import Workload

WINDOW = (6000.0, 14000.0)
FAST = ("fair-share", "exclusive-fcfs", "set-10")
EVENTS_BAR, SIMGRID_BAR, SIMPY_BAR, SCALING_BAR, PYTHON_BAR = 8e6, 90.0, 40.0, 3.0, 30.0
MEMORY_BAR = 8 * 2**30


def verdict(value: float, bar: float, *, at_most: bool = False) -> str:
    met = value <= bar if at_most else value >= bar
    return f"(bar {'<=' if at_most else '>='} {bar:g}: {'met' if met else 'NOT MET'})"


def medians(contenders: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Run the contenders in turns and return the median of the seconds that each reports."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            seconds[name].append(run())
    return {name: statistics.median(values) for name, values in seconds.items()}


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def event_seconds(workload: Workload, policy: Sharing) -> float:
    return timed(partial(simulate, workload, policy)) / (2 * workload.iterations)


def simulate_and_measure(workload: Workload, policy: Sharing) -> None:
    measure(simulate(workload, policy))


def simpy_seconds(
    workload: Workload, group: NDArray[np.int64], weight: NDArray[np.float64]
) -> float:
    return simpy_io_sets.run(workload, group, weight)[2]


def simgrid_seconds(
    workload: Workload, group: NDArray[np.int64], weight: NDArray[np.float64], computing: str
) -> float:
    return simgrid_io_sets.run(workload, group, weight, computing=computing)[2]


def lowered(workload: Workload, policy: Sharing) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Groups (-1: own) and weights as the other simulators take them."""
    numbers: dict[object, int] = {}
    groups = [
        -1
        if policy.group(job) is Own.GROUP
        else numbers.setdefault(policy.group(job), len(numbers))
        for job in workload.jobs()
    ]
    return np.array(groups), np.array([policy.weight(job) for job in workload.jobs()])


def paper_scenario(seed: int) -> Workload:
    return io_sets(three_profiles(20, 20, 20), seed=seed)


def run_of(
    workload: Workload, answer: tuple[NDArray[np.float64], NDArray[np.float64], float]
) -> Run:
    """Another simulator's answer as a record, so that one code measures all."""
    request, end, _ = answer
    return Run(
        workload=workload,
        site=Site(),
        request=request,
        end=end,
        start=workload.release,
        phase_ends=2 * workload.iterations,
    )


def as_elsewhere(run: Run) -> Run:
    """Our record without what phases had moved when the window cut them, which others lack."""
    return replace(run, moved=None)


def in_plain_python(policy: Sharing) -> Sharing:
    """The policy with a `turn` that the engine has no twin of."""
    kind = type(policy)

    class Called(kind):  # type: ignore[misc, valid-type]
        def turn(self, request: Request, view: View) -> float:
            return float(super().turn(request, view))

    called: Sharing = Called()
    return called


def against_simulators(rounds: int) -> None:
    workload = paper_scenario(seed=1)
    events = 2 * workload.iterations
    print(
        f"The paper's scenario: 60 jobs, {events:,} phase ends, SimGrid {simgrid_io_sets.version()}"
    )
    for name in FAST:
        policy = registry.sharing(name)
        group, weight = lowered(workload, policy)
        seconds = medians(
            {
                "penstock": partial(timed, partial(simulate, workload, policy)),
                "simpy": partial(simpy_seconds, workload, group, weight),
                **{
                    computing: partial(simgrid_seconds, workload, group, weight, computing)
                    for computing in ("hosts", "delays")
                },
            },
            rounds,
        )
        ours = seconds["penstock"]
        print(f"  {name}")
        print(f"    {events / ours / 1e6:6.1f} M events/s {verdict(events / ours, EVENTS_BAR)}")
        hosts, delays, simpy = (seconds[k] / ours for k in ("hosts", "delays", "simpy"))
        print(f"    {hosts:6.0f} x SimGrid as in the paper, on hosts {verdict(hosts, SIMGRID_BAR)}")
        print(f"    {delays:6.0f} x SimGrid with plain delays, the fastest form we found")
        print(f"    {simpy:6.0f} x SimPy {verdict(simpy, SIMPY_BAR)}")
        if name != "fair-share":
            other = measure(run_of(workload, simgrid_io_sets.run(workload, group, weight)), WINDOW)
            mine = measure(as_elsewhere(simulate(workload, policy)), WINDOW)
            gap = max(
                abs(getattr(mine, m) / getattr(other, m) - 1)
                for m in ("utilization", "max_stretch", "io_slowdown")
            )
            print(
                f"    {gap:6.0e} largest relative difference of a metric to SimGrid's "
                f"{verdict(gap, 1e-6, at_most=True)}"
            )


def chaotic_fair_share(workloads: int) -> None:
    """Fair-share multiplies rounding errors, so that only means over workloads can be compared."""
    policy = registry.sharing("fair-share")
    values: dict[str, list[tuple[float, float, float]]] = {"penstock": [], "SimGrid": []}
    for seed in range(workloads):
        workload = paper_scenario(seed)
        group, weight = lowered(workload, policy)
        other = run_of(workload, simgrid_io_sets.run(workload, group, weight, computing="delays"))
        runs = {"penstock": as_elsewhere(simulate(workload, policy)), "SimGrid": other}
        for tool, run in runs.items():
            m = measure(run, WINDOW)
            values[tool].append((m.utilization, m.max_stretch, m.io_slowdown))
    ours, simgrid = (np.array(values[tool]) for tool in ("penstock", "SimGrid"))
    difference = ours - simgrid
    error = difference.std(axis=0, ddof=1) / np.sqrt(workloads)
    print(f"fair-share, means over {workloads} workloads (difference in standard errors):")
    rows = zip(
        ("utilization", "max stretch", "IO-slowdown"),
        ours.mean(0),
        simgrid.mean(0),
        difference.mean(0) / error,
        strict=True,
    )
    for metric, mine, other, errors in rows:
        print(f"  {metric:12} penstock {mine:.4f}, SimGrid {other:.4f} ({errors:+.1f})")


@dataclass(frozen=True)
class Scale:
    jobs: int
    horizon: float


def scaling(rounds: int) -> None:
    """The cost of an event at 100 times the jobs and the same load, about as many events."""
    small, large = Scale(60, 200_000.0), Scale(6000, 2_000.0)
    print("100 x the jobs at the same load (omega 0.8), cost of an event:")
    for name in sorted(registry.POLICIES["sharing"]):
        policy = registry.sharing(name)
        runs = {}
        for scale in (small, large):
            third = scale.jobs // 3
            workload = io_sets(three_profiles(third, third, third), seed=1, horizon=scale.horizon)
            runs[scale] = workload
        seconds = medians(
            {str(scale.jobs): partial(event_seconds, w, policy) for scale, w in runs.items()},
            rounds,
        )
        ratio = seconds[str(large.jobs)] / seconds[str(small.jobs)]
        note = verdict(ratio, SCALING_BAR, at_most=True)
        if policy.dynamic:
            note = "(turns change while jobs wait: every decision looks at all of them)"
        print(f"  {name:17} {ratio:5.2f} x {note}")


def plain_python(rounds: int) -> None:
    workload = paper_scenario(seed=1)
    print("A policy in plain Python against its built-in twin:")
    for name in sorted(registry.POLICIES["sharing"]):
        native, called = registry.sharing(name), in_plain_python(registry.sharing(name))
        if calls_python(native):
            continue
        seconds = medians(
            {
                "native": partial(timed, partial(simulate, workload, native)),
                "called": partial(timed, partial(simulate, workload, called)),
            },
            rounds,
        )
        ratio = seconds["called"] / seconds["native"]
        print(f"  {name:17} {ratio:5.1f} x slower {verdict(ratio, PYTHON_BAR, at_most=True)}")


def huge() -> None:
    """One million jobs of 50 iterations, drawn in place so that the arrays are all there is."""
    n, iterations = 1_000_000, 50
    rng = np.random.default_rng(1)
    w_iter = 10.0 ** rng.uniform(1, 3, n)
    alpha = rng.uniform(0, 1, n)
    alpha *= 0.8 / alpha.sum()
    workload = Workload(
        compute=np.repeat((1 - alpha) * w_iter, iterations),
        io=np.repeat(alpha * w_iter, iterations),
        offsets=np.arange(0, (n + 1) * iterations, iterations),
        release=rng.uniform(0, w_iter),
    )
    for name in FAST:
        policy = registry.sharing(name)
        seconds = timed(partial(simulate_and_measure, workload, policy))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        rate = 2 * workload.iterations / seconds / 1e6
        print(
            f"  {name:15} {seconds:6.1f} s, {rate:.1f} M events/s, peak {peak / 2**30:.2f} GiB "
            f"{verdict(peak / 2**30, MEMORY_BAR / 2**30, at_most=True)}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each comparison (7)")
    parser.add_argument("--workloads", type=int, default=40, help="for fair-share's means (40)")
    parser.add_argument("--huge", action="store_true", help="one million jobs of 50 iterations")
    options = parser.parse_args()
    against_simulators(options.rounds)
    chaotic_fair_share(options.workloads)
    scaling(options.rounds)
    plain_python(options.rounds)
    if options.huge:
        print("One million jobs of 50 iterations in one run:")
        huge()
    return 0


if __name__ == "__main__":
    sys.exit(main())
