"""penstock top: who transfers now, who waits, for whom, and since when."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from penstock import units
from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option, table
from penstock.cli.verbs.tuner.show import show_value
from penstock.errors import InputError
from penstock.live.controller.explain import behind
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.state_directory import StateDirectory
from penstock.progress import console
from penstock.units import show_seconds, show_volume

if TYPE_CHECKING:
    from rich.console import Group

SHORTEST = 0.1
ORDER = ("transferring", "waiting", "would wait", "computing", "no turns")
"""What jobs do, as they are listed; who is observed would wait, and transfers meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A status, and when it was."""

    found: messages.Status
    time: float

    def moved(self) -> dict[object, int]:
        """Return the bytes so far, of jobs by id and of I/O nodes by the id of their run."""
        jobs: dict[object, int] = {job.id: job.moved_bytes for job in self.found.jobs}
        nodes = {node["id"]: _bytes(node, "read", "write") for node in self.found.io_nodes}
        return jobs | nodes


@click.command(short_help="Who transfers now, who waits, and for whom.")
@click.option("--once", is_flag=True, help="One look, after one interval, and end.")
@click.option(
    "--interval", metavar="TIME", default="2 s", show_default=True, help="Between two looks."
)
@live_options.state
@json_option
def top(*, once: bool, interval: str, folder: Path | None, as_json: bool) -> None:
    """Show who transfers, with which share, and who waits, for whom and how long at most.

    \b
    Examples:
      penstock top
      penstock top --once --interval '1 s'
      penstock top --json                    a line of JSON an interval

    On a terminal it is refreshed in place until Ctrl-C; in a log there is one table an interval.
    MiB/s is what was moved since the look before; jobs tell their bytes once a second. A job that
    would wait is only observed (penstock mode), and transfers meanwhile.
    """
    try:
        seconds = units.seconds(interval)
    except InputError as error:
        raise InputError(f"--interval: {error}") from error
    if seconds < SHORTEST:
        raise InputError(f"--interval is {interval}; give at least {show_seconds(SHORTEST)}")
    looks = _looks(StateDirectory(folder), seconds, once=once)
    with live_options.launch_errors():
        try:
            _emit(looks, once=once) if as_json else _show(looks, once=once)
        except KeyboardInterrupt:
            if once:
                raise


def _looks(state: StateDirectory, seconds: float, *, once: bool) -> Iterator[dict[str, Any]]:
    """Yield what two looks tell together, an interval apart."""
    before = _look(state)
    for _ in range(1) if once else count():
        time.sleep(seconds)
        after = _look(state)
        yield seen(before, after)
        before = after


def _look(state: StateDirectory) -> Look:
    found = launcher.ask(state, messages.GetStatus(), messages.Status)
    return Look(found=found, time=time.monotonic())


def seen(before: Look, after: Look) -> dict[str, Any]:
    """Return how things are now, with what was moved since the look before."""
    found, had = after.found, before.moved()
    served: list[dict[str, Any]] = found.io_nodes
    elapsed = max(after.time - before.time, 1e-9)

    def rate(key: object, moved: int, age: float) -> float | None:
        if key not in had and age > elapsed:
            return None
        return max(moved - had.get(key, 0), 0) / elapsed

    jobs = [
        {
            **_standing(job),
            "bytes": job.moved_bytes,
            "rate": rate(job.id, job.moved_bytes, job.seconds),
        }
        for job in found.jobs
        if job.state == "running"
    ]
    io_nodes = [
        {
            "number": node["number"],
            "state": node["state"],
            "queued": node.get("queued", 0),
            "jobs": len(node.get("jobs", [])),
            "rate": rate(node["id"], _bytes(node, "read", "write"), float("inf")),
            "operation": node.get("operation"),
            "pattern": node.get("pattern"),
            "tuned": node.get("tuned", {}),
        }
        for node in served
    ]
    return {
        "policy": found.policy,
        "mode": found.mode,
        "modes": found.modes,
        "turns": found.turns,
        "tuning": found.tuning,
        "policy_failures": found.policy_failures,
        "jobs": sorted(jobs, key=_place),
        "io_nodes": io_nodes,
        "elapsed": elapsed,
    }


def _standing(job: JobRecord) -> dict[str, Any]:
    doing = job.doing or "no turns"
    if doing == "waiting" and job.mode != "enforce":
        doing = "would wait"
    waits = doing == "waiting"
    return {
        "id": job.id,
        "user": job.user,
        "mode": job.mode or "-",
        "doing": doing,
        "since_seconds": job.since_seconds,
        "at_most_seconds": job.at_most_seconds if waits else None,
        "behind": job.behind,
        "share": job.share,
    }


def _place(job: Mapping[str, Any]) -> tuple[int, float, float]:
    """Order jobs: who transfers by share, who waits by how long."""
    return ORDER.index(job["doing"]), -job["share"], -(job["since_seconds"] or 0.0)


def _bytes(record: Mapping[str, Any], *kinds: str) -> int:
    return sum(int(record.get(f"{kind}_bytes", 0)) for kind in kinds)


def _emit(looks: Iterator[dict[str, Any]], *, once: bool) -> None:
    for told in looks:
        emit_json(told) if once else click.echo(msgspec.json.encode(told))


def _show(looks: Iterator[dict[str, Any]], *, once: bool) -> None:
    out = console()
    if once or not out.is_terminal:
        for told in looks:
            out.print(_drawn(told))
            if not once:
                click.echo("")
        return
    from rich.live import Live  # noqa: PLC0415 - see penstock.cli.common.output

    with Live(console=out, auto_refresh=False, vertical_overflow="ellipsis") as live:
        live.update("looking ...", refresh=True)
        for told in looks:
            live.update(_drawn(told), refresh=True)


def _drawn(told: Mapping[str, Any]) -> "Group":
    from rich.console import Group  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    parts: list[Any] = [Text(_head(told)), Text("")]
    if told["jobs"]:
        rows = [_row(job) for job in told["jobs"]]
        if len({job["user"] for job in told["jobs"]}) == 1:
            rows = [{k: v for k, v in row.items() if k != "user"} for row in rows]
        text = {"user", "does", "for whom"}
        parts.append(table(tuple(rows[0]), [tuple(row.values()) for row in rows], text=text))
    else:
        parts.append(Text("no job runs"))
    if told["io_nodes"]:
        nodes = [_node(node, told["tuning"]) for node in told["io_nodes"]]
        text = {"state", "does", "pattern", "scheduler"}
        told_nodes = [tuple(node.values()) for node in nodes]
        parts += [Text(""), table(tuple(nodes[0]), told_nodes, text=text)]
    if told["tuning"]:
        parts += [Text(""), Text(_tuning(told["tuning"]))]
    return Group(*parts)


def _node(node: Mapping[str, Any], tuning: Mapping[str, Any] | None) -> dict[str, str]:
    row = {
        "I/O node": str(node["number"]),
        "state": node["state"],
        "jobs": f"{node['jobs']:,}",
        "queued": f"{node['queued']:,}",
        "MiB/s": _rate(node["rate"]),
    }
    if tuning is not None:
        row |= {"does": node["operation"] or "-", "pattern": node["pattern"] or "-"}
        for name in tuning["parameters"]:
            row[name] = show_value(name, node["tuned"].get(name))
    return row


def _tuning(tuning: Mapping[str, Any]) -> str:
    trying = ", ".join(tuning["exploring"])
    does = f"tries values of {trying}" if trying else "has the best it knows in force"
    if not tuning["applied"]:
        does = "chooses, and sets nothing (penstock mode enforce)"
    return (
        f"{tuning['policy']} {does}; {tuning['rounds']:,} choices, {tuning['explored']:,} to learn,"
        f" {tuning['contexts']:,} contexts known"
    )


def _head(told: Mapping[str, Any]) -> str:
    others = ", ".join(f"{user}: {mode}" for user, mode in sorted(told["modes"].items()))
    doing = [job["doing"] for job in told["jobs"]]
    numbers = ", ".join(f"{doing.count(what)} {what}" for what in ORDER if what in doing)
    clock = time.strftime("%H:%M:%S")
    mode = told["mode"] + (f" ({others})" if others else "")
    head = f"{clock}  {told['policy']}, {mode}; {told['turns']:,} turns given"
    if failures := told["policy_failures"]:
        head += f"; the policy FAILED {failures:,} times: see the controller's log"
    return head + (f"; {numbers}" if numbers else "")


def _row(job: Mapping[str, Any]) -> dict[str, str]:
    since, most = job["since_seconds"], job["at_most_seconds"]
    waits = job["doing"] in {"waiting", "would wait"}
    return {
        "job": job["id"],
        "user": job["user"],
        "does": job["doing"],
        "since": "-" if since is None else show_seconds(since),
        "share": f"{job['share']:.0%}" if job["doing"] == "transferring" else "-",
        "MiB/s": _rate(job["rate"]),
        "moved": show_volume(job["bytes"]),
        "for whom": behind(job["behind"]) if waits else "",
        "at most": "" if most is None else f"{show_seconds(most)} more",
    }


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate / 2**20:,.1f}"
