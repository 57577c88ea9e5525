"""penstock explore: measure the bandwidth of access patterns over numbers of I/O nodes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

import click
import msgspec

from penstock.campaign.journal import Journal
from penstock.cli.common import live_options, survey
from penstock.cli.common.host_options import HostOptions
from penstock.cli.common.options import PATH, Configuration, argument, option, order_seed, typed
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.config import Loaded
from penstock.errors import InputError
from penstock.files import replacing
from penstock.learn.convergence import Convergence
from penstock.live.deployment.spec import Deployment, check_emulation, check_roots
from penstock.live.measure import access_patterns, explore_survey, explorer, mpi
from penstock.live.measure.access_patterns import Patterns
from penstock.live.measure.explore_survey import ConvergenceRounds, Results
from penstock.live.measure.explorer import Cell, Distribution, Run
from penstock.live.protocol import messages
from penstock.live.protocol.shared_page import MAP_NODES
from penstock.report.tables import rows_csv

IO_NODES = (0, 1, 2, 4, 8)
REPEATS = 5
MAX_REPEATS = 30
"""With --until-converged: by Formula 2, a mean that 30 runs do not determine varies by more than a
quarter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(HostOptions):
    """Options of the verb."""

    file: Annotated[Path, argument(metavar="PATTERNS.json", type=PATH)]
    io_nodes: Annotated[
        str | None,
        option(
            "--io-nodes",
            metavar="N,...",
            help="Numbers of I/O nodes; 0 is direct. Default: the file's, or 0,1,2,4,8.",
        ),
    ]
    processes: Annotated[
        str | None,
        option("--processes", metavar="N,...", help="Numbers of ranks. Default: the file's, or 4."),
    ]
    root: Annotated[
        Path | None,
        option(
            "--root",
            metavar="DIR",
            type=PATH,
            help="Directory to write to and read from. Default: that of the patterns' paths.",
        ),
    ]
    repeats: Annotated[
        int | None,
        option(
            "--repeats",
            metavar="K",
            type=click.IntRange(1),
            help="Runs per job and number. Default: 5; with --until-converged, at most 30.",
        ),
    ]
    until_converged: Annotated[
        bool,
        option(
            "--until-converged",
            is_flag=True,
            help="Repeat each until its mean time is known to 10% (95% confidence).",
        ),
    ]
    budget: Annotated[
        str | None,
        option("--budget", metavar="TIME", help="Start no run later than this ('2 h')."),
    ]
    seed: Annotated[int, order_seed]
    out: Annotated[
        Path,
        option(
            "--out",
            metavar="DIR",
            type=PATH,
            default=Path("explored"),
            show_default=True,
            help="Directory of results; after an interruption, the same command continues there.",
        ),
    ]
    emulate: Annotated[
        str | None,
        option(
            "--emulate",
            metavar="SPEC",
            help="Emulate a parallel file system, as 'penstock up' does (docs/live/emulator.md).",
        ),
    ]
    stripe: Annotated[
        str | None,
        option(
            "--stripe",
            metavar="SIZE",
            help="Stripe files over I/O nodes in pieces of this size, a multiple of 64 KiB.",
        ),
    ]
    mpi: Annotated[
        bool,
        option(
            "--mpi",
            is_flag=True,
            help="Start ranks with mpiexec (extra mpi) instead of forking them.",
        ),
    ]
    distribution: Annotated[
        Distribution,
        option(
            "--distribution",
            type=click.Choice(get_args(Distribution)),
            default="cyclic",
            show_default=True,
            help="Ranks that share an I/O node: consecutive ones (block, as in FORGE), or every "
            "N-th (cyclic).",
        ),
    ]

    def io_node_counts(self, patterns: Patterns) -> Sequence[int]:
        """Return the numbers of I/O nodes to measure."""
        if self.io_nodes is None and patterns.forwarders is not None:
            return (patterns.forwarders,)
        return live_options.counts(self.io_nodes, "--io-nodes", (0, MAP_NODES)) or IO_NODES

    def rounds(self, cells: Sequence[Cell]) -> ConvergenceRounds:
        """Return how often each point is repeated."""
        return ConvergenceRounds(
            points=sorted({cell[:3] for cell in cells}),
            rule=Convergence(),
            max_repeats=self.repeats or (MAX_REPEATS if self.until_converged else REPEATS),
            seed=self.seed,
        )

    def budget_seconds(self) -> float:
        """Return the time after which no run starts."""
        limit = live_options.seconds(self.budget, "--budget")
        if limit == 0:
            raise InputError("--budget must be above zero; give a time such as '2 h'")
        return math.inf if limit is None else limit

    def deployment(self, patterns: Patterns, io_nodes: int, loaded: Loaded) -> Deployment:
        """Return the I/O nodes to start."""
        roots = check_roots((_root(patterns) if self.root is None else self.root,))
        settings = msgspec.structs.asdict(loaded.config.io_node)
        settings["depth"] = settings["depth"] or patterns.dispatchers
        return Deployment(
            state="",
            roots=roots,
            io_nodes=io_nodes,
            emulate=check_emulation(self.emulate, roots),
            settings=messages.Settings(**settings),
            stripe=live_options.stripe(self.stripe),
            attached=True,
        )


CONFIGURATION = Configuration(
    {"--scheduler": "io-node.scheduler", "--depth": "io-node.depth"},
    default_texts={"io-node.depth": "the file's dispatchers, or 16"},
    only="io-node",
)


@click.command()
@typed(Options)
@CONFIGURATION
@json_option
def explore(*, options: Options, loaded: Loaded, as_json: bool) -> int:
    """Replay access patterns through real I/O nodes, and measure the bandwidth per number of them.

    \b
    Examples:
      penstock explore examples/patterns.json --root /scratch --io-nodes 0,1,2,4 --out curves
      penstock explore examples/patterns.json --root data --emulate targets=4,rate=100MiB/s
      penstock explore examples/forge.json --root data --scheduler twins --set io-node.window='8 ms'
      penstock allocate curves/curves.json --io-nodes 4      use the result

    PATTERNS.json has FORGE's format (docs/formats/pattern-files.md); FORGE's phases are one job, in
    their order. The command starts I/O nodes of its own, with the section [io-node] of the
    configuration, and ends them. Runs come in random order, and every result is kept in
    DIR/runs.jsonl: after an interruption the same command continues where it stopped. With
    --until-converged, points that vary are repeated more often, by Formula 2 of
    docs/formats/samples.md; points that have not converged in the end are listed.

    In a Slurm allocation of several hosts, ranks and I/O nodes run on all of them:

    \b
      salloc -N 4 penstock explore examples/patterns.json --root /lustre/me --processes 64
      salloc -N 6 penstock explore examples/forge.json --root /lustre/me --io-node-hosts 2

    DIR/curves.json is for 'penstock allocate', DIR/summary.csv has quartiles of jobs,
    DIR/operations.csv of their writes and reads, DIR/ranks.csv the times, the I/O node and the
    host of each rank, DIR/io-nodes.csv what each I/O node did.

    Bandwidth is bytes over makespan, the slowest rank's time, in MB/s. A run is marked if its job's
    counters do not show that every byte went through I/O nodes (or, without any, direct). Marked
    runs are left out of the figures, and make the exit status 1.
    """
    patterns, ignored = access_patterns.read(options.file)
    if ignored:
        echo(f"penstock: {options.file}: ignored: {', '.join(ignored)}", err=True)
    placement = options.placement({"--mpi": options.mpi, "--emulate": options.emulate})
    if options.mpi:
        mpi.check_mpi()
    counts = options.io_node_counts(patterns)
    cells = explorer.cells(
        patterns.phases,
        live_options.counts(options.processes, "--processes", (1, 4096)) or (),
        counts,
        repeats=1 if options.until_converged else options.repeats or REPEATS,
        seed=options.seed,
    )
    rounds, budget = options.rounds(cells), options.budget_seconds()
    exploration = explore_survey.survey(
        patterns,
        options.deployment(patterns, max(counts), loaded),
        cells,
        rounds if options.until_converged else None,
        seed=options.seed,
        mpi=options.mpi,
        distribution=options.distribution,
        placement=placement,
    )
    options.out.mkdir(parents=True, exist_ok=True)
    with Journal(options.out / "runs.jsonl", exploration.header) as journal:
        survey.run(exploration, journal, "exploring", budget=budget)
        runs = explore_survey.runs(journal, rounds.points, rounds.max_repeats)
    if not runs:
        raise InputError(f"--budget {options.budget} ended before the first run; give more")
    measured = Results.from_runs(patterns, runs, options.emulate)
    status = _report(measured, options.out, as_json=as_json)
    if options.until_converged:
        missing = _report_unconverged(rounds, runs)
    elif missing := len(cells) - len(runs):
        echo(f"penstock: the budget ended before {missing} of {len(cells)} runs", err=True)
    return 1 if missing else status


def _report(exploration: Results, out: Path, *, as_json: bool) -> int:
    """Write and print the results; return the exit status."""
    document = exploration.document()
    indented = msgspec.json.format(msgspec.json.encode(document), indent=2)
    for name, text in (
        ("curves.json", indented.decode() + "\n"),
        ("summary.csv", rows_csv(exploration.summary_rows())),
        ("operations.csv", rows_csv(exploration.operation_rows())),
        ("ranks.csv", rows_csv(exploration.rank_rows())),
        ("io-nodes.csv", rows_csv(exploration.io_node_rows())),
    ):
        with replacing(out / name) as partial:
            partial.write_text(text, encoding="utf-8")
    marked = exploration.marked
    if as_json:
        points = {"points": exploration.points, "operation_points": exploration.operations}
        causes = [run.cell._asdict() | {"why": run.marked} for run in marked]
        emit_json(document | points | {"marked": causes, "out": str(out)})
    else:
        _print_table(exploration, out)
    for run in marked[:3]:
        cell = f"{run.cell.phase} over {run.cell.io_nodes} I/O nodes, run {run.cell.repeat}"
        echo(f"penstock: marked: {cell}: {run.marked}", err=True)
    if marked:
        count = f"{len(marked)} of {len(exploration.runs)}"
        echo(f"penstock: {count} runs are marked, and left out", err=True)
    return 1 if marked else 0


def _print_table(exploration: Results, out: Path) -> None:
    rows = [
        (
            point.job,
            point.operation,
            str(point.processes),
            str(point.io_nodes) if point.io_nodes else "direct",
            *("-" if v is None else f"{v:,.1f}" for v in (point.median, point.q1, point.q3)),
            f"{point.runs - point.marked} of {point.runs}",
        )
        for point in exploration.operations
    ]
    # Not as the table's title, which would be broken at the table's width.
    emulated = exploration.emulated
    storage = f", on an emulated file system ({emulated})" if emulated else ""
    echo(f"median bandwidth and quartiles over repeats{storage}\n")
    columns = ("job", "operation", "processes", "I/O nodes", "MB/s", "Q1", "Q3", "runs")
    emit_table(columns, rows)
    echo(f"\nnext: penstock allocate {out / 'curves.json'} --io-nodes N")


def _report_unconverged(rounds: ConvergenceRounds, runs: Sequence[Run]) -> int:
    """Print the points that have not converged; return how many there are."""
    pending = rounds.pending(runs)
    for phase, processes, io_nodes in pending[:3]:
        point = f"{phase} by {processes} over {io_nodes} I/O nodes"
        echo(f"penstock: not converged: {point}", err=True)
    if pending:
        count = f"{len(pending)} of {len(rounds.points)}"
        echo(f"penstock: {count} have not converged", err=True)
    return len(pending)


def _root(patterns: Patterns) -> Path:
    folders = {Path(pattern.path).parent for phase in patterns.phases for pattern in phase.patterns}
    if len(folders) > 1 or not (folder := folders.pop()).is_absolute():
        raise InputError("the patterns' paths are not in one directory; give --root")
    return folder
