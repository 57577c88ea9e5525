"""An I/O node that registers with the controller of another host answers all of its requests."""

from collections.abc import Iterator
from contextlib import closing
from typing import TypeVar

import msgspec
import pytest
from limits import HANG

from penstock.live.ionode.registration import Registration
from penstock.live.protocol import messages
from penstock.live.protocol.address import Address
from penstock.live.protocol.client import encode_line
from penstock.live.protocol.seal import Seals
from penstock.live.protocol.site_key import RemoteController, SiteKey, nonce

M = TypeVar("M", bound=messages.Message)
KEY = SiteKey(b"k" * 32)
NODE = messages.Node(number=3, id=7, address="0.0.0.0", transport="tcp", port=9)


class Controller:
    """The controller's end of one connection at a time."""

    def __init__(self) -> None:
        self._seals: Seals | None = None
        self._listener = Address(host="127.0.0.1", port=0).listen()
        self._listener.settimeout(HANG)
        port = self._listener.getsockname()[1]
        self.address = RemoteController(address=Address(host="127.0.0.1", port=port), key=KEY)

    def accept(self) -> messages.Node:
        """Accept a connection, check the site key, and return the node that registers."""
        self._seals = None
        self._socket, _ = self._listener.accept()
        self._socket.settimeout(HANG)
        self._lines = self._socket.makefile("rb")
        challenge = nonce()
        self.send(messages.Challenge(nonce=challenge))
        answer = self.receive(messages.Proof)
        assert KEY.proves("client", challenge, answer.nonce, answer.proof)
        proof = KEY.proof("controller", challenge, answer.nonce)
        self.send(messages.Proof(nonce=answer.nonce, proof=proof))
        self._seals = KEY.seals("controller", challenge, answer.nonce)
        registration = self.receive(messages.RegisterNode)
        self.send(messages.Done())
        return registration.node

    def send(self, message: messages.Message) -> None:
        line = encode_line(message)
        self._socket.sendall(line if self._seals is None else self._seals.sent.seal(line))

    def receive(self, kind: type[M]) -> M:
        line = self._lines.readline()
        if self._seals is not None:
            line = self._seals.received.open(line)
        return msgspec.json.decode(line, type=kind)

    def disconnect(self) -> None:
        self._lines.close()
        self._socket.close()

    def close(self) -> None:
        self.disconnect()
        self._listener.close()


@pytest.fixture
def controller() -> Iterator[Controller]:
    with closing(Controller()) as controller:
        registration = Registration(
            controller.address,
            NODE,
            lambda message: messages.Done(advice=type(message).__name__),
            reconnect_interval=0.01,
        )
        yield controller
        registration.end()


@pytest.mark.parametrize(
    "request_",
    [
        messages.Settings(depth=2),
        messages.SetWeights(weights={"a": 2.0}),
        messages.GetCounters(),
        messages.GetObservation(),
    ],
    ids=lambda message: type(message).__name__,
)
def test_every_request_of_the_controller_is_answered(
    controller: Controller, request_: messages.Message
) -> None:
    """Also those of the tuner: an unknown request would end the registration."""
    assert controller.accept() == msgspec.structs.replace(NODE, address="127.0.0.1")
    controller.send(request_)
    assert controller.receive(messages.Done).advice == type(request_).__name__


def test_it_registers_again_after_the_connection_broke(controller: Controller) -> None:
    controller.accept()
    controller.disconnect()
    assert controller.accept().number == NODE.number
