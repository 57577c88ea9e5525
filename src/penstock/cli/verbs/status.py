"""penstock status: jobs, I/O nodes, and the bytes they moved."""

from collections.abc import Sequence

import click
import msgspec
from msgspec import UNSET

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, emit_table, json_option, show_scope
from penstock.cli.common.site import Site
from penstock.cli.common.site import site as with_site
from penstock.cli.common.terminal import echo
from penstock.live.protocol import messages
from penstock.live.protocol.file_system_record import FileSystemRecord
from penstock.live.protocol.io_node_record import IoNodeRecord
from penstock.live.protocol.job_record import JobRecord
from penstock.progress import console
from penstock.units import show_bandwidth, show_count, show_seconds, show_volume

SHORTEST_COMMAND, LONGEST_COMMAND = 12, 60
"""The characters of a command that are shown, as the terminal has room; --json has all."""


@click.command()
@with_site
@json_option
def status(*, site: Site, as_json: bool) -> None:
    """Show the jobs of a deployment, its I/O nodes, and the bytes that went through them.

    \b
    Examples:
      penstock status
      penstock status --state ./state --json
      penstock status --controller login1:7000      on another host

    "1 (may use 0-3)" says that a job used I/O node 1 and may use 0 to 3. MiB/s is its mean rate
    since it began, including the time it computed. Granted is the share that the policy gives a
    job, or would give where turns are not enforced; received is its part of the bytes that all jobs
    moved in the last 5 s, or since it began to transfer; "-": it does not transfer, or began less
    than about two seconds ago, so that not all jobs have reported, or no job moved anything.
    Forwarded bytes went through an I/O node; direct bytes did not. Jobs report both once per
    second; the figures of I/O nodes are of this moment, and may be larger. A fail-open is a call
    that should have gone to an I/O node, or waited at a gate, and was let through. The last hundred
    jobs that ended are listed, and totals count all jobs. 'penstock top' shows which jobs wait for
    which, 'penstock explain JOB' says why. --controller (or $PENSTOCK_CONTROLLER and
    $PENSTOCK_KEY_FILE) asks the controller of another host, as in 'penstock run': users see their
    own jobs.
    """
    with live_options.launch_errors():
        answer = site.status()
    if not as_json:
        _show(answer)
        return
    fields = msgspec.to_builtins(answer)
    fields.pop("type")
    emit_json(fields)


def _show(status: messages.Status) -> None:
    emulation = f", on an emulated file system ({status.emulated})" if status.emulated else ""
    turns = (
        f"; {status.policy}{show_scope(status.scope, len(status.file_systems))}, {status.mode}"
        if status.policy
        else ""
    )
    echo(f"{', '.join(status.roots)}{emulation}{turns}\n")
    if status.jobs:
        _show_jobs(status.jobs, several_file_systems=len(status.file_systems) > 1)
        echo("")
    if len(status.file_systems) > 1:
        _show_file_systems(status.file_systems)
        echo("")
    if status.io_nodes:
        _show_io_nodes(status.io_nodes)
        echo("")
    for node in status.io_nodes:
        if node.silent_seconds is not UNSET:
            since = show_seconds(node.silent_seconds)
            echo(f"I/O node {node.number} has not answered for {since}: {node.why}")
    # I/O nodes say what they have moved by now, jobs what they had up to a second ago.
    running = any(job.state == "running" for job in status.jobs)
    reported = ", as jobs last reported" if running else ""
    echo(
        f"{show_volume(status.forwarded_bytes)} forwarded, {show_volume(status.direct_bytes)} "
        f"direct, {show_count(status.fail_open_total, 'fail-open')} in total{reported}"
    )
    if status.policy_failures:
        echo(
            f"policies failed {show_count(status.policy_failures, 'time')} (see the controller's "
            "log); jobs that waited for turns then continued without one, and I/O nodes were given "
            "by the fallback policy"
        )
    if status.fail_open_total:
        echo("(a fail-open is a call that bypassed its I/O node or its gate: docs/live/index.md)")


def _show_jobs(jobs: Sequence[JobRecord], *, several_file_systems: bool) -> None:
    """List jobs; columns that would be empty for all of them are left out."""
    rows = [_row(job) for job in jobs]
    transfers = any(_state(job) == "transferring" for job in jobs)
    unneeded = {
        "file systems": not several_file_systems,
        "granted": not transfers,
        "received": not transfers,
        "waits": not any(job.waits or _waits_now(job) for job in jobs),
        "fail-opens": not any(job.fail_opens for job in jobs),
        "0 bytes because": all(job.zero_bytes_reason is None for job in jobs),
    }
    for row in rows:
        for column in (column for column, leave_out in unneeded.items() if leave_out):
            del row[column]
    _cut_commands(rows)
    text = {"user", "state", "file systems", "I/O nodes", "0 bytes because", "command"}
    emit_table(tuple(rows[0]), [tuple(row.values()) for row in rows], text=text)


def _row(job: JobRecord) -> dict[str, str]:
    moved, seconds = job.moved_bytes, max(job.seconds, 1e-9)
    return {
        "job": job.id,
        "user": job.user,
        "state": _state(job),
        "file systems": " ".join(job.file_systems) or "-",
        "I/O nodes": _io_nodes(job),
        "time": show_seconds(job.seconds),
        "forwarded": show_volume(job.forwarded_bytes),
        "direct": show_volume(job.direct_bytes),
        "MiB/s": f"{moved / 2**20 / seconds:,.1f}" if moved else "-",
        "granted": f"{job.share:.0%}" if job.doing == "transferring" else "-",
        "received": "-" if job.received is None else f"{job.received:.0%}",
        "fail-opens": f"{job.fail_opens:,}",
        "waits": f"{job.waits:,} ({show_seconds(job.waited_seconds)})" + _present_wait(job),
        "0 bytes because": job.zero_bytes_reason or "",
        "command": " ".join(" ".join(job.command).split()),
    }


def _waits_now(job: JobRecord) -> bool:
    return _state(job) == "waiting" and job.since_seconds is not None


def _present_wait(job: JobRecord) -> str:
    """Say for how long a job has been waiting: calls are counted when they stop waiting."""
    return f", now {show_seconds(job.since_seconds or 0.0)}" if _waits_now(job) else ""


def _show_file_systems(file_systems: Sequence[FileSystemRecord]) -> None:
    rows = [
        (
            each.name,
            " ".join(each.roots),
            "-" if each.bandwidth is None else show_bandwidth(each.bandwidth),
            show_volume(each.bytes),
            f"{len(each.transferring):,}",
            f"{len(each.waiting):,}",
        )
        for each in file_systems
    ]
    heads = ("file system", "directories", "bandwidth", "moved", "transferring", "waiting")
    emit_table(heads, rows, text={"directories"})


def _show_io_nodes(io_nodes: Sequence[IoNodeRecord]) -> None:
    rows = [
        (
            str(node.number),
            node.state,
            "-" if node.pid is None else str(node.pid),
            node.scheduler or "-",
            show_volume(node.read_bytes or 0),
            show_volume(node.write_bytes or 0),
            f"{node.requests or 0:,}",
            f"{node.queued or 0:,}",
            f"{node.deaths:,}",
        )
        for node in io_nodes
    ]
    heads = ("I/O node", "state", "process", "scheduler", "read", "written", "requests")
    emit_table((*heads, "queued", "deaths"), rows, text={"state", "scheduler"})


def _state(job: JobRecord) -> str:
    """Return the state of a job; of a running job, its activity if known."""
    if job.state != "running":
        return f"exit status {job.status}" if job.state == "ended" else job.state
    # A job that is only observed keeps its place in the queue, and transfers meanwhile.
    observed = job.doing == "waiting" and job.mode != "enforce"
    return "transferring" if observed else job.doing or "running"


def _io_nodes(job: JobRecord) -> str:
    """Return the I/O nodes that a job used, and those that it may use, in a short form."""
    if not job.io_nodes and not job.io_nodes_used:
        return "direct"
    allowed, used = _numbers(job.io_nodes) or "direct", _numbers(job.io_nodes_used) or "none"
    return used if used == allowed else f"{used} (may use {allowed})"


def _numbers(numbers: Sequence[int]) -> str:
    """Return numbers in a short form: "0-3 6"."""
    if list(numbers) != sorted(numbers):
        return " ".join(map(str, numbers))
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def _cut_commands(rows: list[dict[str, str]]) -> None:
    """Cut the last column to the space the others leave: folded, the table is unreadable."""
    used = sum(
        2 + max(len(column), *(len(row[column]) for row in rows))
        for column in rows[0]
        if column != "command"
    )
    room = min(max(console().width - used, SHORTEST_COMMAND), LONGEST_COMMAND)
    for row in rows:
        if len(row["command"]) > room:
            row["command"] = row["command"][: room - 3] + "..."
