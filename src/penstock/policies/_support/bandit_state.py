"""What a bandit has learnt, as plain data: written, and read with every doubt."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from penstock.errors import InputError
from penstock.model import Context, Operation, Value
from penstock.policies._support.arms import EMPTY, GREATEST, Arms

FORMAT = 1
"""Changes when the fields do."""
LONGEST = 2**53
"""No bandit saw more: counts are exact up to here."""


class State(msgspec.Struct, forbid_unknown_fields=True):
    """What is known of one context. See Arms for the fields; `recent` has the oldest first."""

    operation: Operation
    pattern: str
    size: int
    load: int
    values: list[int | float | str]
    seen: int
    low: float
    high: float
    count: list[float]
    mean: list[float]
    scatter: list[float]
    last: list[int]
    recent: list[float] = []
    which: list[int] = []

    @classmethod
    def of(cls, context: Context, values: list[Value], arms: Arms) -> "State":
        """Return what is known of a context."""
        memory = arms.recent.shape[1]
        slots = (arms.seen[0] + np.arange(memory)) % max(memory, 1)
        slots = slots[arms.which[0, slots] != EMPTY]
        return cls(
            operation=context.operation,
            pattern=context.pattern,
            size=context.size,
            load=context.load,
            values=list(values),
            seen=int(arms.seen[0]),
            low=float(arms.low[0]),
            high=float(arms.high[0]),
            count=arms.count[0].tolist(),
            mean=arms.mean[0].tolist(),
            scatter=arms.scatter[0].tolist(),
            last=arms.last[0].astype(int).tolist(),
            recent=arms.recent[0, slots].tolist(),
            which=arms.which[0, slots].tolist(),
        )

    def fill(self, arms: Arms) -> None:
        """Make `arms`, of one row and as many columns as values, know it."""
        arms.seen[0], arms.low[0], arms.high[0] = self.seen, self.low, self.high
        arms.count[0], arms.mean[0], arms.scatter[0] = self.count, self.mean, self.scatter
        arms.last[0] = self.last
        memory = arms.recent.shape[1]
        if not memory:
            return
        kept = min(len(self.recent), memory)
        slots = (self.seen - kept + np.arange(kept)) % memory
        first = len(self.recent) - kept
        arms.which[0, slots], arms.recent[0, slots] = self.which[first:], self.recent[first:]
        if first:  # learnt with a longer memory: the oldest went
            for column in range(len(self.values)):
                arms.recount(np.array([column]))

    def fault(self) -> str | None:
        """Return what is wrong with it, if anything is."""
        k = len(self.values)
        lengths = {len(self.count), len(self.mean), len(self.scatter), len(self.last)}
        rewards = [self.low, self.high, *self.mean, *self.recent]
        counted = max([len(self.recent), *self.last])
        faults = {
            "its values are none, or some twice": not 0 < k == len(set(self.values)),
            "it has not one count, mean, scatter and last a value": lengths != {k},
            "a reward in it is negative, absurd or no number": not all(
                0 <= reward <= GREATEST for reward in rewards
            ),
            "its least reward is above its greatest": self.low > self.high,
            "a count or scatter in it is negative, endless or no number": not all(
                0 <= number < math.inf for number in (*self.count, *self.scatter)
            ),
            "it was seen never, or for ever": not 1 <= self.seen < LONGEST,
            "it counts more observations than were seen": counted > self.seen
            or sum(self.count) >= self.seen + 1,
            "it remembers a value that is not there": len(self.which) != len(self.recent)
            or not set(self.which) <= set(range(k)),
            "a value was last tried before the first": min(self.last, default=0) < 0,
        }
        return next((fault for fault, found in faults.items() if found), None)


class _Learned(msgspec.Struct, forbid_unknown_fields=True):
    policy: str
    format: int
    contexts: list[State]


def written(policy: str, contexts: Mapping[Context, tuple[list[Value], Arms]]) -> dict[str, Any]:
    """Return what a policy knows as plain data, in the order of contexts."""
    states = [State.of(context, *contexts[context]) for context in sorted(contexts)]
    plain: dict[str, Any] = msgspec.to_builtins(_Learned(policy, FORMAT, states))
    return plain


def read(policy: str, data: Mapping[str, Any]) -> Iterator[tuple[Context, list[Value], State]]:
    """Yield what is known of each context; InputError: another policy's, or damaged."""
    said = {key: data.get(key) for key in ("policy", "format")} if isinstance(data, Mapping) else {}
    if said.get("policy") != policy or said.get("format") != FORMAT:
        raise InputError(
            f"learned state is of policy {said.get('policy')!r}, format {said.get('format')!r}, "
            f"not of {policy!r}, format {FORMAT}; use that policy, or begin anew"
        )
    try:
        states = msgspec.convert(data, _Learned).contexts
    except msgspec.ValidationError as error:
        raise InputError(f"learned state of {policy} is damaged: {error}") from error
    seen = set()
    for state in states:
        context = Context(
            operation=state.operation, pattern=state.pattern, size=state.size, load=state.load
        )
        fault = "it is there twice" if context in seen else state.fault()
        if fault is not None:
            raise InputError(f"learned state of {policy} is damaged: {context}: {fault}")
        seen.add(context)
        yield context, state.values, state
