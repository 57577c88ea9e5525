"""What `penstock up` was told: the managed directories, the I/O nodes, and how they serve."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.config import POLICY_SECTIONS, Config
from penstock.errors import InputError
from penstock.live.deployment.emulator import Emulation
from penstock.live.protocol import messages, shared_page
from penstock.live.protocol.address import Address
from penstock.live.protocol.site_key import SiteKey
from penstock.live.protocol.tokens import Tokens
from penstock.live.storage.stripe_layout import StripeMap

IO_NODE = (sys.executable, "-P", "-m", "penstock.cli", "ionode", "--no-config")
"""The command that is an I/O node."""


DRAINS_WITHIN, ANSWERS_WITHIN = 10.0, 2.0
"""Seconds that an I/O node may take to finish what it began, and to answer."""


class Deployment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A controller and its I/O nodes on this host."""

    state: str
    roots: list[str]
    io_nodes: Annotated[int, Meta(ge=0, le=shared_page.MAP_NODES)]
    emulate: str | None = None
    settings: messages.Settings = messages.Settings()
    stripe: int = 0  # bytes after which a file's next I/O node follows; 0: a process has one
    attached: bool = False  # ends with the process that started it
    serves_within: float = 15.0  # seconds until an I/O node serves
    io_node: tuple[str, ...] = IO_NODE
    config: Config = Config()
    store: str | None = None  # a database's URL; None: a file of the state directory
    http: str | None = None  # HOST:PORT of the API; None: there is none
    token_file: str | None = None
    job_metrics: Annotated[int, Meta(ge=0, le=1000)] = 0  # jobs that have metrics of their own
    listen: str | None = None  # HOST:PORT for other hosts; None: there are none
    key_file: str | None = None
    remote_io_nodes: Annotated[int, Meta(ge=0, le=shared_page.MAP_NODES)] = (
        0  # numbered after the others
    )

    @property
    def all_io_nodes(self) -> int:
        """How many I/O nodes there can be, those on other hosts included."""
        return self.io_nodes + self.remote_io_nodes

    def checked_key(self) -> SiteKey | None:
        """Return the key of a site of several hosts; InputError: it is ill told."""
        if self.listen is None:
            if self.key_file is not None or self.remote_io_nodes:
                raise InputError(
                    "--key-file and --remote-io-nodes are for hosts; give --listen too"
                )
            return None
        Address.parse(self.listen, "--listen")
        if self.key_file is None:
            raise InputError("--listen needs --key-file: who has no site key is not to be heard")
        if self.emulate is not None:
            raise InputError("--emulate is of one host; leave --listen out")
        if self.all_io_nodes > shared_page.MAP_NODES:
            raise InputError(
                f"{self.all_io_nodes} I/O nodes; a site has {shared_page.MAP_NODES} at most"
            )
        return SiteKey.read(Path(self.key_file))

    @property
    def all_users(self) -> bool:
        """Whether its I/O nodes serve all users, and know a job as UID/job."""
        return "--all-users" in self.io_node

    def checked_tokens(self) -> Tokens | None:
        """Return who may use the API; InputError: it would be open to others, or is ill told."""
        if self.http is not None:
            Address.parse(self.http).check(tokens=self.token_file is not None)
        elif self.token_file is not None or self.job_metrics:
            raise InputError("--token-file and --job-metrics are of the HTTP API; give --http too")
        return None if self.token_file is None else Tokens.read(Path(self.token_file))


def emulated(spec: str | None, roots: list[str]) -> str | None:
    """Return what to emulate as the controller wants it: checked, a file's name absolute."""
    if spec is None:
        return None
    if len(roots) != 1:
        raise InputError("--emulate is of one directory; give one --root")
    Emulation.parse(spec)
    return str(Path(spec).resolve()) if spec.endswith(".toml") else spec


def managed(roots: tuple[Path, ...]) -> list[str]:
    """Return the managed directories as the controller wants them: checked and resolved."""
    if not roots:
        raise InputError("no directory to manage; give at least one with --root DIR")
    if len(roots) > shared_page.ROOTS:
        raise InputError(f"{len(roots)} managed directories; give at most {shared_page.ROOTS}")
    for root in roots:
        if not root.is_dir():
            raise InputError(f"--root {root}: there is no such directory; create it first")
        if root.resolve() == Path("/"):
            raise InputError("--root /: all of the system cannot be managed; give a directory")
    return list(dict.fromkeys(str(root.resolve()) for root in roots))


def located(config: Config) -> Config:
    """Return it with policy files that are found from any directory."""
    found = {}
    for section in POLICY_SECTIONS:
        named = getattr(config, section)
        file, colon, made = named.policy.rpartition(":")
        if colon and file.endswith(".py"):
            policy = f"{Path(file).resolve()}:{made}"
            found[section] = msgspec.structs.replace(named, policy=policy)
    found["tuning"] = found.get("tuning", config.tuning).with_absolute_paths()
    return msgspec.structs.replace(config, **found)


def laid_out(deployment: Deployment) -> Deployment:
    """Return it with storage targets and stripe size that its file system tells, unless given."""
    if deployment.emulate is not None:
        emulation = Emulation.parse(deployment.emulate)
        servers, stripe_size = emulation.targets, emulation.stripe
    else:
        last = StripeMap.of(Path(deployment.roots[0])).components[-1]
        servers, stripe_size = len(last.targets), last.stripe_size
    known = messages.Settings(servers=servers, stripe_size=stripe_size)
    told = {k: v for k, v in msgspec.structs.asdict(deployment.settings).items() if v is not None}
    return msgspec.structs.replace(deployment, settings=msgspec.structs.replace(known, **told))
