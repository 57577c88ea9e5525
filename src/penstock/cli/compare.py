"""penstock compare: policies side by side."""

import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from penstock import registry
from penstock.arbiter import Arbiter
from penstock.cli import options
from penstock.cli.output import emit_json, emit_table, progress
from penstock.config import Loaded
from penstock.errors import InputError
from penstock.model import Site
from penstock.policies.base import Sharing
from penstock.sim import engine, metrics
from penstock.sim.knowledge import Knowledge
from penstock.sim.workload import Workload

BASE = "fair-share"
HIGHER_IS_BETTER: Mapping[str, bool] = {
    "utilization": True,
    "max_stretch": False,
    "io_slowdown": False,
    "min_yield": True,
    "efficiency": True,
    "makespan": False,
}
PROCESSES_PAY = 400_000
"""Iterations, over all simulations, from which processes of their own are worth their start."""

SHOWN: Mapping[str, str] = {
    "utilization": "utilization",
    "max_stretch": "max\nstretch",
    "io_slowdown": "IO\nslowdown",
    "efficiency": "efficiency",
    "makespan": "makespan",
}
"""The columns for people, which fit a terminal; the yield is the stretch upside down."""


@click.command(short_help="Policies side by side.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--policies", metavar="A,B,...", help="Which to compare; else all that the files can feed."
)
@options.simulated
@options.configured
@options.as_json
def compare(
    *,
    files: tuple[Path, ...],
    policies: str | None,
    knowledge: str | None,
    seed: str | None,
    window: str | None,
    allocation: str | None,
    placement: str | None,
    remap_delay: str | None,
    io_ratio: float | None,
    w_iter: str | None,
    config_file: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Simulate each of the FILES under each policy and show the metrics side by side.

    \b
    Examples:
      penstock compare jobs.json
      penstock compare monday.json tuesday.json --policies fair-share,set-10,greedy-yield
      penstock compare jobs.npz --knowledge learned --window '2 h:4 h' --json

    Several files give means over the files, and with --json each file's results too. The best value
    of a column has a star; the gain is in utilization, over fair-share. Options in
    [sharing.options] of the configuration count for the policy that it names. 'penstock simulate
    --help' tells the files' formats.
    """
    loaded = options.load(
        config_file,
        settings,
        {
            "simulation.knowledge": knowledge,
            "simulation.seed": seed,
            "simulation.window": window,
            "allocation.policy": allocation,
            "placement.policy": placement,
            "allocation.remap-delay": remap_delay,
        },
    )
    chosen = _choose(loaded, policies)
    reader = options.Reader(loaded, files, io_ratio, w_iter)
    task = _Task(
        site=loaded.config.site.site(),
        knowledge=options.knowledge(loaded),
        window=loaded.config.simulation.seconds(),
        arbiter=loaded.config.arbiter,
        options={loaded.config.sharing.policy: loaded.config.sharing.options},
    )
    results, skipped = _compare(files, reader, chosen, task, keep_all=policies is not None)
    common = [name for name in chosen if all(name in found["policies"] for found in results)]
    if not common:
        raise InputError("no policy can run on all files; choose with --policies")
    result = {
        "policies": _ranked({name: _mean(results, name) for name in common}),
        "files": results,
        "skipped": skipped,
    }
    emit_json(result) if as_json else _show(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """All that the simulations have in common."""

    site: Site
    knowledge: Knowledge
    window: tuple[float, float] | None
    arbiter: Callable[[], Arbiter | None]
    options: Mapping[str, Mapping[str, Any]]

    def measure(self, workload: Workload, policy: str) -> metrics.Metrics:
        # By name: a policy from a file cannot travel to another process, its name can.
        sharing = registry.sharing(policy, self.options.get(policy))
        arbiter = self.arbiter()
        with options.running(policy):
            run = engine.simulate(
                workload,
                sharing,
                site=self.site,
                knowledge=self.knowledge,
                arbitrate=None if arbiter is None else arbiter.handle,
            )
        return metrics.measure(run, self.window)


def _choose(loaded: Loaded, names: str | None) -> dict[str, Sharing]:
    """Return the policies to compare: those named, or all that need no options."""
    configured = loaded.config.sharing
    table = registry.table("sharing")
    wanted = sorted(table) if names is None else [name.strip() for name in names.split(",")]
    if names is not None and len(set(wanted)) < len(wanted):
        raise InputError(f"--policies {names!r} names a policy twice; name each once")
    chosen = {}
    for name in wanted:
        given = configured.options if name == configured.policy else {}
        defaults = registry.options(registry.load("sharing", name)).values()
        if names is None and not given and inspect.Parameter.empty in defaults:
            continue
        chosen[name] = registry.sharing(name, given)
    return chosen


def _compare(
    files: Sequence[Path],
    reader: options.Reader,
    chosen: Mapping[str, Sharing],
    task: _Task,
    *,
    keep_all: bool,
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return each file's metrics by policy, and which policies were left out and why."""
    results, skipped = [], []
    # A file at a time, so that only one is in memory; its policies on all cores.
    with progress("simulating", len(files) * len(chosen)) as shown:
        for file in files:
            workload = reader.read(file)
            name = click.format_filename(file)
            found: dict[str, Any] = {
                "file": name,
                "jobs": len(workload),
                "iterations": workload.iterations,
                "omega": workload.omega,
                "policies": {},
            }
            runnable = dict(chosen)
            if not keep_all:
                for policy, reason in _unfed(workload, chosen).items():
                    skipped.append({"policy": policy, "file": name, "reason": reason})
                    del runnable[policy]
                    shown.advance()
            with options.about(file), _executor(workload, runnable, task) as executor:
                futures: dict[str, Future[metrics.Metrics]] = {}
                for policy in runnable:
                    futures[policy] = executor.submit(task.measure, workload, policy)
                    futures[policy].add_done_callback(lambda _: shown.advance())
                try:
                    for policy, future in futures.items():
                        found["policies"][policy] = _figures(future.result())
                except BaseException:
                    executor.shutdown(wait=False, cancel_futures=True)
                    raise
            found["policies"] = _ranked(found["policies"])
            results.append(found)
    return results, skipped


def _unfed(workload: Workload, chosen: Mapping[str, Sharing]) -> dict[str, str]:
    """Return the policies that want to know what this workload does not say."""
    hinted = workload.profile is not None or all("profile" in job.hints for job in workload.jobs())
    reason = "it needs the hint 'profile' of every job, which the file does not have"
    return {p: reason for p, sharing in chosen.items() if "profile" in sharing.needs and not hinted}


def _executor(workload: Workload, policies: Mapping[str, Sharing], task: _Task) -> Executor:
    """Return threads where the engine works without Python, and processes where it asks Python."""
    workers = max(1, min(len(os.sched_getaffinity(0)), len(policies)))
    asks = (
        task.knowledge.kind == "learned"
        or task.arbiter() is not None
        or any(p.order is None for p in policies.values())
    )
    if asks and workers > 1 and workload.iterations * len(policies) > PROCESSES_PAY:
        return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    return ThreadPoolExecutor(workers)


def _figures(measured: metrics.Metrics) -> dict[str, Any]:
    return {name: getattr(measured, name) for name in metrics.Metrics.__dataclass_fields__}


def _ranked(policies: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the policies by utilization, each with its gain over fair-share in every metric."""
    base = policies.get(BASE)
    for figures in policies.values():
        figures["gain"] = base and {k: _gain(k, figures[k], base[k]) for k in HIGHER_IS_BETTER}
    return dict(sorted(policies.items(), key=lambda item: -item[1]["utilization"]))


def _gain(metric: str, value: float, base: float) -> float:
    """Return by which part a value is better than the base: 0.1 is ten percent better."""
    if not base:
        return float("nan")
    return value / base - 1 if HIGHER_IS_BETTER[metric] else 1 - value / base


def _mean(results: Sequence[Mapping[str, Any]], policy: str) -> dict[str, Any]:
    found = [result["policies"][policy] for result in results]
    return {metric: fmean(figures[metric] for figures in found) for metric in HIGHER_IS_BETTER}


def _show(result: Mapping[str, Any]) -> None:
    policies, files = result["policies"], result["files"]
    best = {
        metric: (max if HIGHER_IS_BETTER[metric] else min)(f[metric] for f in policies.values())
        for metric in SHOWN
    }
    rows = []
    for name, figures in policies.items():
        cells = [
            _cell(figures[metric], star=len(policies) > 1 and figures[metric] == best[metric])
            for metric in SHOWN
        ]
        gain = figures["gain"] and f"{100 * figures['gain']['utilization']:+.2f}%"
        rows.append((name, cells[0], gain or "-", *cells[1:]))
    utilization, *others = SHOWN.values()
    emit_table(("policy", utilization, "gain", *others), rows, title=_title(files))
    if BASE in policies:
        click.echo(f"* best; gain: utilization over {BASE}'s")
    for entry in result["skipped"]:
        click.echo(f"left out {entry['policy']} on {entry['file']}: {entry['reason']}")


def _title(files: Sequence[Mapping[str, Any]]) -> str:
    jobs, iterations = (sum(file[key] for file in files) for key in ("jobs", "iterations"))
    name = files[0]["file"] if len(files) == 1 else f"means over {len(files)} files"
    windows = {figures["window"] for file in files for figures in file["policies"].values()}
    measured = ""
    if len(windows) == 1:
        begin, end = windows.pop()
        measured = f", {begin:g} to {end:g} s"
    return f"{name}: {jobs:,} jobs, {iterations:,} iterations{measured}"


def _cell(value: float, *, star: bool) -> str:
    if math.isnan(value):
        return "- "
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4f}"
    return f"{number}{'*' if star else ' '}"
