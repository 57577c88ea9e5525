"""penstock curves: what a site knows of applications."""

import os
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from penstock.cli.common import live_options
from penstock.cli.common.options import PATH
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.errors import InputError, error_prefix, unknown
from penstock.learn.imported import ImportedApplication
from penstock.learn.observations import Spread
from penstock.live.deployment.knowledge import knowledge
from penstock.live.protocol import messages
from penstock.live.protocol.application_record import ApplicationRecord
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of, uid_of
from penstock.sim.formats import curves_file
from penstock.sim.formats.curves_file import read_curves
from penstock.units import show_bandwidth, show_count, show_seconds, show_volume

store_option = click.option(
    "--store",
    metavar="URL",
    envvar="PENSTOCK_STORE",
    help="The database of a deployment that is down, if it is not in the state directory. "
    "[$PENSTOCK_STORE]",
)


@click.group()
def curves() -> None:
    """Show, import or forget what is known of applications: bandwidth by number of I/O nodes.

    \b
    Examples:
      penstock curves show
      penstock curves import explored/curves.json --only write --application ior
      penstock curves forget ior

    A controller learns from every phase, and keeps it in its store. These commands ask the
    controller; where none is up, they open the store. A user sees and changes what is known of
    their own applications, the deployment's user and root those of all. docs/live/knowledge.md is
    the guide.
    """


@curves.command()
@click.argument("application", required=False)
@click.option("--user", metavar="USER", help="Show only this user's applications.")
@live_options.state
@store_option
@json_option
def show(
    *,
    application: str | None,
    user: str | None,
    folder: Path | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Show what is known of all applications, or of one.

    \b
    Examples:
      penstock curves show
      penstock curves show ior --state ./state --json

    The bandwidth is the median over phases that had the file system to themselves with that number
    of I/O nodes (0: direct), with quartiles and the number of phases; with none it was imported, or
    it is a prior: the median of applications with the same access pattern and similar requests.
    Bytes, computation and w_iter are medians over the phases with any number of I/O nodes, in the
    first row of an application.
    """
    with live_options.launch_errors(), knowledge(StateDirectory(folder), store) as known:
        records = known.records(user)
    records = [one for one in records if application in (None, one.application)]
    records.sort(key=lambda one: (one.user, one.application, one.nodes))
    if as_json:
        emit_json(msgspec.to_builtins(records))
        return
    rows = [row for one in records for row in _rows(one)]
    if not rows:
        echo("no application is known" if application is None else "it is not known")
        return
    heads = ("application", "user", "nodes", "I/O nodes", "bandwidth", "quartiles", "phases")
    more = ("bytes per phase", "compute", "w_iter")
    emit_table(
        (*heads, *more), rows, text={"user", "quartiles"}, drop=[*reversed(more), "quartiles"]
    )
    for one in records:
        if one.why_unknown:
            echo(f"{one.application}: {one.why_unknown}")


def _rows(record: ApplicationRecord) -> list[tuple[str, ...]]:
    name = (record.application, record.user, f"{record.nodes:,}")
    demand = (
        _median(record.volume, show_volume),
        _median(record.compute, show_seconds),
        _median(record.w_iter, show_seconds),
    )
    of_prior = set() if record.prior is None else set(map(str, record.prior.counts))
    points = [
        (
            count,
            show_bandwidth(point.median),
            f"{show_bandwidth(point.low)} to {show_bandwidth(point.high)}"
            if point.observations
            else "-",
            f"{point.observations}"
            if point.observations
            else ("prior" if count in of_prior else "imported"),
        )
        for count, point in record.curve.items()
    ] or [("-", "-", "-", "-")]
    # What is known of phases is of all numbers together: it stands once.
    return [
        (*name, *point, *(demand if k == 0 else ("", "", ""))) for k, point in enumerate(points)
    ]


def _median(spread: Spread | None, show: Callable[[float], str]) -> str:
    return "-" if spread is None else show(spread.median)


@curves.command("import")
@click.argument("file", type=PATH)
@click.option("--only", metavar="NAME", help="Import only this application or job of FILE.")
@click.option("--application", metavar="NAME", help="Its name here; FILE, or --only, has one.")
@click.option(
    "--user", metavar="USER", help="Whose applications they are; default: as FILE says, or yours."
)
@click.option(
    "--within",
    metavar="N",
    type=click.IntRange(0),
    help="Leave out bandwidths with more I/O nodes than this: a site refuses those beyond its own.",
)
@click.option("--create", is_flag=True, help="Make the state directory if it is missing.")
@live_options.state
@store_option
@json_option
def import_(
    *,
    file: Path,
    only: str | None,
    application: str | None,
    user: str | None,
    within: int | None,
    create: bool,
    folder: Path | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Import curves from FILE, until enough is observed.

    \b
    Examples:
      penstock curves import curves.json
      penstock curves import explored/curves.json --only write --application ior
      penstock curves import profiles.json --within 4       of 'penstock profile --curves mn4 --out'

    \b
    FILE is JSON; bandwidths are in MB/s, or words:
      {"applications": [{"application": "ior", "nodes": 4, "curve": {"1": 28.9, "4": "62 MB/s"},
                         "volume": "1 GiB", "compute": "2 min"}]}
      volume and compute are of one phase. docs/formats/curves-files.md has all fields.

    Or it is a jobs file, as 'penstock explore' (curves.json) and 'penstock profile --curves
    --workload' write it, or the file of 'penstock profile --curves --out': the curve of each job is
    imported, under the name of its program, or its id. Estimates that are guesses are left out.

    Three observations with the same number of I/O nodes replace an imported bandwidth. All of FILE
    is checked before anything is imported.
    """
    applications = owned(chosen(read_curves(file), only, application), user)
    dropped: dict[str, list[int]] = {}
    if within is not None:
        applications, dropped = curves_file.within(applications, within)
        if not applications:
            raise InputError(f"{file}: no curve has two numbers of I/O nodes up to {within}")
    with (
        error_prefix(file),
        live_options.launch_errors(),
        knowledge(_to_import(StateDirectory(folder), create=create), store, create=True) as known,
    ):
        known.add(applications)
    for name in sorted({one.user for one in applications if uid_of(one.user) < 0}):
        echo(f"penstock: there is no user {name!r} on this host (yet)", err=True)
    if as_json:
        emit_json({"imported": msgspec.to_builtins(applications), "left_out": dropped})
    else:
        for name, counts in dropped.items():
            numbers = ", ".join(map(str, counts))
            echo(f"{name}: left out the bandwidth with {numbers} I/O nodes")
        echo(f"imported {show_count(len(applications), 'application')}")


def _to_import(state: StateDirectory, *, create: bool) -> StateDirectory:
    """Return a state directory that exists; InputError: its name may be mistyped."""
    if not create and not state.exists(allow_root=True):
        raise InputError(
            f"there is no state directory {state.folder}; check --state, or give --create for a "
            "site that is still to come"
        )
    return state


def chosen(
    applications: list[ImportedApplication], only: str | None, application: str | None
) -> list[ImportedApplication]:
    """Return the application that is named, or all; InputError: there is no such, or several."""
    if only is not None:
        names = [one.application for one in applications]
        applications = [one for one in applications if one.application == only]
        if not applications:
            raise unknown("application", only, names)
    if application is not None:
        if len(applications) > 1:
            count = len(applications)
            raise InputError(f"--application names one, and there are {count}; give --only")
        applications = [msgspec.structs.replace(applications[0], application=application)]
    return applications


def owned(
    applications: list[ImportedApplication], user: str | None = None
) -> list[ImportedApplication]:
    """Return the applications as those of `user`, else of the file's user, else of the caller."""
    own = name_of(os.getuid())
    return [msgspec.structs.replace(one, user=user or one.user or own) for one in applications]


@curves.command()
@click.argument("application", required=False)
@click.option("--all", "everything", is_flag=True, help="Forget all applications of the user.")
@click.option("--nodes", metavar="N", type=click.IntRange(1), help="Forget only this size.")
@click.option("--user", metavar="USER", help="Whose application it is; default: yours.")
@live_options.state
@store_option
@json_option
def forget(
    *,
    application: str | None,
    everything: bool,
    nodes: int | None,
    user: str | None,
    folder: Path | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Forget what is known of an application of any size: it is learnt again.

    \b
    Examples:
      penstock curves forget ior
      penstock curves forget ior --nodes 4
      penstock curves forget --all --user alice
    """
    if (application is None) != everything:
        raise InputError("give the name of an application, or --all")
    of = user or name_of(os.getuid())
    request = messages.ForgetApplications(user=of, application=application, nodes=nodes)
    with live_options.launch_errors(), knowledge(StateDirectory(folder), store) as known:
        count = known.forget(request)
        if not count and application is not None:
            names = {one.application for one in known.records(of)}
            raise unknown(f"application of user {of}", application, sorted(names))
    if as_json:
        emit_json({"forgotten": count})
    else:
        echo(f"forgot {show_count(count, 'application')}")
