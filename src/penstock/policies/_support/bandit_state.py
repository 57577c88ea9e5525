"""The state of a bandit as plain data: written, and validated when it is read."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from penstock.errors import InputError
from penstock.model import Context, Operation, Value
from penstock.policies._support.arms import EMPTY, GREATEST, Arms

FORMAT = 1
"""Changes whenever the fields change."""
LONGEST = 2**53
"""Limit of observations: counts are exact up to here."""


class State(msgspec.Struct, forbid_unknown_fields=True):
    """The statistics of one context. See Arms for the fields; `recent` has the oldest first."""

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
    def from_arms(cls, context: Context, values: list[Value], arms: Arms) -> "State":
        """Return the state of a context."""
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
        """Copy the state into `arms` of one row and one column per value."""
        arms.seen[0], arms.low[0], arms.high[0] = self.seen, self.low, self.high
        arms.count[0], arms.mean[0], arms.scatter[0] = self.count, self.mean, self.scatter
        arms.last[0] = self.last
        memory = arms.recent.shape[1]
        if not memory:
            return
        count = min(len(self.recent), memory)
        slots = (self.seen - count + np.arange(count)) % memory
        first = len(self.recent) - count
        arms.which[0, slots], arms.recent[0, slots] = self.which[first:], self.recent[first:]
        if first:  # learned with a longer window: the oldest rewards are dropped
            for column in range(len(self.values)):
                arms.recount(np.array([column]))

    def fault(self) -> str | None:
        """Return the first fault, or None."""
        k = len(self.values)
        lengths = {len(self.count), len(self.mean), len(self.scatter), len(self.last)}
        rewards = [self.low, self.high, *self.mean, *self.recent]
        counted = max([len(self.recent), *self.last])
        faults = {
            "it has no values, or one twice": not 0 < k == len(set(self.values)),
            "it does not have one count, mean, scatter and last per value": lengths != {k},
            "a reward is negative, too large or not a number": not all(
                0 <= reward <= GREATEST for reward in rewards
            ),
            "its least reward is above its greatest": self.low > self.high,
            "a count or scatter is negative, infinite or not a number": not all(
                0 <= number < math.inf for number in (*self.count, *self.scatter)
            ),
            "its number of observations is out of range": not 1 <= self.seen < LONGEST,
            "its counts exceed its number of observations": counted > self.seen
            or sum(self.count) >= self.seen + 1,
            "its window has a reward of an unknown value": len(self.which) != len(self.recent)
            or not set(self.which) <= set(range(k)),
            "a value was last tried before the first observation": min(self.last, default=0) < 0,
        }
        return next((fault for fault, present in faults.items() if present), None)


class _PolicyState(msgspec.Struct, forbid_unknown_fields=True):
    policy: str
    format: int
    contexts: list[State]


def to_plain(policy: str, contexts: Mapping[Context, tuple[list[Value], Arms]]) -> dict[str, Any]:
    """Return the state of a policy as plain data, in the order of contexts."""
    states = [State.from_arms(context, *contexts[context]) for context in sorted(contexts)]
    plain: dict[str, Any] = msgspec.to_builtins(_PolicyState(policy, FORMAT, states))
    return plain


def from_plain(
    policy: str, data: Mapping[str, Any]
) -> Iterator[tuple[Context, list[Value], State]]:
    """Yield the state of each context; InputError if it is another policy's or damaged."""
    head = {key: data.get(key) for key in ("policy", "format")} if isinstance(data, Mapping) else {}
    if head.get("policy") != policy or head.get("format") != FORMAT:
        raise InputError(
            f"learned state is of policy {head.get('policy')!r}, format {head.get('format')!r}, "
            f"not of {policy!r}, format {FORMAT}; use that policy, or start without state"
        )
    try:
        states = msgspec.convert(data, _PolicyState).contexts
    except msgspec.ValidationError as error:
        raise InputError(f"learned state of {policy} is damaged: {error}") from error
    contexts = set()
    for state in states:
        context = Context(
            operation=state.operation, pattern=state.pattern, size=state.size, load=state.load
        )
        fault = "it occurs twice" if context in contexts else state.fault()
        if fault is not None:
            raise InputError(f"learned state of {policy} is damaged: {context}: {fault}")
        contexts.add(context)
        yield context, state.values, state
