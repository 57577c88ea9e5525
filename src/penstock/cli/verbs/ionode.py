"""penstock ionode: one I/O node, in the foreground."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click
import msgspec

from penstock import config
from penstock.cli.common import live_options, output
from penstock.cli.common.options import PATH, flag_of_field, option, typed
from penstock.cli.common.terminal import echo, json_echo
from penstock.config.section import fields
from penstock.errors import InputError
from penstock.io_node_settings import DEFAULTS, IoNodeSettings
from penstock.live.ionode.process import IONode, RemoteAccess, resolve_roots
from penstock.live.protocol import messages
from penstock.live.protocol.shared_page import TOKEN_BYTES
from penstock.live.protocol.site_key import RemoteController, SiteKey
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the verb."""

    socket: Annotated[
        Path | None,
        option("--socket", metavar="PATH", type=PATH, help="The socket for clients on this host."),
    ]
    control: Annotated[
        Path | None,
        option("--control", metavar="PATH", type=PATH, help="The socket for control messages."),
    ]
    number: Annotated[
        int,
        option(
            "--number",
            metavar="N",
            type=click.IntRange(min=0),
            default=0,
            help="The number of this I/O node in the site.  [default: 0]",
        ),
    ]
    identity: Annotated[
        int | None,
        option(
            "--id",
            metavar="N",
            type=click.IntRange(min=1),
            help="The identity of this process; by default random.",
        ),
    ]
    tcp: Annotated[
        str | None,
        option(
            "--listen",
            "--tcp",
            metavar="HOST:PORT",
            help="Also serve clients on other hosts, over TCP; port 0 picks a free one.",
        ),
    ]
    controller: Annotated[str | None, live_options.controller_address]
    key_file: Annotated[Path | None, live_options.key_file]
    token_file: Annotated[
        Path | None,
        option(
            "--token-file",
            metavar="FILE",
            type=PATH,
            help="Shared secret (32 bytes or 64 hex digits) required of remote clients.",
        ),
    ]
    roots: Annotated[
        tuple[str, ...],
        option(
            "--root",
            multiple=True,
            metavar="DIR",
            help="A directory that remote clients may access. Repeatable.",
        ),
    ]
    coherent: Annotated[
        bool,
        option(
            "--coherent",
            is_flag=True,
            help="Declare that all hosts see the same data below the roots at all times.",
        ),
    ]
    all_users: Annotated[
        bool,
        option(
            "--all-users",
            is_flag=True,
            help="Serve every user of this host. Over TCP it serves its own user only.",
        ),
    ]
    with_parent: Annotated[
        bool,
        option("--with-parent", is_flag=True, help="End when the process that started it ends."),
    ]
    config_file: Annotated[
        Path | None,
        option(
            "--config",
            metavar="FILE",
            type=PATH,
            help="Read [io-node] from this configuration file; 'penstock config show --help' lists "
            "the default places.",
        ),
    ]
    assignments: Annotated[
        tuple[str, ...],
        option(
            "--set",
            multiple=True,
            metavar="KEY=VALUE",
            help="Set a key of the configuration: --set io-node.quantum='1 MiB'. Repeatable.",
        ),
    ]
    no_config: Annotated[
        bool,
        option(
            "--no-config",
            is_flag=True,
            help="Ignore configuration files and environment: the controller sends the settings.",
        ),
    ]

    def process(self, settings: messages.Settings) -> IONode:
        """Return the I/O node, with its options checked."""
        controller = live_options.remote(self.controller, self.key_file)
        if controller is not None and self.tcp is None:
            raise InputError("--controller needs --listen: jobs on other hosts connect over TCP")
        data, control = self._sockets(registers=controller is not None)
        return IONode(
            socket=data,
            control=control,
            controller=controller,
            number=self.number,
            settings=settings,
            remote=self._remote(self._token(controller)),
            all_users=self.all_users,
            with_parent=self.with_parent,
            **({} if self.identity is None else {"id": self.identity}),
        )

    def _sockets(self, *, registers: bool) -> tuple[Path, Path]:
        """Return the sockets' paths: as given, or in the user's state directory."""
        if self.socket is not None and self.control is not None:
            return self.socket, self.control
        if not registers:
            raise InputError("give both --socket and --control, or --controller")
        state = StateDirectory()
        state.create()
        default = state.folder / f"remote-{self.number}"
        data, control = default.with_suffix(".sock"), default.with_suffix(".control")
        return self.socket or data, self.control or control

    def _token(self, controller: RemoteController | None) -> bytes | None:
        """Return the secret of TCP clients: from its file, or derived from the site key."""
        if self.token_file is None:
            if controller is None:
                return None
            assert isinstance(controller.key, SiteKey)
            return controller.key.token(name_of(os.geteuid()))
        if controller is not None:
            raise InputError("--controller takes the token from --key-file; leave out --token-file")
        token = self.token_file.read_bytes()
        if len(token) == TOKEN_BYTES:
            return token
        try:
            return bytes.fromhex(token.decode("ascii").strip())
        except ValueError as error:
            raise InputError(
                f"{self.token_file} is not a token; a token has 32 bytes or 64 hex digits"
            ) from error

    def _remote(self, token: bytes | None) -> RemoteAccess | None:
        if self.tcp is None:
            if token is not None or self.roots or self.coherent:
                raise InputError("--token-file, --root and --coherent need --listen")
            return None
        host, colon, port = self.tcp.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535:
            raise InputError(f"--listen {self.tcp!r} is not of the form HOST:PORT")
        if token is None:
            raise InputError("--listen needs --token-file: remote clients must prove who they are")
        return RemoteAccess(
            host=host.strip("[]"),
            port=int(port),
            token=token,
            roots=resolve_roots(self.roots),
            declared=self.coherent,
        )


def _settings(command: Callable[..., int]) -> Callable[..., int]:
    """Add one flag for each setting of an I/O node."""
    for field in reversed(list(fields(IoNodeSettings))):
        flag, default = f"--{field.key}", getattr(DEFAULTS, field.attribute)
        name = f"setting_{field.attribute}"
        command = flag_of_field(flag, field, name, key=f"io-node.{field.key}", default=default)(
            command
        )
    return command


@click.command()
@typed(Options)
@_settings
@output.json_option
def ionode(*, options: Options, as_json: bool, **flags: str | None) -> int:
    """Serve clients on a Unix socket, and with --listen on other hosts, until it is stopped.

    \b
    Examples:
      penstock ionode --socket /run/io0 --control /run/io0.control
      penstock ionode --socket io0 --control io0.control --scheduler twins --servers 4
      penstock ionode --listen 10.0.0.2:7100 --controller 10.0.0.1:7000 --key-file site.key \\
        --root /lustre --number 0

    With --controller it registers with the controller of another host, and registers again after
    the network or the controller was down; docs/live/hosts.md is the guide.

    It prints one line when it serves. On SIGTERM or SIGINT it completes the requests that it has
    begun, and ends. 'penstock up' starts I/O nodes together with their controller.
    """
    node = options.process(_load(options, flags))

    def announce(address: messages.Node, port: int) -> None:
        if as_json:
            fields = {**msgspec.structs.asdict(address), "control": str(node.control)}
            json_echo(msgspec.json.encode({**fields, "tcp_port": port}))
        else:
            where = address.address + (f" and TCP port {port}" if port else "")
            echo(f"I/O node {options.number} serves {where}")

    return node.serve(announce)


def _load(options: Options, flags: Mapping[str, str | None]) -> messages.Settings:
    """Return the settings of the configuration and the flags."""
    settings = [config.Setting.parse(text) for text in options.assignments] + [
        config.Setting.flag(f"--{field.key}", f"io-node.{field.key}", text)
        for field in fields(IoNodeSettings)
        if (text := flags[f"setting_{field.attribute}"]) is not None
    ]
    if not options.no_config:
        loaded = config.load(options.config_file, settings, strict=True).config
        return messages.Settings(**msgspec.structs.asdict(loaded.io_node))
    if settings or options.config_file:
        raise InputError("--no-config leaves the settings to the controller; leave them out")
    return messages.Settings()
