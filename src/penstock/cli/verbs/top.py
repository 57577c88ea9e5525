"""penstock top: which jobs transfer now, which wait, and for which jobs."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import UNSET

from penstock import units
from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option, show_scope, table, tuned_value
from penstock.cli.common.site import Site
from penstock.cli.common.site import site as with_site
from penstock.cli.common.terminal import echo, json_echo
from penstock.errors import InputError, error_prefix
from penstock.live.controller.explain import behind
from penstock.live.protocol import messages
from penstock.live.protocol.io_node_record import IoNodeRecord, TuningStatus, Value
from penstock.live.protocol.job_record import JobRecord
from penstock.printable import printable
from penstock.progress import console
from penstock.units import show_bandwidth, show_count, show_seconds, show_volume

if TYPE_CHECKING:
    from rich.console import Group

SHORTEST = 0.1
ORDER = ("transferring", "waiting", "would wait", "computing", "no turns")
"""Activities in the order of the list; a job that "would wait" is only observed, and transfers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A status, and the time of it."""

    status: messages.Status
    time: float

    def moved(self) -> dict[object, int]:
        """Return the bytes moved so far, by id of the job or of the I/O node's process.

        What an I/O node moved that does not answer is not known; direct bytes are listed again.
        """
        jobs: dict[object, int] = {job.id: job.moved_bytes for job in self.status.jobs}
        nodes: dict[object, int] = {
            node.id: node.bytes for node in self.status.io_nodes if _answers(node)
        }
        direct = {("direct", job.id): job.direct_bytes for job in self.status.jobs}
        on = {("file system", each.name): each.bytes for each in self.status.file_systems}
        return jobs | nodes | direct | on

    def absent(self) -> set[int]:
        """Return the I/O nodes that have no process, and move nothing."""
        return {node.number for node in self.status.io_nodes if node.id is None}


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A running job of a sample."""

    id: str
    user: str
    mode: str
    doing: str  # one of ORDER
    since_seconds: float | None
    at_most_seconds: float | None
    behind: list[str]
    ahead: int  # how many, of whom `behind` names the first
    file_systems: list[str]
    waits_on: list[str]  # of these
    share: float  # granted
    received: float | None
    bytes: int
    rate: float | None  # bytes per second since the sample before


class IoNodeView(msgspec.Struct, frozen=True, kw_only=True):
    """An I/O node of a sample."""

    number: int
    state: str
    queued: int
    jobs: int
    rate: float | None  # bytes per second since the sample before
    operation: str | None
    pattern: str | None
    tuned: dict[str, Value]


class FileSystemView(msgspec.Struct, frozen=True, kw_only=True):
    """A file system of a sample."""

    name: str
    transferring: int  # jobs
    waiting: int  # jobs
    rate: float | None  # bytes per second since the sample before, as jobs reported


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the site at a sample, with rates since the sample before."""

    policy: str
    scope: str  # sharing.scope
    mode: str
    modes: dict[str, str]
    turns: int
    tuning: TuningStatus | None
    policy_failures: int
    rate: float  # bytes per second of all jobs: what I/O nodes measured, and direct bytes
    reported_rate: float  # the part of it that jobs reported, up to a second ago
    bandwidth: float | None  # site.bandwidth
    jobs: list[JobView]
    io_nodes: list[IoNodeView]
    file_systems: list[FileSystemView]
    elapsed: float


@click.command()
@click.option("--once", is_flag=True, help="Print one sample, after one interval, and end.")
@click.option(
    "--interval",
    metavar="TIME",
    default="2 s",
    show_default=True,
    help="The time between two samples.",
)
@with_site
@json_option
def top(*, once: bool, interval: str, site: Site, as_json: bool) -> None:
    """Show which jobs transfer, with which share, which wait, for which jobs and how long.

    \b
    Examples:
      penstock top
      penstock top --once --interval '1 s'
      penstock top --json                    one line of JSON per interval
      penstock top --controller login1:7000  on another host

    On a terminal it is refreshed in place until Ctrl-C; in a log it prints one table per interval.
    MiB/s is the rate since the previous sample. Jobs report their bytes once per second; the rate
    of all jobs is what the I/O nodes measured, plus the direct bytes that jobs reported. Granted is
    the share that the policy gives a job, or would give where turns are not enforced; received is
    its part of the bytes that all jobs moved in the last 5 s, or since it began to transfer. "-":
    the job does not transfer, or began less than about two seconds ago, so that not all jobs have
    reported, or no job moved anything. A job that "would wait" is only observed (see 'penstock
    mode'), and transfers meanwhile.
    """
    with error_prefix("--interval"):
        seconds = units.seconds(interval)
    if seconds < SHORTEST:
        raise InputError(f"--interval is {interval}; give at least {show_seconds(SHORTEST)}")
    views = _views(site, seconds, once=once)
    with live_options.launch_errors():
        try:
            _emit(views, once=once) if as_json else _show(views, once=once)
        except KeyboardInterrupt:
            if once:
                raise


def _views(site: Site, seconds: float, *, once: bool) -> Iterator[View]:
    """Yield the difference of two samples, one interval apart, repeatedly."""
    before = _sample(site)
    for _ in range(1) if once else count():
        time.sleep(seconds)
        after = _sample(site)
        yield view(before, after)
        before = after


def _sample(site: Site) -> Sample:
    return Sample(status=site.status(), time=time.monotonic())


def view(before: Sample, after: Sample) -> View:
    """Return the present state, with rates since the sample before."""
    status, earlier = after.status, before.moved()
    elapsed = max(after.time - before.time, 1e-9)

    def rate(key: object, moved: int, age: float) -> float | None:
        if key not in earlier and age > elapsed:
            return None
        return max(moved - earlier.get(key, 0), 0) / elapsed

    rates = {job.id: rate(job.id, job.moved_bytes, job.seconds) for job in status.jobs}
    reported = sum(rate or 0.0 for rate in rates.values())
    jobs = [_job(job, rates[job.id]) for job in status.jobs if job.state == "running"]
    io_nodes = [
        IoNodeView(
            number=node.number,
            state=node.state,
            queued=node.queued or 0,
            jobs=len(node.jobs),
            rate=rate(node.id, node.bytes, float("inf")) if _answers(node) else None,
            operation=node.operation or None,
            pattern=node.pattern or None,
            tuned=node.tuned or {},
        )
        for node in status.io_nodes
    ]
    served = [node.rate for node in io_nodes if node.number not in before.absent() & after.absent()]
    forwarded = [rate for rate in served if rate is not None]
    if forwarded and len(forwarded) == len(served):  # newer than what jobs reported
        direct = ((("direct", job.id), job.direct_bytes, job.seconds) for job in status.jobs)
        reported = sum(rate(*job) or 0.0 for job in direct)
    else:
        forwarded = []
    return View(
        policy=status.policy,
        scope=status.scope,
        mode=status.mode,
        modes=status.modes,
        turns=status.turns,
        tuning=status.tuning,
        policy_failures=status.policy_failures,
        rate=sum(forwarded) + reported,
        reported_rate=reported,
        bandwidth=status.bandwidth,
        jobs=sorted(jobs, key=_order),
        io_nodes=io_nodes,
        file_systems=[
            FileSystemView(
                name=each.name,
                transferring=len(each.transferring),
                waiting=len(each.waiting),
                rate=rate(("file system", each.name), each.bytes, float("inf")),
            )
            for each in status.file_systems
        ],
        elapsed=elapsed,
    )


def _job(job: JobRecord, rate: float | None) -> JobView:
    doing = job.doing or "no turns"
    if doing == "waiting" and job.mode != "enforce":
        doing = "would wait"
    return JobView(
        id=job.id,
        user=job.user,
        mode=job.mode or "-",
        doing=doing,
        since_seconds=job.since_seconds,
        at_most_seconds=job.at_most_seconds if doing == "waiting" else None,
        behind=job.behind,
        ahead=job.ahead,
        file_systems=job.file_systems,
        waits_on=job.waits_on,
        share=job.share,
        received=job.received,
        bytes=job.moved_bytes,
        rate=rate,
    )


def _order(job: JobView) -> tuple[int, float, float]:
    """Order jobs by activity, then by share, then by how long they wait."""
    return ORDER.index(job.doing), -job.share, -(job.since_seconds or 0.0)


def _emit(views: Iterator[View], *, once: bool) -> None:
    for view in views:
        emit_json(msgspec.to_builtins(view)) if once else json_echo(msgspec.json.encode(view))


def _show(views: Iterator[View], *, once: bool) -> None:
    out = console()
    if once or not out.is_terminal:
        for view in views:
            out.print(_screen(view))
            if not once:
                echo("")
        return
    from rich.live import Live  # noqa: PLC0415 - see penstock.cli.common.output

    with Live(console=out, auto_refresh=False, vertical_overflow="ellipsis") as live:
        live.update("waiting for the first sample ...", refresh=True)
        for view in views:
            live.update(_screen(view), refresh=True)


def _screen(view: View) -> "Group":
    from rich.console import Group  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    parts: list[Any] = [Text(printable(_head(view))), Text(_total(view)), Text("")]
    if view.jobs:
        several = len(view.file_systems) > 1
        rows = [_row(job, several_file_systems=several) for job in view.jobs]
        text = {"user", "activity", "file systems", "waits for"}
        parts.append(table(tuple(rows[0]), [tuple(row.values()) for row in rows], text=text))
    else:
        parts.append(Text("no jobs are running"))
    if len(view.file_systems) > 1:
        cells = [tuple(_file_system(each).values()) for each in view.file_systems]
        parts += [Text(""), table(tuple(_file_system(view.file_systems[0])), cells, text=set())]
    if view.io_nodes:
        nodes = [_node(node, view.tuning) for node in view.io_nodes]
        text = {"state", "operation", "pattern", "scheduler"}
        cells = [tuple(node.values()) for node in nodes]
        parts += [Text(""), table(tuple(nodes[0]), cells, text=text)]
    if view.tuning is not None:
        parts += [Text(""), Text(printable(_tuning(view.tuning)))]
    return Group(*parts)


def _file_system(each: FileSystemView) -> dict[str, str]:
    return {
        "file system": each.name,
        "transferring": f"{each.transferring:,}",
        "waiting": f"{each.waiting:,}",
        "MiB/s": _rate(each.rate),
    }


def _node(node: IoNodeView, tuning: TuningStatus | None) -> dict[str, str]:
    row = {
        "I/O node": str(node.number),
        "state": node.state,
        "jobs": f"{node.jobs:,}",
        "queued": f"{node.queued:,}",
        "MiB/s": _rate(node.rate),
    }
    if tuning is not None:
        row |= {"operation": node.operation or "-", "pattern": node.pattern or "-"}
        for name in tuning.parameters:
            row[name] = tuned_value(name, node.tuned.get(name))
    return row


def _tuning(tuning: TuningStatus) -> str:
    trying = ", ".join(tuning.exploring)
    activity = f"is trying values of {trying}" if trying else "uses the best known values"
    if not tuning.applied:
        activity = "chooses values, but sets none (that needs 'penstock mode enforce')"
    return (
        f"{tuning.policy} {activity}; {tuning.rounds:,} choices, {tuning.explored:,} of them to "
        f"learn; {tuning.contexts:,} access patterns known"
    )


def _head(view: View) -> str:
    others = ", ".join(f"{user}: {mode}" for user, mode in sorted(view.modes.items()))
    doing = [job.doing for job in view.jobs]
    numbers = ", ".join(f"{doing.count(what)} {what}" for what in ORDER if what in doing)
    clock = time.strftime("%H:%M:%S")
    mode = view.mode + (f" ({others})" if others else "")
    scope = show_scope(view.scope, len(view.file_systems))
    head = f"{clock}  {view.policy}{scope}, {mode}; turns granted: {view.turns:,}"
    if failures := view.policy_failures:
        head += f"; the policy FAILED {show_count(failures, 'time')}: see the controller's log"
    return head + (f"; {numbers}" if numbers else "")


def _total(view: View) -> str:
    total = f"all jobs: {show_bandwidth(view.rate)}"
    if view.bandwidth is not None:
        total += f", {view.rate / view.bandwidth:.0%} of {show_bandwidth(view.bandwidth)}"
    if not view.reported_rate:
        return total
    direct = f"{show_bandwidth(view.reported_rate)} of it direct, "
    part = "" if view.reported_rate == view.rate else direct
    return f"{total} ({part}as jobs last reported)"


def _answers(node: IoNodeRecord) -> bool:
    return node.read_bytes is not UNSET


def _row(job: JobView, *, several_file_systems: bool) -> dict[str, str]:
    since, most = job.since_seconds, job.at_most_seconds
    waits = job.doing in {"waiting", "would wait"} or bool(job.waits_on)
    on = f"on {' '.join(job.waits_on)}: " if several_file_systems and job.waits_on else ""
    return {
        "job": job.id,
        "user": job.user,
        "activity": job.doing,
        **({"file systems": " ".join(job.file_systems) or "-"} if several_file_systems else {}),
        "since": "-" if since is None else show_seconds(since),
        "granted": f"{job.share:.0%}" if job.doing == "transferring" else "-",
        "received": "-" if job.received is None else f"{job.received:.0%}",
        "MiB/s": _rate(job.rate),
        "moved": show_volume(job.bytes),
        "waits for": on + behind(job.behind, job.ahead) if waits else "",
        "at most": "" if most is None else f"{show_seconds(most)} more",
    }


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate / 2**20:,.1f}"
