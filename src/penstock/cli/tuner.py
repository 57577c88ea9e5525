"""penstock tuner: what was learnt about the I/O nodes' parameters."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from penstock.cli import deployed
from penstock.cli.output import as_json as json_option
from penstock.cli.output import console, emit_json, table
from penstock.errors import InputError
from penstock.files import check_writable, reason
from penstock.live.state import State
from penstock.units import show_bandwidth, show_seconds, show_volume

if TYPE_CHECKING:
    from penstock.live.worths import Try

_SHOWN = {"window": show_seconds, "aggregation": show_volume}


def show_value(parameter: str, value: Any) -> str:
    """Return a parameter's value in words."""
    if value is None:
        return "-"
    show = _SHOWN.get(parameter)
    return str(value) if show is None or isinstance(value, str) else show(value)


@click.group(short_help="What was learnt about the I/O nodes' parameters.")
def tuner() -> None:
    """Look at what the Council of a deployment has learnt, or measure what there is to learn.

    \b
    Examples:
      penstock tuner show
      penstock tuner show --state ./state --json
      penstock tuner measure --out windows.csv

    'penstock up --tune window --scheduler twins --mode enforce' tunes; docs/tuning.md is the guide.
    """


@tuner.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@deployed.state
@json_option
def show(*, file: Path | None, folder: Path | None, as_json: bool) -> None:
    """Show what is known of each context and value: how often it was tried, what it was worth.

    \b
    Examples:
      penstock tuner show
      penstock tuner show state/tuning/discounted-ucb.json

    A context is what the best value depends on: operation, access pattern, size of requests and
    clients an I/O node. Worth is bandwidth while busy, on the mean; the best is marked. It is saved
    every ten seconds while a deployment tunes, and when that ends.
    """
    found = [_read(path) for path in ([file] if file is not None else _files(State(folder)))]
    if as_json:
        emit_json({"learned": [learned for learned, _ in found]})
        return
    out = console()
    for learned, rows in found:
        out.print(f"{learned['policy']}  ({learned['file']})", highlight=False, markup=False)
        if rows:
            heads = ("parameter", "does", "pattern", "size", "clients", "value", "tried", "worth")
            text = {"parameter", "does", "pattern", "value"}
            out.print(table(heads, rows, text=text))
        else:
            out.print("nothing learnt yet")


def _files(state: State) -> list[Path]:
    found = sorted(state.tuning.glob("*.json")) if state.tuning.is_dir() else []
    if not found:
        raise InputError(
            f"nothing was learnt in {state.folder} so far; 'penstock up --tune ...' begins"
        )
    return found


def _read(path: Path) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """Return what a file says, and the rows of its table: a file that has none is no such file."""
    try:
        told = msgspec.json.decode(path.read_bytes())
        learned: dict[str, Any] = {
            "file": str(path),
            "policy": str(told["policy"]),
            "saved": float(told["saved"]),
            "tuners": dict(told["learned"]["tuners"]),
        }
        return learned, list(_rows(learned["tuners"]))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error
    except KeyError as error:
        raise InputError(f"{path} is nothing that a tuner has learnt: it has no {error}") from error
    except (msgspec.DecodeError, AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise InputError(f"{path} is nothing that a tuner has learnt: {reason(error)}") from error


def _rows(tuners: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for parameter, learned in tuners.items():
        for context in learned.get("contexts", []):
            known = list(zip(context["values"], context["count"], context["mean"], strict=True))
            best = max((k for k in known if k[1] > 0), key=lambda k: k[2], default=None)
            for one in sorted(known, key=lambda k: (isinstance(k[0], str), k[0])):
                value, count, mean = one
                yield (
                    parameter,
                    str(context["operation"]),
                    str(context["pattern"]),
                    show_volume(context["size"]),
                    str(context["load"]),
                    show_value(parameter, value) + (" *" if one is best else ""),
                    f"{count:,.1f}",
                    show_bandwidth(mean) if count > 0 else "-",
                )


@tuner.command(short_help="Measure what windows of TWINS are worth.")
@click.option(
    "--out",
    metavar="FILE.csv",
    required=True,
    type=click.Path(path_type=Path),
    help="Where rewards go; FILE.csv.jsonl beside it is what an interruption leaves.",
)
@click.option("--processes", metavar="N,...", help="Ranks; else 8,16.")
@click.option("--io-nodes", metavar="N,...", help="Else 1,2,4.")
@click.option("--full", is_flag=True, help="128 to 512 ranks, 1 to 8 I/O nodes, 1 s: hours.")
@click.option("--emulate", metavar="SPEC", help="The file system; else 'disks'.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the order of runs.")
@json_option
def measure(
    *,
    out: Path,
    processes: str | None,
    io_nodes: str | None,
    full: bool,
    emulate: str | None,
    seed: int,
    as_json: bool,
) -> int:
    """Play every access pattern with every window, and keep what each interval was worth.

    \b
    Examples:
      penstock tuner measure --out windows.csv                         about half an hour
      penstock tuner measure --out few.csv --processes 16 --io-nodes 4    six minutes

    The grid is pattern x operation x request size x ranks x I/O nodes x window, on an emulated file
    system. The I/O nodes are the command's own and end with it. After an interruption the same
    command goes on where it stopped.
    """
    from penstock.cli.survey import Survey  # noqa: PLC0415 - 'show' needs none of it
    from penstock.data import windows  # noqa: PLC0415
    from penstock.live import worths  # noqa: PLC0415

    check_writable(out)
    counts = {
        "processes": deployed.numbers(processes, "--processes") if processes else None,
        "io_nodes": deployed.numbers(io_nodes, "--io-nodes") if io_nodes else None,
    }
    told = {name: tuple(dict.fromkeys(given)) for name, given in counts.items() if given}
    grid = msgspec.structs.replace(worths.FULL if full else worths.GRID, **told)
    if min(*grid.processes, *grid.io_nodes) < 1:
        raise InputError("--processes and --io-nodes: give 1 or more of each")
    emulate = emulate or worths.EMULATED
    wanted = worths.tries(grid, seed)
    survey = Survey(
        study="windows",
        grid=grid,
        emulate=emulate,
        seed=seed,
        seconds=grid.seconds,
        wanted=wanted,
        name=_name,
        begin=lambda root, state: worths.Survey(
            grid, root=root, state=state, emulate=emulate, seed=seed
        ),
        take=lambda begun, one: [begun.take(one).row],
    )
    found = [windows.worth(row) for row in survey.run(out)]
    windows.write(out, found)
    result = {"out": str(out), "runs": len(found), "emulated": emulate}
    if as_json:
        emit_json(result)
    else:
        click.echo(f"{len(found)} runs, each with one window, on an emulated file system: {out}")
    return 0


def _name(one: "Try") -> tuple[str, float, int]:
    setting = f"{one.setting.scheduler}-{round(one.setting.window * 1e6)}"
    return (f"{one.cell.phase} {setting}", float(one.cell.processes), one.cell.io_nodes)
