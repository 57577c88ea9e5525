"""A job's phase in progress and what its earlier ones showed, as the turn logic keeps them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.core.wait import Wait
from penstock.learn.observations import ObservedPhase
from penstock.learn.phases import MEASURABLE
from penstock.live.controller.io_node_map import IoNodePath
from penstock.model import Curve, JobId, ResourceId

BANDWIDTH_DECAY = 0.05
"""Part by which a job's best bandwidth counts less with every later phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The job transfers without a turn: it waited too long, or the policy `failed`.

    No action: the Manager does not decide it, and no record contains it.
    """

    job: JobId
    weight: float = 1.0
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """A phase that is over, as its job measured it."""

    number: int
    bytes: int
    seconds: float  # from its turn, or its beginning if there was none, to its last call
    waited: float  # seconds
    idle: float = 0.0  # seconds since its last call
    small: bool = False  # it turned out too small to count as a phase


@dataclass(slots=True, kw_only=True)
class Phase(Wait):
    """A phase in progress."""

    number: int
    resources: tuple[ResourceId, ...] = ()  # none: it competes with nobody
    turns: set[ResourceId] = field(default_factory=set)  # where it has its turn
    weights: dict[ResourceId, float] = field(default_factory=dict)  # with its turn there
    reported: frozenset[ResourceId] = frozenset()  # where its job knows that it has its turn
    volume: float | None = None  # bytes that it announced
    file_systems: frozenset[ResourceId] = frozenset()  # that it used, whatever turns are taken on
    io_nodes: frozenset[ResourceId] = frozenset()  # that it went through, all it had; none: direct
    alone: bool = True  # no other phase moved data on its file systems while it did
    apart: bool = True  # no other phase moved data through its I/O nodes while it did
    compute: float | None = None  # seconds before it
    paths: Mapping[JobId, IoNodePath] = field(default_factory=dict)  # of its members, at its start
    mode: str = "enforce"  # of its job, now
    observed: bool = False  # for a part of it at least, its job was not made to wait

    def set_mode(self, mode: str) -> None:
        """Note the mode of its job from now on."""
        self.mode = mode
        self.observed = self.observed or mode != "enforce"

    def has_turn_on(self, resource: ResourceId, weight: float) -> None:
        """Note a turn, or its new weight."""
        self.turns.add(resource)
        self.weights[resource] = weight

    def heaviest_turn(self) -> float:
        """Return its weight at the I/O nodes: the one of its heaviest turn.

        A turn that it has on one file system is not slowed down for what it lacks on another.
        """
        return max(self.weights[resource] for resource in self.turns)

    def resume(self, suspended: "Phase") -> None:
        """Continue a phase that yielded its turn, or fell silent.

        What it transferred until then took longer than it takes without an interruption.
        """
        self.waited, self.compute = suspended.waited, suspended.compute
        self.alone = self.apart = False
        self.observed = self.observed or suspended.observed

    def weight_on(self, resource: ResourceId) -> float:
        """Return the weight with which it transfers on a resource."""
        return self.weights[resource] if resource in self.turns else self.weight

    def has_share_of(self, resource: ResourceId) -> bool:
        """Tell whether it transfers on a resource with its weight.

        A phase that has its turn on other resources only has what is left of this one.
        """
        if self.is_waiting or resource not in self.resources:
            return False
        return resource in self.turns or self.released or not self.turns

    def shared_resources(self) -> tuple[ResourceId, ...]:
        """Return the resources on which it transfers with its weight."""
        return tuple(filter(self.has_share_of, self.resources))

    @property
    def moves_since(self) -> float | None:
        """When it began to move data; None: it waits. A phase that is observed never waits."""
        return self.transfers_since if self.mode == "enforce" else self.began


@dataclass(slots=True, kw_only=True)
class TurnState:
    """A job's phase in progress, and totals over its earlier ones."""

    phase: Phase | None = None
    suspended: Phase | None = None  # it yielded its turn, or fell silent: its end is to come
    phases: int = 0
    bytes: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    """Its phases by the mode in which they ended."""
    waited: float = 0.0
    would_have_waited: float = 0.0  # in phases, or parts of them, that were only observed
    transferred: float = 0.0
    curve: Curve | None = None  # of its application
    io_nodes: int | None = None  # how many it has; None: not known
    bandwidth: float = 0.0  # bytes per second with those: of its best phase, fading, or its curve
    best: float = 0.0  # bytes per second, of the best phase of this run
    alone: bool = False  # one of its phases was alone: `bandwidth` is what it can do
    volume: float | None = None  # bytes per phase, according to its user or its application
    idle_since: float | None = None  # the end of its last phase, or its start; None: not known
    last_report: float = 0.0

    def use(self, io_nodes: int | None) -> None:
        """It has this many I/O nodes: what it did with another number says nothing."""
        if io_nodes != self.io_nodes:
            self.io_nodes, self.bandwidth, self.alone = io_nodes, 0.0, False
            if self.curve is not None and io_nodes in self.curve.counts:
                self.bandwidth = self.curve.bandwidth(io_nodes)

    def observation(self, phase: Phase, report: PhaseReport) -> ObservedPhase:
        """Return what a phase that is over shows of the application."""
        return ObservedPhase(
            bytes=report.bytes,
            seconds=round(report.seconds, 6),
            alone=phase.alone,
            apart=phase.apart and bool(phase.io_nodes) and not phase.alone,
            compute=None if phase.compute is None else round(phase.compute, 6),
            first=self.phases == 0,
        )

    def isolated(
        self, moved: int, seconds: float, *, alone: bool = True, site: float | None = None
    ) -> float:
        """Return how long a phase would have taken alone, and update the bandwidth.

        Beside others a job shows less than it can do: until one of its phases was alone, the
        `site`'s bandwidth counts if it is higher. A phase too short to measure counts as reported.
        """
        if moved <= 0 or seconds < MEASURABLE:
            return max(seconds, 0.0)
        self.best = max(moved / seconds, self.best)
        self.bandwidth = max(moved / seconds, self.bandwidth * (1 - BANDWIDTH_DECAY))
        self.alone = self.alone or alone
        usual = 0.0 if self.alone or site is None else site
        return moved / max(self.bandwidth, usual)

    def expected_bytes(self) -> float | None:
        """Return the bytes of its next phase: the mean so far, else `volume`."""
        return self.bytes / self.phases if self.phases else self.volume


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEstimate:
    """What a phase is expected to be before it begins; None: not known."""

    seconds: float | None  # alone
    bytes: float | None
    resumes: bool = False  # it continues a phase that yielded its turn


class PhaseObserver:
    """Follows phases as they come and go, for the dashboard; this one ignores them."""

    def phase_expected(self, job: JobId, estimate: PhaseEstimate) -> None:
        """A phase is about to begin."""

    def phase_changed(self, job: JobId) -> None:
        """A phase waits, or transfers, from now on."""

    def phase_ended(self, job: JobId, time: float, report: PhaseReport | None) -> None:
        """A phase ended at a time; without a report it was interrupted."""
