"""penstock patterns measure: take observations of known access patterns."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import click

from penstock.cli.common import live_options
from penstock.cli.common.host_options import HostOptions, where
from penstock.cli.common.options import PATH, option, order_seed, typed
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.errors import InputError
from penstock.files import check_writable

if TYPE_CHECKING:
    from penstock.campaign.journal import Value
    from penstock.live.measure.survey import Survey

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(HostOptions):
    """Options of the verb."""

    out: Annotated[
        Path,
        option(
            "--out",
            metavar="FILE.csv",
            required=True,
            type=PATH,
            help="File for the observations; FILE.csv.jsonl keeps the results of an interrupted "
            "run.",
        ),
    ]
    sizes: Annotated[
        str | None,
        option("--sizes", metavar="SIZE,...", help="Request sizes. Default: 32,256,64,128 KiB."),
    ]
    processes: Annotated[
        str | None,
        option("--processes", metavar="N,...", help="Numbers of ranks. Default: 4,8,16."),
    ]
    io_nodes: Annotated[
        str | None,
        option("--io-nodes", metavar="N,...", help="Numbers of I/O nodes. Default: 1,2,4."),
    ]
    interval: Annotated[
        str | None,
        option("--interval", metavar="TIME", help="Interval of observations. Default: 100 ms."),
    ]
    seconds: Annotated[
        str | None, option("--seconds", metavar="TIME", help="Duration of a run. Default: 1.5 s.")
    ]
    volume: Annotated[
        str | None,
        option("--volume", metavar="SIZE", help="Total size of a run's files. Default: 320 MiB."),
    ]
    keep: Annotated[
        int | None,
        option(
            "--keep",
            metavar="N",
            type=click.IntRange(1, 1000),
            help="Observations per run. Default: 10.",
        ),
    ]
    full: Annotated[
        bool,
        option(
            "--full", is_flag=True, help="The grid of the thesis (128 to 512 ranks): takes hours."
        ),
    ]
    off_grid: Annotated[
        bool,
        option(
            "--off-grid",
            is_flag=True,
            help="Accesses that no model was trained with, to evaluate one. Default: 6 and 12 "
            "ranks, 1 and 3 I/O nodes.",
        ),
    ]
    root: Annotated[
        Path | None,
        option(
            "--root",
            metavar="DIR",
            type=PATH,
            help="Directory of the ranks' files. Default: one in memory; --slurm needs one that "
            "all hosts see.",
        ),
    ]
    emulate: Annotated[
        str | None,
        option(
            "--emulate",
            metavar="SPEC",
            help="The emulated file system; default: see docs/live/patterns.md. None with --slurm.",
        ),
    ]
    seed: Annotated[int, order_seed]

    def grid(self) -> dict[str, Any]:
        """Return what differs from the survey's own grid."""
        given = {
            "sizes": live_options.sizes(self.sizes),
            "processes": live_options.counts(self.processes, "--processes", (1, 4096)),
            "io_nodes": live_options.counts(self.io_nodes, "--io-nodes", (1, 64)),
            "interval": live_options.seconds(self.interval, "--interval"),
            "seconds": live_options.seconds(self.seconds, "--seconds"),
            "volume": live_options.volume(self.volume, "--volume") or None,
            "keep": self.keep,
        }
        return {name: value for name, value in given.items() if value is not None}


@click.command(short_help="Take observations of known patterns.")
@typed(Options)
@json_option
def measure(*, options: Options, as_json: bool) -> int:
    """Replay every pattern through real I/O nodes, and keep observations of each run.

    \b
    Examples:
      penstock patterns measure --out seen.csv                         about ten minutes
      penstock patterns measure --out few.csv --sizes 64KiB --processes 4 --io-nodes 1
      penstock patterns train seen.csv --out model.json                use the result
      penstock patterns measure --off-grid --out other.csv             about seven minutes

    The grid is pattern x operation x request size x ranks x I/O nodes, in random order, on an
    emulated file system. The same number of observations is kept of each run, none of its begin and
    end. The command starts I/O nodes of its own, and ends them. After an interruption the same
    command continues where it stopped.
    """
    from penstock.learn.detection import samples  # noqa: PLC0415 - 'show' does not need it
    from penstock.live.measure import off_grid_survey, pattern_survey  # noqa: PLC0415

    out, seed, given = options.out, options.seed, options.grid()
    check_writable(out)
    placement = options.placement({"--emulate": options.emulate, "--off-grid": options.off_grid})
    if placement is not None and options.root is None:
        raise InputError("--slurm needs --root: a directory that all hosts see")
    emulate = options.emulate or pattern_survey.EMULATED_STORAGE
    if options.off_grid:
        if options.full or options.root or given.keys() - {"processes", "io_nodes"}:
            raise InputError("--off-grid goes with --processes, --io-nodes, --emulate and --seed")
        runs, rows = _run(off_grid_survey.survey(emulate=emulate, seed=seed, **given), out)
        samples.OFF_GRID.write(out, map(samples.off_grid_sample, rows))
    else:
        grid = pattern_survey.grid(full=options.full, **given)
        survey = pattern_survey.survey(
            grid,
            root=options.root,
            emulate=None if placement is not None else emulate,
            seed=seed,
            placement=placement,
        )
        runs, rows = _run(survey, out)
        samples.write(out, map(samples.sample, rows))
    result = {"out": str(out), "observations": len(rows), "runs": runs}
    result |= {"emulated": None, "hosts": placement.hosts} if placement else {"emulated": emulate}
    if as_json:
        emit_json(result)
    else:
        echo(f"{len(rows)} observations of {runs} runs, {where(placement)}")
        follows = (
            f"evaluate --off-grid {out}" if options.off_grid else f"train {out} --out model.json"
        )
        echo(f"next: penstock patterns {follows}")
    return 0


def _run(patterns: "Survey[T]", out: Path) -> tuple[int, list[dict[str, "Value"]]]:
    """Run a survey, and return the number of its runs, and their rows."""
    from penstock.campaign.journal import Journal  # noqa: PLC0415
    from penstock.cli.common import survey  # noqa: PLC0415

    with Journal(out.with_name(out.name + ".jsonl"), patterns.header) as journal:
        survey.run(patterns, journal, "measuring")
        return len(patterns.cells), list(patterns.rows(journal))
