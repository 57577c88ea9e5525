"""penstock compare: policies side by side."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import click
import msgspec

from penstock.campaign.policy_file import PolicyFile, policy_files
from penstock.cli.common import comparison_table, executor_options, workload_files
from penstock.cli.common.options import (
    METRICS,
    PATH,
    RESOURCES,
    Configuration,
    argument,
    option,
    typed,
)
from penstock.cli.common.output import emit_json, json_option, json_text
from penstock.cli.common.workload_files import Reader, as_live, knowledge
from penstock.config import Loaded
from penstock.config.campaign import LOCAL
from penstock.errors import InputError
from penstock.files import make_directory, replacing
from penstock.progress import progress
from penstock.sim.evaluate import policy_runs
from penstock.sim.evaluate.comparison import Comparison, journal

BASE = "fair-share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the verb."""

    files: Annotated[tuple[Path, ...], argument(nargs=-1, required=True, type=PATH)]
    policies: Annotated[
        str | None,
        option(
            "--policies",
            metavar="A,B,...",
            help="The sharing policies to compare; by default all that the files have data for.",
        ),
    ]
    out: Annotated[
        Path | None,
        option(
            "--out",
            metavar="DIR",
            type=PATH,
            help="Keep each simulation's metrics here, and continue from those already there.",
        ),
    ]
    jobs: Annotated[int | None, executor_options.jobs]
    io_ratio: Annotated[float | None, workload_files.io_ratio]
    w_iter: Annotated[str | None, workload_files.w_iter]


@click.command()
@typed(Options)
@Configuration(
    {"--on": "campaign.on", **METRICS, **RESOURCES}, policies=("allocation", "placement")
)
@json_option
def compare(*, options: Options, loaded: Loaded, as_json: bool) -> None:
    """Simulate each of the FILES under each policy, and print the metrics side by side.

    \b
    Examples:
      penstock compare jobs.json
      penstock compare monday.json tuesday.json --policies fair-share,set-10,greedy-yield
      penstock compare jobs.npz --knowledge learned --window '2 h:4 h' --json
      penstock compare days/*.json --out year --on slurm --set campaign.jobs=20

    With several files the table shows means over the files; --json has each file's results too. A
    star marks the best value of a column; the gain is in utilization, relative to fair-share.
    [sharing.options] of the configuration apply to the policy that [sharing] names. 'penstock
    simulate --help' describes the file formats.

    With --out, DIR gets cells.jsonl (one line per finished simulation), results.csv and
    comparison.json. After an interruption the same command continues where it stopped; files and
    policies can be added later. See docs/simulate/campaigns.md for clusters.
    """
    files, out = options.files, options.out
    policies = policy_runs.select(loaded, options.policies)
    if out is not None or loaded.config.campaign.on != LOCAL:
        for policy in (policy_files(policies) | _shared_files(loaded)).values():
            policy.check_alone()
    reader = Reader(loaded, files, options.io_ratio, options.w_iter)
    with executor_options.executor(loaded, options.jobs) as pool, ExitStack() as stack:
        if out is not None:
            make_directory(out)
        comparison = Comparison(
            task=_task(loaded, policy_files(policies), remote=pool.remote),
            pool=pool,
            settings=_settings(loaded, policies),
            read=reader.read,
            advance=stack.enter_context(progress("simulating", len(files) * len(policies))).advance,
            journal=None if out is None else stack.enter_context(journal(out)),
        )
        comparison.run(files, policies, keep_all=options.policies is not None)
    results = comparison.files
    for file in results:
        file["policies"] = policy_runs.rank(file["policies"], BASE)
    common = [name for name in policies if all(name in file["policies"] for file in results)]
    if not common:
        raise InputError("no policy can run on all files; choose with --policies")
    result = {
        "policies": policy_runs.rank({name: _mean(results, name) for name in common}, BASE),
        "files": results,
        "skipped": comparison.skipped,
    }
    if out is not None:
        _write(out, comparison.rows, result)
    emit_json(result) if as_json else _show(result)


def _task(loaded: Loaded, files: Mapping[str, PolicyFile], *, remote: bool) -> policy_runs.Task:
    """Return what the simulations have in common; remote workers get absolute paths of files."""
    config = loaded.config
    if remote:
        full = {name: file.name for name, file in _shared_files(loaded).items()}
        allocation, placement = (
            msgspec.structs.replace(section, policy=full.get(section.policy, section.policy))
            for section in (config.allocation, config.placement)
        )
        config = msgspec.structs.replace(config, allocation=allocation, placement=placement)
        files = {**files, **_shared_files(loaded)}
    return policy_runs.Task(
        site=config.site.site(),
        knowledge=knowledge(loaded),
        window=config.simulation.seconds(),
        as_live=as_live(loaded),
        arbiter=config.arbiter,
        options={config.sharing.policy: config.sharing.options},
        files=files if remote else {},
    )


def _shared_files(loaded: Loaded) -> dict[str, PolicyFile]:
    """Return the policy files that all simulations use."""
    return policy_files((loaded.config.allocation.policy, loaded.config.placement.policy))


def _settings(loaded: Loaded, policies: Iterable[str]) -> dict[str, Any]:
    """Return everything that metrics depend on besides jobs and policy."""
    config, shared = loaded.config, _shared_files(loaded)
    return {
        "site": config.site,
        "allocation": config.allocation,
        "placement": config.placement,
        "simulation": config.simulation,
        "live": config.live if config.simulation.as_live else None,
        "files": {**policy_files(policies), **shared},
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
    per_file = [result["policies"][policy] for result in results]
    metrics = policy_runs.HIGHER_IS_BETTER
    return {metric: fmean(figures[metric] for figures in per_file) for metric in metrics}


def _show(result: Mapping[str, Any]) -> None:
    policies, files = result["policies"], result["files"]
    comparison_table.show(policies, _title(files), policies)
    if BASE in policies:
        click.echo(f"* best; gain: in utilization, relative to {BASE}")
    for entry in result["skipped"]:
        click.echo(f"skipped {entry['policy']} on {entry['file']}: {entry['reason']}")


def _title(files: Sequence[Mapping[str, Any]]) -> str:
    jobs, iterations = (sum(file[key] for file in files) for key in ("jobs", "iterations"))
    name = files[0]["file"] if len(files) == 1 else f"means over {len(files)} files"
    windows = {figures["window"] for file in files for figures in file["policies"].values()}
    span = ""
    if len(windows) == 1:
        begin, end = windows.pop()
        span = f", {begin:g} to {end:g} s"
    return f"{name}: {jobs:,} jobs, {iterations:,} iterations{span}"
