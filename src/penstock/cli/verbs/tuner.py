"""penstock tuner: what tuning has learned about the I/O nodes' parameters."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np

from penstock import registry, units
from penstock.cli.common import live_options, options
from penstock.cli.common.host_options import HostOptions, where
from penstock.cli.common.options import PATH
from penstock.cli.common.output import emit_json, emit_table, json_option, table, tuned_value
from penstock.cli.common.terminal import echo
from penstock.config.tuning import TuningSection
from penstock.data import windows
from penstock.errors import InputError, error_prefix
from penstock.files import check_writable, reason
from penstock.live.protocol.state_directory import StateDirectory
from penstock.progress import console
from penstock.sim.evaluate.bandits import Evaluation, Recorded

BINS = 10


@click.group()
def tuner() -> None:
    """Show what tuning has learned in a deployment, or measure and simulate it.

    \b
    Examples:
      penstock tuner show
      penstock tuner show --state ./state --json
      penstock tuner measure --out windows.csv
      penstock tuner simulate --policy ucb1

    'penstock up --tune window --scheduler twins --mode enforce' starts tuning; docs/live/tuning.md
    is the guide.
    """


@tuner.command()
@click.argument("file", required=False, type=PATH)
@live_options.state
@json_option
def show(*, file: Path | None, folder: Path | None, as_json: bool) -> None:
    """Show what tuning has learned: how often each value was tried, and its mean bandwidth.

    \b
    Examples:
      penstock tuner show
      penstock tuner show state/tuning/discounted-ucb.json

    The best value depends on the operation, the access pattern, the request size and the clients
    per I/O node: the table has one row for each of these and each value. Bandwidth is the mean
    while busy; a star marks the best value. A deployment that tunes saves this every ten seconds,
    and when it ends.
    """
    paths = [file] if file is not None else _files(StateDirectory(folder))
    contents = [_read(path) for path in paths]
    if as_json:
        emit_json({"learned": [learned for learned, _ in contents]})
        return
    out = console()
    for learned, rows in contents:
        echo(f"{learned['policy']}  ({learned['file']})")
        if rows:
            heads = ("parameter", "operation", "pattern", "size", "clients", "value", "tried")
            text = {"parameter", "operation", "pattern", "value"}
            out.print(table((*heads, "bandwidth"), rows, text=text))
        else:
            out.print("nothing learned yet")


def _files(state: StateDirectory) -> list[Path]:
    files = sorted(state.tuning.glob("*.json")) if state.tuning.is_dir() else []
    if not files:
        raise InputError(
            f"nothing was learned in {state.folder} yet; 'penstock up --tune ...' starts tuning"
        )
    return files


def _read(path: Path) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """Return the content of a file, and the rows of its table; InputError for another file."""
    try:
        content = msgspec.json.decode(path.read_bytes())
        learned: dict[str, Any] = {
            "file": str(path),
            "policy": str(content["policy"]),
            "saved": float(content["saved"]),
            "tuners": dict(content["learned"]["tuners"]),
        }
        return learned, list(_rows(learned["tuners"]))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error
    except KeyError as error:
        raise InputError(f"{path} is not the state of a tuner: it has no {error}") from error
    except (msgspec.DecodeError, AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise InputError(f"{path} is not the state of a tuner: {reason(error)}") from error


def _rows(tuners: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for parameter, learned in tuners.items():
        for context in learned.get("contexts", []):
            values = list(zip(context["values"], context["count"], context["mean"], strict=True))
            best = max((v for v in values if v[1] > 0), key=lambda v: v[2], default=None)
            for one in sorted(values, key=lambda k: (isinstance(k[0], str), k[0])):
                value, count, mean = one
                yield (
                    parameter,
                    str(context["operation"]),
                    str(context["pattern"]),
                    units.show_volume(context["size"]),
                    str(context["load"]),
                    tuned_value(parameter, value) + (" *" if one is best else ""),
                    f"{count:,.1f}",
                    units.show_bandwidth(mean) if count > 0 else "-",
                )


@tuner.command(short_help="Measure the bandwidth of every TWINS window.")
@click.option(
    "--out",
    metavar="FILE.csv",
    required=True,
    type=PATH,
    help="File for the rewards; FILE.csv.jsonl keeps the results of an interrupted run.",
)
@click.option("--processes", metavar="N,...", help="Numbers of ranks. Default: 8,16.")
@click.option("--io-nodes", metavar="N,...", help="Numbers of I/O nodes. Default: 1,2,4.")
@click.option("--sizes", metavar="SIZE,...", help="Request sizes. Default: 32KiB,256KiB.")
@click.option(
    "--windows", metavar="TIME,...", help="Default: 125 us to 8 ms, and schedulers without one."
)
@click.option("--seconds", metavar="TIME", help="Duration of a run. Default: 2.7 s.")
@click.option("--volume", metavar="SIZE", help="Total size of a run's files. Default: 384 MiB.")
@click.option(
    "--keep", metavar="N", type=click.IntRange(1, 1000), help="Intervals per run. Default: 20."
)
@click.option(
    "--full", is_flag=True, help="The grid of the thesis (128 to 512 ranks): takes hours."
)
@click.option(
    "--root",
    metavar="DIR",
    type=PATH,
    help="Directory of the ranks' files. Default: one in memory; --slurm needs one that all hosts "
    "see.",
)
@click.option(
    "--emulate",
    metavar="SPEC",
    help="The emulated file system. Default: 'disks'; none with --slurm.",
)
@options.order_seed("seed")
@options.typed(HostOptions)
@json_option
def measure(
    *,
    options: HostOptions,
    out: Path,
    root: Path | None,
    processes: str | None,
    io_nodes: str | None,
    sizes: str | None,
    windows: str | None,
    seconds: str | None,
    volume: str | None,
    keep: int | None,
    full: bool,
    emulate: str | None,
    seed: int,
    as_json: bool,
) -> int:
    """Replay every access pattern with every window, and keep the reward of each interval.

    \b
    Examples:
      penstock tuner measure --out windows.csv                         about half an hour
      penstock tuner measure --out few.csv --processes 16 --io-nodes 4    six minutes
      penstock tuner measure --out two.csv --processes 4 --io-nodes 1 --sizes 64KiB \\
        --windows '500 us,4 ms' --seconds 0.9 --keep 3                    a quick look

    The grid is pattern x operation x request size x ranks x I/O nodes x window, on an emulated file
    system. The command starts I/O nodes of its own, and ends them. After an interruption the same
    command continues where it stopped.

    In a Slurm allocation of several hosts, ranks and I/O nodes run on all of them, on the file
    system of --root, without emulation (docs/live/slurm.md):

    \b
      salloc -N 4 penstock tuner measure --out windows.csv --root /lustre/me --full
    """
    from penstock.campaign.journal import Journal  # noqa: PLC0415 - 'show' does not need it
    from penstock.cli.common import survey  # noqa: PLC0415
    from penstock.data import windows as rewards  # noqa: PLC0415
    from penstock.live.measure import window_survey  # noqa: PLC0415

    placement = options.placement({"--emulate": emulate})
    if placement is not None and root is None:
        raise InputError("--slurm needs --root: a directory that all hosts see")
    check_writable(out)
    given: dict[str, Any] = {
        "processes": live_options.numbers(processes, "--processes") if processes else None,
        "io_nodes": live_options.numbers(io_nodes, "--io-nodes") if io_nodes else None,
        "sizes": live_options.sizes(sizes),
        "seconds": times_of(seconds, "--seconds", 3600.0)[0] if seconds else None,
        "volume": live_options.volume(volume, "--volume"),
        "keep": keep,
    }
    grid = msgspec.structs.replace(
        window_survey.FULL if full else window_survey.GRID,
        **{
            name: tuple(dict.fromkeys(value)) if isinstance(value, list | tuple) else value
            for name, value in given.items()
            if value
        },
    )
    window_survey.check(grid)
    emulated = None if placement else emulate or window_survey.EMULATED_STORAGE
    trials = window_survey.survey(
        grid,
        windows=times_of(windows, "--windows", 1.0) if windows else window_survey.WINDOWS,
        emulate=emulated,
        seed=seed,
        root=root,
        placement=placement,
    )
    with Journal(out.with_name(out.name + ".jsonl"), trials.header) as journal:
        survey.run(trials, journal, "measuring")
        rows = [rewards.reward_series(row) for row in trials.rows(journal)]
    rewards.write(out, rows)
    result = {"out": str(out), "runs": len(rows), "emulated": emulated}
    if as_json:
        emit_json(result | ({"hosts": placement.hosts} if placement else {}))
    else:
        echo(f"{len(rows)} runs, each with one window, {where(placement)}: {out}")
    return 0


def times_of(text: str, flag: str, maximum: float) -> tuple[float, ...]:
    """Parse a list of times, without duplicates."""
    with error_prefix(flag):
        times = tuple(dict.fromkeys(units.seconds(part.strip()) for part in text.split(",")))
    for time in times:
        if not 1e-6 <= time <= maximum:
            raise InputError(f"{flag} {text}: give 1 us to {maximum:g} s")
    return times


@tuner.command(short_help="Simulate a tuning policy on measured rewards.")
@click.argument("file", metavar="[FILE.csv]", required=False, type=PATH)
@click.option(
    "--policy",
    metavar="NAME",
    help="The tuning policy; by default that of --learned, or of the configuration's default.",
)
@click.option(
    "--learned",
    metavar="STATE.json",
    type=PATH,
    help="Start with what a live deployment has learned (state/tuning/POLICY.json).",
)
@click.option(
    "--observations",
    metavar="N",
    type=click.IntRange(BINS, 10_000),
    default=200,
    show_default=True,
    help="The number of choices per scenario.",
)
@click.option(
    "--repetitions",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="The number of simulations per scenario.",
)
@options.seed("seed")
@json_option
def simulate(
    *,
    file: Path | None,
    policy: str | None,
    learned: Path | None,
    observations: int,
    repetitions: int,
    seed: int,
    as_json: bool,
) -> None:
    """Simulate a policy that chooses windows of TWINS, on rewards that were measured with each.

    \b
    Examples:
      penstock tuner simulate                                        use the shipped rewards
      penstock tuner simulate windows.csv --policy thompson          use those of 'tuner measure'
      penstock tuner simulate --learned state/tuning/discounted-ucb.json

    Performance is the mean reward of the choices relative to the best fixed window, at the
    beginning (the first tenth) and at the end. With --learned the policy starts as it would live.
    """
    state, state_policy = (None, None) if learned is None else _window(learned)
    evaluation = Evaluation(
        policy=policy or state_policy or TuningSection().policy,
        observations=observations,
        repetitions=repetitions,
        seed=seed,
        learned=state,
    )
    registry.load("tuning", evaluation.policy)
    measured = windows.by_window(windows.shipped() if file is None else windows.read(file))
    if not measured:
        raise InputError(f"{file} has no scenario with all windows; measure it completely")
    # Deployments learn in bytes per second.
    rewards: Recorded = {
        scenario.name: {w: 2.0**20 * np.array(r) for w, r in each.items()}
        for scenario, each in measured.items()
    }
    contexts = {scenario.name: scenario.context for scenario in measured}
    learning = evaluation.alone(rewards, bin=observations // BINS, contexts=contexts)
    result = [
        {"scenario": name, "begin": float(each[0]), "end": float(each[-1])}
        for name, each in zip(learning.scenarios, learning.performance, strict=True)
    ]
    if as_json:
        emit_json({"policy": evaluation.policy, "learned": state is not None, "scenarios": result})
        return
    rows = [(str(one["scenario"]), f"{one['begin']:.3f}", f"{one['end']:.3f}") for one in result]
    begin, end = (float(learning.performance[:, k].mean()) for k in (0, -1))
    rows.append(("mean", f"{begin:.3f}", f"{end:.3f}"))
    title = f"{evaluation.policy}: reward relative to the best fixed window (measured, emulated)"
    emit_table(("scenario", "begin", "end"), rows, title=title)


def _window(path: Path) -> tuple[dict[str, Any], str]:
    """Return what a live deployment has learned of windows, and its policy."""
    content, _ = _read(path)
    if "window" not in content["tuners"]:
        raise InputError(f"{path} has nothing on windows; use a state learned with --tune window")
    return content["tuners"]["window"], content["policy"]
