"""penstock compare: policies side by side."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import msgspec

from penstock.campaign.policy_file import PolicyFile, policy_files
from penstock.cli.common import comparison_table, executor_options, options
from penstock.cli.common.output import emit_json, json_text
from penstock.config import Loaded
from penstock.config.campaign import LOCAL
from penstock.errors import InputError
from penstock.files import make_directory, replacing
from penstock.progress import progress
from penstock.sim.evaluate import policy_runs
from penstock.sim.evaluate.comparison import Comparison, journal

BASE = "fair-share"


@click.command(short_help="Policies side by side.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--policies", metavar="A,B,...", help="Which to compare; else all that the files can feed."
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Keep each simulation's figures there, and go on from those that are there.",
)
@executor_options.cores
@executor_options.on
@options.simulated
@options.configured
@options.as_json
def compare(
    *,
    files: tuple[Path, ...],
    policies: str | None,
    out: Path | None,
    jobs: int | None,
    on: str | None,
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
      penstock compare days/*.json --out year --on slurm --set campaign.jobs=20

    Several files give means over the files, and with --json each file's results too. The best value
    of a column has a star; the gain is in utilization, over fair-share. Options in
    [sharing.options] of the configuration count for the policy that it names. 'penstock simulate
    --help' tells the files' formats. With --out, DIR gets cells.jsonl (each simulation as it
    finishes), results.csv and comparison.json; the same command goes on where it stopped, and more
    files or policies are added. docs/simulate/campaigns.md tells where the work can be done.
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
            "campaign.on": on,
        },
    )
    chosen = policy_runs.select(loaded, policies)
    if out is not None or loaded.config.campaign.on != LOCAL:
        for policy in (policy_files(chosen) | _shared_files(loaded)).values():
            policy.check_alone()
    reader = options.Reader(loaded, files, io_ratio, w_iter)
    with executor_options.opened(loaded, jobs) as place, ExitStack() as opened:
        if out is not None:
            make_directory(out)
        compared = Comparison(
            task=_task(loaded, policy_files(chosen), away=place.away),
            place=place,
            settings=_settings(loaded, chosen),
            read=reader.read,
            advance=opened.enter_context(progress("simulating", len(files) * len(chosen))).advance,
            journal=None if out is None else opened.enter_context(journal(out)),
        )
        compared.run(files, chosen, keep_all=policies is not None)
    results = compared.files
    for file in results:
        file["policies"] = policy_runs.rank(file["policies"], BASE)
    common = [name for name in chosen if all(name in found["policies"] for found in results)]
    if not common:
        raise InputError("no policy can run on all files; choose with --policies")
    result = {
        "policies": policy_runs.rank({name: _mean(results, name) for name in common}, BASE),
        "files": results,
        "skipped": compared.skipped,
    }
    if out is not None:
        _write(out, compared.rows, result)
    emit_json(result) if as_json else _show(result)


def _task(loaded: Loaded, files: Mapping[str, PolicyFile], *, away: bool) -> policy_runs.Task:
    """Return what the simulations have in common; workers elsewhere get full paths of files."""
    config = loaded.config
    if away:
        full = {name: file.name for name, file in _shared_files(loaded).items()}
        allocation, placement = (
            msgspec.structs.replace(section, policy=full.get(section.policy, section.policy))
            for section in (config.allocation, config.placement)
        )
        config = msgspec.structs.replace(config, allocation=allocation, placement=placement)
        files = {**files, **_shared_files(loaded)}
    return policy_runs.Task(
        site=config.site.site(),
        knowledge=options.knowledge(loaded),
        window=config.simulation.seconds(),
        arbiter=config.arbiter,
        options={config.sharing.policy: config.sharing.options},
        files=files if away else {},
    )


def _shared_files(loaded: Loaded) -> dict[str, PolicyFile]:
    """Return the files of policies that all simulations have."""
    return policy_files((loaded.config.allocation.policy, loaded.config.placement.policy))


def _settings(loaded: Loaded, chosen: Iterable[str]) -> dict[str, Any]:
    """Return all that figures depend on besides jobs and policy."""
    config, shared = loaded.config, _shared_files(loaded)
    return {
        "site": config.site,
        "allocation": config.allocation,
        "placement": config.placement,
        "simulation": config.simulation,
        "files": {**policy_files(chosen), **shared},
        "shared": list(shared),
    }


def _write(out: Path, rows: Sequence[Mapping[str, Any]], result: Mapping[str, Any]) -> None:
    from penstock.report.tables import rows_csv  # noqa: PLC0415 - it brings rich

    texts = {
        "results.csv": rows_csv(rows),
        "comparison.json": json_text(result),
    }
    for name, text in texts.items():
        with replacing(out / name) as partial:
            partial.write_text(text, encoding="utf-8")


def _mean(results: Sequence[Mapping[str, Any]], policy: str) -> dict[str, Any]:
    found = [result["policies"][policy] for result in results]
    metrics = policy_runs.HIGHER_IS_BETTER
    return {metric: fmean(figures[metric] for figures in found) for metric in metrics}


def _show(result: Mapping[str, Any]) -> None:
    policies, files = result["policies"], result["files"]
    comparison_table.show(policies, _title(files), policies)
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
