"""penstock simulate: a workload under one sharing policy."""

import csv
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import click
import numpy as np

from penstock.campaign.policy_file import policy_errors
from penstock.cli.common import workload_files
from penstock.cli.common.conditions import explain_as_live
from penstock.cli.common.options import (
    METRICS,
    PATH,
    RESOURCES,
    Configuration,
    argument,
    option,
    typed,
)
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.cli.common.workload_files import Reader, as_live, explain_window, knowledge
from penstock.config import OWN, Config, Loaded
from penstock.config import window as parse_window
from penstock.core.arbiter import Arbiter
from penstock.errors import InputError, error_prefix
from penstock.files import check_writable, replacing
from penstock.model import Site
from penstock.policies.base import Sharing
from penstock.printable import display_name
from penstock.progress import progress
from penstock.sim import engine, metrics, reference
from penstock.sim.evaluate import divisions, packs
from penstock.sim.knowledge import Knowledge
from penstock.sim.run import Run
from penstock.sim.workload import Workload
from penstock.units import show_count

ROWS_AT_ONCE = 1 << 16
MOST_JOBS_SHOWN = 40
MEANING = {
    "utilization": "computing time over allocated time; {utilization_bound:.4f} if no job waited, "
    "for the same work",
    "max_stretch": "the worst job's elapsed time over its work",
    "max_stretch_from_start": "the same from its start, as paper packs: (end - start) / time alone",
    "max_stretch_from_release": "the same from its release: waiting for earlier packs counts",
    "pack_stretch": "mean over {packs} packs of the largest stretch from the start",
    "io_slowdown": "time in I/O over isolated I/O, geometric mean of jobs",
    "min_yield": "the worst job's work over elapsed time",
    "efficiency": "work over elapsed time, weighted by nodes",
    "makespan": "seconds until the last job ended",
    "executing": "node time in computation or in I/O as if alone, part of all node time",
    "delayed": "node time lost waiting for I/O, part of all node time",
    "idle": "node time without a job, part of all node time",
    "overrun": "makespan over the one without contention",
    "released": "phases that transferred without a turn, after max-wait",
    "remaps": "number of times that a running job got other resources",
    "engine_seconds": "seconds that the simulation itself took, median of {repeat}",
}
IO_RESOURCES = {
    "mean_slowdown": "Mean-I/O-SlowDown: I/O time over that alone on its best number of resources",
    "max_slowdown": "the same of the worst job",
    "rho_io": "what the numbers of resources cost: b(n_perf) / b(n), mean of jobs",
    "rho_con": "what other jobs cost: slowdown - rho_io, mean of jobs",
    "spread": "I/O-spread: time in use of the busiest resource minus that of the idlest",
    "idle_time": "Machine-IdleTime: node time in I/O, part of all node time",
    "bandwidth": "sum over jobs of volume over I/O time, in the curves' unit",
}
NODES_UNKNOWN = (
    "executing, delayed and idle are parts of all node time, which is not known without the number "
    "of compute nodes: set site.nodes"
)
MOST_JOBS_TOGETHER = 10_000
"""Workloads of more jobs are not evaluated as one set of jobs that run together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the verb."""

    file: Annotated[Path, argument(type=PATH)]
    repeat: Annotated[
        int,
        option(
            "--repeat",
            metavar="N",
            type=click.IntRange(1),
            default=1,
            help="Run the engine N times and report the median time.",
        ),
    ]
    per_job: Annotated[
        bool, option("--jobs", is_flag=True, help="List the jobs, worst stretch first.")
    ]
    timeline: Annotated[
        Path | None,
        option("--timeline", metavar="FILE", type=PATH, help="Write granted shares as CSV."),
    ]
    plot: Annotated[
        Path | None,
        option(
            "--plot", metavar="FILE", type=PATH, help="Draw a Gantt chart (.png, .svg or .pdf)."
        ),
    ]
    plot_window: Annotated[
        str | None,
        option("--plot-window", metavar="BEGIN:END", help="The time span of the Gantt chart."),
    ]
    by_reference: Annotated[
        bool,
        option("--reference", is_flag=True, help="Use the slow reference simulator in Python."),
    ]
    io_ratio: Annotated[float | None, workload_files.io_ratio]
    w_iter: Annotated[str | None, workload_files.w_iter]

    def plot_span(self) -> tuple[float, float] | None:
        """Return the time span of the Gantt chart; None: all of the run."""
        if self.plot_window is None:
            return None
        if self.plot is None:
            raise InputError("--plot-window is the span of a chart; add --plot FILE.png")
        with error_prefix("--plot-window"):
            return parse_window(self.plot_window)

    def check_outputs(self) -> None:
        """Raise InputError unless the files to write can be written."""
        outputs = [path for path in (self.timeline, self.plot) if path is not None]
        if len({path.resolve() for path in (self.file, *outputs)}) <= len(outputs):
            raise InputError("--timeline, --plot and the workload must be three different files")
        for path in outputs:
            check_writable(path)


@click.command()
@typed(Options)
@Configuration(
    {"--policy": "sharing.policy", **METRICS, **RESOURCES},
    policies=("sharing", "allocation", "placement"),
)
@json_option
def simulate(*, options: Options, loaded: Loaded, as_json: bool) -> None:
    """Simulate the workload in FILE under one sharing policy, and print its metrics.

    \b
    Examples:
      penstock simulate jobs.json --policy set-10
      penstock simulate jobs.json --policy set-10 --knowledge learned --window 6000:14000 --json
      penstock simulate jobs.json --policy ./mine.py:Mine --jobs --plot gantt.png
      penstock simulate jobs.json --allocation mckp --remap-delay '10 s' --set site.resources=12
      penstock simulate jobs.json --policy set-10 --as-live --set live.max-wait='10 s'
      penstock simulate log.swf --io-ratio 0.1 --w-iter '100 s' --set site.nodes=128

    \b
    The suffix of FILE tells its format:
      .json  {"horizon": s, "jobs": [{"id", "release", "nodes", "phases": [[compute, io], ...]}]}
             in seconds or with units ("5 min"); io may be a volume ("12 GiB", with site.bandwidth)
      .npz   the same as arrays, for large workloads ('penstock generate' writes it)
      .csv   one row per iteration: job,release,nodes,compute,io
      .swf   Standard Workload Format; it has no I/O, so --io-ratio and --w-iter add it
      .jsonl, .jsonl.gz  the record of a live day; see 'penstock what-if --help'

    A file with packs (as 'penstock pack --out' writes it) also gets the metrics of paper packs, one
    whose jobs have curves those of paper io-resources, for the resources that they are given.

    With --as-live the simulation also has what a controller and its agents do in mode enforce, with
    the values of [live]. The lease, lent turns and the dirty window have no counterpart in a
    simulation; see docs/simulate/as-live.md.

    The timeline has the columns job,resource,start,end,share: one row per interval of constant
    share.
    """
    config = loaded.config
    options.check_outputs()
    span = options.plot_span()
    if options.plot is not None:
        from penstock.report import gantt  # noqa: PLC0415 - matplotlib takes half a second

        gantt.check_format(options.plot)
    workload = Reader(loaded, (options.file,), options.io_ratio, options.w_iter).read(options.file)
    live = as_live(loaded)
    simulate_once = reference.simulate if options.by_reference else engine.simulate
    simulator = _Simulator(
        workload=workload,
        sharing=config.sharing.sharing(),
        site=config.site.site(),
        knowledge=knowledge(loaded),
        arbiter=config.arbiter,
        engine=simulate_once if live is None else live.simulate,
        marks=config.simulation.seconds() or (),
    )
    policies = (config.sharing.policy, config.allocation.policy, config.placement.policy)
    with error_prefix(options.file), policy_errors(*policies):
        run, seconds = simulator.timed(options.repeat)
        measured = metrics.measure(run, config.simulation.seconds())
    result = {
        "policy": config.sharing.policy,
        "file": display_name(options.file),
        "jobs": len(workload),
        "iterations": workload.iterations,
        "events": run.phase_ends,
        **_metrics(measured),
        **simulator.remaps,
        "engine_seconds": seconds,
        "repeat": options.repeat,
        "engine": "reference" if options.by_reference or live is not None else "native",
    }
    if workload.in_pack.any():
        result |= _packed(run, measured.window)
    if workload.curves is not None and len(workload) <= MOST_JOBS_TOGETHER:
        result["io_resources"] = _io_resources(workload, config)
    if live is not None:
        result |= {"as_live": asdict(live), "released": run.released}
    notes = [*workload_files.baseline_notes(loaded)]
    if workload.in_pack.any() and not config.site.nodes:
        notes.append(NODES_UNKNOWN)
    if notes:
        result["notes"] = notes
    if options.per_job:
        result["per_job"] = job_rows(run, measured.window)
    if options.timeline is not None or options.plot is not None:
        run = simulator.run(timeline=True)
    if options.plot is not None:
        note = gantt.draw(
            run, options.plot, title=config.sharing.policy, span=span, window=measured.window
        )
        result["plot"] = {"file": display_name(options.plot), "note": note}
    if options.timeline is not None:
        write_timeline(run, options.timeline)
    if as_json:
        emit_json(result)
    else:
        _show(result, explain_window(measured.window, loaded))


def _packed(run: Run, window: tuple[float, float]) -> dict[str, Any]:
    """Return the metrics of paper packs, and the largest stretch by both ways to count."""
    jobs = metrics.measure_jobs(run, window)
    return {
        "max_stretch_from_start": metrics.worst(jobs.stretch_from_start),
        "max_stretch_from_release": metrics.worst(jobs.stretch_from_release),
        **asdict(packs.figures(run)),
    }


def _io_resources(workload: Workload, config: Config) -> dict[str, Any]:
    """Return the metrics of paper io-resources, or why they are missing."""
    jobs, site = list(workload.jobs()), config.site.site()
    try:
        divisions.check_curves(workload)
        if config.allocation.policy == OWN:
            places = [workload.resources_of(j) for j in range(len(workload))]
            figures = divisions.measure(jobs, site, places)
        else:
            division = divisions.Division(allocation=config.allocation, placement=config.placement)
            figures = division.figures(jobs, site)
    except InputError as error:
        return {"reason": str(error)}
    return figures | {"exceeds": divisions.exceeds(figures, site)}


class _Simulator:
    """One simulation that can be run repeatedly."""

    def __init__(
        self,
        *,
        workload: Workload,
        sharing: Sharing,
        site: Site,
        knowledge: Knowledge,
        arbiter: Callable[[], Arbiter | None],
        engine: Any,
        marks: tuple[float, ...],
    ) -> None:
        self._input = (workload, sharing)
        self._context = {"site": site, "knowledge": knowledge, "marks": marks}
        self._arbiter = arbiter
        self._engine = engine
        self.remaps: dict[str, int] = {}
        """The number of times that running jobs got other resources, if resources are allocated."""

    def run(self, *, timeline: bool = False) -> Run:
        arbiter = self._arbiter()
        arbitrate = None if arbiter is None else arbiter.handle
        run: Run = self._engine(
            *self._input, **self._context, arbitrate=arbitrate, timeline=timeline
        )
        self.remaps = {} if arbiter is None else {"remaps": arbiter.moves}
        return run

    def timed(self, repeat: int) -> tuple[Run, float]:
        """Return the run and the median time of one engine call."""
        seconds = []
        with progress("simulating", repeat) if repeat > 1 else nullcontext() as bar:
            for _ in range(repeat):
                began = time.perf_counter()
                run = self.run()
                seconds.append(time.perf_counter() - began)
                if bar is not None:
                    bar.advance()
        return run, statistics.median(seconds)


def _metrics(measured: metrics.Metrics) -> dict[str, Any]:
    return {name: getattr(measured, name) for name in metrics.Metrics.__dataclass_fields__}


def job_rows(run: Run, window: tuple[float, float]) -> list[dict[str, Any]]:
    """Return each job's metrics in the window; `waiting` is I/O time beyond the isolated."""
    jobs = metrics.measure_jobs(run, window)
    waiting = np.maximum(0.0, jobs.running - jobs.compute - jobs.io)
    workload = run.workload
    packed = {
        "stretch_from_start": jobs.stretch_from_start,
        "stretch_from_release": jobs.stretch_from_release,
    }
    columns: dict[str, Any] = {
        "nodes": run.workload.nodes,
        "w_iter": run.workload.w_iter,
        "start": run.start,
        "finish": run.finish,
        "stretch": jobs.stretch,
        **(packed if workload.in_pack.any() else {}),
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
    """Write the intervals in which each job transferred, with resource and share."""
    timeline = run.timeline
    assert timeline is not None
    columns = (timeline.job, timeline.resource, timeline.start, timeline.end, timeline.share)
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("job", "resource", "start", "end", "share"))
        for first in range(0, len(timeline.job), ROWS_AT_ONCE):
            rows = (column[first : first + ROWS_AT_ONCE].tolist() for column in columns)
            out.writerows((run.workload.id(j), *rest) for j, *rest in zip(*rows, strict=True))


def _show(result: dict[str, Any], window: str) -> None:
    rows = [
        (name, _number(result[name]), text.format(**result))
        for name, text in MEANING.items()
        if name in result
    ]
    emit_table(
        ("metric", "value", "meaning"),
        rows,
        title=f"{result['policy']} on {result['file']}: {show_count(result['jobs'], 'job')}, "
        f"{show_count(result['iterations'], 'iteration')}",
        text={"meaning"},
    )
    echo(window)
    for note in result.get("notes", ()):
        echo(note)
    if "io_resources" in result:
        _show_resources(result["io_resources"])
    if "as_live" in result:
        echo(explain_as_live(result["as_live"]))
    if "per_job" in result:
        _show_jobs(result["per_job"])
    if "plot" in result:
        echo(f"{result['plot']['file']}: {result['plot']['note']}")


def _show_resources(figures: dict[str, Any]) -> None:
    title = "paper io-resources: all jobs at once, resources shared evenly, until the first ends"
    if "reason" in figures:
        echo(f"no metrics of paper io-resources: {figures['reason']}")
        return
    rows = [(name, _number(figures[name]), text) for name, text in IO_RESOURCES.items()]
    echo()
    emit_table(("metric", "value", "meaning"), rows, title=title, text={"meaning"})


def _show_jobs(jobs: list[dict[str, Any]]) -> None:
    # NaN, the stretch of a job that does not run in the window, sorts last.
    worst = sorted(jobs, key=lambda job: -job["stretch"] if job["stretch"] > 0 else 0.0)
    listed = worst[:MOST_JOBS_SHOWN]
    rows = [(job["job"], *(_number(v) for k, v in job.items() if k != "job")) for job in listed]
    echo()
    emit_table(list(listed[0]), rows)
    if len(worst) > len(listed):
        echo(f"... and {len(worst) - len(listed):,} more jobs; --json lists all of them")


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if value != value:  # noqa: PLR0124 - NaN
        return "-"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"
