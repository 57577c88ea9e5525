"""A man in the middle: passes lines between two ends of a TCP connection, and may change them."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from limits import HANG

Attack = Callable[[bool, int, bytes], list[tuple[bool, bytes]]]
"""From whom a line is (True: the controller), its number in that direction, and its text; to the
lines to pass on: to whom (True: to the client), and what."""


def honest(from_controller: bool, _: int, line: bytes) -> list[tuple[bool, bytes]]:
    """Pass on what comes."""
    return [(from_controller, line)]


class Relay:
    """Listens on `port` of this host in the place of a controller; a context manager."""

    def __init__(self, controller: tuple[str, int], attack: Attack = honest) -> None:
        self._controller, self._attack = controller, attack
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> "Relay":
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end(self._listener)
        self._threads[0].join(HANG)
        for one in self._sockets:
            self._end(one)
        for thread in self._threads[1:]:
            thread.join(HANG)

    @staticmethod
    def _end(one: socket.socket) -> None:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                controller = socket.create_connection(self._controller, HANG)
            except OSError:
                client.close()
                continue
            controller.settimeout(None)
            self._sockets += [client, controller]
            for from_controller in (True, False):
                thread = threading.Thread(
                    target=self._pass_on, args=(client, controller, from_controller)
                )
                self._threads.append(thread)
                thread.start()

    def _pass_on(
        self, client: socket.socket, controller: socket.socket, from_controller: bool
    ) -> None:
        source, target = (controller, client) if from_controller else (client, controller)
        with suppress(OSError, ValueError), source.makefile("rb") as lines:
            for number, line in enumerate(lines):
                for to_client, text in self._attack(from_controller, number, line):
                    (client if to_client else controller).sendall(text)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
