"""How an I/O node stays registered with the controller of another host, and answers it."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.site_key import RemoteController

RECONNECTS_EVERY = 0.5
EVERYWHERE = frozenset({"0.0.0.0", "::"})
Asked = messages.Settings | messages.SetWeights | messages.GetCounters
log = logging.getLogger("penstock.ionode")


class Registration:
    """An I/O node's end: a thread that comes back whenever the connection breaks."""

    def __init__(
        self,
        controller: RemoteController,
        node: messages.Node,
        answer: Callable[[messages.Message], messages.Message],
    ) -> None:
        self._controller, self._node, self._answer = controller, node, answer
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._channel: ControlConnection | None = None
        self._said = ""
        self._thread = threading.Thread(target=self._run, name="penstock-serving", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Take leave: jobs get maps without this I/O node."""
        self._over.set()
        with self._lock, suppress(OSError):
            if self._channel is not None:
                self._channel.shut_down()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._stay()
            except (OSError, InputError) as error:
                self._say(f"not registered with {self._controller}: {reason(error)}; trying again")
            self._over.wait(RECONNECTS_EVERY)

    def _stay(self) -> None:
        """Answer the controller until one of both goes."""
        with ControlConnection(self._controller) as controller:
            with self._lock:
                self._channel = controller
            try:
                controller.ask(messages.RegisterNode(node=self._as_seen(controller)), messages.Done)
                self._say(f"registered with {self._controller}")
                while not self._over.is_set():
                    controller.send(self._answer(controller.receive(Asked, None)))
            finally:
                with self._lock:
                    self._channel = None

    def _as_seen(self, controller: ControlConnection) -> messages.Node:
        if self._node.address not in EVERYWHERE:
            return self._node
        return msgspec.structs.replace(self._node, address=controller.host)

    def _say(self, what: str) -> None:
        if what != self._said and not self._over.is_set():
            self._said = what
            log.warning("I/O node %d: %s", self._node.number, what)
