"""The specification of a deployment: managed directories, I/O nodes, and their settings."""

import socket
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.config import POLICY_SECTIONS, Config
from penstock.errors import InputError
from penstock.identities import FileSystemId
from penstock.live.deployment.emulator import Emulation
from penstock.live.protocol import messages, shared_page
from penstock.live.protocol.address import Address
from penstock.live.protocol.site_key import SiteKey
from penstock.live.protocol.tokens import Tokens
from penstock.live.storage.stripe_layout import StripeMap
from penstock.model import FileSystem

DEFAULT_FILE_SYSTEM = "default"
"""The name of the file system of all directories that are given without one."""
IO_NODE = (sys.executable, "-P", "-m", "penstock.cli", "ionode", "--no-config")
"""The command of an I/O node."""
DRAIN_TIMEOUT, ANSWER_TIMEOUT = 10.0, 2.0
"""Seconds for an I/O node to finish its requests, and to answer."""


class Deployment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A controller and its I/O nodes on this host."""

    state: str
    roots: list[str]
    file_systems: list[FileSystem] = []  # of these roots; none: they are one file system
    io_nodes: Annotated[int, Meta(ge=0, le=shared_page.SITE_NODES)]
    emulate: str | None = None
    settings: messages.Settings = messages.Settings()
    stripe: int = 0  # bytes of a file per I/O node in turn; 0: one I/O node per process
    attached: bool = False  # ends with the process that started it
    serves_within: float = 15.0  # seconds until an I/O node serves
    io_node: tuple[str, ...] = IO_NODE
    config: Config = Config()
    store: str | None = None  # URL of a database; None: a file in the state directory
    http: str | None = None  # HOST:PORT of the API; None: no API
    token_file: str | None = None
    job_metrics: Annotated[int, Meta(ge=0, le=1000)] = 0  # number of jobs with metrics of their own
    listen: str | None = None  # HOST:PORT for other hosts; None: this host only
    key_file: str | None = None
    remote_io_nodes: Annotated[int, Meta(ge=0, le=shared_page.SITE_NODES)] = (
        0  # numbered after the others
    )

    @property
    def site_name(self) -> str:
        """The configured name of the site, or the host's."""
        return self.config.site.name or socket.gethostname()

    @property
    def all_file_systems(self) -> list[FileSystem]:
        """The file systems, at least one."""
        if self.file_systems:
            return self.file_systems
        return [FileSystem(name=DEFAULT_FILE_SYSTEM, roots=tuple(self.roots))]

    def file_system_of_roots(self) -> list[FileSystemId]:
        """Return the file system of each root; empty: there is one."""
        if len(self.all_file_systems) == 1:
            return []
        numbers = {
            root: FileSystemId(number)
            for number, each in enumerate(self.file_systems)
            for root in each.roots
        }
        return [numbers[root] for root in self.roots]

    @property
    def all_io_nodes(self) -> int:
        """The maximum number of I/O nodes, including those on other hosts."""
        return self.io_nodes + self.remote_io_nodes

    def site_key(self) -> SiteKey | None:
        """Return the key of a site of several hosts, or raise InputError for wrong options."""
        if self.listen is None:
            if self.key_file is not None or self.remote_io_nodes:
                raise InputError("--key-file and --remote-io-nodes need --listen")
            return None
        Address.parse(self.listen, "--listen")
        if self.key_file is None:
            raise InputError("--listen needs --key-file: other hosts must prove the site key")
        if self.emulate is not None:
            raise InputError("--emulate works on one host; omit --listen")
        if self.all_io_nodes > shared_page.SITE_NODES:
            most = shared_page.SITE_NODES
            raise InputError(f"{self.all_io_nodes} I/O nodes; give at most {most}")
        return SiteKey.read(Path(self.key_file))

    @property
    def all_users(self) -> bool:
        """Whether its I/O nodes serve all users, and name a job UID/job."""
        return "--all-users" in self.io_node

    def tokens(self) -> Tokens | None:
        """Return the tokens of the API; raise InputError if it were open to other hosts."""
        if self.http is not None:
            Address.parse(self.http).check(tokens=self.token_file is not None)
        elif self.token_file is not None or self.job_metrics:
            raise InputError("--token-file and --job-metrics need --http")
        return None if self.token_file is None else Tokens.read(Path(self.token_file))


def check_emulation(spec: str | None, roots: list[str]) -> str | None:
    """Check the value of --emulate, and make the path of a file absolute."""
    if spec is None:
        return None
    if len(roots) != 1:
        raise InputError("--emulate works on one directory; give one --root")
    Emulation.parse(spec)
    return str(Path(spec).resolve()) if spec.endswith(".toml") else spec


def check_roots(roots: tuple[Path, ...]) -> list[str]:
    """Check and resolve the managed directories."""
    if not roots:
        raise InputError("no directory to manage; give at least one with --root DIR")
    if len(roots) > shared_page.ROOTS:
        raise InputError(f"{len(roots)} managed directories; give at most {shared_page.ROOTS}")
    for root in roots:
        if root.exists() and not root.is_dir():
            raise InputError(f"--root {root} is not a directory; give one")
        if not root.is_dir():
            raise InputError(f"--root {root}: there is no such directory; create it first")
        if root.resolve() == Path("/"):
            raise InputError("--root /: the whole system cannot be managed; give a directory")
    return list(dict.fromkeys(str(root.resolve()) for root in roots))


def with_absolute_paths(config: Config) -> Config:
    """Return the configuration with absolute paths of policy files."""
    changes = {}
    for name in POLICY_SECTIONS:
        section = getattr(config, name)
        file, colon, class_name = section.policy.rpartition(":")
        if colon and file.endswith(".py"):
            policy = f"{Path(file).resolve()}:{class_name}"
            changes[name] = msgspec.structs.replace(section, policy=policy)
    changes["tuning"] = changes.get("tuning", config.tuning).with_absolute_paths()
    return msgspec.structs.replace(config, **changes)


def with_stripe_layout(deployment: Deployment) -> Deployment:
    """Add the number of storage targets and the stripe size of the file system, unless given."""
    if deployment.emulate is not None:
        emulation = Emulation.parse(deployment.emulate)
        servers, stripe_size = emulation.targets, emulation.stripe
    else:
        last = StripeMap.of_file(Path(deployment.roots[0])).components[-1]
        servers, stripe_size = len(last.targets), last.stripe_size
    layout = messages.Settings(servers=servers, stripe_size=stripe_size)
    settings = msgspec.structs.replace(layout, **deployment.settings.given())
    return msgspec.structs.replace(deployment, settings=settings)
