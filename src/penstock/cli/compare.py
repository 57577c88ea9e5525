"""penstock compare: policies side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from penstock.cli import options, side_by_side
from penstock.cli.output import emit_json, progress
from penstock.errors import InputError
from penstock.policies.base import Sharing

BASE = "fair-share"


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
    chosen = side_by_side.choose(loaded, policies)
    reader = options.Reader(loaded, files, io_ratio, w_iter)
    task = side_by_side.Task(
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
        "policies": side_by_side.ranked({name: _mean(results, name) for name in common}, BASE),
        "files": results,
        "skipped": skipped,
    }
    emit_json(result) if as_json else _show(result)


def _compare(
    files: Sequence[Path],
    reader: options.Reader,
    chosen: Mapping[str, Sharing],
    task: side_by_side.Task,
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
            runnable = dict(chosen)
            if not keep_all:
                for policy, reason in side_by_side.unfed(workload, chosen).items():
                    skipped.append({"policy": policy, "file": name, "reason": reason})
                    del runnable[policy]
                    shown.advance()
            with options.about(file):
                outcomes = side_by_side.simulate(workload, runnable, task, shown)
            figures = {policy: outcome.figures() for policy, outcome in outcomes.items()}
            results.append(
                {
                    "file": name,
                    "jobs": len(workload),
                    "iterations": workload.iterations,
                    "omega": workload.omega,
                    "policies": side_by_side.ranked(figures, BASE),
                }
            )
    return results, skipped


def _mean(results: Sequence[Mapping[str, Any]], policy: str) -> dict[str, Any]:
    found = [result["policies"][policy] for result in results]
    metrics = side_by_side.HIGHER_IS_BETTER
    return {metric: fmean(figures[metric] for figures in found) for metric in metrics}


def _show(result: Mapping[str, Any]) -> None:
    policies, files = result["policies"], result["files"]
    side_by_side.show(policies, _title(files), policies)
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
