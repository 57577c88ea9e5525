"""penstock up: start I/O nodes and their controller, in the background."""

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated

import click
import msgspec

from penstock import units
from penstock.cli.common import live_options
from penstock.cli.common.options import PATH, Configuration, option, typed
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.cli.verbs.curves import owned
from penstock.config import Loaded
from penstock.errors import InputError
from penstock.live.deployment import launcher
from penstock.live.deployment.emulator import Emulation
from penstock.live.deployment.file_systems import file_systems_of, mixed_devices, roots_of
from penstock.live.deployment.spec import (
    IO_NODE,
    Deployment,
    check_emulation,
    with_absolute_paths,
)
from penstock.live.protocol import messages
from penstock.live.protocol.shared_page import SITE_NODES
from penstock.live.protocol.state_directory import StateDirectory
from penstock.sim.formats.curves_file import read_curves


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the verb."""

    roots: Annotated[
        tuple[str, ...],
        option(
            "--root",
            multiple=True,
            metavar="[NAME=]DIR",
            help="A directory to manage: I/O nodes decide when data calls on files below it are "
            "made. NAME is its "
            "file system; directories without one are on one file system. Repeatable.",
        ),
    ]
    io_nodes: Annotated[
        int,
        option(
            "--io-nodes",
            required=True,
            metavar="N",
            type=click.IntRange(0, SITE_NODES),
            help="The number of I/O nodes to start on this host.",
        ),
    ]
    emulate: Annotated[
        str | None,
        option(
            "--emulate",
            metavar="SPEC",
            help="Emulate a parallel file system: 'targets=4,rate=200MiB/s,...', or a TOML file.",
        ),
    ]
    stripe: Annotated[
        str | None,
        option(
            "--stripe",
            metavar="SIZE",
            help="Spread each file over a job's I/O nodes in pieces of this size, a multiple of 64 "
            "KiB; by default each process uses one I/O node.",
        ),
    ]
    all_users: Annotated[
        bool,
        option(
            "--all-users",
            is_flag=True,
            help="Serve every user of this host, not this one alone: 'penstock run --state DIR' "
            "works for all. It needs no root: jobs make their calls themselves.",
        ),
    ]
    store: Annotated[
        str | None,
        option(
            "--store",
            metavar="URL",
            envvar="PENSTOCK_STORE",
            help="Store what is learned in this database, postgresql+psycopg://USER@HOST/NAME; "
            "default: a file in the state directory. [$PENSTOCK_STORE]",
        ),
    ]
    curves: Annotated[
        Path | None,
        option(
            "--curves",
            metavar="FILE",
            type=PATH,
            help="Import what this file says of applications, as 'penstock curves import' does.",
        ),
    ]
    http: Annotated[
        str | None,
        option(
            "--http",
            metavar="HOST:PORT",
            help="Serve the dashboard, the HTTP API and /metrics here; a PORT alone means "
            "localhost.",
        ),
    ]
    token_file: Annotated[
        Path | None,
        option(
            "--token-file",
            metavar="FILE",
            type=PATH,
            help="Tokens of the HTTP API, one per line: NAME ROLE TOKEN, with ROLE read or admin.",
        ),
    ]
    job_metrics: Annotated[
        int,
        option(
            "--job-metrics",
            metavar="K",
            default=0,
            type=click.IntRange(0, 1000),
            help="Add series of the K running jobs that wrote most to /metrics.  [default: 0]",
        ),
    ]
    listen: Annotated[
        str | None,
        option(
            "--listen",
            metavar="HOST:PORT",
            help="Accept jobs and I/O nodes of other hosts here, if they have the site key.",
        ),
    ]
    key_file: Annotated[Path | None, live_options.key_file]
    remote_io_nodes: Annotated[
        int,
        option(
            "--remote-io-nodes",
            metavar="N",
            default=0,
            type=click.IntRange(0, SITE_NODES),
            help="The number of I/O nodes on other hosts, numbered after this host's.  "
            "[default: 0]",
        ),
    ]
    state: Annotated[Path | None, live_options.state_directory]

    def deployment(self, loaded: Loaded, state: StateDirectory) -> Deployment:
        """Return the checked description of the deployment."""
        if self.all_users and self.emulate is not None:
            raise InputError("--emulate serves one user; leave out --all-users")
        if loaded.config.tuning.tune:
            loaded.check_policy("tuning")
        file_systems = file_systems_of(loaded.config, self.roots)
        roots = roots_of(file_systems)
        key_file = None if self.listen is None or self.key_file is None else self.key_file.resolve()
        deployment = Deployment(
            state=str(state.folder),
            roots=roots,
            file_systems=file_systems,
            io_nodes=self.io_nodes,
            emulate=check_emulation(self.emulate, roots),
            settings=messages.Settings(**msgspec.structs.asdict(loaded.config.io_node)),
            stripe=live_options.stripe(self.stripe),
            config=with_absolute_paths(loaded.config),
            io_node=(*IO_NODE, "--all-users") if self.all_users else IO_NODE,
            store=self.store,
            http=self.http,
            token_file=None if self.token_file is None else str(self.token_file.resolve()),
            job_metrics=self.job_metrics,
            listen=self.listen,
            key_file=None if key_file is None else str(key_file),
            remote_io_nodes=self.remote_io_nodes,
        )
        deployment.tokens()
        deployment.site_key()
        return deployment


CONFIGURATION = Configuration(
    {
        "--policy": "sharing.policy",
        "--mode": "live.mode",
        "--allocation": "allocation.policy",
        "--scheduler": "io-node.scheduler",
        "--depth": "io-node.depth",
        "--tune": "tuning.tune",
    },
    policies=("sharing", "allocation", "placement"),
    defaults={"allocation.policy": "where-known"},
    strict=True,
)


@click.command()
@typed(Options)
@CONFIGURATION
@json_option
def up(*, options: Options, loaded: Loaded, as_json: bool) -> None:
    """Start N I/O nodes and their controller in the background, and return when they serve.

    \b
    Examples:
      penstock up --root /scratch --io-nodes 2
      penstock up --root /scratch --io-nodes 4 --state ./state --scheduler twins
      penstock up --root data --io-nodes 2 --emulate targets=4,rate=100MiB/s
      penstock up --root /scratch --io-nodes 2 --policy set-10 --mode enforce
      penstock up --root /scratch --io-nodes 4 --scheduler twins --tune window --mode enforce
      penstock up --root /scratch --io-nodes 2 --set io-node.quantum='1 MiB' --set live.lease='5 s'
      penstock up --root /lustre --io-nodes 0 --remote-io-nodes 2 --listen 10.0.0.1:7000 \\
        --key-file site.key
    Then:
      penstock run -- ./simulation            run an unmodified command as a job
      penstock status                         show jobs, I/O nodes and bytes moved
      penstock down                           stop the deployment

    A state directory holds one deployment: a second 'up' with the same one is refused. The
    sections [live], [sharing], [allocation], [io-node] and [tuning] of the configuration apply, and
    each of their keys can be set with --set; 'penstock config show' explains them.
    """
    state = StateDirectory(options.state)
    deployment = options.deployment(loaded, state)
    imported = [] if options.curves is None else owned(read_curves(options.curves))
    for one in imported:
        one.check(deployment.all_io_nodes)
    mixed = mixed_devices(deployment.file_systems)
    for warning in [*_doubtful_bandwidths(deployment), *([] if mixed is None else [mixed])]:
        echo(f"penstock: warning: {warning}", err=True)
    if options.all_users and (closed := _closed(state.folder)) is not None:
        warning = f"{closed} cannot be entered by other users, who then cannot run jobs here"
        echo(f"penstock: warning: {warning}; give another --state", err=True)
    with live_options.launch_errors():
        launcher.up(deployment)
        if options.all_users:  # every user may reach the sockets, and nothing else
            state.folder.chmod(0o711)
        if imported:
            launcher.ask(state, messages.ImportKnowledge(applications=imported), messages.Done)
        status = launcher.ask(state, messages.GetStatus(), messages.Status)
    url = state.http.read_text().strip() if options.http else None
    address = state.listen.read_text().strip() if options.listen else None
    if as_json:
        emit_json(
            {
                "state": str(state.folder),
                "roots": deployment.roots,
                "file_systems": msgspec.to_builtins(deployment.file_systems),
                "http": url,
                "listen": address,
                "mode": status.mode,
                "policy": status.policy,
                "bandwidth": status.bandwidth,
                "io_nodes": msgspec.to_builtins(status.io_nodes),
            }
        )
        return
    emulation = " on an emulated file system" if options.emulate else ""
    serving = (
        "1 I/O node serves" if options.io_nodes == 1 else f"{options.io_nodes} I/O nodes serve"
    )
    echo(f"{serving} {_places(deployment)}{emulation}")
    echo(f"sharing policy {status.policy}, mode {status.mode}: {_meaning(status)}")
    if status.bandwidth is None and any(each.bandwidth is None for each in deployment.file_systems):
        echo(
            "site.bandwidth is not set: lengths of phases are estimated from the fastest phase "
            "seen, and 'penstock top' shows no part of the bandwidth"
        )
    if url:
        echo(f"HTTP API at {url}")
        echo(f"dashboard: {url}/")
    if address:
        echo(f"on other hosts: penstock run --controller {address} -- COMMAND (docs/live/hosts.md)")
    where = f"--state {quote(str(state.folder))} " if options.state else ""
    echo(f"run a job with: penstock run {where}-- COMMAND")


def _closed(folder: Path) -> Path | None:
    """Return the directory above a state directory that others cannot enter, if there is one."""
    for above in reversed(folder.parents):
        try:
            if not above.stat().st_mode & 0o001:
                return above
        except OSError:  # it is made with the state directory
            return None
    return None


def _places(deployment: Deployment) -> str:
    if len(deployment.file_systems) == 1:
        return ", ".join(deployment.roots)
    return ", ".join(f"{each.name} ({', '.join(each.roots)})" for each in deployment.file_systems)


def _meaning(status: messages.Status) -> str:
    own = ", ".join(f"{user}: {mode}" for user, mode in sorted(status.modes.items()))
    return live_options.MODE_MEANINGS[status.mode] + (f" (but {own})" if own else "")


def _doubtful_bandwidths(deployment: Deployment) -> list[str]:
    given, warnings = deployment.config.site.bandwidth, list[str]()
    if given is not None and (warning := units.doubtful_bandwidth("site.bandwidth", given)):
        warnings.append(warning)
    for each in deployment.file_systems:
        key = f"site.file-systems.{each.name}.bandwidth"
        if each.bandwidth is not None and (
            warning := units.doubtful_bandwidth(key, each.bandwidth)
        ):
            warnings.append(warning)
    if deployment.emulate is not None:
        warnings += Emulation.doubtful_rates(deployment.emulate)
    return warnings
