"""The history of tuned values at each I/O node, and what was learned of each candidate value."""

import logging
from collections import deque
from collections.abc import Callable

import msgspec

from penstock.live.controller.tuning import Tuning
from penstock.live.http.dashboard.schema import CandidateValue, Parameter, TuningNow
from penstock.model import Value
from penstock.policies.base import Tuner

MOST_CHANGES = 5_000
MOST_VALUES = 500
_UNITS = (("GiB", 30), ("MiB", 20), ("KiB", 10))
log = logging.getLogger("penstock.controller")


class _Context(msgspec.Struct):
    """What a bandit learned of an access pattern; other tuners have no such state."""

    operation: str
    pattern: str
    size: int
    load: int
    values: list[int | float | str]
    count: list[float]
    mean: list[float]

    def __str__(self) -> str:
        requests = f"{self.operation} {self.pattern}, {_size(self.size)} requests"
        return f"{requests}, load {self.load}"


class _Learned(msgspec.Struct):
    contexts: list[_Context] = []


class TuningHistory:
    """Notes every change of a tuned value; `now` returns seconds since the epoch."""

    def __init__(self, tuning: Tuning | None, now: Callable[[], float]) -> None:
        self._tuning, self._now = tuning, now
        self._changes: deque[tuple[float, int, str, Value, bool]] = deque(maxlen=MOST_CHANGES)
        self._last: dict[tuple[int, str], tuple[Value, bool]] = {}
        self._logged: set[str] = set()  # parameters whose tuner's state could not be read
        if tuning is not None:
            tuning.watch = self._note

    def answer(self) -> TuningNow:
        """Return the tuned parameters, and what was learned of their values."""
        tuning = self._tuning
        if tuning is None:
            return TuningNow(policy=None)
        status = tuning.status()
        values: list[CandidateValue] = []
        not_shown: list[str] = []
        for name, tuner in tuning.experience.tuners.items():
            try:
                values += _candidates(name, tuner)
            except Exception as error:  # a third party's tuner may return anything
                not_shown.append(name)
                if name not in self._logged:
                    self._logged.add(name)
                    log.warning("what the tuner of %s learned cannot be read: %s", name, error)
        values.sort(key=lambda value: -value.chosen)
        return TuningNow(
            policy=status.policy,
            applied=status.applied,
            rounds=status.rounds,
            explored=status.explored,
            contexts=status.contexts,
            parameters=[
                Parameter(name=p.name, values=list(p.values), default=p.default)
                for p in tuning.parameters
            ],
            arms=values[:MOST_VALUES],
            history=list(self._changes),
            left_out=max(len(values) - MOST_VALUES, 0),
            not_shown=not_shown,
        )

    def _note(self) -> None:
        assert self._tuning is not None
        now = self._now()
        for council in self._tuning.councils:
            for number, values in council.chosen.items():
                for name, value in values.items():
                    state = (value, council.tries(number, name))
                    if self._last.get((number, name)) != state:
                        self._last[number, name] = state
                        self._changes.append((now, number, name, *state))


def _candidates(parameter: str, tuner: Tuner) -> list[CandidateValue]:
    return [
        CandidateValue(
            context=str(context),
            parameter=parameter,
            value=value,
            chosen=count,
            reward=mean if count > 0 else None,
        )
        for context in msgspec.convert(tuner.learned(), _Learned).contexts
        for value, count, mean in zip(context.values, context.count, context.mean, strict=True)
    ]


def _size(size: int) -> str:
    for unit, shift in _UNITS:
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"
