"""penstock explore: what access patterns reach over numbers of I/O nodes, measured."""

import hashlib
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from penstock import units
from penstock.campaign.journal import Journal
from penstock.cli.common import live_options
from penstock.cli.common.explored import Kept, report
from penstock.cli.common.output import json_option
from penstock.errors import InputError
from penstock.learn.convergence import Convergence
from penstock.live.agent import runner
from penstock.live.deployment.spec import Deployment, emulated, managed
from penstock.live.measure import access_patterns, explorer, mpiexec, scratch
from penstock.live.measure.access_patterns import Patterns
from penstock.live.measure.convergence import Repeating
from penstock.live.measure.explorer import Cell, Explorer, Run
from penstock.live.protocol import messages
from penstock.live.protocol.shared_page import MAP_NODES
from penstock.progress import progress

IO_NODES = (0, 1, 2, 4, 8)
REPEATS = 5
MOST = 30
"""Runs of what does not converge: with Formula 2 a mean that is not known then varies by more than
a quarter."""


@click.command(short_help="Measure access patterns over I/O nodes.")
@click.argument("file", metavar="PATTERNS.json", type=click.Path(path_type=Path))
@click.option("--io-nodes", metavar="N,...", help="0 is direct; else the file's, or 0,1,2,4,8.")
@click.option("--processes", metavar="N,...", help="Ranks; else the file's own, or 4.")
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where to write and read; else where the patterns' paths are.",
)
@click.option(
    "--repeats",
    metavar="K",
    type=click.IntRange(1),
    help="Runs of each phase over each number; else 5, or with --until-converged at most 30.",
)
@click.option(
    "--until-converged",
    is_flag=True,
    help="Repeat each until its mean time is known to 10% (95% confidence).",
)
@click.option("--budget", metavar="TIME", help="No run begins later than this ('2 h').")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the order of runs.")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("explored"),
    show_default=True,
    help="Where results go, and where the same command goes on after an interruption.",
)
@click.option(
    "--emulate",
    metavar="SPEC",
    help="Emulate a parallel file system, as 'penstock up' does: docs/live/emulator.md.",
)
@click.option(
    "--scheduler",
    metavar="NAME",
    help="How I/O nodes order requests; else fifo: docs/live/schedulers.md.",
)
@click.option(
    "--depth",
    metavar="N",
    type=click.IntRange(1),
    help="Requests in service at once; else the file's dispatchers, or 16.",
)
@click.option("--stripe", metavar="SIZE", help="Spread files over I/O nodes in such pieces.")
@click.option("--mpi", is_flag=True, help="Ranks under mpiexec (extra mpi); else forked.")
@json_option
def explore(
    *,
    file: Path,
    io_nodes: str | None,
    processes: str | None,
    root: Path | None,
    repeats: int | None,
    until_converged: bool,
    budget: str | None,
    seed: int,
    out: Path,
    emulate: str | None,
    scheduler: str | None,
    depth: int | None,
    stripe: str | None,
    mpi: bool,
    as_json: bool,
) -> int:
    """Replay access patterns through real I/O nodes and measure what each number of them gives.

    \b
    Examples:
      penstock explore examples/patterns.json --root /scratch --io-nodes 0,1,2,4 --out curves
      penstock explore examples/patterns.json --root data --emulate targets=4,rate=100MiB/s
      penstock allocate curves/curves.json --io-nodes 4      what to do with the result

    PATTERNS.json is FORGE's format; docs/formats/pattern-files.md has it. The I/O nodes are the
    command's own and end with it. Runs come in random order, and what is measured is kept in
    DIR/runs.jsonl: after an interruption the same command goes on where it stopped. With
    --until-converged what varies is run more often than what does not, by Formula 2 of
    docs/formats/samples.md; what has not converged in the end is told. DIR/curves.json is for
    'penstock allocate', DIR/summary.csv has quartiles, DIR/ranks.csv every rank's times.

    Bandwidth is bytes over makespan, the slowest rank's time, in MB/s. A run whose job's counters
    do not show every byte going through I/O nodes (or, with none, past them) is marked, left out of
    the figures, and makes the exit status 1.
    """
    told, ignored = access_patterns.read(file)
    if ignored:
        click.echo(f"penstock: {file}: nothing is done with {', '.join(ignored)}", err=True)
    if mpi:
        mpiexec.check()
    counts = _counts(io_nodes, told)
    cells = explorer.cells(
        told.phases,
        _several(processes, "--processes", 1, 4096),
        counts,
        repeats=1 if until_converged else repeats or REPEATS,
        seed=seed,
    )
    repeating = Repeating(
        points=sorted({cell[:3] for cell in cells}),
        rule=Convergence(),
        most=(repeats or MOST) if until_converged else 0,
        seed=seed,
    )
    limit = _seconds(budget)
    roots = managed((_root(told) if root is None else root,))
    deployment = Deployment(
        state="",
        roots=roots,
        io_nodes=max(counts),
        emulate=emulated(emulate, roots),
        settings=messages.Settings(scheduler=scheduler, depth=depth or told.dispatchers),
        stripe=live_options.volume(stripe, "--stripe"),
        attached=True,
    )
    out.mkdir(parents=True, exist_ok=True)
    header = _header(told, deployment, mpi=mpi)
    with Journal(out / "runs.jsonl", header) as journal:
        kept = Kept(journal)
        try:
            with scratch.interruptible(), scratch.private_state() as state:
                deployment = msgspec.structs.replace(deployment, state=str(state))
                exploring = Explorer(deployment, told.phases, seed=seed, mpi=mpi)
                _measure(exploring, cells, repeating, kept, limit)
        except scratch.InterruptedRun as signalled:
            count = len(kept.runs(repeating.points))
            many = "" if until_converged else f" of {len(cells)}"
            click.echo(
                f"penstock: interrupted; {count}{many} runs are kept in {journal.path}, "
                "the same command goes on from there",
                err=True,
            )
            return 128 + signalled.number
        runs = kept.runs(repeating.points, most=repeating.most or repeats or REPEATS)
    if not runs:
        raise InputError(f"--budget {budget} ended before the first run; give more")
    status = report(told, runs, out, emulate, as_json=as_json)
    short = _unconverged(repeating, runs) if until_converged else len(cells) - len(runs)
    if short and not until_converged:
        click.echo(f"penstock: the budget ended before {short} of {len(cells)} runs", err=True)
    return 1 if short else status


def _unconverged(repeating: Repeating, runs: Sequence[Run]) -> int:
    """Tell what has not converged, and return how many."""
    pending = repeating.pending(runs)
    for phase, processes, io_nodes in pending[:3]:
        where = f"{phase} by {processes} over {io_nodes} I/O nodes"
        click.echo(f"penstock: not converged: {where}", err=True)
    if pending:
        many = f"{len(pending)} of {len(repeating.points)}"
        click.echo(f"penstock: {many} have not converged", err=True)
    return len(pending)


def _measure(
    exploring: Explorer,
    cells: Sequence[Cell],
    repeating: Repeating,
    kept: Kept,
    limit: float,
) -> None:
    """Run what is missing, then further rounds of what has not converged, until the limit."""
    wanted = [cell for cell in cells if cell not in kept]
    if not wanted:
        wanted = repeating.next_round(kept.runs(repeating.points))
    if not wanted:
        return
    ends = time.monotonic() + limit
    with live_options.launch_errors(), exploring:
        while wanted:
            with progress("exploring", len(wanted)) as shown:
                for cell in wanted:
                    if time.monotonic() >= ends:
                        return
                    try:
                        run = exploring.run(cell)
                    except runner.NoJobError as error:
                        raise click.ClickException(str(error)) from error
                    kept.add(run)
                    shown.advance()
            wanted = repeating.next_round(kept.runs(repeating.points))


def _seconds(budget: str | None) -> float:
    if budget is None:
        return math.inf
    try:
        limit = units.seconds(budget)
    except InputError as error:
        raise InputError(f"--budget: {error}") from error
    if not limit:
        raise InputError("--budget is nothing; give a time, as '2 h'")
    return limit


def _several(text: str | None, flag: str, least: int, most: int) -> list[int]:
    if text is None:
        return []
    found = live_options.numbers(text, flag)
    for number in found:
        if not least <= number <= most:
            raise InputError(f"{flag} {number}: give {least} to {most}")
    return list(dict.fromkeys(found))


def _counts(text: str | None, told: Patterns) -> list[int]:
    if text is None and told.forwarders is not None:
        return [told.forwarders]
    return _several(text, "--io-nodes", 0, MAP_NODES) or list(IO_NODES)


def _root(told: Patterns) -> Path:
    folders = {Path(pattern.path).parent for phase in told.phases for pattern in phase.patterns}
    if len(folders) > 1 or not (folder := folders.pop()).is_absolute():
        raise InputError("the patterns' paths are not in one directory; say where with --root")
    return folder


def _header(told: Patterns, deployment: Deployment, *, mpi: bool) -> dict[str, Any]:
    """Return what all runs of a results file have in common."""
    return {
        "study": "explore",
        "patterns": hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:16],
        "root": deployment.roots[0],
        "emulated": deployment.emulate,
        "settings": msgspec.json.encode(deployment.settings).decode(),
        "stripe": deployment.stripe,
        "ranks": "mpi" if mpi else "forked",
    }
