"""penstock status: jobs, I/O nodes, and what they moved."""

from pathlib import Path
from typing import Any

import click
import msgspec

from penstock.cli import deployed
from penstock.cli.output import as_json as json_option
from penstock.cli.output import emit_json, emit_table
from penstock.live import launcher, wire
from penstock.live.state import State
from penstock.units import show_seconds, show_volume


@click.command(short_help="Jobs, I/O nodes, and what they moved.")
@deployed.state
@json_option
def status(*, folder: Path | None, as_json: bool) -> None:
    """Show the jobs of a deployment, its I/O nodes, and the bytes that went through them.

    \b
    Examples:
      penstock status
      penstock status --state ./state --json

    Forwarded bytes went through an I/O node, direct ones past them. A fail-open is a call that an
    I/O node should have done, or a gate should have held, and that was let through. Jobs that ended
    are listed while they are remembered (the last hundred); totals are of all.
    """
    with deployed.telling():
        found = launcher.ask(State(folder), wire.Ask(), wire.Status)
    plain = msgspec.to_builtins(found)
    plain.pop("type")
    emit_json(plain) if as_json else _show(plain)


def _show(found: dict[str, Any]) -> None:
    jobs = [
        (
            job["id"],
            job["user"],
            job["state"] if job["state"] != "ended" else f"ended with {job['status']}",
            " ".join(map(str, job["io_nodes"])) or "direct",
            show_volume(job["forwarded_bytes"]),
            show_volume(job["direct_bytes"]),
            f"{job['waits']:,} ({show_seconds(job['waited_seconds'])})",
            f"{job['fail_opens']:,}",
            " ".join(job["command"])[:60],
        )
        for job in found["jobs"]
    ]
    columns = ("job", "user", "state", "I/O nodes", "forwarded", "direct", "waits", "fail-opens")
    if jobs:
        text = {"user", "state", "I/O nodes", "command"}
        emit_table((*columns, "command"), jobs, text=text)
        click.echo("")
    nodes = [
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
        for node in found["io_nodes"]
    ]
    if nodes:
        heads = ("I/O node", "state", "process", "scheduler", "read", "written", "requests")
        emit_table((*heads, "queued", "deaths"), nodes, text={"state", "scheduler"})
        click.echo("")
    for node in found["io_nodes"]:
        if "silent_seconds" in node:
            since = show_seconds(node["silent_seconds"])
            number, why = node["number"], node["why"]
            click.echo(f"I/O node {number} has not answered for {since}: {why}")
    click.echo(
        f"{show_volume(found['forwarded_bytes'])} forwarded, "
        f"{show_volume(found['direct_bytes'])} direct, "
        f"{found['fail_open_total']:,} fail-opens, in all"
    )
