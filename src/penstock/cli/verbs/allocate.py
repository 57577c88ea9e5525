"""penstock allocate: how many I/O nodes each job should get, and why."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from penstock.campaign.policy_file import policy_errors
from penstock.cli.common.options import PATH, SITE, Configuration
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.config import Loaded
from penstock.core import answers
from penstock.errors import InputError
from penstock.model import Job, JobId, Site, Snapshot
from penstock.model.curve import DIRECT
from penstock.model.load import Options
from penstock.policies.base import Allocator
from penstock.printable import display_name
from penstock.sim.formats.jobs_file import read_jobs

DEFAULT_ALLOCATION = "mckp"


@click.command()
@click.argument("file", type=PATH)
@Configuration(
    {"--policy": "allocation.policy", "--direct/--no-direct": "site.direct", **SITE},
    policies=("allocation",),
    defaults={"allocation.policy": DEFAULT_ALLOCATION},
    default_texts={"site.direct": "true if a job's curve has direct I/O"},
    options_of="allocation",
)
@json_option
def allocate(*, file: Path, loaded: Loaded, as_json: bool) -> None:
    """Divide the site's I/O nodes (or storage targets) among the jobs in FILE.

    \b
    Examples:
      penstock allocate jobs.json --io-nodes 12
      penstock allocate jobs.json --io-nodes 12 --policy static --nodes 384
      penstock allocate jobs.json --io-nodes 12 --no-direct --option shared=true

    \b
    FILE is JSON; a curve gives the bandwidth, in any unit, by number of I/O nodes (0: direct I/O):
      {"jobs": [{"id": "BT-C", "nodes": 32, "processes": 128,
                 "curve": {"0": 195.8, "1": 77.6, "2": 75.4, "4": 388.1, "8": 366.0},
                 "volume": 12600, "compute": 100}]}
      Some policies, such as n-sys and t-cpu, also need the volume (in the curve's unit) and the
      compute time (seconds). A workload file whose jobs have curves works too.
      For a job that was never measured, give its write; its curve is then predicted, in MB/s:
        {"id": "new", "nodes": 64, "machine": "titan", "write": {"cores": 16, "burst": "100 MB"}}

    Bandwidths are those of a job alone on its I/O nodes. Jobs may do direct I/O if their curves
    have it, unless --no-direct or site.direct of the configuration says otherwise. A policy may
    give more I/O nodes than there are (size and process do): jobs then share them, and bandwidth
    is null in --json, where 'exceeds' is true and 'reason' says why.
    """
    jobs = read_jobs(file, loaded.config.site.site())
    site = site_for(loaded, jobs)
    counts = allocation(loaded, allocator_of(loaded), jobs, site)
    given = sum(counts.values())
    exceeds = given > site.resources
    result = {
        "policy": loaded.config.allocation.policy,
        "file": display_name(file),
        "io_nodes": site.resources,
        "allocation": dict(counts),
        "bandwidth": None if exceeds else total(jobs, counts),
        "given": given,
        "exceeds": exceeds,
        "jobs": [explain(job, counts[job.id], site, alone=not exceeds) for job in jobs],
    }
    if exceeds:
        result["reason"] = (
            f"{given} I/O nodes are given, {site.resources} exist: jobs share them, and what each "
            "then gets depends on which ones, see 'penstock place' and 'penstock compare'"
        )
    emit_json(result) if as_json else _show(result)


def site_for(loaded: Loaded, jobs: list[Job]) -> Site:
    """Return the site; unless site.direct is set, direct I/O is allowed if a curve has it."""
    site = loaded.config.site.site()
    if "site.direct" in loaded.origins:
        return site
    return replace(site, direct=any(job.curve is not None and DIRECT in job.curve for job in jobs))


def allocator_of(loaded: Loaded) -> Allocator:
    """Return the allocation policy, made with its options."""
    allocator = loaded.config.allocation.allocator()
    if allocator is None:
        raise InputError("allocation.policy is 'own'; give the name of a policy")
    return allocator


def allocation(
    loaded: Loaded, allocator: Allocator, jobs: list[Job], site: Site
) -> Mapping[JobId, int]:
    """Return the count of every job."""
    with policy_errors(loaded.config.allocation.policy):
        return answers.allocate(allocator, Snapshot.of(jobs, site))


def total(jobs: list[Job], counts: Mapping[JobId, int]) -> float | None:
    """Return the sum of the bandwidths, or None where a job has no curve."""
    bandwidths = [job.curve.bandwidth(counts[job.id]) for job in jobs if job.curve is not None]
    return math.fsum(bandwidths) if len(bandwidths) == len(jobs) else None


def explain(job: Job, count: int, site: Site, *, alone: bool) -> dict[str, Any]:
    """Return how many I/O nodes a job gets, and how that compares with its best.

    Jobs that are not `alone` on their I/O nodes do not have the bandwidth of their curve.
    """
    row: dict[str, Any] = {"id": job.id, "nodes": job.nodes, "io_nodes": count}
    if job.curve is None:
        unknown = dict.fromkeys(("bandwidth", "bandwidth_alone", "best_io_nodes"))
        return row | unknown | {"why": "it has no curve"}
    counts = job.curve.choices(site.resources, direct=site.direct)
    best = Options.of(job.curve, counts, nodes=job.nodes, compute=0.0, volume=1.0).n_perf
    bandwidth, most = job.curve.bandwidth(count), job.curve.bandwidth(best)
    if count == best:
        why = "its best: direct I/O" if count == DIRECT else "its best"
    else:
        path = f"{best} I/O nodes" if best != DIRECT else "direct I/O"
        why = f"{100 * bandwidth / most:.0f}% of its best, {most:.6g} with {path}"
    return row | {
        "bandwidth": bandwidth if alone else None,
        "bandwidth_alone": bandwidth,
        "best_io_nodes": best,
        "why": why if alone else f"{why}, if it were alone on them",
    }


def _show(result: dict[str, Any]) -> None:
    rows = [
        (
            job["id"],
            f"{job['nodes']:,}",
            str(job["io_nodes"]) if job["io_nodes"] else "direct",
            "-" if job["bandwidth_alone"] is None else f"{job['bandwidth_alone']:,.6g}",
            job["why"],
        )
        for job in result["jobs"]
    ]
    emit_table(
        ("job", "nodes", "I/O nodes", "alone" if result["exceeds"] else "bandwidth", "why"),
        rows,
        title=f"{result['policy']}: {result['given']} of {result['io_nodes']} I/O nodes allocated",
        text={"why"},
    )
    if result["bandwidth"] is not None:
        echo(f"total bandwidth, with each job alone on its I/O nodes: {result['bandwidth']:,.6g}")
    if result["exceeds"]:
        echo(result["reason"])
