"""The Council: which values the I/O nodes' parameters take, from what the nodes saw.

After the Council of thesis forwarding (4.1.1, Algorithm 3), without I/O and without a clock: a host
passes observations in as they come and sets what comes out. Each I/O node's access pattern is
detected by itself, its bandwidth is the reward of the values that it had, and a choice is made once
all have reported or the deadline has passed.

One parameter a round may explore, in turn, so that a reward tells which value it is due to. Where a
parameter's values make sense only together, all I/O nodes get one: while exploring that of the most
common context, otherwise what is best for most. docs/tuning.md has the rules.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from penstock.errors import InputError
from penstock.model import Context, Observation, Parameter, ResourceId, Tune, Value
from penstock.policies.base import Tuner

_T = TypeVar("_T")

VERSION = 1
IDLEST = 0.02
"""Part of an interval that an I/O node must have been busy: else it was the jobs that were slow."""
REMEMBERED = 0.05
"""Weight of the newest round in what a context usually gets, and what exploring cost it."""
SETTLED, ABSURD = 8, 20.0
"""After so many rounds, a rate so many times the usual one is not believed."""


class Detector(Protocol):
    """Tells access patterns: a penstock.learn.detection.Model, or another."""

    def detect(self, seen: Observation) -> tuple[str, float]:
        """Return the pattern, or "unknown", and how sure that is."""
        ...

    def context(self, seen: Observation) -> Context | None:
        """Return the situation of an I/O node; None: it cannot be told."""
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


class Experience:
    """What was learnt: a tuner a parameter, and an account a context. Councils may share it."""

    def __init__(self, tuners: Mapping[str, Tuner]) -> None:
        self.tuners = tuners
        self.accounts: dict[Context, Account] = {}
        self._others: dict[str, Any] = {}  # learnt of parameters that are not tuned now

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
        if learned.get("version") != VERSION:
            raise InputError(
                f"learned state of version {learned.get('version')!r}; this is version {VERSION}"
            )
        try:
            accounts = {}
            for operation, pattern, size, load, usual, cost, rounds in learned["accounts"]:
                context = Context(operation=operation, pattern=pattern, size=size, load=load)
                accounts[context] = Account(float(usual), float(cost), int(rounds))
            tuners = dict(learned["tuners"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"learned state is damaged: {error!r}") from error
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


@dataclass(slots=True)
class _Round:
    """Reports since the last choice."""

    began: float
    seen: dict[ResourceId, Seen] = field(default_factory=dict)
    rates: dict[tuple[Context, Value], list[float]] = field(default_factory=dict)


class Council:
    """Chooses for some I/O nodes; Councils of several groups may share their experience.

    `guard` is the part of a context's bandwidth that exploring may cost; who has spent it exploits.
    `deadline` is how long a round waits for the I/O nodes that have not reported, in seconds.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        experience: Experience,
        detector: Detector,
        *,
        deadline: float = 0.5,
        guard: float = 0.05,
    ) -> None:
        self.parameters = tuple(parameters)
        self.experience = experience
        self.detector = detector  # may be exchanged for a better one at any time
        self.deadline = deadline
        self.guard = guard
        self.rounds = 0
        self.explored = 0
        self.guarded = 0
        """Rounds in which the guard kept it from exploring."""
        self.missed = 0
        """Reports that a round did not wait for."""
        self.last: dict[ResourceId, Seen] = {}
        self.has: dict[ResourceId, dict[str, Value]] = {}
        """What each I/O node had in force when it last reported."""
        self.chosen: dict[ResourceId, dict[str, Value]] = {}
        """What each I/O node is to have."""
        self._expected: set[ResourceId] = set()
        self._round: _Round | None = None
        self._floor: str | None = None  # the parameter whose values the interval's rewards are of
        self._exploring = False

    @property
    def due(self) -> float | None:
        """When the round ends whoever has not reported; None: none is under way."""
        return None if self._round is None else self._round.began + self.deadline

    @property
    def exploring(self) -> str | None:
        """Return the parameter of which a value is being tried; None: all have their best."""
        return self._floor if self._exploring else None

    def joined(self, resource: ResourceId) -> Tune:
        """An I/O node serves: it begins with what the others have, or the defaults."""
        self._expected.add(resource)
        have = self._in_force()
        settings = {p.name: have.get(p.name, p.default) for p in self.parameters}
        self.has[resource], self.chosen[resource] = {}, settings
        return Tune(resource=resource, settings=settings)

    def left(self, resource: ResourceId, now: float) -> list[Tune]:
        """An I/O node is gone; the round may be over by that."""
        self._expected.discard(resource)
        self.last.pop(resource, None)
        self.has.pop(resource, None)
        self.chosen.pop(resource, None)
        if self._round is not None:
            self._round.seen.pop(resource, None)
        return self.woke(now)

    def observed(
        self,
        now: float,
        resource: ResourceId,
        observation: Observation,
        settings: Mapping[str, Value],
    ) -> list[Tune]:
        """Take a report in, with the settings in force at the I/O node; return what changes."""
        if resource not in self._expected:
            return []
        seen = self._judge(observation)
        self.last[resource] = seen
        # Whatever it was told: it may have been restarted, or could not be set.
        self.has[resource] = {
            p.name: settings[p.name] for p in self.parameters if p.name in settings
        }
        if self._round is None:
            self._round = _Round(now)
        if resource not in self._round.seen:
            self._note(self._round, seen, settings)
        self._round.seen[resource] = seen
        return self.woke(now)

    def woke(self, now: float) -> list[Tune]:
        """Choose if all have reported or the deadline has passed; return what changes."""
        if self._round is None:
            return []
        missing = self._expected - self._round.seen.keys()
        if missing and now < self._round.began + self.deadline:
            return []
        self.missed += len(missing)
        over, self._round = self._round, None
        for (context, value), rates in over.rates.items():
            self._learn(context, value, math.fsum(rates) / len(rates))
        contexts = {r: s.context for r, s in over.seen.items() if s.context is not None}
        return self._choose(contexts) if contexts else []

    def _judge(self, observation: Observation) -> Seen:
        context = self.detector.context(observation)
        if context is None or observation.busy < IDLEST * observation.seconds:
            return Seen(pattern="unknown", confidence=0.0, context=None, rate=0.0)
        return Seen(
            pattern=context.pattern,
            confidence=self.detector.detect(observation)[1],
            context=context,
            rate=observation.moved / observation.busy,
        )

    def _note(self, over: _Round, seen: Seen, settings: Mapping[str, Value]) -> None:
        """Take note of what a value of the parameter that has the floor was worth."""
        if seen.context is None or self._floor is None:
            return
        parameter = next(p for p in self.parameters if p.name == self._floor)
        value = settings.get(parameter.name)
        if value is not None and value in parameter.values:  # else it was set by somebody else
            over.rates.setdefault((seen.context, value), []).append(seen.rate)

    def _learn(self, context: Context, value: Value, rate: float) -> None:
        """Learn once an interval, however many I/O nodes saw it: tuners forget by observations."""
        assert self._floor is not None
        account = self.experience.accounts.setdefault(context, Account())
        if account.rounds >= SETTLED and rate > ABSURD * account.usual:
            return
        self.experience.tuners[self._floor].learn(context, value, rate)
        account.rounds += 1
        cost = 0.0
        if not self._exploring or account.usual <= 0:
            step = max(REMEMBERED, 1 / account.rounds)
            account.usual += step * (rate - account.usual)
        else:
            cost = max(1 - rate / account.usual, 0.0)
        account.cost += REMEMBERED * (cost - account.cost)

    def _choose(self, contexts: Mapping[ResourceId, Context]) -> list[Tune]:
        floor = self.parameters[self.rounds % len(self.parameters)]
        self.rounds += 1
        main = _most_common(contexts.values())
        may_explore = self.experience.accounts.get(main, Account()).cost <= self.guard
        self._floor, self._exploring = floor.name, False
        chosen: dict[ResourceId, dict[str, Value]] = {r: {} for r in self._expected}
        for parameter in self.parameters:
            explores = parameter is floor and may_explore
            if parameter.together:
                value = self._for_all(parameter, main, contexts, explores=explores)
                for settings in chosen.values():
                    settings[parameter.name] = value
            else:
                for resource, settings in chosen.items():
                    settings[parameter.name] = self._for_one(
                        parameter, resource, contexts.get(resource), explores=explores
                    )
        self.explored += self._exploring
        self.guarded += not may_explore
        self.chosen = chosen
        changed = {r: s for r, s in chosen.items() if s != self.has.get(r)}
        return [Tune(resource=r, settings=s) for r, s in sorted(changed.items())]

    def _for_all(
        self,
        parameter: Parameter,
        main: Context,
        contexts: Mapping[ResourceId, Context],
        *,
        explores: bool,
    ) -> Value:
        tuner = self.experience.tuners[parameter.name]
        if explores:
            tried = tuner.choose(main, parameter.values)
            if tried != tuner.best(main, parameter.values):
                self._exploring = True
                return tried
        votes = Counter(contexts.values())
        known = [
            value
            for context, voters in votes.items()
            if (value := tuner.best(context, parameter.values)) is not None
            for _ in range(voters)
        ]
        return (
            _most_common(known)
            if known
            else self._in_force().get(parameter.name, parameter.default)
        )

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
        tuner = self.experience.tuners[parameter.name]
        best = tuner.best(context, parameter.values)
        if explores:
            tried = tuner.choose(context, parameter.values)
            self._exploring |= tried != best
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
