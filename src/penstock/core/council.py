"""The Council: which values the I/O nodes' parameters take, from what the nodes saw.

After the Council of thesis forwarding (4.1.1, Algorithm 3), without I/O and without a clock: a host
passes observations in as they come, says when the round is over, and sets what comes out. Each I/O
node's access pattern is detected by itself; its bandwidth is the reward of the values that it had.

One parameter a round may explore, in turn, so that a reward tells which value it is due to. Where a
parameter's values make sense only together, all I/O nodes get one: while exploring that of the most
common context, otherwise what is best for most. docs/live/council.md has the rules.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from penstock.policies.base import Tuner

_T = TypeVar("_T")

VERSION = 1
IDLEST = 0.02
"""Part of an interval that an I/O node must have been busy: else it was the jobs that were slow."""
REMEMBERED = 0.05
"""Weight of the newest round in what a context usually gets, and what exploring cost it."""
SETTLED, ABSURD = 8, 20.0
"""After so many rounds a rate that many times the usual one must come as often again to count."""


class Detector(Protocol):
    """Tells access patterns: a penstock.learn.detection.Model, or another."""

    def situation(self, seen: Observation) -> tuple[Context | None, float]:
        """Return the context of an I/O node and how sure its pattern is; None: not to be told."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the Council made of an I/O node's last interval."""

    pattern: str
    confidence: float
    context: Context | None  # None: too little to tell
    rate: float  # bytes a busy second


@dataclass(slots=True)
class Account:
    """What a context usually gets, and which part of that exploring has cost it lately."""

    usual: float = 0.0
    cost: float = 0.0
    rounds: int = 0
    refused: int = 0
    """Rates in a row that were not believed."""

    def takes(self, rate: float) -> bool:
        """Say whether a rate can be believed; one that stays has to be."""
        odd = self.rounds >= SETTLED and rate > ABSURD * self.usual > 0
        self.refused = self.refused + 1 if odd else 0
        if self.refused >= SETTLED:
            self.usual, self.refused = rate, 0
            return True
        return not odd

    def book(self, rate: float, *, explored: bool) -> None:
        """Take in what a round got, and what it cost if a value was tried in it."""
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
class _Reward:
    rates: list[float] = field(default_factory=list)
    explored: bool = False


class Experience:
    """What was learnt: a tuner a parameter, and an account a context. Councils may share it.

    Tuners may be anybody's. What one raises, and what it answers beside the values, is counted and
    passed over.
    """

    def __init__(self, tuners: Mapping[str, Tuner]) -> None:
        self.tuners = tuners
        self.accounts: dict[Context, Account] = {}
        self.faults = 0
        self.fault = ""
        """The last one."""
        self._others: dict[str, Any] = {}  # learnt of parameters that are not tuned now
        self._rewards: dict[tuple[str, Context, Value], _Reward] = {}

    def note(
        self, parameter: str, context: Context, value: Value, rate: float, *, explored: bool
    ) -> None:
        """Take note of what a value was worth at one I/O node, to be taught with all others."""
        reward = self._rewards.setdefault((parameter, context, value), _Reward())
        reward.rates.append(rate)
        reward.explored |= explored

    def teach(self) -> None:
        """Teach what was noted: once a round, however many saw it, for tuners forget by rounds."""
        rewards, self._rewards = self._rewards, {}
        for (parameter, context, value), reward in rewards.items():
            self._teach(parameter, context, value, reward)

    def _teach(self, parameter: str, context: Context, value: Value, reward: _Reward) -> None:
        rate = math.fsum(reward.rates) / len(reward.rates)
        account = self.accounts.setdefault(context, Account())
        if account.takes(rate):
            self._asked(parameter, lambda tuner: tuner.learn(context, value, rate))
            account.book(rate, explored=reward.explored)

    def choose(self, parameter: Parameter, context: Context) -> Value | None:
        """Return the value to try; None: there is no answer."""
        return self._value(parameter, lambda tuner: tuner.choose(context, parameter.values))

    def best(self, parameter: Parameter, context: Context) -> Value | None:
        """Return the best value so far; None: nothing is known."""
        return self._value(parameter, lambda tuner: tuner.best(context, parameter.values))

    def _value(self, parameter: Parameter, ask: Callable[[Tuner], Value | None]) -> Value | None:
        value = self._asked(parameter.name, ask)
        if value is None or value in parameter.values:
            return value
        self._note_fault(f"the tuner of {parameter.name} answered {value!r}")
        return None

    def _asked(self, parameter: str, ask: Callable[[Tuner], _T]) -> _T | None:
        try:
            return ask(self.tuners[parameter])
        except Exception as error:
            self._note_fault(f"the tuner of {parameter} failed: {error!r}")
            return None

    def _note_fault(self, said: str) -> None:
        self.faults += 1
        self.fault = said

    def learned(self) -> dict[str, Any]:
        """Return all that was learnt, as plain data."""
        return {
            "version": VERSION,
            "tuners": self._others | {name: tuner.learned() for name, tuner in self.tuners.items()},
            "accounts": [
                [c.operation, c.pattern, c.size, c.load, a.usual, a.cost, a.rounds]
                for c, a in sorted(self.accounts.items())
            ],
        }

    def restore(self, learned: Mapping[str, Any]) -> None:
        """Go on from what `learned` returned; InputError, and nothing changed: it is damaged."""
        if not isinstance(learned, Mapping) or learned.get("version") != VERSION:
            raise InputError(f"it is no learned state of version {VERSION}")
        try:
            saved = msgspec.convert(learned.get("accounts"), list[_Saved])
            tuners = msgspec.convert(learned.get("tuners"), dict[str, Any])
        except msgspec.ValidationError as error:
            raise InputError(f"learned state is damaged: {error}") from error
        accounts = {}
        for operation, pattern, size, load, usual, cost, rounds in saved:
            context = Context(operation=operation, pattern=pattern, size=size, load=load)
            accounts[context] = Account(usual, cost, rounds)
        before = {name: tuner.learned() for name, tuner in self.tuners.items()}
        try:
            for name, tuner in self.tuners.items():
                if name in tuners:
                    tuner.restore(tuners[name])
        except InputError:
            for name, tuner in self.tuners.items():
                tuner.restore(before[name])
            raise
        self.accounts = accounts
        self._others = {name: tuners[name] for name in tuners if name not in self.tuners}


class Council:
    """Chooses for some I/O nodes; Councils of several groups may share their experience.

    `guard` is the part of a context's bandwidth that exploring may cost; who has spent it exploits.
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
        self.detector = detector  # may be exchanged for a better one at any time
        self.guard = guard
        self.rounds = 0
        self.explored = 0
        self.guarded = 0
        """Rounds in which the guard kept somebody from exploring."""
        self.missed = 0
        """Reports that a round did not wait for."""
        self.last: dict[ResourceId, Seen] = {}
        self.has: dict[ResourceId, dict[str, Value]] = {}
        """What each I/O node had in force when it last reported."""
        self.chosen: dict[ResourceId, dict[str, Value]] = {}
        """What each I/O node is to have."""
        self._expected: set[ResourceId] = set()
        self._reported: dict[ResourceId, Context | None] = {}
        self._floor: Parameter | None = None  # whose values the interval's rewards are of
        self._tried: dict[ResourceId, Value] = {}  # of the floor, where one is being tried

    @property
    def exploring(self) -> str | None:
        """Return the parameter of which a value is being tried; None: all have their best."""
        return self._floor.name if self._floor is not None and self._tried else None

    def tries(self, resource: ResourceId, parameter: str) -> bool:
        """Say whether an I/O node has a value of a parameter to learn what it is worth."""
        return parameter == self.exploring and resource in self._tried

    @property
    def missing(self) -> set[ResourceId]:
        """Return the I/O nodes that have not reported in this round."""
        return self._expected - self._reported.keys()

    def joined(self, resource: ResourceId) -> Tune:
        """An I/O node serves: it begins with what the others have, or the defaults."""
        self._expected.add(resource)
        have = self._in_force()
        settings = {p.name: have.get(p.name, p.default) for p in self.parameters}
        self.has[resource], self.chosen[resource] = {}, settings
        return Tune(resource=resource, settings=settings)

    def left(self, resource: ResourceId) -> None:
        """An I/O node is gone."""
        self._expected.discard(resource)
        for known in (self.last, self.has, self.chosen, self._reported, self._tried):
            known.pop(resource, None)

    def observed(
        self, resource: ResourceId, observation: Observation, settings: Mapping[str, Value]
    ) -> None:
        """Take a report in, with the settings in force at the I/O node; the first of a round."""
        if resource not in self._expected or resource in self._reported:
            return
        seen = self._judge(observation)
        self.last[resource] = seen
        self._reported[resource] = seen.context
        # Whatever it was told: it may have been restarted, or could not be set.
        self.has[resource] = {
            p.name: settings[p.name] for p in self.parameters if p.name in settings
        }
        floor = self._floor
        if seen.context is None or floor is None:
            return
        value = settings.get(floor.name)
        if value is not None and value in floor.values:  # else it was set by somebody else
            explored = self._tried.get(resource) == value
            self.experience.note(floor.name, seen.context, value, seen.rate, explored=explored)

    def decide(self) -> list[Tune]:
        """End the round, whoever has not reported: learn, choose, and return what changes."""
        self.experience.teach()
        return self.choose()

    def choose(self) -> list[Tune]:
        """Choose for the next interval by what was taught; return what changes."""
        self.missed += len(self.missing) if self._reported else 0
        reported, self._reported = self._reported, {}
        contexts = {r: context for r, context in reported.items() if context is not None}
        if not contexts:
            return []
        self._floor = floor = self.parameters[self.rounds % len(self.parameters)]
        self.rounds += 1
        self._tried = {}
        guarded = self.guarded
        chosen: dict[ResourceId, dict[str, Value]] = {r: {} for r in self._expected}
        for parameter in self.parameters:
            if parameter.together:
                value = self._for_all(parameter, contexts, explores=parameter is floor)
                for settings in chosen.values():
                    settings[parameter.name] = value
                continue
            for resource, settings in chosen.items():
                settings[parameter.name] = self._for_one(
                    parameter, resource, contexts.get(resource), explores=parameter is floor
                )
        self.explored += bool(self._tried)
        self.guarded = guarded + (self.guarded > guarded)
        self.chosen = chosen
        changed = {r: s for r, s in chosen.items() if s != self.has.get(r)}
        return [Tune(resource=r, settings=s) for r, s in sorted(changed.items())]

    def _judge(self, observation: Observation) -> Seen:
        context, confidence = self.detector.situation(observation)
        idle = observation.busy < IDLEST * observation.seconds or not observation.moved
        if context is None or idle:
            return Seen(pattern="unknown", confidence=0.0, context=None, rate=0.0)
        return Seen(
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
        main = _most_common(contexts.values())
        if explores and self._may_explore(main):
            tried = self.experience.choose(parameter, main)
            if tried is not None and tried != self.experience.best(parameter, main):
                self._tried = dict.fromkeys(self._expected, tried)
                return tried
        votes = [
            value
            for context, voters in Counter(contexts.values()).items()
            if (value := self.experience.best(parameter, context)) is not None
            for _ in range(voters)
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
        best = self.experience.best(parameter, context)
        if explores and self._may_explore(context):
            tried = self.experience.choose(parameter, context)
            if tried is not None and tried != best:
                self._tried[resource] = tried
                return tried
        return has if best is None else best

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
