"""The interfaces of policies: what a policy author implements.

A policy is one class in one file. There are five kinds:

    Sharing     who may transfer now, and with which share of the bandwidth
    Allocator   how many resources (I/O nodes, storage targets) each job gets
    Placer      which resources each job gets
    Packer      which jobs run together, behind which I/O node
    Tuner       which value of a parameter suits an access pattern

The same object runs in the simulator and in a live controller, so a policy is pure: it reads the
time from the view, takes random numbers from a `seed` option, and neither opens files nor waits.
Options are keyword arguments of the constructor, with defaults; an unknown option is refused when
the policy is loaded. `needs` lists what the policy must know of a job; a host that cannot know it
refuses the policy.

To write a sharing policy, derive from `ByArrival` and override `group`, `weight` or `turn`:

    class ShortestIo(ByArrival):
        def group(self, job):
            return "all"                 # one job at a time

        def turn(self, request, view):
            return request.io or 0.0     # the smallest goes first

`penstock simulate jobs.json --policy ./mine.py:ShortestIo` runs it.
"""

import copy
import inspect
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.model import (
    Context,
    Event,
    Job,
    JobId,
    Request,
    ResourceId,
    Schedule,
    Site,
    Value,
    View,
    Woke,
)
from penstock.policies._support.asking import ask, guard, plain_key, plain_number, shown

Counts = Mapping[JobId, int]
Placement = Mapping[JobId, tuple[ResourceId, ...]]
NOBODY: Placement = MappingProxyType({})
"""The placement of no job."""


SHORTEST_WAKE = 1e-3
"""Seconds after which a policy may ask to be woken again and again. A single wake may be earlier:
the next of regular times can be any time from now."""
MOST_EARLY_WAKES = 1000
"""Earlier wakes in a row, with no event of a job between them, that are an error: time would hardly
go on."""


class Own(Enum):
    """What `group` returns for a job that never waits: a group that no other job is in."""

    GROUP = "own"


@runtime_checkable
class Sharing(Protocol):
    """Who may transfer on a resource, and with which share.

    Jobs of one group take turns: `places` of them transfer at a time (more only while the caps of
    those that transfer leave capacity unused). The smallest `turn` goes first, then the earlier
    request, then the earlier job; all requests of one instant are compared. The jobs that transfer
    share the resource by weight. A job in the group `Own.GROUP` never waits.

    Group and weight are read when a phase begins. The group holds for that phase: a better
    estimate of `w_iter` moves a job to another group between two phases. So does the weight,
    unless the policy `reweighs`. Both may take the view as a second argument.

    A policy keeps no state but what it makes of the events that it observes: `group`, `weight` and
    `turn` may be called any number of times.
    """

    preemptive: ClassVar[bool]
    """Choose the jobs of a group again at every event of its resource, also during a transfer."""
    dynamic: ClassVar[bool]
    """`turn` changes while requests wait: call it at each decision, O(waiting requests)."""
    needs: ClassVar[frozenset[str]]
    """What the policy must know: see NEEDS."""

    @property
    def group(self) -> Callable[..., Hashable]:
        """A method, of the job or of job and view: the group that the job takes turns in."""
        ...

    @property
    def weight(self) -> Callable[..., float]:
        """A method, of the job or of job and view: its weight against the others; above zero."""
        ...

    def turn(self, request: Request, view: View) -> float:
        """Return the request's position in its group; the smallest goes first."""
        ...


NEEDS: Mapping[str, str] = MappingProxyType(
    {
        "io": "the expected length of an I/O phase",
        "profile": "the class that a generator drew the job from",
        "progress": "the work and I/O that a job has done",
        "remaining": "how much of a phase is expected to be left",
        "w_iter": "the time of an iteration",
        "work": "how much work a job has left",
    }
)
"""What a sharing policy may need to know of a job."""


class ByArrival:
    """A base for sharing policies: no preemption, first come first served, weight one."""

    preemptive: ClassVar[bool] = False
    dynamic: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset()
    reweighs: ClassVar[bool] = False
    """The weight of a job changes while it transfers: call `weight` at every event of the resource,
    and whenever the policy is woken."""
    in_order: ClassVar[bool] = False
    """Jobs of a preemptive group that transfer together, because none can use all, are served in
    the order of their turns: each takes what it can use, the last what is left. Else by weight."""
    places: int = 1
    """How many jobs of a group may transfer at a time; `observe` may change it."""

    def weight(self, job: Job) -> float:  # noqa: ARG002
        """Return one: all jobs have the same weight."""
        return 1.0

    def turn(self, request: Request, view: View) -> float:  # noqa: ARG002
        """Return zero: all turns are equal, so that the earlier request goes first."""
        return 0.0


class Rule:
    """A sharing policy as its hosts call it: with defaults, and with its answers checked.

    A policy may come from a user's file. One that has a method `observe(event, view)` is shown
    every event before the decision, and may return a time to be woken at.
    """

    def __init__(self, policy: Sharing) -> None:
        self.policy = policy
        self.preemptive, self.dynamic = bool(policy.preemptive), bool(policy.dynamic)
        self.reweighs: bool = getattr(policy, "reweighs", False)
        self.in_order = self.preemptive and bool(getattr(policy, "in_order", False))
        self.observes = callable(getattr(policy, "observe", None))
        self._group_sees, self._weight_sees = sees_view(policy.group), sees_view(policy.weight)
        self._name = type(policy).__name__
        self._early_wakes = 0

    @property
    def places(self) -> int:
        """How many jobs of a group may transfer; InputError unless one can."""
        return guard(self.policy, "places", self._places)

    def _places(self) -> int:
        places = getattr(self.policy, "places", 1)
        number = plain_number(places)
        if not isinstance(number, int) or number < 1:
            raise InputError(
                f"{self._name}: places is {shown(places)}; give a whole number above 0"
            )
        return number

    @property
    def depends_on_the_job_alone(self) -> bool:
        """Whether group and weight are the same in every phase of a job."""
        return not (self._group_sees or self._weight_sees or self.observes or self.reweighs)

    def group(self, job: Job, view: View) -> Hashable:
        """Return the policy's group; InputError unless it is plain data."""
        arguments = (job, view) if self._group_sees else (job,)
        group: Hashable = ask(self.policy, "group", *arguments, plain=self._plain_group)
        return group

    def weight(self, job: Job, view: View) -> float:
        """Return the policy's weight; InputError unless rates can be computed with it."""

        def plain(answer: object) -> float:
            weight = plain_number(answer)
            if weight is None or not 1e-12 <= weight <= 1e12:
                raise InputError(
                    f"{self._name}: weight() of job {job.id!r} is {shown(answer)}; "
                    "give 1e-12 to 1e12"
                )
            return weight

        arguments = (job, view) if self._weight_sees else (job,)
        weight: float = ask(self.policy, "weight", *arguments, plain=plain)
        return weight

    def turn(self, request: Request, view: View) -> float:
        """Return the policy's turn; InputError unless it is a number."""
        turn: float = ask(self.policy, "turn", request, view, plain=self._plain_turn)
        return turn

    def _plain_group(self, answer: object) -> object:
        if answer is Own.GROUP:
            return answer
        try:
            return plain_key(answer)
        except TypeError:
            raise InputError(
                f"{self._name}: group() returned {shown(answer)}; "
                "give a string, a number, None, or a tuple of these"
            ) from None

    def _plain_turn(self, answer: object) -> float:
        turn = plain_number(answer)
        if turn is None or math.isnan(turn):
            raise InputError(f"{self._name}: turn() returned {shown(answer)}; it must be a number")
        return turn

    def observe(self, event: Event, view: View) -> float | None:
        """Show the policy an event; return when it wants to be woken."""
        if not self.observes:
            return None

        def plain(answer: object) -> float | None:
            wake = plain_number(answer)
            if answer is not None and (wake is None or not view.now < wake < math.inf):
                raise InputError(
                    f"{self._name}: observe() returned {shown(answer)}; "
                    "give None or a time after view.now"
                )
            return wake

        wake: float | None = ask(self.policy, "observe", event, view, plain=plain)
        early = wake is not None and wake - view.now < SHORTEST_WAKE
        self._early_wakes = self._early_wakes + 1 if early and isinstance(event, Woke) else 0
        if self._early_wakes >= MOST_EARLY_WAKES:
            self._early_wakes = 0
            raise InputError(
                f"{self._name}: observe() asked {MOST_EARLY_WAKES} times in a row to be woken "
                f"within {SHORTEST_WAKE:g} s, and nothing else happened; give later times"
            )
        return wake


def without_trace(policy: Sharing) -> Sharing:
    """Return a policy for one run: what it observes there does not change the one given."""
    return copy.deepcopy(policy) if hasattr(policy, "observe") else policy


def sees_view(method: Callable[..., Any]) -> bool:
    """Tell whether a policy's `group` or `weight` takes the view beside the job."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(method).parameters.values()
    return sum(each.kind in kinds for each in parameters) > 1


@runtime_checkable
class Allocator(Protocol):
    """How many resources each running job gets.

    A class attribute `brings` names the placer that the allocator is meant to be used with; an
    allocator that is a Placer itself is used with itself. `falls_back` names the allocator for jobs
    of which too little is known, `least_points` is the number of counts that a known curve has, and
    `offline` says why a live site refuses the policy.
    """

    needs: ClassVar[frozenset[str]]
    """What the policy must know of a job: "nodes", "processes", "volume", "compute", "curve", or
    "best-count", the count at which the curve is highest (paper io-resources, Table II)."""
    sticky: ClassVar[bool]
    """A running job keeps the number that it started with."""

    def allocate(self, view: View) -> Counts:
        """Return the number of resources of every running job; 0 is direct access."""
        ...


@runtime_checkable
class Placer(Protocol):
    """Which resources each running job gets.

    A placer with a class attribute `joint = True` is always called for all jobs, because the place
    of one depends on the places of all; any other only for jobs whose count has changed.
    """

    needs: ClassVar[frozenset[str]]
    """What the policy must know of a job; see Allocator."""

    def place(self, view: View, counts: Counts, staying: Placement = NOBODY) -> Placement:
        """Return the resources of every job in `counts`.

        `staying` is where jobs are now; those that are not in `counts` stay there.
        """
        ...


@runtime_checkable
class Packer(Protocol):
    """Which jobs run together, in which order, and behind which I/O node."""

    needs: ClassVar[frozenset[str]]
    """What the policy must know of a job; see Allocator."""

    def pack(self, jobs: Sequence[Job], site: Site) -> Schedule:
        """Return a schedule of all jobs on a site whose nodes are split evenly over I/O nodes."""
        ...


@runtime_checkable
class Tuner(Protocol):
    """Which value of a parameter suits a context (an access pattern): one tuner per parameter.

    The host tries the value that `choose` returns and reports its reward to `learn`, for example
    bytes per second of busy time. Rewards are comparable within a context, not between contexts.
    """

    def choose(self, context: Context, values: Sequence[Value]) -> Value:
        """Return the value to try next: mostly the best so far, sometimes one to learn about."""
        ...

    def best(self, context: Context, values: Sequence[Value]) -> Value | None:
        """Return the best value so far, or None for a context without observations."""
        ...

    def learn(self, context: Context, value: Value, reward: float) -> None:
        """Add the reward of a value in a context."""
        ...

    def learned(self) -> dict[str, Any]:
        """Return all state as plain data, to be stored."""
        ...

    def restore(self, learned: Mapping[str, Any]) -> None:
        """Load the state that `learned` returned; InputError if it is invalid."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """The metrics of an allocation and placement (paper io-resources, Section III-C)."""

    mean_slowdown: float
    idle_time: float
    bandwidth: float
    slowdown: NDArray[np.float64]
    """The I/O-SlowDown of every job."""


@runtime_checkable
class Judge(Protocol):
    """Predicts what happens to jobs on certain resources, for example by simulation.

    It is constructed with the jobs and the site, then called many times.
    """

    def __call__(self, places: Sequence[tuple[ResourceId, ...]]) -> Verdict:
        """Return the metrics with each job on its resources, in the order of the jobs."""
        ...
