"""penstock ionode: one I/O node, in the foreground."""

import os
from pathlib import Path
from typing import Literal

import click
import msgspec

from penstock import units
from penstock.cli.common import live_options, output
from penstock.errors import InputError
from penstock.live.ionode.process import IONode, Remote, roots_of
from penstock.live.protocol import messages
from penstock.live.protocol.shared_page import TOKEN_BYTES
from penstock.live.protocol.site_key import RemoteController
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of

_PATH = click.Path(path_type=Path)


@click.command(short_help="Serve clients as one I/O node.")
@click.option("--socket", "data", type=_PATH, help="Where clients of this host connect.")
@click.option("--control", type=_PATH, help="Where control messages go.")
@click.option("--number", type=click.IntRange(min=0), default=0, help="Its number in the site.")
@click.option("--id", "identity", type=click.IntRange(min=1), help="Of this run; else random.")
@click.option("--scheduler", metavar="NAME", help="Order of requests; else fifo.")
@click.option("--depth", type=click.IntRange(min=1), help="Batches in service at once; else 16.")
@click.option("--window", metavar="TIME", help="twins: how long one server is served; else 1 ms.")
@click.option("--quantum", metavar="BYTES", help="Bytes of one file in a row; else 64 KiB.")
@click.option("--aggregation", metavar="BYTES", help="Bytes of one batch at most; else 4 MiB.")
@click.option("--servers", type=click.IntRange(min=1), help="Storage targets; else 1.")
@click.option("--stripe-size", metavar="BYTES", help="Bytes on one target in a row; else 1 MiB.")
@click.option(
    "--listen",
    "--tcp",
    "tcp",
    metavar="HOST:PORT",
    help="Serve clients on other hosts, too; port 0: any.",
)
@live_options.controller
@click.option("--shares", type=click.Choice(["bytes", "concurrency"]), help="Of weights.")
@click.option("--dirty-window", metavar="BYTES", help="Of a file; else it is not bounded.")
@click.option("--token-file", type=_PATH, help="32 bytes, or 64 hex digits, that they must know.")
@click.option("--root", "roots", multiple=True, metavar="DIR", help="Their files are below it.")
@click.option("--coherent", is_flag=True, help="The roots are the same on all hosts at all times.")
@click.option("--all-users", is_flag=True, help="Serve every user, as that user; needs root.")
@click.option("--with-parent", is_flag=True, help="End when the process that started it ends.")
@output.as_json
def ionode(
    *,
    data: Path | None,
    control: Path | None,
    number: int,
    identity: int | None,
    scheduler: str | None,
    depth: int | None,
    window: str | None,
    quantum: str | None,
    aggregation: str | None,
    servers: int | None,
    stripe_size: str | None,
    shares: Literal["bytes", "concurrency"] | None,
    dirty_window: str | None,
    tcp: str | None,
    controller: str | None,
    key_file: Path | None,
    token_file: Path | None,
    roots: tuple[str, ...],
    coherent: bool,
    all_users: bool,
    with_parent: bool,
    as_json: bool,
) -> int:
    """Serve clients on a Unix socket, and with --tcp on other hosts, until told to end.

    \b
    Examples:
      penstock ionode --socket /run/io0 --control /run/io0.control
      penstock ionode --socket io0 --control io0.control --scheduler twins --servers 4
      penstock ionode --listen 10.0.0.2:7100 --controller 10.0.0.1:7000 --key-file site.key \\
        --root /lustre --number 0

    With --controller it registers with the controller of another host, and comes back to it when
    the network or the controller was gone; docs/live/hosts.md is the guide.

    One line says that it serves. SIGTERM and SIGINT let it finish what was begun, then end.
    'penstock up' starts I/O nodes together with the controller that uses them.
    """
    settings = messages.Settings(
        scheduler=scheduler,
        depth=depth,
        window=None if window is None else units.seconds(window),
        quantum=_bytes("--quantum", quantum),
        aggregation=_bytes("--aggregation", aggregation),
        servers=servers,
        stripe_size=_bytes("--stripe-size", stripe_size),
        shares=shares,
        dirty_window=_bytes("--dirty-window", dirty_window),
    )
    remote_controller = live_options.remote(controller, key_file)
    if remote_controller is not None and tcp is None:
        raise InputError("--controller needs --listen: jobs of other hosts come over TCP")
    data, control = _sockets(data, control, number, registers=remote_controller is not None)
    told = IONode(
        socket=data,
        control=control,
        controller=remote_controller,
        number=number,
        settings=settings,
        remote=_remote(tcp, _token(token_file, remote_controller), roots, coherent=coherent),
        all_users=all_users,
        with_parent=with_parent,
        **({} if identity is None else {"id": identity}),
    )

    def announce(node: messages.Node, port: int) -> None:
        if as_json:
            told = {**msgspec.structs.asdict(node), "control": str(control), "tcp_port": port}
            click.echo(msgspec.json.encode(told).decode())
        else:
            where = node.address + (f" and TCP port {port}" if port else "")
            click.echo(f"I/O node {number} serves {where}")

    return told.serve(announce)


def _bytes(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    volume = int(units.volume(text))
    if volume < 1:
        raise InputError(f"{option}: {text!r} is less than a byte")
    return volume


def _sockets(
    data: Path | None, control: Path | None, number: int, *, registers: bool
) -> tuple[Path, Path]:
    """Return where the sockets of this host are: as told, or beside those of the user's others."""
    if data is not None and control is not None:
        return data, control
    if not registers:
        raise InputError("--socket and --control say where the I/O node is; give both")
    state = StateDirectory()
    state.create()
    own = state.folder / f"remote-{number}"
    return data or own.with_suffix(".sock"), control or own.with_suffix(".control")


def _token(token_file: Path | None, controller: RemoteController | None) -> bytes | None:
    """Return what clients over TCP must know: as told, or as the site key makes it for a user."""
    if token_file is None:
        return None if controller is None else controller.key.token(name_of(os.geteuid()))
    if controller is not None:
        raise InputError("with --controller the token comes of --key-file; leave --token-file out")
    token = token_file.read_bytes()
    if len(token) == TOKEN_BYTES:
        return token
    try:
        return bytes.fromhex(token.decode("ascii").strip())
    except ValueError as error:
        raise InputError(f"{token_file}: no token; it has 32 bytes or 64 hex digits") from error


def _remote(
    tcp: str | None, token: bytes | None, roots: tuple[str, ...], *, coherent: bool
) -> Remote | None:
    if tcp is None:
        if token is not None or roots or coherent:
            raise InputError("--token-file, --root and --coherent are for clients over --tcp")
        return None
    host, colon, port = tcp.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"--tcp {tcp!r} is not of the form HOST:PORT")
    if token is None:
        raise InputError("--tcp needs --token-file: who has the token may open files")
    return Remote(
        host=host.strip("[]"),
        port=int(port),
        token=token,
        roots=roots_of(roots),
        declared=coherent,
    )
