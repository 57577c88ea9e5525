"""penstock simulate: what one policy makes of a workload."""

import csv
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import numpy as np

from penstock.campaign.policy_file import policy_errors
from penstock.cli.common import options
from penstock.cli.common.output import emit_json, emit_table
from penstock.config import window as parse_window
from penstock.core.arbiter import Arbiter
from penstock.errors import InputError, error_prefix
from penstock.files import check_writable, replacing
from penstock.model import Site
from penstock.policies.base import Sharing
from penstock.progress import progress
from penstock.sim import engine, metrics, reference
from penstock.sim.knowledge import Knowledge
from penstock.sim.run import Run
from penstock.sim.workload import Workload

ROWS_AT_ONCE = 1 << 16
MOST_JOBS_SHOWN = 40
MEANING = {
    "utilization": "useful computation over time held; long-run bound {utilization_bound:.4f}",
    "max_stretch": "the worst job's elapsed time over its work",
    "io_slowdown": "time in I/O over isolated I/O, geometric mean of jobs",
    "min_yield": "the worst job's work over elapsed time",
    "efficiency": "work over elapsed time, weighted by nodes",
    "makespan": "seconds until the last job ended",
    "remaps": "times that a running job got other resources",
    "engine_seconds": "seconds of one engine run, median of {repeat}",
}


@click.command(short_help="What one policy makes of a workload.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--policy", metavar="NAME", help="A name of 'penstock policies', or ./file.py:Class.")
@options.simulated
@click.option("--repeat", type=click.IntRange(1), default=1, help="Time so many engine runs.")
@click.option("--jobs", "per_job", is_flag=True, help="Show each job, worst stretch first.")
@click.option("--timeline", type=click.Path(path_type=Path), help="Write granted shares as CSV.")
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Draw a phase Gantt (.png .svg .pdf)."
)
@click.option("--plot-window", metavar="A:B", help="The time span of the Gantt.")
@click.option("--reference", "by_reference", is_flag=True, help="Use the slow reference clock.")
@options.configured
@options.as_json
def simulate(
    *,
    file: Path,
    policy: str | None,
    knowledge: str | None,
    seed: str | None,
    window: str | None,
    allocation: str | None,
    placement: str | None,
    remap_delay: str | None,
    io_ratio: float | None,
    w_iter: str | None,
    repeat: int,
    per_job: bool,
    timeline: Path | None,
    plot: Path | None,
    plot_window: str | None,
    by_reference: bool,
    config_file: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Simulate the workload in FILE under one sharing policy and print what it was worth.

    \b
    Examples:
      penstock simulate jobs.json --policy set-10
      penstock simulate jobs.json --policy set-10 --knowledge learned --window 6000:14000 --json
      penstock simulate jobs.json --policy ./mine.py:Mine --jobs --plot gantt.png
      penstock simulate jobs.json --allocation mckp --remap-delay '10 s' --set site.resources=12
      penstock simulate log.swf --io-ratio 0.1 --w-iter '100 s' --set site.nodes=128

    \b
    FILE by its suffix:
      .json  {"horizon": s, "jobs": [{"id", "release", "nodes", "phases": [[compute, io], ...]}]}
             in seconds or words ("5 min"); io may be a volume ("12 GiB", needs site.bandwidth)
      .npz   the same as arrays, for large workloads ('penstock generate' writes it)
      .csv   a row an iteration: job,release,nodes,compute,io
      .swf   Standard Workload Format; it has no I/O, so --io-ratio and --w-iter make it up
      .jsonl, .jsonl.gz  the record of a live day; see 'penstock what-if --help'

    The timeline has the columns job,resource,start,end,share: a row a stretch of constant share.
    """
    loaded = options.load(
        config_file,
        settings,
        {
            "sharing.policy": policy,
            "simulation.knowledge": knowledge,
            "simulation.seed": seed,
            "simulation.window": window,
            "allocation.policy": allocation,
            "placement.policy": placement,
            "allocation.remap-delay": remap_delay,
        },
    )
    config = loaded.config
    outputs = [path for path in (timeline, plot) if path is not None]
    if len({path.resolve() for path in (file, *outputs)}) <= len(outputs):
        raise InputError(
            "--timeline and --plot must name files of their own, neither each other's nor the "
            "workload's"
        )
    for path in outputs:
        check_writable(path)
    span = _plot_span(plot, plot_window)
    if plot is not None:
        from penstock.report import gantt  # noqa: PLC0415 - matplotlib takes half a second

        gantt.check_format(plot)
    workload = options.Reader(loaded, (file,), io_ratio, w_iter).read(file)
    simulator = _Simulator(
        workload=workload,
        sharing=config.sharing.sharing(),
        site=config.site.site(),
        knowledge=options.knowledge(loaded),
        arbiter=config.arbiter,
        engine=reference.simulate if by_reference else engine.simulate,
    )
    named = (config.sharing.policy, config.allocation.policy, config.placement.policy)
    with error_prefix(file), policy_errors(*named):
        run, seconds = simulator.timed(repeat)
        measured = metrics.measure(run, config.simulation.seconds())
    result = {
        "policy": config.sharing.policy,
        "file": click.format_filename(file),
        "jobs": len(workload),
        "iterations": workload.iterations,
        "events": run.phase_ends,
        **_metrics(measured),
        **simulator.remaps,
        "engine_seconds": seconds,
        "repeat": repeat,
        "engine": "reference" if by_reference else "native",
    }
    if per_job:
        result["per_job"] = job_rows(run, measured.window)
    if timeline is not None or plot is not None:
        run = simulator.run(timeline=True)
    if plot is not None:
        drawn = gantt.draw(
            run, plot, title=config.sharing.policy, span=span, window=measured.window
        )
        result["plot"] = {"file": click.format_filename(plot), "note": drawn}
    if timeline is not None:
        write_timeline(run, timeline)
    emit_json(result) if as_json else _show(result)


def _plot_span(plot: Path | None, text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    if plot is None:
        raise InputError("--plot-window is the span of a picture; add --plot FILE.png")
    try:
        return parse_window(text)
    except InputError as error:
        raise InputError(f"--plot-window: {error}") from error


class _Simulator:
    """One simulation, to be run again and again."""

    def __init__(
        self,
        *,
        workload: Workload,
        sharing: Sharing,
        site: Site,
        knowledge: Knowledge,
        arbiter: Callable[[], Arbiter | None],
        engine: Any,
    ) -> None:
        self._given = (workload, sharing)
        self._how = {"site": site, "knowledge": knowledge}
        self._arbiter = arbiter
        self._engine = engine
        self.remaps: dict[str, int] = {}
        """How often running jobs were moved, where resources are allocated."""

    def run(self, *, timeline: bool = False) -> Run:
        arbiter = self._arbiter()
        arbitrate = None if arbiter is None else arbiter.handle
        run: Run = self._engine(*self._given, **self._how, arbitrate=arbitrate, timeline=timeline)
        self.remaps = {} if arbiter is None else {"remaps": arbiter.moves}
        return run

    def timed(self, repeat: int) -> tuple[Run, float]:
        """Return the run and the median time of one engine call."""
        seconds = []
        with progress("simulating", repeat) if repeat > 1 else nullcontext() as shown:
            for _ in range(repeat):
                began = time.perf_counter()
                run = self.run()
                seconds.append(time.perf_counter() - began)
                if shown is not None:
                    shown.advance()
        return run, statistics.median(seconds)


def _metrics(measured: metrics.Metrics) -> dict[str, Any]:
    return {name: getattr(measured, name) for name in metrics.Metrics.__dataclass_fields__}


def job_rows(run: Run, window: tuple[float, float]) -> list[dict[str, Any]]:
    """Return each job's figures in the window; `waiting` is time in I/O beyond the isolated."""
    jobs = metrics.measure_jobs(run, window)
    waiting = np.maximum(0.0, jobs.running - jobs.compute - jobs.io)
    columns: dict[str, Any] = {
        "nodes": run.workload.nodes,
        "w_iter": run.workload.w_iter,
        "start": run.start,
        "finish": run.finish,
        "stretch": jobs.stretch,
        "io_slowdown": jobs.io_slowdown,
        "compute": jobs.compute,
        "io": jobs.io,
        "waiting": waiting,
        "iterations": jobs.iterations,
    }
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [
        {"job": run.workload.id(j), **dict(zip(columns, row, strict=True))}
        for j, row in enumerate(rows)
    ]


def write_timeline(run: Run, path: Path) -> None:
    """Write who transferred when, where, and at which share."""
    timeline = run.timeline
    assert timeline is not None
    columns = (timeline.job, timeline.resource, timeline.start, timeline.end, timeline.share)
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("job", "resource", "start", "end", "share"))
        for first in range(0, len(timeline.job), ROWS_AT_ONCE):
            rows = (column[first : first + ROWS_AT_ONCE].tolist() for column in columns)
            out.writerows((run.workload.id(j), *rest) for j, *rest in zip(*rows, strict=True))


def _show(result: dict[str, Any]) -> None:
    begin, end = result["window"]
    rows = [
        (name, _number(result[name]), text.format(**result))
        for name, text in MEANING.items()
        if name in result
    ]
    emit_table(
        ("metric", "value", "meaning"),
        rows,
        title=f"{result['policy']} on {result['file']}: {result['jobs']:,} jobs, "
        f"{result['iterations']:,} iterations, measured from {begin:g} to {end:g} s",
        text={"meaning"},
    )
    if "per_job" in result:
        _show_jobs(result["per_job"])
    if "plot" in result:
        click.echo(f"{result['plot']['file']}: {result['plot']['note']}")


def _show_jobs(jobs: list[dict[str, Any]]) -> None:
    # NaN, of a job that is not there in the window, goes last.
    worst = sorted(jobs, key=lambda job: -job["stretch"] if job["stretch"] > 0 else 0.0)
    shown = worst[:MOST_JOBS_SHOWN]
    rows = [(job["job"], *(_number(v) for k, v in job.items() if k != "job")) for job in shown]
    click.echo()
    emit_table(list(shown[0]), rows)
    if len(worst) > len(shown):
        click.echo(f"... and {len(worst) - len(shown):,} more jobs; --json has all of them")


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if value != value:  # noqa: PLR0124 - NaN
        return "-"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"
