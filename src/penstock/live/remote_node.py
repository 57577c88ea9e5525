"""I/O nodes on other hosts: how the controller asks one, and how one stays registered with it."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.live import channel, wire
from penstock.live.channel import Channel
from penstock.live.deployment import ANSWERS_WITHIN
from penstock.live.site_key import RemoteController

MOST_OWED = 16
"""Answers that an I/O node may owe before it is asked no more."""
RECONNECTS_EVERY = 0.5
EVERYWHERE = frozenset({"0.0.0.0", "::"})
Asked = wire.Settings | wire.Weigh | wire.Measure
log = logging.getLogger("penstock.ionode")


class RemoteLink:
    """The controller's end of the connection that an I/O node keeps."""

    def __init__(self, node: wire.Node, writer: asyncio.StreamWriter) -> None:
        self.node = node
        self._writer = writer
        self._owed: deque[asyncio.Future[bytes]] = deque()

    async def ask(self, message: wire.Message, kind: Any) -> Any:
        """Return its answer; OSError (TimeoutError too): none comes."""
        if len(self._owed) >= MOST_OWED:
            raise TimeoutError(f"it owes {MOST_OWED} answers")
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        # An answer that comes too late is dropped when it comes: they come in order.
        self._owed.append(answer)
        self._writer.write(channel.line(message))
        async with asyncio.timeout(ANSWERS_WITHIN):
            return channel.parse(await answer, wire.Failed | kind)

    def heard(self, text: bytes) -> None:
        """Take an answer in; ConnectionError: nothing was asked."""
        if not self._owed:
            raise ConnectionError("an answer to nothing")
        answer = self._owed.popleft()
        if not answer.done():
            answer.set_result(text)

    def over(self) -> None:
        """The connection is no more."""
        for answer in self._owed:
            if not answer.done():
                answer.set_exception(ConnectionResetError("its connection broke off"))


class Registration:
    """An I/O node's end: a thread that comes back whenever the connection breaks."""

    def __init__(
        self,
        controller: RemoteController,
        node: wire.Node,
        answer: Callable[[wire.Message], wire.Message],
    ) -> None:
        self._controller, self._node, self._answer = controller, node, answer
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._channel: Channel | None = None
        self._said = ""
        self._thread = threading.Thread(target=self._run, name="penstock-serving", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Take leave: jobs get maps without this I/O node."""
        self._over.set()
        with self._lock, suppress(OSError):
            if self._channel is not None:
                self._channel.hang_up()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._stay()
            except (OSError, InputError) as error:
                self._say(f"not registered with {self._controller}: {reason(error)}; trying again")
            self._over.wait(RECONNECTS_EVERY)

    def _stay(self) -> None:
        """Answer the controller until one of both goes."""
        with Channel(self._controller) as controller:
            with self._lock:
                self._channel = controller
            try:
                controller.ask(wire.Serving(node=self._as_seen(controller)), wire.Done)
                self._say(f"registered with {self._controller}")
                while not self._over.is_set():
                    controller.send(self._answer(controller.receive(Asked, None)))
            finally:
                with self._lock:
                    self._channel = None

    def _as_seen(self, controller: Channel) -> wire.Node:
        if self._node.address not in EVERYWHERE:
            return self._node
        return msgspec.structs.replace(self._node, address=controller.host)

    def _say(self, what: str) -> None:
        if what != self._said and not self._over.is_set():
            self._said = what
            log.warning("I/O node %d: %s", self._node.number, what)
