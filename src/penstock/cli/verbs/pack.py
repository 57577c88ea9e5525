"""penstock pack: which jobs should run together, in which order, behind which I/O node."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from penstock.campaign.policy_file import policy_errors
from penstock.cli.common.options import PATH, SITE, Configuration
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.config import Loaded
from penstock.errors import InputError, error_prefix
from penstock.files import check_writable
from penstock.model import Job, JobId, Pack, Schedule, Site
from penstock.model.load import io_occupation, isolated_io
from penstock.policies._support.packs import partition_nodes
from penstock.printable import display_name
from penstock.sim import formats
from penstock.sim.evaluate import packed_workload, packs
from penstock.sim.formats.jobs_file import is_workload, read_jobs
from penstock.units import show_seconds


@click.command()
@click.argument("file", type=PATH)
@click.option(
    "--out",
    metavar="FILE",
    type=PATH,
    help="Write the packed jobs as a workload for 'penstock simulate' (.json or .npz).",
)
@Configuration({"--policy": "packing.policy", **SITE}, policies=("packing",), options_of="packing")
@json_option
def pack(*, file: Path, out: Path | None, loaded: Loaded, as_json: bool) -> None:
    """Split the jobs in FILE into packs: jobs that run together, one pack after the other.

    \b
    Examples:
      penstock pack jobs.json --io-nodes 2 --nodes 256
      penstock pack jobs.json --io-nodes 2 --nodes 256 --policy first-fit
      penstock pack jobs.json --io-nodes 2 --nodes 256 --option sensitivity=1.5
      penstock pack jobs.json --io-nodes 2 --nodes 256 --out packed.json
      penstock pack jobs.json --io-nodes 2 --nodes 256 --policy dominant-share --json

    \b
    FILE has the format of 'penstock allocate', or is a workload file:
      {"jobs": [{"id": "BT-C", "nodes": 32, "curve": {"1": 77.6}, "volume": 12600, "compute": 100}]}
      Every job needs a volume and a compute time (seconds). The volume is in the unit of the curve
      at one I/O node; without a curve in that of site.bandwidth; without either in seconds.

    The compute nodes are divided evenly among the I/O nodes, and no job spans two partitions:
    nodes that remain are left over, and a job larger than a partition is left out, both with a
    note. A pack is as long as its longest job alone. Its I/O load L is the I/O time of all its
    jobs over its length: above one, they must wait for each other. The makespan is an estimate
    without contention. 'penstock simulate' runs what --out writes, and 'penstock compare --packing
    A,B' compares packers, both exactly. Jobs without phases then have phases that are alike.
    """
    full, section = loaded.config.site.site(), loaded.config.packing
    site = packs.even_site(full)
    if out is not None:
        formats.check_suffix(out, formats.WRITABLE)
        check_writable(out)
        if out.resolve() == file.resolve():
            raise InputError("--out would replace the jobs; give another file")
    workload = formats.read(file, replace(full, nodes=0)) if is_workload(file) else None
    listed = read_jobs(file) if workload is None else packs.known_jobs(workload, site)
    partition = site.nodes // site.resources
    large = [job for job in listed if job.nodes > partition > 0]
    # Where none fits, the packer says what is wrong.
    jobs = [job for job in listed if job not in large] or listed
    with error_prefix(file), policy_errors(section.policy):
        schedule = section.packer().pack(jobs, site)
        times = packs.contention_free(jobs, schedule, site)
    result = _result(jobs, schedule, site, times) | {
        "policy": section.policy,
        "file": display_name(file),
        "left_over": full.nodes - site.nodes,
        "left_out": [
            {"job": job.id, "nodes": job.nodes, "reason": f"a partition has {partition} nodes"}
            for job in large
        ],
    }
    if out is not None:
        ids = {job.id for job in jobs}
        if workload is None:
            workload = packed_workload.from_jobs(jobs, site)
        kept = np.flatnonzero([workload.id(j) in ids for j in range(len(workload))])
        chosen = packs.subset(packs.behind_one_io_node(workload), kept)
        with error_prefix("--out"):
            formats.write(packed_workload.packed(chosen, schedule, site), out)
        result["out"] = display_name(out)
    emit_json(result) if as_json else _show(result)


def _result(
    jobs: Sequence[Job],
    schedule: Schedule,
    site: Site,
    times: Mapping[JobId, tuple[float, float]],
) -> dict[str, Any]:
    by_name = {job.id: job for job in jobs}
    partition = partition_nodes(site)
    rows = []
    for number, pack in enumerate(schedule.packs):
        members = [by_name[name] for name in pack.jobs]
        rows.append({"pack": number, **_row(pack, members, site, times)})
    io = [isolated_io(job, site) for job in jobs]
    compute = [job.compute or 0.0 for job in jobs]
    return {
        "io_nodes": site.resources,
        "partition": partition,
        "barriers": schedule.barriers,
        "alpha": io_occupation(partition, [job.nodes for job in jobs], compute, io),
        "packs": rows,
        "claims": dict(schedule.claims),
        "makespan": max(end for _, end in times.values()),
    }


def _row(
    pack: Pack, members: Sequence[Job], site: Site, times: Mapping[JobId, tuple[float, float]]
) -> dict[str, Any]:
    start = min(times[job.id][0] for job in members)
    length = max(times[job.id][1] for job in members) - start
    nodes = sum(job.nodes for job in members if job.id not in pack.behind)
    load = sum(isolated_io(job, site) for job in members) / length
    row = {
        "io_node": pack.io_node,
        "jobs": list(pack.jobs),
        "behind": dict(pack.behind),
        "nodes": nodes,
        "start": start,
        "length": length,
        "io_load": load,
    }
    return row | {"why": _why(load, nodes / partition_nodes(site), len(pack.behind))}


def _why(load: float, share: float, behind: int) -> str:
    """Return what limits the pack: its nodes, or its I/O."""
    # A job that does nothing but I/O has a load of one, give or take the last digit.
    if load > 1 + 1e-9:
        why = f"its I/O takes {load:.2f} times its length: jobs will wait"
    elif load >= share:
        why = f"I/O: the I/O node is busy {load:.0%} of its length"
    else:
        why = f"nodes: it uses {share:.0%} of its partition"
    return why + (f"; {behind} start after others" if behind else "")


def _show(result: dict[str, Any]) -> None:
    rows = [
        (
            str(row["pack"]),
            str(row["io_node"]),
            show_seconds(row["start"]),
            show_seconds(row["length"]),
            f"{row['nodes']:,}",
            f"{row['io_load']:.2f}",
            ", ".join(
                f"{j} (after {row['behind'][j]})" if j in row["behind"] else j for j in row["jobs"]
            ),
            row["why"],
        )
        for row in result["packs"]
    ]
    emit_table(
        ("pack", "I/O node", "start", "length", "nodes", "L", "jobs", "limited by"),
        rows,
        title=f"{result['policy']}: {len(rows)} packs behind {result['io_nodes']} I/O nodes with "
        f"{result['partition']:,} compute nodes each",
        text={"jobs", "limited by"},
    )
    if not result["barriers"]:
        echo("packs only set the order: each job starts as soon as its partition has room for it")
    echo(
        f"makespan without contention: {show_seconds(result['makespan'])}; I/O load alpha "
        f"{result['alpha']:.2f}"
    )
    if result["left_over"]:
        echo(
            f"{result['left_over']} compute nodes are left over: the others divide evenly among "
            f"{result['io_nodes']} I/O nodes"
        )
    for job in result["left_out"]:
        echo(f"left out {job['job']}: it needs {job['nodes']:,} nodes, {job['reason']}")
    if "out" in result:
        nodes = result["partition"] * result["io_nodes"]
        echo(
            f"{result['out']}: written; next: penstock simulate {result['out']} --policy "
            f"exclusive-fcfs --set site.resources={result['io_nodes']} --set site.nodes={nodes}"
        )
