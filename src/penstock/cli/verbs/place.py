"""penstock place: which I/O nodes each job should use."""

from pathlib import Path
from typing import Any

import click

from penstock.campaign.policy_file import policy_errors
from penstock.cli.common.options import PATH, SITE, Configuration
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.cli.verbs import allocate as allocating
from penstock.config import Loaded
from penstock.core import answers
from penstock.model import Job, Site, Snapshot
from penstock.model.load import io_stress, io_time
from penstock.printable import display_name
from penstock.sim.formats.jobs_file import read_jobs


@click.command()
@click.argument("file", type=PATH)
@Configuration(
    {
        "--policy": "placement.policy",
        "--allocation": "allocation.policy",
        "--direct/--no-direct": "site.direct",
        **SITE,
    },
    policies=("allocation", "placement"),
    defaults={"allocation.policy": allocating.DEFAULT_ALLOCATION},
    default_texts={"site.direct": "true if a job's curve has direct I/O"},
    options_of="placement",
)
@json_option
def place(*, file: Path, loaded: Loaded, as_json: bool) -> None:
    """Choose which I/O nodes (or storage targets) each of the jobs in FILE should use.

    \b
    Examples:
      penstock place jobs.json --io-nodes 12
      penstock place jobs.json --io-nodes 20 --allocation t-cpu --policy greedy-clairvoyant

    FILE has the format of 'penstock allocate'. The load of an I/O node is the part of time that its
    jobs would keep it busy if none of them waited: the sum of their I/O ratios. It is shown if all
    its jobs have a curve, a volume and a compute time.
    """
    jobs = read_jobs(file, loaded.config.site.site())
    site, allocator = allocating.site_for(loaded, jobs), allocating.allocator_of(loaded)
    counts = allocating.allocation(loaded, allocator, jobs, site)
    section = loaded.config.placement
    with policy_errors(section.policy, loaded.config.allocation.policy):
        placed = answers.place(section.placer(allocator), Snapshot.of(jobs, site), counts, {})
    places = {job.id: sorted(placed[job.id]) for job in jobs}
    result = {
        "policy": section.name(allocator),
        "allocation_policy": loaded.config.allocation.policy,
        "file": display_name(file),
        "allocation": dict(counts),
        "given": sum(counts.values()),
        "exceeds": sum(counts.values()) > site.resources,
        "placement": places,
        "io_nodes": _nodes(jobs, site, places),
    }
    emit_json(result) if as_json else _show(result)


def _nodes(jobs: list[Job], site: Site, places: dict[str, list[int]]) -> list[dict[str, Any]]:
    """Return the jobs on each I/O node, and its load."""
    on: list[list[Job]] = [[] for _ in range(site.resources)]
    for job in jobs:
        for r in places[job.id]:
            on[r].append(job)
    rows = []
    for r, members in enumerate(on):
        ratios = [_ratio(job, len(places[job.id])) for job in members]
        numbers = [ratio for ratio in ratios if ratio is not None]
        rows.append(
            {
                "io_node": r,
                "jobs": [job.id for job in members],
                "load": sum(numbers) if len(numbers) == len(ratios) else None,
            }
        )
    return rows


def _ratio(job: Job, count: int) -> float | None:
    if job.curve is None or job.volume is None or job.compute is None:
        return None
    return float(io_stress(1, job.compute, io_time(job.volume, job.curve.bandwidth(count))))


def _show(result: dict[str, Any]) -> None:
    rows = [
        (
            str(node["io_node"]),
            str(len(node["jobs"])),
            "-" if node["load"] is None else f"{node['load']:.3f}",
            ", ".join(node["jobs"]),
        )
        for node in result["io_nodes"]
    ]
    emit_table(
        ("I/O node", "count", "load", "jobs"),
        rows,
        title=f"placement by {result['policy']}, counts by {result['allocation_policy']}",
        text={"jobs"},
    )
    if result["exceeds"]:
        echo(f"{result['given']} I/O nodes are given, {len(result['io_nodes'])} exist: jobs share")
    direct = [name for name, places in result["placement"].items() if not places]
    if direct:
        echo(f"direct: {', '.join(direct)}")
