"""The arbiter's questions to its policies, so that a replay of a record can repeat time-outs."""

from collections.abc import Callable, Collection
from typing import TypeVar

from penstock.errors import InputError
from penstock.policies._support.asking import OutOfTime

_Answer = TypeVar("_Answer")


class PolicyCalls:
    """Numbers the calls of policies for an event, from 0, and notes those that took too long."""

    def __init__(self) -> None:
        self.repeat: Collection[int] = ()
        """In a replay: the calls for the next event that took too long when it was recorded. They
        fail without being made: that machine was slow, not the policy."""
        self._made = 0
        self._late: list[int] = []

    def begin(self) -> None:
        """An event is to be decided on."""
        self._made, self._late = 0, []

    def make(self, call: Callable[[], _Answer]) -> _Answer:
        """Return what a policy answers."""
        number, self._made = self._made, self._made + 1
        try:
            if number in self.repeat:
                raise InputError("it took too long when this was recorded") from OutOfTime()
            return call()
        except InputError as error:
            if isinstance(error.__cause__, OutOfTime):
                self._late.append(number)
            raise

    def take_late(self) -> list[int]:
        """Return which calls for the last event took too long, once."""
        late, self._late = self._late, []
        return late
