"""penstock tuner show: what was learned, by access pattern."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option, table
from penstock.errors import InputError
from penstock.files import reason
from penstock.live.protocol.state_directory import StateDirectory
from penstock.progress import console
from penstock.units import show_bandwidth, show_seconds, show_volume

_FORMATS = {"window": show_seconds, "aggregation": show_volume}


def show_value(parameter: str, value: Any) -> str:
    """Return a parameter's value as text."""
    if value is None:
        return "-"
    show = _FORMATS.get(parameter)
    return str(value) if show is None or isinstance(value, str) else show(value)


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
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
    contents = [read(path) for path in paths]
    if as_json:
        emit_json({"learned": [learned for learned, _ in contents]})
        return
    out = console()
    for learned, rows in contents:
        out.print(f"{learned['policy']}  ({learned['file']})", highlight=False, markup=False)
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


def read(path: Path) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
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
                    show_volume(context["size"]),
                    str(context["load"]),
                    show_value(parameter, value) + (" *" if one is best else ""),
                    f"{count:,.1f}",
                    show_bandwidth(mean) if count > 0 else "-",
                )
