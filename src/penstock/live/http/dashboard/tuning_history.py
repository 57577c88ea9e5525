"""What was tuned at which I/O node when, and what has been learnt of each value."""

import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec

from penstock.live.controller.tuning import Tuning
from penstock.live.http.dashboard.schema import Arm, Parameter, TuningNow
from penstock.model import Value

CHANGES = 5_000
ARMS = 500
_UNITS = (("GiB", 30), ("MiB", 20), ("KiB", 10))


class _Known(msgspec.Struct):
    """What the tuners that are bandits have learnt of a context; others keep it to themselves."""

    operation: str
    pattern: str
    size: int
    load: int
    values: list[int | float | str]
    count: list[float]
    mean: list[float]


class _Learned(msgspec.Struct):
    contexts: list[_Known] = []


class TunedHistory:
    """Takes note of every change of a tuned value; without tuning there is none."""

    def __init__(self, tuning: Tuning | None, epoch: float) -> None:
        self._tuning, self._epoch = tuning, epoch
        self._changes: deque[tuple[float, int, str, Value, bool]] = deque(maxlen=CHANGES)
        self._last: dict[tuple[int, str], tuple[Value, bool]] = {}
        if tuning is not None:
            tuning.watch = self._note

    def told(self) -> TuningNow:
        """Return what is tuned, and how that went."""
        tuning = self._tuning
        if tuning is None:
            return TuningNow(policy=None)
        told = tuning.told()
        arms = sorted(self._arms(tuning), key=lambda arm: -arm.chosen)
        return TuningNow(
            policy=told["policy"],
            applied=told["applied"],
            rounds=told["rounds"],
            explored=told["explored"],
            contexts=told["contexts"],
            parameters=[
                Parameter(name=p.name, values=list(p.values), default=p.default)
                for p in tuning.parameters
            ],
            arms=arms[:ARMS],
            history=list(self._changes),
            left_out=max(len(arms) - ARMS, 0),
        )

    def _note(self) -> None:
        assert self._tuning is not None
        now = self._epoch + time.monotonic()
        for council in self._tuning.councils:
            for number, chosen in council.chosen.items():
                for name, value in chosen.items():
                    state = (value, council.tries(number, name))
                    if self._last.get((number, name)) != state:
                        self._last[number, name] = state
                        self._changes.append((now, number, name, *state))

    def _arms(self, tuning: Tuning) -> Iterator[Arm]:
        for name, tuner in tuning.experience.tuners.items():
            for context in _contexts(tuner):
                said = f"{context.operation} {context.pattern}, {_size(context.size)} requests"
                said += f", load {context.load}"
                columns = zip(context.values, context.count, context.mean, strict=False)
                for value, count, mean in columns:
                    reward = mean if count > 0 else None
                    yield Arm(
                        context=said, parameter=name, value=value, chosen=count, reward=reward
                    )


def _contexts(tuner: Any) -> list[_Known]:
    try:
        return msgspec.convert(tuner.learned(), _Learned).contexts
    except Exception:  # a tuner may be anybody's, and learn what it likes
        return []


def _size(size: int) -> str:
    for unit, shift in _UNITS:
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"
