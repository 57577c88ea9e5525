"""The Council: chooses the values of the I/O nodes' parameters from what the nodes observed.

After the Council of thesis forwarding (4.1.1, Algorithm 3), without I/O and without a clock: its
host passes in observations, ends the round, and applies the returned values. Each I/O node's access
pattern is detected separately; its bandwidth is the reward of the values that it had.

One parameter per round may explore, in turn, so that a reward can be attributed to its value. A
parameter that only makes sense with one value everywhere gets it on all I/O nodes: while exploring
that of the most common context, otherwise the best for most. Nothing is learnt or explored where
the access pattern is unknown: such an I/O node has the defaults, and no vote. docs/live/council.md
has the rules.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
from msgspec import Meta

from penstock.errors import InputError
from penstock.model import (
    Context,
    Observation,
    Operation,
    Parameter,
    ResourceId,
    Tune,
    Value,
)
from penstock.model.observation import UNKNOWN
from penstock.policies._support.asking import ask, plain_key, shown
from penstock.policies.base import Tuner

_T = TypeVar("_T")

VERSION = 1
IDLEST = 0.02
"""Part of an interval that an I/O node must be busy: below it, the jobs were slow."""
REMEMBERED = 0.05
"""Weight of the newest round in a context's usual rate and in its cost of exploring."""
SETTLED, ABSURD = 8, 20.0
"""After SETTLED rounds, a rate above ABSURD x the usual is an outlier until it repeats as often."""


class Detector(Protocol):
    """Detects access patterns: a penstock.learn.detection.model.Model, or another."""

    def situation(self, observation: Observation) -> tuple[Context | None, float]:
        """Return the context of an I/O node and the confidence; None: no pattern is detected."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """An I/O node's last interval, as the Council assessed it."""

    pattern: str
    confidence: float
    context: Context | None  # None: too little I/O to detect one
    rate: float  # bytes per busy second


@dataclass(slots=True)
class Account:
    """A context's usual rate, and the part of it that exploring cost recently."""

    usual: float = 0.0
    cost: float = 0.0
    rounds: int = 0
    refused: int = 0
    """Consecutive rates that were rejected as outliers."""

    def accepts(self, rate: float) -> bool:
        """Tell whether a rate is plausible; an implausible one that repeats becomes the usual."""
        outlier = self.rounds >= SETTLED and rate > ABSURD * self.usual > 0
        self.refused = self.refused + 1 if outlier else 0
        if self.refused >= SETTLED:
            self.usual, self.refused = rate, 0
            return True
        return not outlier

    def book(self, rate: float, *, explored: bool) -> None:
        """Add a round's rate, and its cost if a value was explored in it."""
        self.rounds += 1
        cost = 0.0
        if not explored or self.usual <= 0:
            self.usual += max(REMEMBERED, 1 / self.rounds) * (rate - self.usual)
        else:
            cost = max(1 - rate / self.usual, 0.0)
        self.cost += REMEMBERED * (cost - self.cost)


_Amount = Annotated[float, Meta(ge=0, le=1e30)]
_Count = Annotated[int, Meta(ge=0, le=1 << 62)]
_Saved = tuple[Operation, str, _Count, _Count, _Amount, _Amount, _Count]


@dataclass(slots=True)
class _Rates:
    rates: list[float] = field(default_factory=list)
    explored: bool = False


class Experience:
    """What was learnt: one tuner per parameter, one account per context. Councils may share it.

    A tuner may be anyone's file: its exceptions and invalid answers are counted and ignored.
    """

    def __init__(self, tuners: Mapping[str, Tuner], *, interruptible: bool = True) -> None:
        """`interruptible`: KeyboardInterrupt is Ctrl-C; else it can only be the tuner's own."""
        self.tuners = tuners
        self._interruptible = interruptible
        self.accounts: dict[Context, Account] = {}
        self.faults = 0
        self.fault = ""
        """The last fault."""
        self._others: dict[str, Any] = {}  # learnt about parameters that are not tuned now
        self._rewards: dict[tuple[str, Context, Value], _Rates] = {}

    def note(
        self, parameter: str, context: Context, value: Value, rate: float, *, explored: bool
    ) -> None:
        """Note the rate that a value had at one I/O node, until `teach`."""
        reward = self._rewards.setdefault((parameter, context, value), _Rates())
        reward.rates.append(rate)
        reward.explored |= explored

    def teach(self) -> None:
        """Teach the notes to the tuners, once per round: tuners forget by rounds."""
        rewards, self._rewards = self._rewards, {}
        for (parameter, context, value), reward in rewards.items():
            self._teach(parameter, context, value, reward)

    def _teach(self, parameter: str, context: Context, value: Value, reward: _Rates) -> None:
        rate = math.fsum(reward.rates) / len(reward.rates)
        account = self.accounts.setdefault(context, Account())
        if account.accepts(rate):
            self._call(parameter, "learn", context, value, rate)
            account.book(rate, explored=reward.explored)

    def choose(self, parameter: Parameter, context: Context) -> Value | None:
        """Return the value to use next; None: the tuner failed."""
        return self._value(parameter, "choose", context)

    def best(self, parameter: Parameter, context: Context) -> Value | None:
        """Return the best value so far; None: not known."""
        return self._value(parameter, "best", context)

    def _value(self, parameter: Parameter, method: str, context: Context) -> Value | None:
        values = parameter.values
        value: Value | None = self._call(parameter.name, method, context, values, plain=plain_key)
        if value is None or value in values:
            return value
        self._note_fault(f"the tuner of {parameter.name} answered {shown(value)}")
        return None

    def _call(self, parameter: str, method: str, *arguments: Any, **plain: Any) -> Any:
        try:
            return self._ask(parameter, method, *arguments, **plain)
        except Exception as error:
            self._note_fault(f"the tuner of {parameter} failed: {shown(error)}")
            return None

    def _ask(self, parameter: str, method: str, *arguments: Any, **plain: Any) -> Any:
        try:
            return ask(self.tuners[parameter], method, *arguments, **plain)
        except KeyboardInterrupt as error:
            if self._interruptible:
                raise
            raise InputError(f"KeyboardInterrupt {error}") from error

    def _note_fault(self, message: str) -> None:
        self.faults += 1
        self.fault = message

    def learned(self) -> dict[str, Any]:
        """Return the learned state, as plain data."""
        return {
            "version": VERSION,
            "tuners": self._others | {name: self._ask(name, "learned") for name in self.tuners},
            "accounts": [
                [c.operation, c.pattern, c.size, c.load, a.usual, a.cost, a.rounds]
                for c, a in sorted(self.accounts.items())
            ],
        }

    def restore(self, learned: Mapping[str, Any]) -> None:
        """Restore a state that `learned` returned; InputError, with no change: it is damaged."""
        if not isinstance(learned, Mapping) or learned.get("version") != VERSION:
            raise InputError(f"it is not a learned state of version {VERSION}")
        try:
            saved = msgspec.convert(learned.get("accounts"), list[_Saved])
            tuners = msgspec.convert(learned.get("tuners"), dict[str, Any])
        except msgspec.ValidationError as error:
            raise InputError(f"learned state is damaged: {error}") from error
        accounts = {}
        for operation, pattern, size, load, usual, cost, rounds in saved:
            context = Context(operation=operation, pattern=pattern, size=size, load=load)
            accounts[context] = Account(usual, cost, rounds)
        before = {name: self._ask(name, "learned") for name in self.tuners}
        try:
            for name in self.tuners:
                if name in tuners:
                    self._ask(name, "restore", tuners[name])
        except InputError:
            for name in self.tuners:
                self._ask(name, "restore", before[name])
            raise
        self.accounts = accounts
        self._others = {name: tuners[name] for name in tuners if name not in self.tuners}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """What an I/O node's interval shows of a value of a parameter."""

    parameter: str
    context: Context
    value: Value
    rate: float  # bytes per busy second


class Council:
    """Chooses for a group of I/O nodes; Councils may share their experience.

    `guard` is the part of a context's bandwidth that exploring may cost; beyond, it exploits only.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        experience: Experience,
        detector: Detector,
        *,
        guard: float = 0.05,
    ) -> None:
        self.parameters = tuple(parameters)
        self.experience = experience
        self.detector = detector  # may be replaced at any time
        self.guard = guard
        self.rounds = 0
        self.explored = 0
        self.guarded = 0
        """Rounds in which the guard prevented exploring."""
        self.missed = 0
        """Reports that came after the end of their round, or not at all."""
        self.last: dict[ResourceId, Assessment] = {}
        self.has: dict[ResourceId, dict[str, Value]] = {}
        """The values in force at each I/O node when it last reported."""
        self.chosen: dict[ResourceId, dict[str, Value]] = {}
        """The values chosen for each I/O node."""
        self._expected: set[ResourceId] = set()
        self._reported: dict[ResourceId, Context | None] = {}
        self._floor: Parameter | None = None  # the rewards are those of its values
        self._explored: dict[ResourceId, Value] = {}  # values of the floor that are being explored
        self._preferred: dict[ResourceId, Mapping[str, Value]] = {}

    @property
    def exploring(self) -> str | None:
        """The parameter that is being explored; None: all have their best values."""
        return self._floor.name if self._floor is not None and self._explored else None

    def tries(self, resource: ResourceId, parameter: str) -> bool:
        """Tell whether an I/O node explores a value of a parameter."""
        return parameter == self.exploring and resource in self._explored

    @property
    def missing(self) -> set[ResourceId]:
        """The I/O nodes that have not reported in this round."""
        return self._expected - self._reported.keys()

    def joined(self, resource: ResourceId) -> Tune:
        """An I/O node serves: it begins with the others' values, or the defaults."""
        self._expected.add(resource)
        have = self._in_force()
        settings = {p.name: have.get(p.name, p.default) for p in self.parameters}
        self.has[resource], self.chosen[resource] = {}, settings
        return Tune(resource=resource, settings=settings)

    def left(self, resource: ResourceId) -> None:
        """An I/O node is gone."""
        self._expected.discard(resource)
        for of_node in (
            *(self.last, self.has, self.chosen, self._reported, self._explored),
            self._preferred,
        ):
            of_node.pop(resource, None)

    def observed(
        self, resource: ResourceId, observation: Observation, settings: Mapping[str, Value]
    ) -> Reward | None:
        """Handle a report with the settings in force; only the first of a round counts.

        Return what it shows of a value, if it does.
        """
        if resource not in self._expected or resource in self._reported:
            return None
        assessment = self.assess(observation)
        self.last[resource] = assessment
        self._reported[resource] = assessment.context
        # Not what was chosen: the node may have been restarted, or could not be set.
        self.has[resource] = {
            p.name: settings[p.name] for p in self.parameters if p.name in settings
        }
        floor = self._floor
        context = assessment.context
        if context is None or context.pattern == UNKNOWN or floor is None:
            return None
        value = settings.get(floor.name)
        if value is None or value not in floor.values:  # a person set it
            return None
        explored = self._explored.get(resource) == value
        rate = assessment.rate
        self.experience.note(floor.name, context, value, rate, explored=explored)
        return Reward(parameter=floor.name, context=context, value=value, rate=rate)

    def prefer(self, resource: ResourceId, values: Mapping[str, Value]) -> None:
        """An I/O node serves one application, which did best with these values; none: several."""
        self._preferred[resource] = values

    def begin(self, resource: ResourceId) -> Tune | None:
        """A job begins on an I/O node: it starts from the preferred values, before any report.

        Not from those of parameters that must be the same on all I/O nodes, others may serve now.
        """
        if resource not in self._expected:
            return None
        preferred = {
            p.name: value
            for p in self.parameters
            if not p.together and (value := self._preference(p, resource)) is not None
        }
        settings = {**self.chosen[resource], **preferred}
        if settings == self.chosen[resource]:
            return None
        self.chosen[resource] = settings
        self._explored.pop(resource, None)
        return Tune(resource=resource, settings=settings)

    def decide(self) -> list[Tune]:
        """End the round, even if reports are missing: learn, choose, and return the changes."""
        self.experience.teach()
        return self.choose()

    def choose(self) -> list[Tune]:
        """Choose for the next interval; return the changes."""
        self.missed += len(self.missing) if self._reported else 0
        reported, self._reported = self._reported, {}
        contexts = {r: context for r, context in reported.items() if context is not None}
        if not contexts:
            return []
        known = {r: context for r, context in contexts.items() if context.pattern != UNKNOWN}
        self._floor = floor = self.parameters[self.rounds % len(self.parameters)] if known else None
        self.rounds += bool(known)
        self._explored = {}
        guarded = self.guarded
        chosen: dict[ResourceId, dict[str, Value]] = {r: {} for r in self._expected}
        for parameter in self.parameters:
            if parameter.together:
                value = self._for_all(parameter, known, explores=parameter is floor)
                for settings in chosen.values():
                    settings[parameter.name] = value
                continue
            for resource, settings in chosen.items():
                settings[parameter.name] = self._for_one(
                    parameter, resource, contexts.get(resource), explores=parameter is floor
                )
        self.explored += bool(self._explored)
        self.guarded = guarded + (self.guarded > guarded)
        self.chosen = chosen
        changed = {r: s for r, s in chosen.items() if s != self.has.get(r)}
        return [Tune(resource=r, settings=s) for r, s in sorted(changed.items())]

    def assess(self, observation: Observation) -> Assessment:
        """Return the context and the rate of an I/O node's interval."""
        context, confidence = self.detector.situation(observation)
        idle = observation.busy < IDLEST * observation.seconds or not observation.moved
        if context is None or idle:
            return Assessment(pattern=UNKNOWN, confidence=0.0, context=None, rate=0.0)
        return Assessment(
            pattern=context.pattern,
            confidence=confidence,
            context=context,
            rate=observation.moved / observation.busy,
        )

    def _may_explore(self, context: Context) -> bool:
        account = self.experience.accounts.get(context)
        may = account is None or account.cost <= self.guard
        self.guarded += not may
        return may

    def _for_all(
        self, parameter: Parameter, contexts: Mapping[ResourceId, Context], *, explores: bool
    ) -> Value:
        if not contexts:
            return parameter.default
        main = _most_common(contexts.values())
        if explores and self._may_explore(main):
            tried = self.experience.choose(parameter, main)
            if tried is not None and tried != self.experience.best(parameter, main):
                self._explored = dict.fromkeys(self._expected, tried)
                return tried
        best = {
            context: self.experience.best(parameter, context) for context in {*contexts.values()}
        }
        votes = [
            value
            for resource, context in contexts.items()
            if (value := self._preference(parameter, resource, best[context])) is not None
        ]
        if votes:
            return _most_common(votes)
        return self._in_force().get(parameter.name, parameter.default)

    def _for_one(
        self,
        parameter: Parameter,
        resource: ResourceId,
        context: Context | None,
        *,
        explores: bool,
    ) -> Value:
        has = self.chosen.get(resource, {}).get(parameter.name, parameter.default)
        if context is None:
            return has
        if context.pattern == UNKNOWN:
            return parameter.default
        usual = self.experience.best(parameter, context)
        best = self._preference(parameter, resource, usual)
        if explores and self._may_explore(context):
            tried = self.experience.choose(parameter, context)
            # A tuner that does not explore answers with what is best for most: no reason to leave
            # what is best for this application.
            if tried is not None and tried not in (best, usual):
                self._explored[resource] = tried
                return tried
        return has if best is None else best

    def _preference(
        self, parameter: Parameter, resource: ResourceId, otherwise: Value | None = None
    ) -> Value | None:
        """Return what the application of an I/O node did best with, or else another value."""
        value = self._preferred.get(resource, {}).get(parameter.name)
        return value if value is not None and value in parameter.values else otherwise

    def _in_force(self) -> dict[str, Value]:
        """Return what most I/O nodes have."""
        return {
            p.name: _most_common(have)
            for p in self.parameters
            if (have := [v[p.name] for v in self.chosen.values() if p.name in v])
        }


def _most_common(items: Iterable[_T]) -> _T:
    """Return the one that is there most often; of several, the least."""
    counted = Counter(items)
    most = max(counted.values())
    tied: list[Any] = [item for item, n in counted.items() if n == most]
    least: _T = min(tied, key=lambda item: (isinstance(item, str), item))
    return least
