"""A user who holds places in service without moving data keeps nobody else from calling."""

import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from limits import HANG
from live.conftest import folder, serve
from live.ionode.permissions import (
    ASK,
    CALLS_MADE,
    IN_CALL,
    PERMIT_BYTES,
    PERMITS,
    Caller,
)
from live.ionode.real_node import Serve
from live.other_users import AS_ROOT, NOBODY

__all__ = ["folder", "serve"]
pytestmark = [pytest.mark.security, AS_ROOT]
DEPTH = 16
MIB = 1 << 20
OFTEN = 0.2
"""Seconds: one that has no place is given one beyond the depth after 0.25 s without a release."""


class Holder:
    """A process that is always in a call on all permits, claims progress, and asks for a byte."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.number = [0] * PERMITS
        self.since: dict[int, float] = {}
        self.grants = self.calls = 0
        self.next = time.monotonic() + OFTEN
        for permit in range(PERMITS):
            self.write("<I", permit, IN_CALL, 1)
            self.ask(permit)

    def write(self, layout: str, permit: int, at: int, value: int) -> None:
        assert self.caller.page is not None
        struct.pack_into(layout, self.caller.page, permit * PERMIT_BYTES + at, value)

    def ask(self, permit: int) -> None:
        self.since.pop(permit, None)
        self.number[permit] += 1
        self.caller.send(ASK, permit=permit, number=self.number[permit], size=1)

    def step(self) -> None:
        assert self.caller.page is not None
        now = time.monotonic()
        self.calls += 1
        for permit in range(PERMITS):
            (answered,) = struct.unpack_from("<I", self.caller.page, permit * PERMIT_BYTES)
            if answered == self.number[permit]:
                if permit not in self.since:
                    self.since[permit] = now
                    self.grants += 1
                self.write("<Q", permit, CALLS_MADE, self.calls)
        if self.since and now >= self.next:
            self.next = now + OFTEN
            self.ask(min(self.since, key=self.since.__getitem__))
        time.sleep(0.001)


@contextmanager
def nobodys(node: object, path: object) -> Iterator[Caller]:
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        caller = Caller(path)  # type: ignore[arg-type]
    finally:
        os.setresuid(0, 0, 0)
    with caller:
        yield caller


def test_places_that_move_nothing_are_not_given_again_while_another_waits(serve: Serve) -> None:
    """The queue is fair in bytes, of which a holder uses none: it was always the next.

    One thread of another user had 1% of its bandwidth, or waited until its longest wait was over.
    Then each of its questions waited for 0.25 s, longer than this holder's from one grant to the
    next. Its part of the places is its own.
    """
    node = serve("--all-users", "--depth", str(DEPTH))
    for path in (node.folder.parent, node.folder):
        path.chmod(0o755)
    node.socket.chmod(0o666)
    with Caller(node.socket, job=b"holds") as hostile, nobodys(node, node.socket) as honest:
        holder = Holder(hostile)
        while holder.grants < DEPTH:
            holder.step()
        while_it_waited = 0
        for _ in range(96):
            honest.request(MIB)
            before, began = holder.grants, time.monotonic()
            while (credit := honest.answer()) is None:
                holder.step()
                assert time.monotonic() - began < HANG
            while_it_waited += holder.grants - before
            honest.called(credit.bytes)
            honest.give_back()
        assert while_it_waited <= DEPTH
