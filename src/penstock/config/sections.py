"""The sections of the configuration: what can be set, and what is made of it."""

import math
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from penstock import registry, units
from penstock.config.campaign import CampaignSection
from penstock.config.tuning import TuningSection
from penstock.core.arbiter import Arbiter
from penstock.errors import InputError
from penstock.model import Site
from penstock.policies.base import Allocator, Packer, Placer, Sharing

DECIDED = ("sharing", "allocation", "placement", "packing", "tuning")
"""The sections that name a policy and its options."""
OWN = "own"
"""Of allocation: jobs keep the resources they name; of placement: what the allocation brings."""
BALANCED = "greedy-non-clairvoyant"
LARGEST = 10**6
"""More nodes or resources than this are a slip of the finger."""


class SiteSection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """The machine."""

    name: Annotated[str, Meta(description="the site's name, for people")] = "site"
    nodes: Annotated[
        int, Meta(description="a whole number of compute nodes; 0: they never run out", le=LARGEST)
    ] = 0
    resources: Annotated[
        int, Meta(description="a whole number of file systems, I/O nodes or targets", le=LARGEST)
    ] = 1
    bandwidth: Annotated[
        str | float | None,
        Meta(description="one resource's, as '2 GiB/s'; it turns volumes into seconds"),
    ] = None
    capacity: Annotated[
        tuple[float, ...],
        Meta(description="a list: what 1, 2, ... transfers get together, in parts of one's"),
    ] = (1.0,)
    direct: Annotated[
        bool, Meta(description="true or false: may jobs do their I/O past all I/O nodes?")
    ] = False

    def site(self) -> Site:
        """Return the site, or raise InputError for one that cannot be."""
        try:
            bandwidth = None if self.bandwidth is None else units.bandwidth(self.bandwidth)
        except InputError as error:
            raise InputError(f"site.bandwidth: {error}") from error
        return Site(
            name=self.name,
            nodes=self.nodes,
            resources=self.resources,
            bandwidth=bandwidth,
            capacity=self.capacity,
            direct=self.direct,
        )


class SharingSection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """Who may transfer, with which share."""

    policy: Annotated[
        str, Meta(description="a name that 'penstock policies' lists, or './file.py:Class'")
    ] = "set-10"
    options: Annotated[dict[str, Any], Meta(description="a table of the policy's options")] = {}

    def sharing(self) -> Sharing:
        """Return the policy, made with its options."""
        return registry.sharing(self.policy, self.options)


class AllocationSection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """How many resources each job gets; decided anew when one starts or ends."""

    policy: Annotated[
        str,
        Meta(description="a name, './file.py:Class', or 'own': jobs keep the resources they name"),
    ] = OWN
    options: Annotated[dict[str, Any], Meta(description="a table of the policy's options")] = {}
    remap_delay: Annotated[
        str | float, Meta(description="until a running job hears of its new resources, as '10 s'")
    ] = 0.0

    def allocator(self) -> Allocator | None:
        """Return the policy, made with its options, or None if jobs have resources of their own."""
        if self.policy == OWN:
            if self.options:
                raise InputError("allocation.options are of a policy; set allocation.policy")
            return None
        made: Allocator = registry.policy("allocation", self.policy, self.options)
        return made

    def delay(self) -> float:
        """Return the seconds until a running job hears of its new resources."""
        try:
            return units.seconds(self.remap_delay)
        except InputError as error:
            raise InputError(f"allocation.remap-delay: {error}") from error


class PlacementSection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """Which resources each job gets, of as many as its allocation says."""

    policy: Annotated[
        str,
        Meta(description="a name, './file.py:Class', or 'own': the allocation's, or balanced"),
    ] = OWN
    options: Annotated[dict[str, Any], Meta(description="a table of the policy's options")] = {}

    def name(self, allocator: Allocator | None) -> str:
        """Return the policy's name; for 'own' that of what the allocator brings along."""
        return getattr(allocator, "brings", BALANCED) if self.policy == OWN else self.policy

    def placer(self, allocator: Allocator | None = None) -> Placer:
        """Return the policy, made with its options; an allocator may be its own."""
        if self.policy == OWN and self.options:
            raise InputError("placement.options are of a policy; set placement.policy")
        if self.policy == OWN and isinstance(allocator, Placer):
            return allocator
        made: Placer = registry.policy("placement", self.name(allocator), self.options)
        return made


class PackingSection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """Which jobs run together, behind which I/O node."""

    policy: Annotated[str, Meta(description="a name, or './file.py:Class'")] = "pack-partition"
    options: Annotated[dict[str, Any], Meta(description="a table of the policy's options")] = {}

    def packer(self) -> Packer:
        """Return the policy, made with its options."""
        made: Packer = registry.policy("packing", self.policy, self.options)
        return made


class SimulationSection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """What `penstock simulate` and `penstock compare` do unless told otherwise."""

    knowledge: Annotated[
        str, Meta(description="exact, learned, noisy or noisy:DECADES; how policies know w_iter")
    ] = "exact"
    seed: Annotated[int, Meta(description="a whole number from 0 on; of noisy knowledge", ge=0)] = 0
    window: Annotated[
        str | None,
        Meta(
            description="BEGIN:END of the metrics, in seconds or words; not set: the steady state"
        ),
    ] = None

    def seconds(self) -> tuple[float, float] | None:
        """Return the window in seconds."""
        return None if self.window is None else window(self.window)


MODES = ("observe", "advise", "enforce", "off")
Mode = Literal["observe", "advise", "enforce", "off"]


class LiveSection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """How a controller governs the jobs that run."""

    mode: Annotated[
        Mode, Meta(description="observe, advise or enforce: only then do jobs wait; off: no turns")
    ] = "observe"
    users: Annotated[
        dict[str, Mode], Meta(description="a table of users whose mode is another")
    ] = {}
    lease: Annotated[
        str | float,
        Meta(description="a gate stays closed so long without a word from the controller"),
    ] = 2.0
    max_wait: Annotated[
        str | float, Meta(description="no phase waits longer than this for its turn")
    ] = 30.0

    fair_users: Annotated[
        bool, Meta(description="true or false: do turns alternate between users?")
    ] = True
    user_jobs: Annotated[
        int, Meta(description="jobs of one user that are managed at a time; 0: half of all", ge=0)
    ] = 0

    dirty_window: Annotated[
        str | int,
        Meta(description="bytes of a file that a job that is enforced may be ahead of the storage"),
    ] = 0

    keep_records: Annotated[
        str | float,
        Meta(description="a time or a size: older parts of the record are removed; 0: none are"),
    ] = "90 d"

    def kept(self) -> tuple[float, float]:
        """Return how old records may be, in seconds, and how large, in bytes; inf: any."""
        kept = self.keep_records
        try:
            if isinstance(kept, str) and units.is_volume(kept):
                found = math.inf, units.volume(kept)
            else:
                found = units.seconds(kept), math.inf
        except InputError as error:
            raise InputError(f"live.keep-records: {error}") from error
        if min(found) == 0:
            return math.inf, math.inf
        if found[0] < 3600 or found[1] < 1 << 20:
            raise InputError(f"live.keep-records is {kept}; give 1 h or 1 MiB at least, or 0")
        return found

    def window(self) -> int:
        """Return the dirty window in bytes; 0: none."""
        try:
            window = round(units.volume(self.dirty_window))
        except InputError as error:
            raise InputError(f"live.dirty-window: {error}") from error
        if window and not 64 << 10 <= window <= 1 << 30:
            raise InputError(
                f"live.dirty-window is {self.dirty_window}; give 64 KiB to 1 GiB, or 0"
            )
        return window

    def seconds(self) -> tuple[float, float]:
        """Return the lease and the longest wait."""
        found = []
        for key, value in (("lease", self.lease), ("max-wait", self.max_wait)):
            try:
                found.append(units.seconds(value))
            except InputError as error:
                raise InputError(f"live.{key}: {error}") from error
            if not 0.05 <= found[-1] <= 86400:
                raise InputError(f"live.{key} is {value}; give 50 ms to 24 h")
        return found[0], found[1]


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """All sections."""

    site: SiteSection = SiteSection()
    sharing: SharingSection = SharingSection()
    allocation: AllocationSection = AllocationSection()
    placement: PlacementSection = PlacementSection()
    packing: PackingSection = PackingSection()
    simulation: SimulationSection = SimulationSection()
    live: LiveSection = LiveSection()
    tuning: TuningSection = TuningSection()
    campaign: CampaignSection = CampaignSection()

    def arbiter(self) -> Arbiter | None:
        """Return a new arbiter, or None if jobs keep the resources they name."""
        allocator = self.allocation.allocator()
        if allocator is None:
            return None
        return Arbiter(
            allocator=allocator,
            placer=self.placement.placer(allocator),
            remap_delay=self.allocation.delay(),
        )


def window(text: str) -> tuple[float, float]:
    """Read BEGIN:END, in seconds ("6000:14000") or words ("2 h:4 h")."""
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
