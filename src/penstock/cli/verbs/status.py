"""penstock status: jobs, I/O nodes, and what they moved."""

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
from penstock.units import show_seconds, show_volume

SHORTEST_COMMAND, LONGEST_COMMAND = 12, 60
"""Characters of a command that are shown, as the terminal has room; --json has all."""


@click.command(short_help="Jobs, I/O nodes, and what they moved.")
@live_options.state
@json_option
def status(*, folder: Path | None, as_json: bool) -> None:
    """Show the jobs of a deployment, its I/O nodes, and the bytes that went through them.

    \b
    Examples:
      penstock status
      penstock status --state ./state --json

    MiB/s is what a job moved over the time that it has run, computing included. Forwarded bytes
    went through an I/O node, direct ones past them. A fail-open is a call that an I/O node should
    have done, or a gate should have held, and that was let through. Jobs that ended are listed
    while they are remembered (the last hundred); totals are of all. 'penstock top' shows who waits
    for whom, 'penstock explain JOB' why.
    """
    with live_options.launch_errors():
        found = launcher.ask(StateDirectory(folder), messages.GetStatus(), messages.Status)
    plain = msgspec.to_builtins(found)
    plain.pop("type")
    emit_json(plain) if as_json else _show(plain)


def _show(found: dict[str, Any]) -> None:
    beneath = f", on an emulated file system ({found['emulated']})" if found["emulated"] else ""
    turns = f"; {found['policy']}, {found['mode']}" if found["policy"] else ""
    click.echo(f"{', '.join(found['roots'])}{beneath}{turns}\n")
    if found["jobs"]:
        _show_jobs(found["jobs"])
        click.echo("")
    if found["io_nodes"]:
        _show_io_nodes(found["io_nodes"])
        click.echo("")
    for node in found["io_nodes"]:
        if "silent_seconds" in node:
            since = show_seconds(node["silent_seconds"])
            click.echo(f"I/O node {node['number']} has not answered for {since}: {node['why']}")
    click.echo(
        f"{show_volume(found['forwarded_bytes'])} forwarded, "
        f"{show_volume(found['direct_bytes'])} direct, "
        f"{found['fail_open_total']:,} fail-opens, in all"
    )
    if found["policy_failures"]:
        click.echo(
            f"{found['policy']} failed {found['policy_failures']:,} times: the controller's log "
            "says how, and who waited then went on without a turn"
        )
    if found["fail_open_total"]:
        click.echo(
            "(a fail-open is a call that went past its I/O node or its gate: docs/live/index.md)"
        )


def _show_jobs(jobs: list[dict[str, Any]]) -> None:
    """List jobs; columns that would say the same of all are left out."""
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
    """Return how a job is; of one that runs, what it does where that is known."""
    if job["state"] != "running":
        return f"ended: {job['status']}" if job["state"] == "ended" else str(job["state"])
    doing = job.get("doing")
    if doing is None:
        return "running"
    # Who is observed has its place among those who wait, and transfers.
    return "transferring" if doing == "waiting" and job["mode"] != "enforce" else str(doing)


def _numbers(numbers: list[int]) -> str:
    """Return I/O nodes in short: "0-3 6"."""
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
    """Cut the last column to what the others leave: folded, it would make the table unreadable."""
    taken = sum(
        2 + max(len(column), *(len(row[column]) for row in rows))
        for column in rows[0]
        if column != "command"
    )
    room = min(max(console().width - taken, SHORTEST_COMMAND), LONGEST_COMMAND)
    for row in rows:
        if len(row["command"]) > room:
            row["command"] = row["command"][: room - 3] + "..."
