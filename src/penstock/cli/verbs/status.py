"""penstock status: jobs, I/O nodes, and the bytes they moved."""

from pathlib import Path
from typing import Any

import click
import msgspec

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory
from penstock.progress import console
from penstock.units import show_count, show_seconds, show_volume

SHORTEST_COMMAND, LONGEST_COMMAND = 12, 60
"""The characters of a command that are shown, as the terminal has room; --json has all."""


@click.command()
@live_options.state
@json_option
def status(*, folder: Path | None, as_json: bool) -> None:
    """Show the jobs of a deployment, its I/O nodes, and the bytes that went through them.

    \b
    Examples:
      penstock status
      penstock status --state ./state --json

    MiB/s is a job's mean rate since it began, including the time it computed. Forwarded bytes went
    through an I/O node; direct bytes did not. A fail-open is a call that should have gone to an I/O
    node, or waited at a gate, and was let through. The last hundred jobs that ended are listed, and
    totals count all jobs. 'penstock top' shows which jobs wait for which, 'penstock explain JOB'
    says why.
    """
    with live_options.launch_errors():
        answer = launcher.ask(StateDirectory(folder), messages.GetStatus(), messages.Status)
    status = msgspec.to_builtins(answer)
    status.pop("type")
    emit_json(status) if as_json else _show(status)


def _show(status: dict[str, Any]) -> None:
    emulation = f", on an emulated file system ({status['emulated']})" if status["emulated"] else ""
    turns = f"; {status['policy']}, {status['mode']}" if status["policy"] else ""
    click.echo(f"{', '.join(status['roots'])}{emulation}{turns}\n")
    if status["jobs"]:
        _show_jobs(status["jobs"])
        click.echo("")
    if status["io_nodes"]:
        _show_io_nodes(status["io_nodes"])
        click.echo("")
    for node in status["io_nodes"]:
        if "silent_seconds" in node:
            since = show_seconds(node["silent_seconds"])
            click.echo(f"I/O node {node['number']} has not answered for {since}: {node['why']}")
    click.echo(
        f"{show_volume(status['forwarded_bytes'])} forwarded, "
        f"{show_volume(status['direct_bytes'])} direct, "
        f"{show_count(status['fail_open_total'], 'fail-open')} in total"
    )
    if status["policy_failures"]:
        click.echo(
            f"{status['policy']} failed {show_count(status['policy_failures'], 'time')} (see the "
            "controller's log); jobs that waited then continued without a turn"
        )
    if status["fail_open_total"]:
        click.echo(
            "(a fail-open is a call that bypassed its I/O node or its gate: docs/live/index.md)"
        )


def _show_jobs(jobs: list[dict[str, Any]]) -> None:
    """List jobs; columns that would be the same for all of them are left out."""
    users = len({job["user"] for job in jobs}) > 1
    waits = any(job["waits"] for job in jobs)
    fail_opens = any(job["fail_opens"] for job in jobs)
    rows = []
    for job in jobs:
        moved = job["forwarded_bytes"] + job["direct_bytes"]
        row = {
            "job": job["id"],
            "user": job["user"],
            "state": _state(job),
            "I/O nodes": _numbers(job["io_nodes"]),
            "time": show_seconds(job["seconds"]),
            "forwarded": show_volume(job["forwarded_bytes"]),
            "direct": show_volume(job["direct_bytes"]),
            "MiB/s": f"{moved / 2**20 / max(job['seconds'], 1e-9):,.1f}" if moved else "-",
            "fail-opens": f"{job['fail_opens']:,}",
            "waits": f"{job['waits']:,} ({show_seconds(job['waited_seconds'])})",
            "command": " ".join(" ".join(job["command"]).split()),
        }
        if not users:
            del row["user"]
        if not waits:
            del row["waits"]
        if not fail_opens:
            del row["fail-opens"]
        rows.append(row)
    _cut_commands(rows)
    text = {"user", "state", "I/O nodes", "command"}
    emit_table(tuple(rows[0]), [tuple(row.values()) for row in rows], text=text)


def _show_io_nodes(io_nodes: list[dict[str, Any]]) -> None:
    rows = [
        (
            str(node["number"]),
            node["state"],
            "-" if node["pid"] is None else str(node["pid"]),
            str(node.get("scheduler", "-")),
            show_volume(node.get("read_bytes", 0)),
            show_volume(node.get("write_bytes", 0)),
            f"{node.get('requests', 0):,}",
            f"{node.get('queued', 0):,}",
            f"{node['deaths']:,}",
        )
        for node in io_nodes
    ]
    heads = ("I/O node", "state", "process", "scheduler", "read", "written", "requests")
    emit_table((*heads, "queued", "deaths"), rows, text={"state", "scheduler"})


def _state(job: dict[str, Any]) -> str:
    """Return the state of a job; of a running job, its activity if known."""
    if job["state"] != "running":
        return f"ended: {job['status']}" if job["state"] == "ended" else str(job["state"])
    doing = job.get("doing")
    if doing is None:
        return "running"
    # A job that is only observed keeps its place in the queue, and transfers meanwhile.
    return "transferring" if doing == "waiting" and job["mode"] != "enforce" else str(doing)


def _numbers(numbers: list[int]) -> str:
    """Return I/O nodes in a short form: "0-3 6"."""
    if not numbers:
        return "direct"
    if numbers != sorted(numbers):
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
