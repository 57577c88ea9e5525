"""The protocols that policies follow. All are pure.

Time comes from the view, randomness from a seed, waiting from an action.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.model import (
    Context,
    Job,
    JobId,
    Request,
    ResourceId,
    Schedule,
    Site,
    Value,
    View,
)

Counts = Mapping[JobId, int]
Placement = Mapping[JobId, tuple[ResourceId, ...]]
NOBODY: Placement = MappingProxyType({})
"""No jobs that stay where they are."""


class Own(Enum):
    """What `group` returns for a job that takes turns with nobody, whatever jobs are called."""

    GROUP = "own"


@runtime_checkable
class Sharing(Protocol):
    """Who may transfer on a resource, and with which share.

    Inside a group one job transfers at a time (more only while their caps leave capacity unused),
    the smallest `turn` first, then the earlier request, then the earlier job. Jobs that transfer
    share by weight. Group and weight are functions of the job alone; they are sampled when a phase
    begins and hold for that phase, so a better estimate of `w_iter` can move a job between phases.
    The group `Own.GROUP` is the job's own: it never waits.
    """

    preemptive: ClassVar[bool]
    """The holder of a group is chosen anew at every event of its resource."""
    dynamic: ClassVar[bool]
    """`turn` changes while requests wait: it is asked again at each decision, O(waiters)."""
    needs: ClassVar[frozenset[str]]
    """What it must be told: "w_iter", "remaining", "progress". A host that cannot know refuses."""
    order: ClassVar[str | None]
    """The name of `turn` among the orders that the native engine knows, or None: call `turn`."""

    def group(self, job: Job) -> Hashable:
        """Return what the job shares its turns with."""
        ...

    def weight(self, job: Job) -> float:
        """Return the job's weight against the other jobs that transfer."""
        ...

    def turn(self, request: Request, view: View) -> float:
        """Return the request's place inside its group; the smallest goes first."""
        ...


class Checked:
    """A sharing policy whose answers are checked: on a live site it may be anybody's."""

    def __init__(self, policy: Sharing) -> None:
        self.policy = policy
        self.preemptive, self.dynamic = policy.preemptive, policy.dynamic
        self.needs, self.order = policy.needs, policy.order
        self._name = type(policy).__name__

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def group(self, job: Job) -> Hashable:
        """Return the policy's answer; InputError: it cannot be followed."""
        group = self.policy.group(job)
        try:
            hash(group)
        except TypeError:
            raise InputError(f"{self._name}: group {group!r} is nothing to tell apart by") from None
        return group

    def weight(self, job: Job) -> float:
        """Return the policy's answer; InputError: it cannot be followed."""
        weight = self.policy.weight(job)
        if not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise InputError(f"{self._name}: weight {weight!r}; it must be finite and above zero")
        return weight

    def turn(self, request: Request, view: View) -> float:
        """Return the policy's answer; InputError: it cannot be followed."""
        turn = self.policy.turn(request, view)
        if not isinstance(turn, int | float) or math.isnan(turn):
            raise InputError(f"{self._name}: turn {turn!r}; it must be a number")
        return turn


class ByArrival:
    """A base for sharing policies: no preemption, first come first served, weight one."""

    preemptive: ClassVar[bool] = False
    dynamic: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset()
    order: ClassVar[str | None] = "arrival"

    def weight(self, job: Job) -> float:  # noqa: ARG002
        """All jobs weigh the same."""
        return 1.0

    def turn(self, request: Request, view: View) -> float:  # noqa: ARG002
        """All turns are equal, so that the earlier request goes first."""
        return 0.0


@runtime_checkable
class Allocator(Protocol):
    """How many resources each running job gets.

    An allocator with a class attribute `brings` names the placer that it is meant to go with; one
    that is a Placer itself goes with itself.
    """

    needs: ClassVar[frozenset[str]]
    """What it must know of a job: "nodes", "processes", "volume", "compute", "curve", and
    "best-count", which is less than a curve: where it is highest (paper io-resources, Table II)."""
    sticky: ClassVar[bool]
    """A running job keeps the number that it started with."""

    def allocate(self, view: View) -> Counts:
        """Return the number of resources of every running job; 0 is direct access."""
        ...


@runtime_checkable
class Placer(Protocol):
    """Which resources each running job gets.

    A placer with a class attribute `joint = True` is always asked about all jobs, since where one
    goes depends on where all go; any other only about jobs whose count changed.
    """

    needs: ClassVar[frozenset[str]]
    """What it must know of a job, as an Allocator's."""

    def place(self, view: View, counts: Counts, staying: Placement = NOBODY) -> Placement:
        """Return the resources of every job in `counts`.

        `staying` says where jobs are; those that are not in `counts` stay there.
        """
        ...


@runtime_checkable
class Packer(Protocol):
    """Which jobs run together, in which order, and behind which I/O node."""

    needs: ClassVar[frozenset[str]]
    """What it must know of a job, as an Allocator's."""

    def pack(self, jobs: Sequence[Job], site: Site) -> Schedule:
        """Return a schedule of all jobs on a site whose nodes are split evenly over I/O nodes."""
        ...


@runtime_checkable
class Tuner(Protocol):
    """Which of a parameter's values suits a context: one tuner a parameter.

    `learn` is told what `choose` or `best` led to: bytes a second of busy time, say. Rewards of one
    context are comparable with each other, those of two contexts are not.
    """

    def choose(self, context: Context, values: Sequence[Value]) -> Value:
        """Return the value to try next: mostly the best known, sometimes one to learn about."""
        ...

    def best(self, context: Context, values: Sequence[Value]) -> Value | None:
        """Return the best value as far as is known; None: nothing is known of this context."""
        ...

    def learn(self, context: Context, value: Value, reward: float) -> None:
        """Take in what a value was worth."""
        ...

    def learned(self) -> dict[str, Any]:
        """Return all that was learnt, as plain data."""
        ...

    def restore(self, learned: Mapping[str, Any]) -> None:
        """Go on from what `learned` returned; InputError: it is not of this policy, or damaged."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """What an allocation and placement would be worth (paper io-resources, Section III-C)."""

    mean_slowdown: float
    idle_time: float
    bandwidth: float
    slowdown: NDArray[np.float64]
    """Every job's I/O-SlowDown."""


@runtime_checkable
class Judge(Protocol):
    """Says what would happen to jobs on given resources: a simulation, for one.

    Made with the jobs and the site, then asked many times.
    """

    def __call__(self, places: Sequence[tuple[ResourceId, ...]]) -> Verdict:
        """Return what the jobs would get, each on its resources, in the order of the jobs."""
        ...
