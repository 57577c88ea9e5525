"""penstock place: which resources each job should get."""

from pathlib import Path
from typing import Any

import click

from penstock.campaign.policy_file import policy_errors
from penstock.cli.common import options
from penstock.cli.common.output import emit_json, emit_table
from penstock.cli.verbs import allocate as allocating
from penstock.core import arbiter
from penstock.model import Job, Site, Snapshot
from penstock.model.load import io_stress, io_time
from penstock.sim.formats.jobs_file import read_jobs


@click.command(short_help="Which I/O nodes each job should get.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    metavar="NAME",
    help="'penstock policies --kind placement' lists them, or ./file.py:Class.",
)
@click.option(
    "--allocation",
    metavar="NAME",
    help="How many each job gets, as 'penstock allocate --policy'; else mckp.",
)
@options.direct
@options.divided
@options.as_json
def place(
    *,
    file: Path,
    policy: str | None,
    allocation: str | None,
    direct: bool | None,
    told: options.Told,
    as_json: bool,
) -> None:
    """Say which I/O nodes (or storage targets) each of the jobs in FILE should use.

    \b
    Examples:
      penstock place jobs.json --io-nodes 12
      penstock place jobs.json --io-nodes 20 --allocation t-cpu --policy greedy-clairvoyant

    FILE is that of 'penstock allocate'. The load of an I/O node is the part of time that its jobs
    would keep it busy if none of them waited: the sum of their I/O ratios, for jobs with a curve,
    volume and compute time.
    """
    flags = {
        "placement.policy": policy,
        "allocation.policy": allocation,
        "site.direct": options.yes_no(direct),
    }
    loaded = told.load("placement", flags)
    jobs = read_jobs(file, loaded.config.site.site())
    site, allocator = allocating.site_for(loaded, jobs), allocating.allocator_of(loaded)
    counts = allocating.allocation(loaded, allocator, jobs, site)
    section = loaded.config.placement
    with policy_errors(section.policy, loaded.config.allocation.policy):
        placed = arbiter.place(section.placer(allocator), Snapshot.of(jobs, site), counts, {})
    places = {job.id: sorted(placed[job.id]) for job in jobs}
    result = {
        "policy": section.name(allocator),
        "allocation_policy": loaded.config.allocation.policy,
        "file": click.format_filename(file),
        "allocation": dict(counts),
        "placement": places,
        "io_nodes": _nodes(jobs, site, places),
    }
    emit_json(result) if as_json else _show(result)


def _nodes(jobs: list[Job], site: Site, places: dict[str, list[int]]) -> list[dict[str, Any]]:
    """Return who is on each I/O node, and its load."""
    on: list[list[Job]] = [[] for _ in range(site.resources)]
    for job in jobs:
        for r in places[job.id]:
            on[r].append(job)
    rows = []
    for r, mates in enumerate(on):
        ratios = [_ratio(job, len(places[job.id])) for job in mates]
        known = [ratio for ratio in ratios if ratio is not None]
        rows.append(
            {
                "io_node": r,
                "jobs": [job.id for job in mates],
                "load": sum(known) if len(known) == len(ratios) else None,
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
        ("I/O node", "jobs", "load", "who"),
        rows,
        title=f"{result['policy']} of {result['allocation_policy']}'s counts",
        text={"who"},
    )
    direct = [name for name, places in result["placement"].items() if not places]
    if direct:
        click.echo(f"direct: {', '.join(direct)}")
