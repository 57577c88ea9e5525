"""Keeps an I/O node registered with the controller of another host. Runs in the I/O node."""

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

RECONNECT_INTERVAL = 0.5
_ANY_ADDRESS = frozenset({"0.0.0.0", "::"})
_Request = messages.Settings | messages.SetWeights | messages.GetCounters | messages.GetObservation
log = logging.getLogger("penstock.ionode")


class Registration:
    """A thread that registers, answers the controller, and reconnects when it must."""

    def __init__(
        self,
        controller: RemoteController,
        node: messages.Node,
        answer: Callable[[messages.Message], messages.Message],
        *,
        reconnect_interval: float = RECONNECT_INTERVAL,
    ) -> None:
        self._controller, self._node, self._answer = controller, node, answer
        self._reconnect_interval = reconnect_interval
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._connection: ControlConnection | None = None
        self._last_message = ""
        self._thread = threading.Thread(target=self._run, name="penstock-registration", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Unregister: the controller maps no more jobs to this I/O node."""
        self._stopped.set()
        with self._lock, suppress(OSError):
            if self._connection is not None:
                self._connection.shut_down()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._serve()
            except (OSError, InputError) as error:
                self._log(f"not registered with {self._controller}: {reason(error)}; trying again")
            self._stopped.wait(self._reconnect_interval)

    def _serve(self) -> None:
        """Register, and answer the controller until one of both ends."""
        with ControlConnection(self._controller) as controller:
            with self._lock:
                self._connection = controller
            try:
                controller.ask(
                    messages.RegisterNode(node=self._reachable_node(controller)), messages.Done
                )
                self._log(f"registered with {self._controller}")
                while not self._stopped.is_set():
                    controller.send(self._answer(controller.receive(_Request, None)))
            finally:
                with self._lock:
                    self._connection = None

    def _reachable_node(self, controller: ControlConnection) -> messages.Node:
        if self._node.address not in _ANY_ADDRESS:
            return self._node
        return msgspec.structs.replace(self._node, address=controller.host)

    def _log(self, message: str) -> None:
        """Log a message once, however often it repeats."""
        if message != self._last_message and not self._stopped.is_set():
            self._last_message = message
            log.warning("I/O node %d: %s", self._node.number, message)
