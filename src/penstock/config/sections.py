"""The sections of the configuration, and the objects that are made from them."""

import math
import re
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock import registry, units
from penstock.config.campaign import CampaignSection
from penstock.config.section import Options, Section, quantity
from penstock.config.tuning import TuningSection
from penstock.core.arbiter import Arbiter
from penstock.errors import InputError
from penstock.io_node_settings import IoNodeSettings
from penstock.model import FileSystem, Site
from penstock.model.site import LARGEST
from penstock.policies.base import Allocator, Packer, Placer, Sharing

POLICY_SECTIONS = ("sharing", "allocation", "placement", "packing", "tuning")
"""The sections that name a policy and its options."""
OWN = "own"
"""allocation: jobs keep the resources they name; placement: the allocator's own placement."""
BALANCED = "greedy-non-clairvoyant"
DIVIDES = "size"
"""The fallback policy where no decision may be dropped and none is named."""
NAME = {"metavar": "NAME"}
FILE_SYSTEM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,39}")


class FileSystemSection(Section, frozen=True, kw_only=True, omit_defaults=True):
    """A file system of a live site."""

    roots: Annotated[list[str], Meta(description="a list of the directories that are managed")]
    bandwidth: Annotated[
        str | float | None,
        Meta(description="its bandwidth, as '2 GiB/s'; converts bytes to seconds"),
    ] = None


class SiteSection(Section, frozen=True, kw_only=True):
    """The machine."""

    name: Annotated[
        str | None,
        Meta(
            description="the site's name, for people; if unset, the controller's host name (live) "
            "or 'site' (simulated)"
        ),
    ] = None
    nodes: Annotated[
        int,
        Meta(
            description="the number of compute nodes; 0 for no limit",
            le=LARGEST,
            extra={"metavar": "N"},
        ),
    ] = 0
    resources: Annotated[
        int,
        Meta(
            description="the number of I/O nodes (or file systems, or storage targets)",
            le=LARGEST,
            extra={"metavar": "N"},
        ),
    ] = 1
    bandwidth: Annotated[
        str | float | None,
        Meta(description="the bandwidth of one resource, as '2 GiB/s'; converts bytes to seconds"),
    ] = None
    capacity: Annotated[
        tuple[float, ...],
        Meta(
            description="a list: the throughput of 1, 2, ... concurrent transfers, relative to one"
        ),
    ] = (1.0,)
    direct: Annotated[
        bool, Meta(description="true if jobs may bypass the I/O nodes and do direct I/O")
    ] = False
    work_conserving: Annotated[
        bool,
        Meta(
            description="true if other jobs have what a job cannot use of its resources, by its "
            "curve and site.bandwidth (in the curves' unit); simulations only"
        ),
    ] = False
    file_systems: Annotated[
        dict[str, FileSystemSection],
        Meta(
            description="a table of file systems, live: each with its roots (a list of "
            "directories) and, if known, its bandwidth ('2 GiB/s'); jobs on different ones do not "
            "wait for each other"
        ),
    ] = msgspec.field(default_factory=dict)

    def check(self) -> None:
        """Raise InputError for a site that is impossible."""
        self.site()
        self.declared()

    def declared(self) -> dict[str, FileSystem]:
        """Return the file systems by name, as they are given."""
        declared = {}
        for name, section in self.file_systems.items():
            key = f"site.file-systems.{name}"
            if not FILE_SYSTEM_NAME.fullmatch(name):
                raise InputError(
                    f"site.file-systems: {name!r} is no name of a file system; give up to 40 "
                    "letters, digits and ._+-, a letter or digit first"
                )
            if not section.roots:
                raise InputError(f"{key} has no roots; give a list of directories")
            bandwidth = section.bandwidth
            if bandwidth is not None:
                bandwidth = quantity(f"{key}.bandwidth", bandwidth, units.bandwidth)
                if not bandwidth:
                    raise InputError(f"{key}.bandwidth is 0; give more, or leave it out")
            declared[name] = FileSystem(name=name, roots=tuple(section.roots), bandwidth=bandwidth)
        return declared

    def site(self) -> Site:
        """Return the site."""
        bandwidth = self.bandwidth
        if bandwidth is not None:
            bandwidth = quantity("site.bandwidth", bandwidth, units.bandwidth)
        return Site(
            name=self.name or "site",
            nodes=self.nodes,
            resources=self.resources,
            bandwidth=bandwidth,
            capacity=self.capacity,
            direct=self.direct,
            work_conserving=self.work_conserving,
        )


class SharingSection(Section, frozen=True, kw_only=True):
    """Which job may transfer, and with which share."""

    policy: Annotated[
        str,
        Meta(
            description="the sharing policy: a name from 'penstock policies', or ./file.py:Class",
            extra=NAME,
        ),
    ] = "set-10"
    options: Options = msgspec.field(default_factory=dict)
    scope: Annotated[
        Literal["file-system", "io-node"],
        Meta(
            description="what turns are taken on, live: the file system as a whole, or each I/O "
            "node, so that jobs behind different ones do not wait for each other"
        ),
    ] = "file-system"

    def sharing(self) -> Sharing:
        """Return the policy, made with its options."""
        return registry.sharing(self.policy, self.options)


class AllocationSection(Section, frozen=True, kw_only=True):
    """How many resources each job gets; decided again whenever a job starts or ends."""

    policy: Annotated[
        str,
        Meta(
            description="the allocation policy: a name from 'penstock policies --kind allocation', "
            "./file.py:Class, or 'own' (jobs keep the resources they name)",
            extra=NAME,
        ),
    ] = OWN
    options: Options = msgspec.field(default_factory=dict)
    remap_delay: Annotated[
        str | float,
        Meta(
            description="the time until a running job uses its new resources, as '10 s'",
            extra={"metavar": "TIME"},
        ),
    ] = 0.0
    fallback: Annotated[
        str,
        Meta(
            description="the allocation policy for jobs of which too little is known for "
            "allocation.policy, or 'own': that policy's own, or on a live site 'size'",
            extra=NAME,
        ),
    ] = OWN
    settle: Annotated[
        str | float,
        Meta(
            description="how long such a job, or one known to be short, runs before other jobs "
            "make room for it",
            extra={"metavar": "TIME"},
        ),
    ] = 10.0
    explore: Annotated[
        bool,
        Meta(
            description="true if a live job in mode enforce gets another number of I/O nodes now "
            "and then, while few are asked for, to learn its bandwidth there"
        ),
    ] = True

    def check(self) -> None:
        """Raise InputError for times that are impossible."""
        self.delay()
        self.settling_time()

    def allocator(self) -> Allocator | None:
        """Return the policy, made with its options, or None if jobs keep their own resources."""
        if self.policy == OWN:
            if self.options:
                raise InputError("allocation.options needs a policy; set allocation.policy")
            return None
        allocator: Allocator = registry.policy("allocation", self.policy, self.options)
        return allocator

    def delay(self) -> float:
        """Return the seconds until a running job uses its new resources."""
        return quantity("allocation.remap-delay", self.remap_delay, units.seconds)

    def settling_time(self) -> float:
        """Return the seconds that an unknown job runs before others make room for it."""
        return quantity("allocation.settle", self.settle, units.seconds)

    def fallback_name(self, allocator: Allocator | None) -> str | None:
        """Return the fallback policy's name; for 'own', the allocator's, if it has one."""
        return getattr(allocator, "falls_back", None) if self.fallback == OWN else self.fallback


class PlacementSection(Section, frozen=True, kw_only=True):
    """Which resources each job gets, once the allocation says how many."""

    policy: Annotated[
        str,
        Meta(
            description="the placement policy: a name from 'penstock policies --kind placement', "
            "./file.py:Class, or 'own' (the allocation policy's placement, or balanced)",
            extra=NAME,
        ),
    ] = OWN
    options: Options = msgspec.field(default_factory=dict)

    def name(self, allocator: Allocator | None) -> str:
        """Return the policy's name; for 'own', the one that the allocator asks for."""
        return getattr(allocator, "brings", BALANCED) if self.policy == OWN else self.policy

    def placer(self, allocator: Allocator | None = None) -> Placer:
        """Return the policy, made with its options; an allocator may be its own."""
        if self.policy == OWN and self.options:
            raise InputError("placement.options needs a policy; set placement.policy")
        if self.policy == OWN and isinstance(allocator, Placer):
            return allocator
        placer: Placer = registry.policy("placement", self.name(allocator), self.options)
        return placer


class PackingSection(Section, frozen=True, kw_only=True):
    """Which jobs run together, behind which I/O node."""

    policy: Annotated[
        str,
        Meta(
            description="the packing policy: a name from 'penstock policies --kind packing', or "
            "./file.py:Class",
            extra=NAME,
        ),
    ] = "pack-partition"
    options: Options = msgspec.field(default_factory=dict)

    def packer(self) -> Packer:
        """Return the policy, made with its options."""
        packer: Packer = registry.policy("packing", self.policy, self.options)
        return packer


class SimulationSection(Section, frozen=True, kw_only=True):
    """Defaults of `penstock simulate`, `compare` and `what-if`."""

    knowledge: Annotated[
        str,
        Meta(
            description="how well policies know jobs (periods, lengths of phases, work left): "
            "exact, learned, noisy, or noisy:DECADES (noisy:0.5)",
            extra={"metavar": "KIND"},
        ),
    ] = "exact"
    seed: Annotated[
        int,
        Meta(
            description="the seed of noisy knowledge, 0 or more",
            ge=0,
            extra={"metavar": "N"},
        ),
    ] = 0
    window: Annotated[
        str | None,
        Meta(
            description="the time span of the metrics, BEGIN:END (6000:14000, or '2 h:4 h'); if "
            "unset, 0.3 to 0.7 of the file's horizon, or the whole run",
            extra={"metavar": "BEGIN:END"},
        ),
    ] = None

    as_live: Annotated[
        bool,
        Meta(
            description="true to simulate also what only a live site has, with the values of "
            "[live]: max-wait, fair-users, and ends of phases that are detected after a gap; "
            "slower, by the reference simulator"
        ),
    ] = False

    def check(self) -> None:
        """Raise InputError for a window that is impossible."""
        self.seconds()

    def seconds(self) -> tuple[float, float] | None:
        """Return the window in seconds."""
        return None if self.window is None else window(self.window)


MODES = ("observe", "advise", "enforce", "off")
Mode = Literal["observe", "advise", "enforce", "off"]


class LiveSection(Section, frozen=True, kw_only=True):
    """How a controller treats running jobs."""

    mode: Annotated[
        Mode,
        Meta(
            description="observe (measure only), advise (also give advice), enforce (jobs wait for "
            "their turns), or off (no turns)"
        ),
    ] = "observe"
    users: Annotated[
        dict[str, Mode], Meta(description="a table of users that have a mode of their own")
    ] = msgspec.field(default_factory=dict)
    partitions: Annotated[
        dict[str, list[Annotated[int, Meta(ge=0)]]],
        Meta(
            description="a table of Slurm partitions, each with the numbers of its I/O nodes, "
            "which no other jobs use"
        ),
    ] = msgspec.field(default_factory=dict)
    lease: Annotated[
        str | float,
        Meta(description="how long a gate stays closed without a message from the controller"),
    ] = 2.0
    max_wait: Annotated[
        str | float, Meta(description="the longest time that a phase waits for its turn")
    ] = 30.0
    fair_users: Annotated[bool, Meta(description="true if turns alternate between users")] = True
    user_jobs: Annotated[
        int,
        Meta(
            description="the most jobs of one user that are managed at once; 0 for half of all",
            ge=0,
        ),
    ] = 0
    dirty_window: Annotated[
        str | int,
        Meta(
            description="the most unwritten data of one file while a job is enforced; 0 for no "
            "limit"
        ),
    ] = 0
    keep_records: Annotated[
        str | float,
        Meta(description="the age or total size of records to keep, as '90 d'; 0 to keep all"),
    ] = "90 d"

    def tied(self, partition: str) -> str:
        """Return a partition that has I/O nodes of its own; "" for any other."""
        return partition if partition in self.partitions else ""

    def partitions_of(self, io_node: int) -> tuple[str, ...]:
        """Return the partitions that an I/O node serves: "" is all that have none of their own.

        Empty: it serves all jobs.
        """
        if not self.partitions:
            return ()
        tied = (name for name, numbers in self.partitions.items() if io_node in numbers)
        return tuple(sorted(tied)) or ("",)

    def check_partitions(self, io_nodes: int) -> None:
        """Raise InputError for a partition whose I/O nodes are not those of the site."""
        for name, numbers in self.partitions.items():
            if not numbers:
                raise InputError(
                    f"live.partitions.{name} is empty; name I/O nodes, or leave it out"
                )
            for number in numbers:
                if number >= io_nodes:
                    raise InputError(
                        f"live.partitions.{name} names I/O node {number}; there are {io_nodes}, "
                        "counted from 0"
                    )

    def check(self) -> None:
        """Raise InputError for times or sizes that are impossible."""
        self.seconds()
        self.dirty_bytes()
        self.retention()

    def retention(self) -> tuple[float, float]:
        """Return the largest age of records in seconds, and their largest size in bytes."""
        keep = self.keep_records
        if isinstance(keep, str) and units.is_volume(keep):
            age, size = math.inf, quantity("live.keep-records", keep, units.volume)
        else:
            age, size = quantity("live.keep-records", keep, units.seconds), math.inf
        if min(age, size) == 0:
            return math.inf, math.inf
        if age < 3600 or size < 1 << 20:
            raise InputError(f"live.keep-records is {keep}; give 1 h or 1 MiB at least, or 0")
        return age, size

    def dirty_bytes(self) -> int:
        """Return the dirty window in bytes; 0: no limit."""
        size = round(quantity("live.dirty-window", self.dirty_window, units.volume))
        if size and not 64 << 10 <= size <= 1 << 30:
            raise InputError(
                f"live.dirty-window is {self.dirty_window}; give 64 KiB to 1 GiB, or 0"
            )
        return size

    def seconds(self) -> tuple[float, float]:
        """Return the lease and the longest wait."""
        lease, wait = (
            quantity(f"live.{key}", value, units.seconds, (0.05, 86400), "50 ms to 24 h")
            for key, value in (("lease", self.lease), ("max-wait", self.max_wait))
        )
        return lease, wait


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """All sections."""

    site: SiteSection = SiteSection()
    sharing: SharingSection = SharingSection()
    allocation: AllocationSection = AllocationSection()
    placement: PlacementSection = PlacementSection()
    packing: PackingSection = PackingSection()
    simulation: SimulationSection = SimulationSection()
    live: LiveSection = LiveSection()
    io_node: IoNodeSettings = IoNodeSettings()
    tuning: TuningSection = TuningSection()
    campaign: CampaignSection = CampaignSection()

    def make(self, section: str) -> object:
        """Return the policy of a section, made with its options."""
        makers: dict[str, Callable[[], object]] = {
            "sharing": self.sharing.sharing,
            "allocation": self.allocation.allocator,
            "placement": self.placement.placer,
            "packing": self.packing.packer,
            "tuning": self.tuning.tuner,
        }
        return makers[section]()

    def arbiter(self) -> Arbiter | None:
        """Return a new arbiter, or None if jobs keep the resources they name."""
        allocator = self.allocation.allocator()
        if allocator is None:
            return None
        section = self.allocation
        name = section.fallback_name(allocator)
        fallback: Allocator | None = None
        if name is not None:
            fallback = registry.policy("allocation", name)
        return Arbiter(
            allocator=allocator,
            placer=self.placement.placer(allocator),
            fallback=fallback,
            remap_delay=section.delay(),
            settle=section.settling_time(),
        )


def window(text: str) -> tuple[float, float]:
    """Read BEGIN:END, in seconds ("6000:14000") or with units ("2 h:4 h")."""
    begin, colon, end = text.partition(":")
    try:
        if not colon:
            raise InputError("there is no colon")
        span = units.seconds(begin), units.seconds(end)
        if not span[0] < span[1]:
            raise InputError("it is empty")
    except InputError as error:
        raise InputError(
            f"window {text!r} is not BEGIN:END with BEGIN before END ('6000:14000'): {error}"
        ) from error
    return span
