"""penstock up: I/O nodes and their controller, in the background."""

import os
from pathlib import Path
from typing import Any

import click
import msgspec

from penstock import units
from penstock.cli.common import live_options, options
from penstock.cli.common.output import as_json as json_option
from penstock.cli.common.output import emit_json
from penstock.errors import InputError, unknown
from penstock.io_node_settings import KEYS
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import IO_NODE, Deployment, emulated, located, managed
from penstock.live.protocol import messages
from penstock.live.protocol.shared_page import MAP_NODES
from penstock.live.protocol.state_directory import StateDirectory

_PREFIX = "io-node."


@click.command(short_help="Bring I/O nodes and their controller up, in the background.")
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A directory to manage: data calls on files below it go to I/O nodes. Repeatable.",
)
@click.option(
    "--io-nodes", required=True, metavar="N", type=click.IntRange(0, MAP_NODES), help="How many."
)
@click.option(
    "--emulate",
    metavar="SPEC",
    help="Emulate a parallel file system below: 'targets=4,rate=200MiB/s,...', or a TOML file.",
)
@click.option("--scheduler", metavar="NAME", help="How I/O nodes order requests.")
@click.option("--depth", metavar="N", type=click.IntRange(1), help="Requests in service at once.")
@click.option(
    "--stripe",
    metavar="SIZE",
    help="Spread files over a job's I/O nodes in pieces of this size; else a process has one.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting: --set io-node.quantum='1 MiB', --set live.lease='5 s'. Repeatable.",
)
@click.option("--all-users", is_flag=True, help="Serve every user, as that user; needs root.")
@click.option("--policy", metavar="NAME", help="Who may transfer; sharing.policy, else set-10.")
@click.option(
    "--mode",
    type=click.Choice(["observe", "advise", "enforce"]),
    help="Whether jobs wait for their turns (enforce); live.mode, observe by default.",
)
@click.option("--allocation", metavar="NAME", help="How many I/O nodes jobs get; else where-known.")
@click.option(
    "--tune",
    metavar="NAMES",
    help="Tune these at I/O nodes while they serve: window, depth, aggregation, scheduler.",
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The configuration; else penstock.toml as 'penstock config show' finds it.",
)
@click.option(
    "--store",
    metavar="URL",
    envvar="PENSTOCK_STORE",
    help="Keep what is learnt in postgresql+psycopg://USER@HOST/NAME; else $PENSTOCK_STORE, "
    "or a file of the state directory.",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Serve dashboard, HTTP API and /metrics there; a PORT alone is on localhost.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Who may use the API: lines of NAME ROLE TOKEN, with ROLE read or admin.",
)
@click.option(
    "--job-metrics",
    metavar="K",
    default=0,
    type=click.IntRange(0, 1000),
    help="Give /metrics series of the K running jobs that wrote most.  [default: 0]",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Hear jobs and I/O nodes of other hosts there, if they prove the site key.",
)
@live_options.key
@click.option(
    "--remote-io-nodes",
    metavar="N",
    default=0,
    type=click.IntRange(0, MAP_NODES),
    help="So many I/O nodes on other hosts, numbered after this host's.  [default: 0]",
)
@live_options.state
@json_option
def up(
    *,
    roots: tuple[Path, ...],
    io_nodes: int,
    emulate: str | None,
    scheduler: str | None,
    depth: int | None,
    stripe: str | None,
    settings: tuple[str, ...],
    all_users: bool,
    policy: str | None,
    mode: str | None,
    allocation: str | None,
    tune: str | None,
    config_file: Path | None,
    store: str | None,
    http: str | None,
    token_file: Path | None,
    job_metrics: int,
    listen: str | None,
    key_file: Path | None,
    remote_io_nodes: int,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Start N I/O nodes and their controller in the background, and return when they serve.

    \b
    Examples:
      penstock up --root /scratch --io-nodes 2
      penstock up --root /scratch --io-nodes 4 --state ./state --scheduler twins
      penstock up --root data --io-nodes 2 --emulate targets=4,rate=100MiB/s
      penstock up --root /scratch --io-nodes 2 --policy set-10 --mode enforce
      penstock up --root /scratch --io-nodes 4 --scheduler twins --tune window --mode enforce
      penstock up --root /lustre --io-nodes 0 --remote-io-nodes 2 --listen 10.0.0.1:7000 \\
        --key-file site.key
    Then:
      penstock run -- ./simulation            an unmodified command as a job
      penstock status                         who moved what through which I/O node
      penstock down

    One deployment a state directory: a second 'up' there is refused. Settings of the I/O nodes are
    io-node.scheduler, .window (time), .quantum and .aggregation (sizes), .servers, .stripe-size,
    .depth, .shares (bytes or concurrency) and .dirty-window (a size). docs/live/index.md is the
    guide.
    """
    state = StateDirectory(folder)
    given = [f"{_PREFIX}{k}={v}" for k, v in (("scheduler", scheduler), ("depth", depth)) if v]
    directories = managed(roots)
    if all_users and os.geteuid() != 0:
        raise InputError("--all-users needs root: requests run with their callers' identities")
    flags = {"sharing.policy": policy, "live.mode": mode, "allocation.policy": allocation}
    of_io_nodes = [s for s in settings if s.startswith(_PREFIX) or "." not in s.partition("=")[0]]
    governed = tuple(text for text in settings if text not in of_io_nodes)
    if tune is not None:
        named = [name.strip() for name in tune.split(",")]
        governed = (f"tuning.tune={msgspec.json.encode(named).decode()}", *governed)
    loaded = options.load(config_file, governed, flags, own={"allocation.policy": "where-known"})
    deployment = Deployment(
        state=str(state.folder),
        roots=directories,
        io_nodes=io_nodes,
        emulate=emulated(emulate, directories),
        settings=_settings([*of_io_nodes, *given]),
        stripe=live_options.volume(stripe, "--stripe"),
        config=located(loaded.config),
        io_node=(*IO_NODE, "--all-users") if all_users else IO_NODE,
        store=store,
        http=http,
        token_file=None if token_file is None else str(token_file.resolve()),
        job_metrics=job_metrics,
        listen=listen,
        key_file=None if listen is None or key_file is None else str(key_file.resolve()),
        remote_io_nodes=remote_io_nodes,
    )
    deployment.checked_tokens()
    deployment.checked_key()
    with live_options.telling():
        launcher.up(deployment)
        if all_users:  # its I/O nodes' sockets are for all, what else is there is not
            state.folder.chmod(0o711)
        found = launcher.ask(state, messages.GetStatus(), messages.Status)
    url = state.http.read_text().strip() if http else None
    where_heard = state.listen.read_text().strip() if listen else None
    if as_json:
        told = {"state": str(state.folder), "roots": deployment.roots, "http": url}
        told |= {"listen": where_heard}
        emit_json(told | {"io_nodes": found.io_nodes})
        return
    beneath = " on an emulated file system" if emulate else ""
    serving = "1 I/O node serves" if io_nodes == 1 else f"{io_nodes} I/O nodes serve"
    click.echo(f"{serving} {', '.join(deployment.roots)}{beneath}")
    if url:
        click.echo(f"HTTP API at {url}")
        click.echo(f"dashboard: {url}/")
    if where_heard:
        click.echo(f"on other hosts: penstock run --controller {where_heard} --key-file FILE ...")
    where = f"--state {state.folder} " if folder else ""
    click.echo(f"run a job with: penstock run {where}-- COMMAND")


def _settings(texts: list[str]) -> messages.Settings:
    values: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set {text!r} is not of the form KEY=VALUE")
        name = key.strip().removeprefix(_PREFIX)
        if not key.strip().startswith(_PREFIX) or name not in KEYS:
            raise unknown("setting", key.strip(), [_PREFIX + name for name in KEYS])
        try:
            values[KEYS[name]] = _value(name, value.strip())
        except (InputError, ValueError) as error:
            raise InputError(f"--set {text}: {error}") from error
    try:
        return msgspec.convert(values, messages.Settings)
    except msgspec.ValidationError as error:
        raise InputError(f"settings of the I/O nodes: {error}") from error


def _value(name: str, text: str) -> str | int | float:
    if name in {"scheduler", "shares"}:
        return text
    if name == "window":
        return units.seconds(text)
    if name in {"servers", "depth"}:
        return int(text)
    return round(units.volume(text))
