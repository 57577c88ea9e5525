"""penstock tuner show: what was learnt, context by context."""

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

_SHOWN = {"window": show_seconds, "aggregation": show_volume}


def show_value(parameter: str, value: Any) -> str:
    """Return a parameter's value in words."""
    if value is None:
        return "-"
    show = _SHOWN.get(parameter)
    return str(value) if show is None or isinstance(value, str) else show(value)


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@live_options.state
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
    found = [
        read(path) for path in ([file] if file is not None else _files(StateDirectory(folder)))
    ]
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


def _files(state: StateDirectory) -> list[Path]:
    found = sorted(state.tuning.glob("*.json")) if state.tuning.is_dir() else []
    if not found:
        raise InputError(
            f"nothing was learnt in {state.folder} so far; 'penstock up --tune ...' begins"
        )
    return found


def read(path: Path) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
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
