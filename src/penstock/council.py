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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from penstock.errors import InputError
from penstock.model import Context, Observation, Operation, Parameter, ResourceId, Tune, Value
from penstock.policies.base import Tuner

_T = TypeVar("_T")
Detect = Callable[[Observation], tuple[str, float]]
"""Says which pattern an observation is of, and how sure that is."""

VERSION = 1
FEWEST = 8
"""Requests in an interval without which it tells nothing."""
IDLEST = 0.02
"""Part of an interval that an I/O node must have been busy: else it was the jobs that were slow."""
ONE_SIDED = 0.9
"""Part of the requests that makes an interval one of reads, or of writes."""
REMEMBERED = 0.05
"""Weight of the newest round in what a context usually gets, and what exploring cost it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the Council made of an I/O node's last interval."""

    pattern: str
    confidence: float
    context: Context | None  # None: too little to tell
    rate: float  # bytes a busy second


@dataclass(slots=True)
class _Account:
    """What a context usually gets, and which part of that exploring has cost it lately."""

    usual: float = 0.0
    cost: float = 0.0
    rounds: int = 0


@dataclass(slots=True)
class _Round:
    """Reports since the last choice."""

    began: float
    seen: dict[ResourceId, Seen] = field(default_factory=dict)


class Council:
    """Chooses for some I/O nodes; Councils of several groups may share their tuners.

    `guard` is the part of a context's bandwidth that exploring may cost; who has spent it exploits.
    `deadline` is how long a round waits for the I/O nodes that have not reported, in seconds.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        tuners: Mapping[str, Tuner],
        detect: Detect,
        *,
        deadline: float = 0.5,
        guard: float = 0.05,
    ) -> None:
        self.parameters = tuple(parameters)
        self.detect = detect  # may be exchanged for a better one at any time
        self.deadline = deadline
        self.guard = guard
        self.rounds = 0
        self.explored = 0
        self.guarded = 0
        """Rounds in which the guard kept it from exploring."""
        self.missed = 0
        """Reports that a round did not wait for."""
        self.last: dict[ResourceId, Seen] = {}
        self.values: dict[ResourceId, dict[str, Value]] = {}
        """What each I/O node has."""
        self._tuners = tuners
        self._expected: set[ResourceId] = set()
        self._round: _Round | None = None
        self._accounts: dict[Context, _Account] = {}
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
        self.values[resource] = settings
        return Tune(resource=resource, settings=settings)

    def left(self, resource: ResourceId, now: float) -> list[Tune]:
        """An I/O node is gone; the round may be over by that."""
        self._expected.discard(resource)
        self.last.pop(resource, None)
        self.values.pop(resource, None)
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
        if self._round is None:
            self._round = _Round(now)
        if resource not in self._round.seen:
            self._reward(seen, settings)
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
        seen, self._round = self._round.seen, None
        contexts = {r: s.context for r, s in seen.items() if s.context is not None}
        return self._choose(contexts) if contexts else []

    def learned(self) -> dict[str, Any]:
        """Return all that was learnt, as plain data."""
        return {
            "version": VERSION,
            "tuners": {name: tuner.learned() for name, tuner in self._tuners.items()},
            "accounts": [
                [c.operation, c.pattern, c.size, c.load, a.usual, a.cost, a.rounds]
                for c, a in sorted(self._accounts.items())
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
                accounts[context] = _Account(float(usual), float(cost), int(rounds))
            tuners = dict(learned["tuners"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"learned state is damaged: {error!r}") from error
        before = {name: tuner.learned() for name, tuner in self._tuners.items()}
        try:
            for name, tuner in self._tuners.items():
                if name in tuners:
                    tuner.restore(tuners[name])
        except InputError:
            for name, tuner in self._tuners.items():
                tuner.restore(before[name])
            raise
        self._accounts = accounts

    def _judge(self, observation: Observation) -> Seen:
        rate = observation.moved / observation.busy if observation.busy > 0 else 0.0
        if not _tells(observation) or not math.isfinite(rate):
            return Seen(pattern="unknown", confidence=0.0, context=None, rate=0.0)
        pattern, confidence = self.detect(observation)
        context = Context(
            operation=_operation(observation),
            pattern=pattern,
            size=_power_of_two(observation.asked // observation.requests),
            load=_power_of_two(observation.clients),
        )
        return Seen(pattern=pattern, confidence=confidence, context=context, rate=rate)

    def _reward(self, seen: Seen, settings: Mapping[str, Value]) -> None:
        """Tell the tuner of the parameter that has the floor what its value was worth."""
        if seen.context is None or self._floor is None:
            return
        parameter = next(p for p in self.parameters if p.name == self._floor)
        value = settings.get(parameter.name)
        if value not in parameter.values:
            return  # set by somebody else: no word of it
        assert value is not None
        self._tuners[parameter.name].learn(seen.context, value, seen.rate)
        account = self._accounts.setdefault(seen.context, _Account())
        account.rounds += 1
        cost = 0.0
        if not self._exploring or account.usual <= 0:
            step = max(REMEMBERED, 1 / account.rounds)
            account.usual += step * (seen.rate - account.usual)
        else:
            cost = max(1 - seen.rate / account.usual, 0.0)
        account.cost += REMEMBERED * (cost - account.cost)

    def _choose(self, contexts: Mapping[ResourceId, Context]) -> list[Tune]:
        floor = self.parameters[self.rounds % len(self.parameters)]
        self.rounds += 1
        main = _most_common(contexts.values())
        may_explore = self._accounts.get(main, _Account()).cost <= self.guard
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
        changed = {r: s for r, s in chosen.items() if s != self.values.get(r)}
        self.values |= changed
        return [Tune(resource=r, settings=s) for r, s in sorted(changed.items())]

    def _for_all(
        self,
        parameter: Parameter,
        main: Context,
        contexts: Mapping[ResourceId, Context],
        *,
        explores: bool,
    ) -> Value:
        tuner = self._tuners[parameter.name]
        if explores:
            tried = tuner.choose(main, parameter.values)
            if tried != tuner.best(main, parameter.values):
                self._exploring = True
                return tried
        best = (tuner.best(context, parameter.values) for context in contexts.values())
        known = [value for value in best if value is not None]
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
        has = self.values.get(resource, {}).get(parameter.name, parameter.default)
        if context is None:
            return has
        tuner = self._tuners[parameter.name]
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
            if (have := [v[p.name] for v in self.values.values() if p.name in v])
        }


def _tells(observation: Observation) -> bool:
    """Say whether an interval can be learnt from: absurd numbers and idle I/O nodes cannot."""
    numbers = (observation.seconds, observation.busy, observation.distance, observation.asked)
    return (
        all(math.isfinite(number) and number >= 0 for number in numbers)
        and observation.requests >= FEWEST
        and observation.clients > 0
        and observation.asked >= observation.requests
        and IDLEST * observation.seconds < observation.busy <= 1.5 * observation.seconds
    )


def _operation(observation: Observation) -> Operation:
    reads = observation.reads / observation.requests
    if reads >= ONE_SIDED:
        return "read"
    return "write" if 1 - reads >= ONE_SIDED else "mixed"


def _power_of_two(number: int) -> int:
    return 1 << (max(number, 1).bit_length() - 1)


def _most_common(items: Iterable[_T]) -> _T:
    """Return the one that is there most often; of several, the least."""
    counted = Counter(items)
    most = max(counted.values())
    tied: list[Any] = [item for item, n in counted.items() if n == most]
    least: _T = min(tied, key=lambda item: (isinstance(item, str), item))
    return least
