"""How fast sets of jobs are simulated on their placements, as ratios measured in one run.

    python benchmarks/io_resources.py            against unit-time-step loops, and the fast campaign
    python benchmarks/io_resources.py --quick    without the campaign, which takes minutes

The sets are those of the io-resources study, met by all of its pairs of allocator and placer but
mckp, whose interval is tens of times as long. The unit-time-step loops (benchmarks/unit_steps.py)
follow the rule of the paper's simulator. Contenders take turns set by set, and medians over sets of
processor time are compared, so that a noisy machine slows all of them alike.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import unit_steps

from penstock import registry, studies
from penstock.campaign.cells import run
from penstock.campaign.executors.local import available_cores
from penstock.model import Snapshot
from penstock.policies.allocation.search import Search
from penstock.sim.evaluate.placements import JobSet, Places
from penstock.sim.generators.io_resources import SITE
from penstock.studies.io_resources.scenarios import ALLOCATORS, PLACERS, SCENARIOS, draw

LOADS = (0.2, 0.5, 0.8, 1.0)
BAR, AGREE = 100.0, 0.03


def placements(jobs: JobSet, view: Snapshot) -> list[Places]:
    answers = []
    for name, options in ALLOCATORS.values():
        counts = registry.policy("allocation", name, options).allocate(view)
        for placer in PLACERS:
            answers.append(jobs.places(registry.policy("placement", placer).place(view, counts)))
    return answers


def timed(work: Callable[[], list[float]]) -> tuple[list[float], float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def against_unit_steps(sets: int) -> None:
    contenders: dict[str, Callable[[JobSet, list[Places]], list[float]]] = {
        "plain": lambda jobs, all_: [unit_steps.plain(jobs, places) for places in all_],
        "queued": lambda jobs, all_: [unit_steps.queued(jobs, places) for places in all_],
        "one by one": lambda jobs, all_: [jobs.simulate(p).mean_slowdown for p in all_],
        "together": lambda jobs, all_: [o.mean_slowdown for o in jobs.simulate_all(all_)],
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    ratios: dict[str, list[float]] = {name: [] for name in contenders}
    values: dict[str, list[float]] = {name: [] for name in contenders}
    for load in LOADS:
        for number in range(sets):
            drawn = draw(SCENARIOS["io-nodes"], load, (1, number))
            jobs, view = JobSet(drawn, SITE), Snapshot.of(drawn, SITE)
            all_ = placements(jobs, view)
            for name, contender in contenders.items():
                decision, taken = timed(partial(contender, jobs, all_))
                seconds[name].append(taken / len(all_))
                values[name] += decision
            for name in contenders:
                ratios[name].append(seconds[name][-1] / seconds["together"][-1])
    print(f"{len(values['plain'])} runs of 40 jobs, {len(LOADS) * sets} sets x {len(all_)} pairs:")
    exact = np.array(values["together"])
    for name in contenders:
        off = np.array(values[name]) / exact - 1
        agreement = f"Mean-I/O-SlowDown off by {off.mean():+.2%} on average, sd {off.std():.2%}"
        print(
            f"  {name:11} {1e3 * statistics.median(seconds[name]):8.2f} ms a run, "
            f"{statistics.median(ratios[name]):6.1f} x the engine's time; {agreement}"
        )
    ratio = statistics.median(ratios["plain"])
    gap = abs(float(np.mean(np.array(values["plain"]) / exact - 1)))
    print(f"  the paper's rule against the engine: {ratio:.0f} x {_verdict(ratio >= BAR, BAR)}")
    print(f"  means agree to {gap:.2%} {_verdict(gap <= AGREE, AGREE)}")


def _verdict(met: bool, bar: float) -> str:
    return f"(bar {bar:g}: {'met' if met else 'NOT MET'})"


def search() -> None:
    view = Snapshot.of(draw(SCENARIOS["io-nodes"], 0.5, (1, 0)), SITE)
    taken = [timed(lambda: [Search().find(view).verdict.mean_slowdown])[1] for _ in range(3)]
    print(f"A search of {Search().budget} simulations: {statistics.median(taken):.2f} s")


def whole_campaign() -> None:
    work = studies.load("io-resources").campaign(size="fast", seed=0)
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        results = run(work, Path(directory))
        elapsed = time.perf_counter() - start
    cores = available_cores()
    runs = len(results.rows)
    print(
        f"The fast campaign: {len(work.cells)} sets, {runs} placements and their searches, "
        f"{elapsed:.0f} s on {cores} cores ({sum(results.seconds.values()):.0f} s of work)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=2, help="sets at each of four loads (2)")
    parser.add_argument("--quick", action="store_true", help="leave the campaign out")
    options = parser.parse_args()
    against_unit_steps(options.sets)
    search()
    if not options.quick:
        whole_campaign()
    return 0


if __name__ == "__main__":
    sys.exit(main())
