"""What a bandit has learnt, as plain data: written, and read with every doubt."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from penstock.errors import InputError
from penstock.model import Context, Operation, Value
from penstock.policies.tuning.arms import EMPTY, GREATEST, Arms

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
        rewards = [self.low, self.high, *self.mean, *self.recent]
        numbers = [*rewards, *self.count, *self.scatter]
        if {len(self.count), len(self.mean), len(self.scatter), len(self.last)} != {
            len(self.values)
        }:
            return "it has not one count, mean, scatter and last a value"
        if not self.values or len(set(self.values)) < len(self.values):
            return "its values are none, or some twice"
        if not all(math.isfinite(n) and n >= 0 for n in numbers) or self.low > self.high:
            return "a number in it is negative, infinite or none"
        if max(rewards) > GREATEST:
            return f"a reward in it is above {GREATEST}"
        counted = max(len(self.recent), *self.last, math.floor(sum(self.count)))
        if not 1 <= self.seen < LONGEST or min(self.last) < 0 or counted > self.seen:
            return "it counts more observations than were seen"
        if len(self.which) != len(self.recent) or not set(self.which) <= set(
            range(len(self.values))
        ):
            return "it remembers a value that is not there"
        return None


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
